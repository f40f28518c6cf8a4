"""Data from outside: DOROTHEA (the paper's), the paper's table of drug response, OpenML.

Nothing is downloaded unless it is asked for. DOROTHEA comes through `workbench data`. Where the
paper's Cancer Drug Response table is published is unknown to us: `load_table` reads it, or any
other, from a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from workbench.data import files_of

from .datasets import Data, from_arrays

DOROTHEA_FEATURES = 100_000


def load_dorothea(download: bool = False) -> Data:
    """DOROTHEA, training and validation together: 1,150 compounds, binary features that vary.

    The paper's logistic task (91,598 features). Two copies in memory take 1.7 GB. Raises
    DataMissing, which says how to get it, unless it is in the cache or `download` is True.
    """
    files = files_of("dorothea", download)
    rows = [row for part in ("train", "valid") for row in _active(files[f"dorothea_{part}.data"])]
    y = np.concatenate(
        [np.loadtxt(files[f"dorothea_{part}.labels"], ndmin=1) for part in ("train", "valid")]
    )
    return from_active(rows, y, DOROTHEA_FEATURES, "DOROTHEA")


def _active(path: Path) -> Iterable[list[int]]:
    """Features that are 1, from 0 on, one row a line."""
    with open(path, encoding="ascii") as lines:
        for line in lines:
            yield [int(word) - 1 for word in line.split()]


def from_active(
    rows: Iterable[list[int]], y: np.ndarray, features: int, name: str = "binary data"
) -> Data:
    """Data of binary features from the ones of each row; features that never vary are dropped."""
    rows = list(rows)
    if len(rows) != len(y):
        raise ValueError(f"{len(rows)} rows of features and {len(y)} labels")
    X = np.zeros((len(rows), features), np.float32)
    for i, active in enumerate(rows):
        X[i, active] = 1
    kept = np.flatnonzero(np.ptp(X, axis=0) > 0)
    made = from_arrays(X[:, kept], y, "logistic", name)
    return Data(made.name, made.X, made.y, made.loss, tuple(f"f{j}" for j in kept))


def load_table(path: str | Path, response: str, loss: str | None = None) -> Data:
    """Own data from a .csv or .parquet file: numeric columns, one of them the response."""
    import pandas as pd

    from workbench.parameters import nearest

    path = Path(path)
    readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    if path.suffix not in readers:
        raise ValueError(f"{path}: allowed are .csv and .parquet")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    table = readers[path.suffix](path)
    if response not in table:
        raise ValueError(f"{path} has no column '{response}'{nearest(response, table.columns)}")
    features = table.drop(columns=response).select_dtypes("number")
    if features.empty:
        raise ValueError(f"{path} has no numeric columns besides '{response}'")
    if table[response].isna().any() or features.isna().any().any():
        raise ValueError(f"{path} has missing values: fill or drop them first")
    return from_arrays(features, _coded(table[response]), loss, path.stem)


def load_openml(name: str, version: int = 1, loss: str | None = None) -> Data:
    """A table of OpenML with a numeric response or two classes; needs the network the first time.

    scikit-learn keeps what it has fetched in its own cache.
    """
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(name, version=version, as_frame=True, parser="auto")
    features = bunch.data.select_dtypes("number").dropna(axis=1)
    return from_arrays(features, _coded(bunch.target), loss, name)


def _coded(column) -> np.ndarray:
    """A response as numbers: two labels of any kind become -1 and +1."""
    labels = column.unique()
    if len(labels) == 2:
        return np.where(column == max(labels), 1.0, -1.0)
    return np.asarray(column, float)
