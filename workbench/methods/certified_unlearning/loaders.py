"""The paper's own data and networks: torchvision when asked, never a download by itself.

`load_paper_data`, for "transfer" `transfer_features`, `paper_network`, `train_steps`: that is the
model which is to forget, and `Unlearner` makes it. Arrays of one's own go to `Unlearner` as they
are, or flat and with ten classes to `data.split(..., data=(X, y))`.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from workbench.numerics.checks import choice
from workbench.steps import Step, Steps

from .mechanisms import one_cycle
from .networks import truncated_normal_
from .protocol import PROTOCOL

NAMES = {"mnist": "MNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100"}
NETWORKS = ("mnist", "cifar10", "transfer")
FEATURES, FEATURE_PIXELS = 512, 224
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def load_paper_data(
    name: str, root: str | Path = "data", train: bool = True, download: bool = False,
    limit: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Images (n, channels, height, width) and labels (n,) of "mnist", "cifar10" or "cifar100".

    In [0, 1]; MNIST is normalized as in the paper. download: whether the network may be used;
    without it FileNotFoundError says what is missing. ImportError without torchvision.
    """
    choice("name", name, NAMES)
    datasets = _torchvision().datasets
    try:
        found = getattr(datasets, NAMES[name])(str(root), train=train, download=download)
    except RuntimeError:
        raise FileNotFoundError(
            f"{name} is not in {Path(root)}: load_paper_data({name!r}, download=True) fetches it"
        ) from None
    images = np.asarray(found.data)[:limit].astype(np.float32) / 255
    labels = np.asarray(found.targets)[:limit].astype(np.int64)
    if name == "mnist":
        return (images[:, None] - PROTOCOL["mean"]) / PROTOCOL["std"], labels
    return images.transpose(0, 3, 1, 2), labels


def augmented(
    images: Tensor, generator: torch.Generator | None = None, background: float = 0.0
) -> Tensor:
    """Images (n, c, h, w) turned by up to 10 degrees and, as in the paper's code, half mirrored.

    background: what comes in at the corners; of normalized images it is not 0.
    """
    n = len(images)
    most = np.deg2rad(PROTOCOL["rotation_degrees"])
    angle = (2 * torch.rand(n, generator=generator) - 1) * most
    mirror = 1.0 - 2.0 * (torch.rand(n, generator=generator) < 0.5)
    zero, cos, sin = torch.zeros(n), angle.cos(), angle.sin()
    turn = torch.stack(
        [torch.stack([cos * mirror, -sin, zero], 1), torch.stack([sin * mirror, cos, zero], 1)], 1
    )
    grid = nn.functional.affine_grid(turn, list(images.shape), align_corners=False)
    turned = functional.grid_sample(images - background, grid, align_corners=False)
    return turned + background


def train_steps(
    network: nn.Module, X: np.ndarray, y: np.ndarray, name: str, epochs: int | None = None,
    seed: int = 0, device: str = "cpu",
) -> Steps[float]:  # fmt: skip
    """Train a network of `paper_network` in place, by the paper's protocol: validation accuracy.

    Plain SGD with weight decay and one cycle up to .06; a tenth of the examples, the first in the
    order of `seed`, is held out; MNIST is turned and mirrored. epochs: None for the paper's, which
    we do not know for "transfer" (ValueError). Data of a step: the accuracy after that epoch.
    """
    choice("name", name, NETWORKS)
    epochs = PROTOCOL["epochs"].get(name) if epochs is None else epochs
    if epochs is None:
        raise ValueError(f"epochs for {name} must be given: the text that we have does not say")
    generator = torch.Generator().manual_seed(seed)
    held, kept = torch.randperm(len(X), generator=generator).tensor_split(
        [int(PROTOCOL["validation"] * len(X))]
    )
    images, labels = torch.as_tensor(X), torch.as_tensor(y)
    background = -PROTOCOL["mean"] / PROTOCOL["std"]
    optimizer = torch.optim.SGD(network.to(device).parameters(), weight_decay=PROTOCOL["wd"])
    batches = -(-len(kept) // PROTOCOL["batch"])
    rates = one_cycle(epochs * batches, PROTOCOL["lr_training"])
    accuracy = 0.0
    for epoch in range(epochs):
        order = kept[torch.randperm(len(kept), generator=generator)]
        for b, rows in enumerate(order.split(PROTOCOL["batch"])):
            x = images[rows]
            if name == "mnist":
                x = augmented(x, generator, background)
            optimizer.param_groups[0]["lr"] = float(rates[epoch * batches + b])
            optimizer.zero_grad()
            functional.cross_entropy(network(x.to(device)), labels[rows].to(device)).backward()
            optimizer.step()
            if b % 20 == 0:
                yield Step((epoch + b / batches) / epochs, f"epoch {epoch + 1}")
        with torch.no_grad():
            right = [
                (network(images[rows].to(device)).argmax(1).cpu() == labels[rows]).sum()
                for rows in held.split(1000)
            ]
        accuracy = float(sum(right)) / max(len(held), 1)
        yield Step((epoch + 1) / epochs, f"epoch {epoch + 1}, accuracy {accuracy:.3f}", accuracy)
    return accuracy


def transfer_features(images: Tensor, batch: int = 64, device: str = "cpu") -> Tensor:
    """Features (n, 512) of ResNet-18, trained on ImageNet, without its last layer.

    images (n, 3, h, w) in [0, 1] are scaled to 224 pixels. Its weights are downloaded by
    torchvision if they are not in its cache.
    """
    if images.ndim != 4 or images.shape[1] != 3:
        raise ValueError(
            f"images have shape {tuple(images.shape)}; needed is (n, 3, height, width)"
        )
    model = _torchvision().models.resnet18(weights="IMAGENET1K_V1")
    model.fc = nn.Identity()
    model.eval().to(device)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (IMAGENET_MEAN, IMAGENET_STD))
    found = []
    with torch.no_grad():
        for part in images.split(batch):
            scaled = nn.functional.interpolate(part, size=FEATURE_PIXELS, mode="bilinear")
            found.append(model(((scaled - mean) / std).to(device)).cpu())
    return torch.cat(found)


def paper_network(name: str, classes: int = 10, seed: int = 0) -> nn.Module:
    """A network of the paper: "mnist" 784-5-10, "cifar10" two convolutions, "transfer" 512-32-32-K.

    No normalization layers: their running statistics would carry what was deleted.
    """
    choice("name", name, NETWORKS)
    if name == "mnist":
        parts = [nn.Flatten(), nn.Linear(784, 5), nn.ReLU(), nn.Linear(5, classes)]
    elif name == "cifar10":
        parts = [
            nn.Conv2d(3, 32, 3, padding="same"), nn.ReLU(), nn.AvgPool2d(2),
            nn.Conv2d(32, 64, 3, padding="same"), nn.ReLU(), nn.AvgPool2d(2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes),
        ]  # fmt: skip
    else:
        parts = [
            nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, classes)
        ]  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    gain = 2.0 if name == "cifar10" else 1.0  # He for convolutions, else LeCun, as in its code
    with torch.no_grad():
        for layer in parts:
            if isinstance(layer, nn.Linear | nn.Conv2d):
                fan_in = layer.weight[0].numel()
                truncated_normal_(layer.weight, (gain / fan_in) ** 0.5, generator)
                layer.bias.zero_()
    return nn.Sequential(*parts)


def _torchvision() -> ModuleType:
    try:
        import torchvision
    except ImportError:
        raise ImportError("this needs torchvision: pip install workbench[vision]") from None
    return torchvision
