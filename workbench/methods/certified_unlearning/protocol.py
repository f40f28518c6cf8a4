"""The paper's protocol and the settings that its authors released, as constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .certificates import GradientClipping, ModelClipping


@dataclass(frozen=True)
class Released:
    """One released setting: the mechanism, the size of the network, the T that its files state."""

    name: str
    mechanism: GradientClipping | ModelClipping
    d: int
    T: int


RELEASED = (
    Released("GC, MNIST", GradientClipping(0.01, 10, 1e-4, 750), 3_985, 6),
    Released("GC, CIFAR-10", GradientClipping(0.1, 10, 1e-3, 50), 20_042, 10),
    Released("GC, CIFAR-10, large steps", GradientClipping(20, 10, 0.01, 50), 20_042, 11),
    Released("MC, CIFAR-10", ModelClipping(0.5, 0.5, 1e-3), 20_042, 6),
    # We do not know its step size; neither T nor the noise depends on it.
    Released("MC, MNIST", ModelClipping(0.001, 0.01, gamma=1e-3), 3_985, 1),
)
PROTOCOL: dict[str, Any] = {
    "batch": 128, "momentum": 0.0, "wd": 5e-4, "lr_training": 0.06, "lr_unlearning": 0.1,
    "schedule": "one-cycle, linear", "epochs": {"mnist": 30, "cifar10": 400}, "validation": 0.1,
    "delta": 1e-5, "rotation_degrees": 10, "flips": True, "mean": 0.1307, "std": 0.3081,
    "forget_frac": 0.1,
}  # fmt: skip
# Finished runs that the authors' own notebook counts behind the plots, by data and method.
SEARCH_RUNS = {
    "MNIST": {
        "gradient clipping": 4_781, "model clipping": 5_062,
        "model clipping, second variant": 9_171, "output perturbation": 100, "retrain": 16,
    },
    "CIFAR-10": {"gradient clipping": 1_540, "model clipping": 649, "retrain": 16},
}  # fmt: skip
# Validation accuracy by epoch, read from the plots of the repository (+-.005, four seeds).
MNIST_CURVES = {
    "mc": (0.700, 0.766, 0.768, 0.782, 0.793, 0.801),
    "gc": (0.702, 0.747, 0.767, 0.777, 0.793, 0.803),
    "retrain": (0.677, 0.741, 0.757, 0.774, 0.788, 0.799),
    "op": (0.573, 0.717, 0.747, 0.769, 0.772, 0.783),
}
CIFAR10_EPOCHS = (10, 49)
CIFAR10_CURVES = {
    "mc": (0.405, 0.568), "gc": (0.403, 0.568), "op": (0.373, 0.552), "retrain": (0.345, 0.558),
}  # fmt: skip
TRANSFER_EPOCHS = (1, 5, 10, 20, 50)
TRANSFER_CURVES = {
    ("CIFAR-10", "retrain"): (0.683, 0.827, 0.852, 0.865, 0.878),
    ("CIFAR-10", "DP-SGD, epsilon 50"): (0.638, 0.769, 0.821, 0.857, 0.872),
    ("CIFAR-10", "gradient clipping"): (0.587, None, 0.854, None, 0.881),
    ("CIFAR-100", "retrain"): (0.026, 0.379, 0.457, 0.530, 0.619),
    ("CIFAR-100", "DP-SGD, epsilon 50"): (0.010, 0.010, 0.012, 0.034, 0.166),
    ("CIFAR-100", "gradient clipping"): (None, None, None, None, 0.63),
}
