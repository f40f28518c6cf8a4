"""One MDP at the speed of a slider: what the live pictures show first, before slow planners run.

Whatever does not depend on the discount is kept between two calls: the MDP, and the eigenvalues of
a policy's chain, which teleporting only scales.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from workbench.numerics import mdp as tables
from workbench.numerics.mdp import MDP
from workbench.parameters import Parameters

from . import experiments
from .experiments import Comparison, Solved

FIRST = 60  # iterates
LARGEST = 300  # states up to which a closeup takes a tenth of a second at most


class Closeups:
    """`closeups(parameters)` is the comparison of the first iterates of VI, midpoint and R1-VI."""

    def __init__(self):
        self._key, self._base = None, None
        self._spectra: dict[bytes, np.ndarray] = {}

    def base(self, p: Parameters) -> MDP:
        """The MDP without teleporting, made anew when a hyperparameter of it has changed."""
        more = {
            "garnet": (p.n, p.m, p.b, p.seed), "npz": (p.file,),
        }.get(p.family, (p.closure,))  # fmt: skip
        if self._key != (p.family, *more):
            self._base, self._key = experiments.without_teleport(p), (p.family, *more)
            self._spectra.clear()
        return self._base

    def fast(self, p: Parameters) -> bool:
        """Whether the next call is quick enough for the event loop."""
        return (p.n if p.family == "garnet" else self.base(p).n) <= LARGEST

    def __call__(self, p: Parameters) -> Comparison:
        p.check()
        with threadpool_limits(1, "blas"):  # two threads only wait for each other on a busy machine
            return self._made(p)

    def _made(self, p: Parameters) -> Comparison:
        base = self.base(p)
        solved = experiments.solve(tables.teleport(base, p.teleport), p.gamma)
        self._keep_spectrum(base, solved, p.teleport)
        plans = {
            name: solved.follow(name, p.tol, p=p, most=FIRST, keep=FIRST + 1)
            for name in ("R1-VI", "midpoint")
        }
        plain = solved.follow("VI", p.tol, most=FIRST, keep=FIRST + 1)
        plans["VI"] = replace(plain, iterations=None, extrapolated=False)
        pairs = zip(plain.values, plain.values[1:], strict=False)
        low, high = zip(*(experiments.bracket(*pair, p.gamma) for pair in pairs), strict=True)
        return Comparison(solved, plans, np.array(low), np.array(high))

    def _keep_spectrum(self, base: MDP, solved: Solved, share: float) -> None:
        key = solved.policy.tobytes()
        if key not in self._spectra:
            self._spectra[key] = replace(solved, mdp=base).eigenvalues
        moved = self._spectra[key].copy()
        moved[1:] *= 1 - share
        solved.__dict__["eigenvalues"] = moved  # where the cached property looks
