"""Model files: the same that the command line writes and reads."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from . import _covary
from .exceptions import ModelFileError

if TYPE_CHECKING:
    from typing_extensions import Self

#: Makes the estimator of what a file holds; filled by the modules that have the classes.
OPENERS: dict[type, Callable[[Any], Any]] = {}


class ModelFile:
    """An estimator that can be kept in a file."""

    _model: Any

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file that the command line writes and reads.

        The file is written beside its target and renamed, so that a failure leaves an older one as
        it was. Independent components in it have variance 1.

        Parameters
        ----------
        path : path-like
            Where; ``.covary`` is the usual extension.
        """
        check_is_fitted(self)
        _write_whole(Path(path), self._model.write())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model file, written here or by the command line.

        Parameters
        ----------
        path : path-like
            A model file.

        Returns
        -------
        estimator : object
            The fitted estimator; its attributes are those of the file.
        """
        found = load(path)
        if not isinstance(found, cls):
            raise ModelFileError(
                f"{os.fspath(path)} holds another kind of model: open it with {type(found).__name__}.load or covary.load"
            )
        return found


def load(path: str | os.PathLike[str]) -> Any:
    """Open a model file as the estimator it holds.

    Parameters
    ----------
    path : path-like
        A model file, written by ``save`` or by ``covary fit``.

    Returns
    -------
    estimator : PCA, PPCA, FactorAnalysis, BayesianPCA, Gaussian, MixturePPCA, GaussianMixture, \
PPCAClassifier, GroupFactorAnalysis, FastICA, InfomaxICA or NoisyICA
        The fitted estimator. Options that leave no trace in the model, such as `tol`, are the defaults.
        Rotated principal components open as PPCA, whose scores rotate with the loadings.

    Examples
    --------
    >>> import covary, numpy as np, tempfile, pathlib
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.covary"
    >>> covary.PPCA(n_components=1).fit(X).save(path)
    >>> covary.load(path)
    PPCA(n_components=1)
    """
    try:
        model = _covary.open_model(Path(path).read_bytes())
        return OPENERS[type(model)](model)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None


def _write_whole(path: Path, content: bytes) -> None:
    """Writes a file beside its target, then renames it."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
