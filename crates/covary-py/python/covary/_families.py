"""Which class stands for a model of which family: the one place where names of families are looked up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from . import _covary
from ._cca import ProbabilisticCCA
from ._classifier import PPCAClassifier
from ._fastica import FastICA
from ._fitted import FAMILIES, Fitted
from ._gaussian_mixture import GaussianMixture
from ._ica import InfomaxICA, NoisyICA
from ._mixture_ppca import MixturePPCA
from ._pca import PCA
from ._ppca import PPCA
from .exceptions import ModelFileError

# Families that share a class, or that several classes fit.
FAMILIES.update(
    pca=PCA, pcca=ProbabilisticCCA, mppca=MixturePPCA, mfa=MixturePPCA, gmm=GaussianMixture
)
#: Independent components have one for each method.
SOURCES: dict[str, type[Fitted]] = {"fastica": FastICA, "maximum-likelihood": InfomaxICA, "noisy": NoisyICA}


def class_of(model: _covary.Learned) -> type[Fitted]:
    """The class of the estimator that a model is of."""
    if isinstance(model, _covary.Mixture) and model.classes is not None:
        return PPCAClassifier
    cls = SOURCES.get(model.method[0]) if isinstance(model, _covary.Sources) else FAMILIES.get(model.family)
    if cls is None:
        raise ModelFileError(f"holds a model of kind {model.family!r}, which Python does not open: ask it by the command")
    # Rotated components have posterior scores, which rotate with the loadings; projections do not.
    rotated = isinstance(model, _covary.Model) and model.rotation is not None
    return PPCA if cls is PCA and rotated else cls


def load(path: str | os.PathLike[str]) -> Any:
    """Open a model file as the estimator it holds.

    Parameters
    ----------
    path : path-like
        A model file, written by ``save`` or by ``covary fit``.

    Returns
    -------
    estimator : PCA, PPCA, StudentPPCA, SparsePPCA, FactorAnalysis, BayesianPCA, BayesianSparsePCA, Gaussian, \
MixturePPCA, GaussianMixture, PPCAClassifier, GroupFactorAnalysis, ProbabilisticCCA, DynamicFactor, FunctionalPCA, FastICA, \
InfomaxICA or NoisyICA
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
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    return class_of(model)._of_model(model)


__all__ = ["FAMILIES", "class_of", "load"]
