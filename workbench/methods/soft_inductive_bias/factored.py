"""What the live page factors once, so that its sliders are answered by products alone."""

from __future__ import annotations

import numpy as np

from workbench.steps import Step, Steps

from . import closed_forms, digits, double_descent, experiments, polynomials, processes
from .closed_forms import single

LIVE_D = (25, 50, 100, 200, 300, 400, 450, 500, 550, 600, 800, 1200, 2000)
LIVE_TEST = 500  # test digits of the live double descent
RHO = np.linspace(0, 1, 11)
SYMMETRY_SIZE = 100  # training digits of the live symmetry tasks


class Labels:
    """The Gaussian process of the page, factored once: any share of random labels is two solves.

    curves: train and test accuracy and evidence at the shares RHO. cross: the kernel (k, n).
    """

    def __init__(self, seed: int, length_scale: float, noise: float):
        self.seed = seed
        self.split = digits.split(experiments.LABEL_DIGITS, seed)
        self.curves = experiments.label_process(self.split, RHO, seed, length_scale, noise)
        kernel, self.cross = (
            processes.AMPLITUDE * processes.rbf(x, self.split.train_x, length_scale)
            for x in (self.split.train_x, self.split.test_x)
        )
        self._lower = polynomials.factor(kernel, noise)

    def mistakes(self, rho: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Test digits read wrongly (k,), what is read of all, and the training labels given."""
        labels = digits.corrupted(self.split.clean_y, rho, self.seed)
        made = processes.solved(self._lower, digits.centered_one_hot(labels))
        guess = made.predict(self.cross).argmax(1)
        return np.flatnonzero(guess != self.split.test_y), guess, labels


def feature_steps(seed: int, n: int) -> Steps[list[double_descent.ReluFeatures]]:
    """Random features of each size of the page, factored."""
    made: list[double_descent.ReluFeatures] = []
    for i, d in enumerate(LIVE_D):
        made.append(single(double_descent.relu_features, d, seed, n, LIVE_TEST))
        yield Step((i + 1) / len(LIVE_D), f"{d} features", list(made))
    return made


def choice_steps(seed: int, group: str) -> Steps[dict[str, processes.Choice]]:
    """One draw of each task with this group in the prior."""
    found: dict[str, processes.Choice] = {}
    for i, task in enumerate(digits.TASKS):
        found[task] = single(closed_forms.symmetric_choice, task, SYMMETRY_SIZE, seed, group)
        yield Step((i + 1) / len(digits.TASKS), task, dict(found))
    return found
