"""Other people's attacks, as anchors at K = 1: what foolbox finds for the same image and target.

foolbox is an optional extra (`pip install workbench[peers]`). None of its attacks knows an order
beyond the first place, so only K = 1 compares.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from workbench.numerics.checks import choice
from workbench.steps import Cancelled

from .ranking import achieved
from .records import AttackResult

PEERS = ("cw", "ddn", "fmn", "ead")
TITLES = {
    "cw": "Carlini-Wagner l2, 9 x 1,000 steps",
    "ddn": "DDN, 100 steps",
    "fmn": "FMN l2, 100 steps",
    "ead": "EAD, 9 x 1,000 steps",
}


def foolbox() -> ModuleType:
    """The foolbox package; ImportError with the way to install it."""
    try:
        with warnings.catch_warnings():
            # It imports scipy.ndimage.filters, which scipy means to remove.
            warnings.simplefilter("ignore", DeprecationWarning)
            import foolbox as package
    except ImportError as error:
        raise ImportError(
            f"foolbox, for the anchors at K = 1, cannot be imported ({error}): "
            "pip install workbench[peers]"
        ) from error
    return package


def available() -> bool:
    """Whether foolbox is installed."""
    try:
        foolbox()
    except ImportError:
        return False
    return True


def peer(
    model: nn.Module,
    x: Tensor,
    targets: Tensor,
    method: str,
    seed: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> AttackResult:
    """Attack x (B, C, H, W) in [0, 1] towards one target each, targets (B, 1), with foolbox.

    method: "cw" (l2, 9 binary search steps of 1,000), "ddn" and "fmn" (l2, 100 steps), "ead"
    (elastic net, 9 x 1,000). Defaults of foolbox 3.3.4 except the numbers of steps. Works on a copy
    of the model, so that no gradient reaches the user's weights. Judged as every attack here.
    stopped: asked before each of its looks at the model; on True the attack ends with `Cancelled`.
    """
    choice("method", method, PEERS)
    if targets.ndim != 2 or targets.shape[1] != 1 or len(targets) != len(x):
        raise ValueError(
            f"targets must be ({len(x)}, 1), got {tuple(targets.shape)}: foolbox knows no order "
            "beyond the first place"
        )
    package = foolbox()
    attacks = package.attacks
    attack = {
        "cw": lambda: attacks.L2CarliniWagnerAttack(binary_search_steps=9, steps=1000),
        "ddn": lambda: attacks.DDNAttack(steps=100),
        "fmn": lambda: attacks.L2FMNAttack(steps=100),
        "ead": lambda: attacks.EADAttack(binary_search_steps=9, steps=1000),
    }[method]()
    frozen = copy.deepcopy(model).requires_grad_(False).eval()

    def look(*_: Any) -> None:
        if stopped():
            raise Cancelled

    frozen.register_forward_pre_hook(look)
    wrapped = package.PyTorchModel(frozen, bounds=(0, 1), device=x.device)
    criterion = package.criteria.TargetedMisclassification(targets[:, 0])
    begin = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        _, attacked, _ = attack(wrapped, x, criterion, epsilons=None)
    seconds = time.perf_counter() - begin
    delta = (attacked - x).detach()
    with torch.no_grad():
        success = achieved(frozen(x + delta), targets)
    return AttackResult.of(delta, success, [{}], seconds)
