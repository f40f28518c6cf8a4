"""The user's own table, and the paper's data from a clone of the official repository.

Nothing is downloaded. The official repository has no license, so none of its files is shipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .problems import group_array, numbers, split_frame
from .ratings import Ratings, of_arrays

COLUMNS = ("group", "y", "pred")  # of a CSV file
SPIRAL = (3, 4, 5)  # labels of spiral galaxies in the official table
GALAXY_COLUMNS = ("true_label", "pred_label", "WVT_BIN")


def read(path: str | Path) -> Ratings:
    """Labelled items of a CSV file with columns group, y, pred, or of an official file.

    Items without a label are left out: a study needs the truth. Raises ValueError, in one line, for
    a file that is none of these.
    """
    path = Path(path)
    if path.is_dir() or path.suffix == ".h5":
        return load_official(path)
    frame = read_csv(path)
    if set(GALAXY_COLUMNS) <= set(frame.columns):
        return load_official(path)
    group, y, f, _, _ = split_frame(frame, *COLUMNS)
    group = group_array(group, "group")
    group = group.astype(str) if group.dtype.kind == "O" else group
    return of_arrays(path.stem, group, numbers(y, "y", group), numbers(f, "pred", group))


def read_csv(path: str | Path) -> Any:
    """A table as a pandas DataFrame; ValueError when the file cannot be read."""
    import pandas as pd

    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:  # pandas' parser errors are ValueErrors
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise ValueError(f"cannot read {path}: {reason}") from None


def load_official(path: str | Path) -> Ratings:
    """The paper's reviews (an .h5 file) or galaxies (galaxy_test_prediction.csv).

    path: one of these files in a clone of the official repository (data/amazon/*.h5,
    data/galaxy/galaxy_test_prediction.csv), or a folder that holds exactly one of them.
    Reviews: a data set a product, row 0 ratings, row 1 predictions. Galaxies: a problem is a bin of
    the sky, label and prediction are 1 for a spiral; that the column pred_label holds classes like
    true_label is reconstructed from its description.
    """
    path = Path(path)
    if path.is_dir():
        found = sorted([*path.rglob("*.h5"), *path.rglob("galaxy_test_prediction.csv")])
        if len(found) != 1:
            names = ", ".join(str(f.relative_to(path)) for f in found) or "none"
            raise ValueError(f"{path} holds {names}: give the path of one official file")
        path = found[0]
    return _galaxies(path) if path.suffix == ".csv" else _reviews(path)


def _galaxies(path: Path) -> Ratings:
    frame = read_csv(path)
    missing = [c for c in GALAXY_COLUMNS if c not in frame.columns]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]}: it is not the official table")
    bins = group_array(frame["WVT_BIN"], "WVT_BIN")
    classes = [numbers(frame[c], c, bins) for c in GALAXY_COLUMNS[:2]]
    for name, values in zip(GALAXY_COLUMNS, classes, strict=False):
        if (values != values.round()).any():
            raise ValueError(f"{path}: {name} holds other numbers than classes, which are whole")
    y, f = (np.isin(values, SPIRAL).astype(float) for values in classes)
    return of_arrays("galaxy", bins, y, f)


def _reviews(path: Path) -> Ratings:
    try:
        import h5py
    except ImportError:
        raise ImportError(
            f"h5py, which reads {path.name}, is missing: pip install workbench[official]"
        ) from None
    groups, columns = [], []
    try:
        with h5py.File(path) as stored:
            for name in stored:
                shape = getattr(stored[name], "shape", ())  # a folder has none
                if len(shape) != 2 or shape[0] < 2:
                    raise ValueError(f"{path}: data set '{name}' has shape {shape}, not (2, items)")
                groups += [name] * shape[1]
                columns.append(stored[name][:2])
    except OSError as error:
        raise ValueError(f"cannot read {path}: {str(error).splitlines()[0]}") from None
    if not columns:
        raise ValueError(f"{path} holds no data sets: it is not the official file")
    y, f = np.concatenate(columns, axis=1)
    return of_arrays(
        path.stem, np.array(groups), numbers(y, "rating", groups), numbers(f, "prediction", groups)
    )
