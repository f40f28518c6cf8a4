"""What a noisy phase has guaranteed so far, counted from the steps that were really made."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from .accounting import epsilon_of
from .certificates import GradientClipping, ModelClipping, OutputPerturbation

SLACK = 1e-9  # relative, in comparisons of epsilon with its target
Mechanism = GradientClipping | ModelClipping | OutputPerturbation


@dataclass
class Clock:
    """The guarantee of a noisy phase, from the steps that were really made.

    `tick(sigma)` after each one; spent: exact epsilon so far, infinite before the first. planned:
    steps of the whole phase; one that stops early is uncertified, with the epsilon it has reached.
    accountant: that set the noise; what it prints stands in the words only. secret: whether nobody
    knows the noise; with noise that can be repeated nothing is guaranteed.
    """

    mechanism: Mechanism
    epsilon: float
    delta: float
    planned: int
    accountant: str = "exact"
    secret: bool = True
    spent: list[float] = field(default_factory=lambda: [inf])
    sigmas: list[float] = field(default_factory=list)

    def tick(self, sigma: float) -> float:
        """Count one step with noise sigma: epsilon so far."""
        if isinstance(self.mechanism, ModelClipping) and sigma != self.mechanism.sigma:
            raise ValueError(f"sigma = {sigma}; model clipping was set to {self.mechanism.sigma}")
        self.sigmas.append(float(sigma))
        if isinstance(self.mechanism, ModelClipping):
            now = self.mechanism.epsilon(self.delta, len(self.sigmas))
        else:
            now = float(epsilon_of(self.mu, self.delta))
        self.spent.append(now)
        return now

    @property
    def mu(self) -> float:
        """The GDP parameter so far, of gradient clipping and of output perturbation."""
        if isinstance(self.mechanism, GradientClipping):
            return self.mechanism.certificate(self.sigmas).mu
        return float(self.mechanism.mu(self.sigmas[-1])) if self.sigmas else inf

    @property
    def made(self) -> int:
        """Noisy steps so far."""
        return len(self.sigmas)

    @property
    def now(self) -> float:
        """Exact epsilon that the steps so far guarantee at delta, if the noise is secret."""
        return self.spent[-1]

    @property
    def enough(self) -> bool:
        """Whether that is the epsilon that was asked for, or less."""
        return self.now <= self.epsilon * (1 + SLACK)

    @property
    def certified(self) -> bool:
        """Whether there was enough noise, and nobody knows it."""
        return self.enough and self.secret

    def __str__(self) -> str:
        """The guarantee in one line; what another accountant prints stands beside it."""
        reached = f"{self.now:.4g}" if np.isfinite(self.now) else "infinite"
        steps = f"noisy steps of {self.mechanism.title}"
        if isinstance(self.mechanism, OutputPerturbation):
            steps = f"release of {self.mechanism.title}"
        printed = ""
        if self.accountant != "exact" and self.made and not isinstance(
            self.mechanism, ModelClipping
        ):  # fmt: skip
            by = f"{self.accountant} accountant prints"
            if self.accountant == "released":
                by = "the accounting of the released scripts, as we read it, prints"
            printed = f" ({by} {float(epsilon_of(self.mu, self.delta, self.accountant)):.4g})"
        if not self.enough:
            return (
                f"uncertified: {self.made} of {self.planned} {steps}; epsilon is {reached} at "
                f"delta = {self.delta:g}, not {self.epsilon:g}{printed}"
            )
        if not self.secret:
            return (
                "no guarantee: seed given, so the noise is known and the run repeats; with secret "
                f"noise epsilon = {reached} at delta = {self.delta:g} after {self.made} {steps}"
            )
        return (
            f"certified: epsilon = {reached} at delta = {self.delta:g} after {self.made} {steps} "
            f"(exact accountant){printed}"
        )
