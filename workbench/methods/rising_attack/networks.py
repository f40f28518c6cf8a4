"""The networks that are attacked, how they are trained, and where trained weights are kept.

Every network takes images in [0, 1], holds its preprocessing inside, and is split into `feats(x)`
and `head`, its last linear layer: QuadAttacK moves features, everything else needs only logits.
Training runs on one thread, so that weights do not depend on the number of cores. Kept weights are
a convenience: deleting them changes nothing but the time of the next call.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.data import cache_folder
from workbench.numerics.optimizers import Adam
from workbench.numerics.threads import one_thread
from workbench.steps import Step, Steps


class Classifier(nn.Module):
    """Images (B, C, H, W) in [0, 1] -> logits (B, classes) as `head(feats(x))`.

    body: the layers up to the features, ending in (B, features). mean, std: of the images, as
    numbers or one for each channel; subtracted and divided inside.
    """

    def __init__(
        self,
        body: nn.Module,
        features: int,
        n_classes: int,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
    ):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))
        self.body, self.head = body, nn.Linear(features, n_classes)

    def feats(self, x: Tensor) -> Tensor:
        """Features (B, features) that the last linear layer sees."""
        return self.body((x - self.mean) / self.std)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.feats(x))


def train_steps(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    epochs: int,
    *,
    lr: float = 3e-3,
    batch: int = 64,
    weight_decay: float = 0.01,
    seed: int = 0,
    change: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Steps[nn.Module]:
    """Fit `model` by AdamW with a one-cycle learning rate; a generator of steps.

    images (n, C, H, W), labels (n,). change: makes the images of a batch into those it is trained
    on, (images, labels) -> images, such as noise or an attack. Returns the model in evaluation
    mode.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = Adam(model.parameters(), lr, weight_decay=weight_decay)
    step, total = 0, epochs * -(-len(images) // batch)
    for epoch in range(epochs):
        for chosen in torch.randperm(len(images), generator=generator).split(batch):
            with one_thread():
                x, y = images[chosen], labels[chosen]
                model.eval()
                x = x if change is None else change(x, y)
                model.train()
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.lr, momentum = one_cycle(step, total, lr)
                optimizer.betas = momentum, optimizer.betas[1]
                optimizer.step()
                step += 1
        yield Step((epoch + 1) / epochs, f"epoch {epoch + 1} of {epochs}, loss {loss.item():.3f}")
    return model.eval()


def one_cycle(step: int, total: int, peak: float) -> tuple[float, float]:
    """Learning rate and momentum of a step 0..total - 1 of the one-cycle policy (Smith, 2018).

    Cosines up from peak / 25 over the first 30 % of the steps, then down to peak / 250,000; the
    momentum the other way between .95 and .85: the defaults of torch's `OneCycleLR`.
    """
    top, end = 0.3 * total - 1, total - 1
    if step <= top:
        start, goal, done = (peak / 25, 0.95), (peak, 0.85), step / top
    else:
        start, goal, done = (peak, 0.85), (peak / 25e4, 0.95), (step - top) / (end - top)
    weight = (1 + math.cos(math.pi * done)) / 2
    lr, momentum = (g + (s - g) * weight for s, g in zip(start, goal, strict=True))
    return lr, momentum


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Share of images whose highest logit is that of the true label."""
    return float((model(images).argmax(1) == labels).double().mean())


def attackable(
    models: Sequence[nn.Module], images: Tensor, labels: Tensor, n: int, seed: int = 0
) -> Tensor:
    """Indices (n,) of images that every model classifies correctly, spread over the classes.

    The official protocol (QuadAttacK's code): a class-balanced sample of images on which all
    compared models are right. Classes take turns in random order. ValueError if there are too few.
    """
    with torch.no_grad():
        right = torch.stack([model(images).argmax(1) == labels for model in models]).all(0)
    rng = np.random.default_rng(seed)
    found = rng.permutation(np.flatnonzero(right.numpy()))
    if not 0 < n <= len(found):
        raise ValueError(f"n = {n} images; {len(found)} are classified correctly by all models")
    classes = labels.numpy()[found]
    order = dict(zip(rng.permutation(np.unique(classes)), range(len(found)), strict=False))
    turn = np.array([(classes[:i] == c).sum() for i, c in enumerate(classes)])
    rank = np.lexsort(([order[c] for c in classes], turn))
    return torch.from_numpy(found[rank[:n]])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, torch's random numbers start from `seed`; after, as before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def kept_steps(
    name: str, model: nn.Module, train: Callable[[], Steps[nn.Module]], depends: Sequence[object]
) -> Steps[nn.Module]:
    """`model` with its kept weights, or trained by `train()` and kept; the same bit for bit.

    depends: whatever the weights depend on besides the library and the processor; paths stand for
    the text of a file. An absent or unreadable file is made again; a folder that cannot be written
    to is no error.
    """
    text = [p.read_bytes() if isinstance(p, Path) else repr(p).encode() for p in depends]
    machine = platform.machine(), torch.backends.cpu.get_cpu_capability(), torch.__version__
    key = hashlib.sha256(b"\0".join([*text, repr(machine).encode()])).hexdigest()[:16]
    path = cache_folder() / "rising_attack" / f"{name}-{key}.pt"
    try:
        model.load_state_dict(torch.load(path, weights_only=True))
        yield Step(1.0, "trained before")
        return model.eval()
    except (OSError, EOFError, RuntimeError, ValueError, TypeError, KeyError, pickle.PickleError):
        model = yield from train()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            torch.save(model.state_dict(), file)
        os.replace(temporary, path)  # atomic: another process sees the old file or the new one
    except OSError:
        pass
    return model
