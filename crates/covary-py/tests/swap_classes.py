"""A pytest plugin: the tests of another package with this one's classes in the place of its own.

``COVARY_SWAP`` names the classes, separated by commas. Only the names that a test module imported are
replaced, so that what the tests call by them is ours and everything else is as it was.
"""

import os

import numpy as np

import covary


def fastica(X, n_components=None, *, return_X_mean=False, compute_sources=True, return_n_iter=False, **options):
    """scikit-learn's function of this name, by way of our class."""
    ica = covary.FastICA(n_components, **options)
    sources = ica.fit_transform(X) if compute_sources else ica.fit(X) and None
    if options.get("whiten", "unit-variance") is False:
        whitening, unmixing, mean = None, ica.components_, None
    else:
        whitening, mean = ica.whitening_, ica.mean_
        unmixing = ica.components_ @ np.linalg.pinv(whitening)
    found = [whitening, unmixing, sources]
    return tuple(found + [mean] * return_X_mean + [ica.n_iter_] * return_n_iter)


def pytest_collection_modifyitems(items):
    ours = {name: getattr(covary, name) for name in os.environ["COVARY_SWAP"].split(",")}
    if "FastICA" in ours:
        ours["fastica"] = fastica
    for module in {item.module for item in items}:
        replaced = [name for name in ours if hasattr(module, name)]
        assert replaced, f"{module.__name__} has none of {sorted(ours)}"
        for name in replaced:
            setattr(module, name, ours[name])
