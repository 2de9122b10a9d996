"""What users write, for mypy to read: checked, not run."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import covary

X: NDArray[np.float64] = np.ones((4, 2))
ppca: covary.PPCA = covary.PPCA(n_components="auto", standardize=False).fit(X)
scores, covariances = ppca.transform(X, return_cov=True)
density: float = ppca.score(X)
again: covary.PPCA = covary.PPCA.load(Path("model.covary"))
bayes: covary.BayesianPCA = covary.BayesianPCA(prior={"noise_rate": 0.01}).fit(X)
filled, std = covary.Imputer(covary.PPCA(1)).fit_transform(X, return_std=True)
pooled: float = covary.pool([1.0, 2.0], [0.1, 0.1]).total
q: int = covary.select(X).recommended
k: int = covary.select(X, model="mppca").n_mixtures
covary.PCA(n_components="mle").fit(X)
covary.IncrementalPCA(2).partial_fit(X)
covary.FactorAnalysis(2, rotation="varimax").fit(X)
gfa: covary.GroupFactorAnalysis = covary.GroupFactorAnalysis(views=[1, 1]).fit({"a": X, "b": X})
