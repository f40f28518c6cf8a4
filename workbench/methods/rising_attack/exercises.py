"""Checks of the notebook's exercises; statements, stubs and solutions are in the notebook."""

from __future__ import annotations

import numpy as np

from workbench.exercises import Exercise


def _ranking_rows(answer) -> None:
    rng = np.random.default_rng(0)
    for n_classes, targets in ((4, [2, 0]), (6, [5]), (5, [3, 1, 4, 0])):
        rows = np.asarray(answer(targets, n_classes), float)
        wanted = (n_classes - 1, n_classes)
        assert rows.shape == wanted, f"{n_classes} classes need a matrix of shape {wanted}"
        assert np.allclose(rows.sum(1), 0), "each row compares two logits, so it sums to 0"
        for _ in range(200):
            logits = rng.normal(size=n_classes)
            if rng.random() < 0.5:  # half of the trials obey the order
                logits[targets] = 5 - np.arange(len(targets))
            obeyed = np.argsort(-logits)[: len(targets)].tolist() == targets
            assert bool((rows @ logits > 0).all()) == obeyed, (
                "all rows must be positive exactly when the targets come first, in their order"
            )


def _figure_of_merit(answer) -> None:
    same = {"asr": 0.5, "l1": 3.0, "l2": 2.0, "linf": 0.4}
    assert np.isclose(answer(same, same), 1), "an attack compared with itself has merit 1"
    rising = {"asr": 1.0, "l1": 27.0, "l2": 1.43, "linf": 0.223}
    quad = {"asr": 0.875, "l1": 38.5, "l2": 1.762, "linf": 0.168}
    assert abs(answer(rising, quad) - 1.30) < 0.005, "RisingAttacK against a tuned QuadAttacK: 1.30"
    half = {**rising, "asr": 0.5}
    assert np.isclose(answer(half, quad), answer(rising, quad) / 2), "it is proportional to success"


def _few_pixels(answer) -> None:
    from .least_distance import least_distance

    rng = np.random.default_rng(2)
    for n_rows, n_pixels in ((1, 12), (4, 30), (9, 64)):
        G, h = rng.normal(size=(n_rows, n_pixels)), rng.normal(size=n_rows) + 1
        given = np.asarray(answer(G, h), float)
        assert given.shape == (n_pixels,), "the answer is a perturbation, one number for each pixel"
        assert (G @ given >= h - 1e-6).all(), "the linearized order G delta >= h must hold"
        shortest, _ = least_distance(G, h)
        changed = int((np.abs(given) > 1e-6).sum())
        assert np.abs(given).sum() < np.abs(shortest).sum(), "its l1 must be below the l2 optimum's"
        assert changed <= n_rows, (
            f"{n_rows} inequalities need no more than {n_rows} pixels; it changes {changed}"
        )


ranking_rows = Exercise(
    "Ranking matrix",
    _ranking_rows,
    "K - 1 rows compare neighbors in the order, the others the last target with each non-target.",
)
figure_of_merit = Exercise(
    "Figure of merit",
    _figure_of_merit,
    "The ratio of success rates times the mean of three ratios of norms, the other's on top.",
)
few_pixels = Exercise(
    "An attack in few pixels",
    _few_pixels,
    "Write delta = p - q with p, q >= 0: least l1 is a linear program for scipy.optimize.linprog.",
)
