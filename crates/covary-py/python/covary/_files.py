"""Model files: the same that the command line writes and reads."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from .exceptions import ModelFileError

if TYPE_CHECKING:
    from typing_extensions import Self


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
        from ._families import load

        found = load(path)
        if not isinstance(found, cls):
            raise ModelFileError(
                f"{os.fspath(path)} holds another kind of model: open it with {type(found).__name__}.load or covary.load"
            )
        return found


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
