"""Data from outside: the paper's own pictures, and a user's label images.

Nothing is downloaded unless it is asked for (`workbench data fetch`). Loaders of tissue end in
frames (n, H, W) with identities 0..N and one shared `kind`, as the rest of the method wants them.
Format of the authors' files: their repository (channel 0 identity, channel 1 kind).
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from workbench.data import files_of
from workbench.numerics.checks import choice

from ._checks import all_alive, as_frames, as_kind

FORMATS = ".npz, .npy, .tif, .tiff, .png"


def load_simulation(path: str | Path) -> tuple[np.ndarray, np.ndarray, int | None]:
    """One simulation in the authors' format: (frames (F, H, W), kind (N + 1,), digit or None).

    The .npz holds `data` (F, 2, H, W) integers and may hold `label`; theirs is the data set
    "cellular_digit" of the data cache. Raises ValueError if it does not, if a cell changes its
    kind, or if one has died.
    """
    with np.load(path) as file:
        if "data" not in file:
            raise ValueError(f"{path} holds {list(file)}; needed is 'data' (frames, 2, H, W)")
        data, label = file["data"], int(file["label"]) if "label" in file else None
    if data.ndim != 4 or data.shape[1] != 2:
        raise ValueError(f"'data' in {path} has shape {data.shape}; needed is (frames, 2, H, W)")
    frames = as_frames(data[:, 0], "channel 0 of data")
    kind = kinds_at(frames, data[:, 1])
    all_alive(frames, kind)
    return frames, kind, label


def load_simulations(
    paths: Sequence[str | Path], frame: int = -1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One frame of many simulations: (frames (n, H, W), kind, labels (n,), -1 where there is none).

    All must hold the same cells; ValueError names the first file that does not.
    """
    if not paths:
        raise ValueError("no files given")
    loaded = [load_simulation(path) for path in paths]
    kind, shape = loaded[0][1], loaded[0][0].shape[1:]
    for path, (frames, own, _) in zip(paths, loaded, strict=True):
        if frames.shape[1:] != shape or not np.array_equal(own, kind):
            raise ValueError(f"{path} has another lattice or other cells than {paths[0]}")
    labels = [-1 if label is None else label for _, _, label in loaded]
    return np.stack([frames[frame] for frames, _, _ in loaded]), kind, np.array(labels)


def load_labels(
    labels: ArrayLike | str | Path, kinds: ArrayLike | str | Path | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A user's label images as (frames (n, H, W), kind): arrays, or .npy, .npz, .tif, .png files.

    labels: (H, W) or (n, H, W) integers, 0 = medium, any other numbers (they become 1..N in each
    picture, ordered by kind, then by number). kinds: pictures of the same shape with the kind of
    each site, or (largest label + 1,) kinds by label, or None for one kind. Raises ValueError
    unless all pictures have the same number of cells of each kind.
    """
    labels = as_frames(_read(labels), "labels")
    kinds = None if kinds is None else np.asarray(_read(kinds))
    if kinds is None:
        kinds = (labels > 0).astype(int)
    elif kinds.ndim == 1:
        if labels.max() >= len(kinds):
            raise ValueError(
                f"kinds has {len(kinds)} entries but labels holds label {labels.max()}"
            )
        kinds = kinds[labels]
    kinds = kinds.reshape(-1, *kinds.shape[-2:])
    if kinds.shape != labels.shape:
        raise ValueError(f"kinds has shape {kinds.shape} but labels has {labels.shape}")
    frames, dealt = np.zeros_like(labels), []
    for frame, picture, picture_kinds in zip(frames, labels, kinds, strict=True):
        names = np.unique(picture[picture > 0])
        found = kinds_at(picture, picture_kinds)[names]
        order = np.argsort(found, kind="stable")
        rename = np.zeros(int(picture.max()) + 1, np.int32)
        rename[names[order]] = np.arange(1, len(names) + 1)
        frame[:] = rename[picture]
        dealt.append(np.append(0, found[order]))
    for i, kind in enumerate(dealt):
        if not np.array_equal(kind, dealt[0]):
            raise ValueError(
                f"picture {i} has cells of kinds {np.bincount(kind)[1:].tolist()} but picture 0 "
                f"{np.bincount(dealt[0])[1:].tolist()}; all need the same"
            )
    return frames, as_kind(dealt[0])


def kinds_at(frames: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """(largest identity + 1,) kind of each identity from a map of kinds; 0 without a site."""
    frames, kinds = frames.ravel(), np.asarray(kinds).ravel().astype(np.int32)
    kind = np.zeros(int(frames.max()) + 1, np.int32)
    kind[frames] = kinds
    wrong = np.flatnonzero(kind[frames] != kinds)
    if len(wrong):
        raise ValueError(f"cell {frames[wrong[0]]} has sites of more than one kind")
    if kind[0] != 0:
        raise ValueError(f"sites of medium (identity 0) have kind {kind[0]}; allowed is 0")
    return kind


def load_mnist(part: str = "test", download: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The paper's digits: (images (n, 28, 28) float32 in 0..1, labels (n,)).

    part: "test" (the paper's, n = 10,000) or "train" (60,000). Hand them to `simulate("digits", n,
    images=images, labels=labels, **PAPER["digits"])`; ink is >= .5, that is 128 of 255 as in the
    official code. They come from the data cache: FileNotFoundError says how to get them if they
    are absent, unless download is True.
    """
    prefix = {"test": "t10k", "train": "train"}[choice("part", part, ["test", "train"])]
    files = files_of("mnist", download)
    images = read_idx(files[f"{prefix}-images-idx3-ubyte.gz"])
    labels = read_idx(files[f"{prefix}-labels-idx1-ubyte.gz"])
    return images.astype(np.float32) / 255, labels.astype(int)


def read_idx(path: str | Path) -> np.ndarray:
    """The array of bytes in a gzipped IDX file, the format of MNIST; ValueError if it is none."""
    try:
        content = gzip.decompress(Path(path).read_bytes())
        zeros, kind, n_axes = struct.unpack_from(">HBB", content)
        if (zeros, kind) != (0, 8):
            raise ValueError(f"type {kind:#04x}, needed is 0x08: unsigned bytes")
        shape = struct.unpack_from(f">{n_axes}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)
    except (gzip.BadGzipFile, zlib.error, EOFError, struct.error, ValueError) as error:
        raise ValueError(f"{path} is no gzipped IDX file ({error})") from None


def _read(source: ArrayLike | str | Path) -> np.ndarray:
    """An array as it is, or the array in a file."""
    if not isinstance(source, str | Path):
        return np.asarray(source)
    path = Path(source)
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        with np.load(path) as file:
            if len(file.files) != 1:
                raise ValueError(f"{path} holds {file.files}; needed is one array")
            return file[file.files[0]]
    if path.suffix in {".tif", ".tiff", ".png"}:
        from PIL import Image, ImageSequence

        with Image.open(path) as image:
            return np.stack([np.array(page) for page in ImageSequence.Iterator(image)])
    raise ValueError(f"{path} is no label image; allowed are {FORMATS}")
