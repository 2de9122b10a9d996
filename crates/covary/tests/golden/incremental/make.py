"""Writes *.json: streams of complete batches through scikit-learn's IncrementalPCA.

The tables are those that scikit-learn ships; of the digits, 120 rows of 12 pixels that vary.
"""

import json
import platform
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import IncrementalPCA

TABLES = {
    "iris": load_iris().data,
    "wine": load_wine().data,
    "digits": load_digits().data[:120, [2, 3, 4, 5, 10, 13, 18, 21, 26, 29, 34, 42]],
}
VERSIONS = {
    "python": platform.python_version(),
    "numpy": np.__version__,
    "scipy": scipy.__version__,
    "scikit-learn": sklearn.__version__,
}

for name, table in TABLES.items():
    cases = []
    for batch in (10, 37, len(table)):
        for n_components in (None, 4):
            pca = IncrementalPCA(n_components)
            for start in range(0, len(table), batch):
                pca.partial_fit(table[start : start + batch].copy())
            cases.append(
                {
                    "batch": batch,
                    "n_components": n_components,
                    "n_rows": int(pca.n_samples_seen_),
                    "mean": pca.mean_.tolist(),
                    "variances": pca.var_.tolist(),
                    "components": pca.components_.tolist(),
                    "singular_values": pca.singular_values_.tolist(),
                    "explained_variance": pca.explained_variance_.tolist(),
                    "explained_variance_ratio": pca.explained_variance_ratio_.tolist(),
                    "noise_variance": float(pca.noise_variance_),
                }
            )
    text = json.dumps({"made_by": "make.py", "versions": VERSIONS, "data": table.tolist(), "cases": cases})
    Path(__file__).with_name(f"{name}.json").write_text(text + "\n")
