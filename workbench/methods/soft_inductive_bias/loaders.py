"""Larger images from outside: MNIST, FashionMNIST and CIFAR-10 through torchvision, when asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from workbench.numerics.checks import choice

NAMES = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST", "cifar10": "CIFAR10"}


def load_images(
    name: str, root: str | Path = "data", download: bool = False, limit: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Training images (n, pixels) in [0, 1] and labels (n,), for `digits.split(..., data=...)`.

    name: "mnist", "fashion_mnist" or "cifar10". download: whether the network may be used; without
    it FileNotFoundError says what is missing. limit: only the first so many. ImportError without
    torchvision.
    """
    choice("name", name, NAMES)
    try:
        from torchvision import datasets
    except ImportError:
        raise ImportError("load_images needs torchvision: pip install workbench[vision]") from None
    try:
        found = getattr(datasets, NAMES[name])(str(root), train=True, download=download)
    except RuntimeError:
        raise FileNotFoundError(
            f"{name} is not in {Path(root)}: load_images({name!r}, download=True) fetches it"
        ) from None
    images = np.asarray(found.data)[:limit]
    labels = np.asarray(found.targets)[:limit].astype(np.int64)
    return images.reshape(len(images), -1) / 255.0, labels
