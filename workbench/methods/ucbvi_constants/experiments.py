"""The experiments of the study, each a generator of steps that returns plain arrays.

Runs x algorithms go side by side on all cores (`steps.together`); each has one MDP a run, the same
for all algorithms, and random numbers of its own. What the numbers mean for the claims is in
`findings.py`, how they look in `views.py`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from workbench.numerics.mdp import MDP, river_swim, uniform_random
from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part, together

from . import bandits
from .bonuses import ALGORITHMS, OURS, PAPER, Sizes
from .learning import MOST_SNAPSHOTS, Run, learn_steps
from .problems import check_horizon, make

BERNSTEINS = ("BF", "BF-I", "MVP")
SCALES = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.0)
SCANNED = ("CH", "BF", "BF-I", "MVP")
SHORT_K, SHORT_RUNS = 10_000, 5
GRID = [(S, A, H) for H in (5, 10) for S in (3, 5, 10) for A in (3, 5, 10)]
ARMS, ROUNDS = (3, 10), 100_000


@dataclass(frozen=True)
class Comparison:
    """Algorithms on the same MDPs: runs[algorithm] has one `Run` an MDP (None: not begun).

    While it runs, a `Run` ends early.
    """

    name: str
    sizes: Sizes
    runs: dict[str, list[Run | None]]

    @property
    def algorithms(self) -> list[str]:
        """Names in the order of the comparison."""
        return list(self.runs)

    def ended(self, algorithm: str) -> dict[int, Run]:
        """The runs that have reached the last episode, by the number of their MDP."""
        runs = enumerate(self.runs[algorithm])
        return {i: r for i, r in runs if r and len(r.episodes) and r.episodes[-1] == self.sizes.K}

    def final(self, algorithm: str, kind: str = "pseudo") -> np.ndarray:
        """Regret (n,) after all episodes, one number a run that has ended."""
        return np.array([run.regret(kind)[-1] for run in self.ended(algorithm).values()])

    def mean(self, algorithm: str, kind: str = "pseudo") -> float:
        """The mean of `final`; nan while no run has ended."""
        final = self.final(algorithm, kind)
        return float(final.mean()) if len(final) else np.nan

    def ratio(self, above: str, below: str, kind: str = "pseudo") -> np.ndarray:
        """Regret of one algorithm over that of another, one number an MDP where both have ended."""
        one, other = self.ended(above), self.ended(below)
        both = sorted(one.keys() & other.keys())
        return np.array([one[i].regret(kind)[-1] / other[i].regret(kind)[-1] for i in both])

    def curve(self, algorithm: str, kind: str = "pseudo") -> tuple[np.ndarray, np.ndarray]:
        """Episodes (m,) and the regret of each run there (n, m), as far as all runs begun are."""
        found = [run for run in self.runs[algorithm] if run and len(run.episodes)]
        if not found:
            return np.zeros(0, int), np.zeros((0, 0))
        m = min(len(run.episodes) for run in found)
        return found[0].episodes[:m], np.array([run.regret(kind)[:m] for run in found])


def compare_steps(
    mdps: Sequence[MDP],
    algorithms: Sequence[str],
    H: int,
    K: int,
    seed: int = 0,
    name: str = "",
    snapshots: int = 0,
    deltas: tuple[float | None, float | None] = (None, None),
    **options: Any,
) -> Steps[Comparison]:
    """Run algorithms on MDPs; data of a step: the `Comparison` so far.

    deltas: of the UCBVI variants and of MVP. snapshots: of the first run of each algorithm. options
    go to `learning.Learner`.
    """
    order = [(a, i) for i in range(len(mdps)) for a in algorithms]
    sizes = Sizes(mdps[0].n, mdps[0].m, H, K, *deltas)

    def collected(runs: Sequence[Run | None]) -> Comparison:
        table: dict[str, list[Run | None]] = {a: [None] * len(mdps) for a in algorithms}
        for (a, i), run in zip(order, runs, strict=True):
            table[a][i] = run
        return Comparison(name, sizes, table)

    jobs = [
        partial(
            learn_steps, mdps[i], a, H=H, K=K, seed=(seed, i, ALGORITHMS.index(a)),
            delta=deltas[a == "MVP"], snapshots=0 if i else snapshots, **options,
        )
        for a, i in order
    ]  # fmt: skip
    side_by_side = together(jobs, os.cpu_count(), [f"{a}, run {i + 1}" for a, i in order])
    return collected((yield from part(side_by_side, 0.0, 1.0, data=collected)))


def random_mdps(runs: int, seed: int, S: int = 3, A: int = 3) -> list[MDP]:
    """One random MDP for each run, from seeds one after the other, as in the paper's program."""
    return [uniform_random(S, A, seed + i) for i in range(runs)]


def options(p: Parameters) -> dict[str, Any]:
    """What the parameters say about every learner, as arguments of `compare_steps`."""
    return {
        "scale": p.scale, "last_step_bonus": p.last_step_bonus, "ties": p.ties,
        "official_variance": p.official_variance, "deltas": (p.delta, p.mvp_delta or None),
    }  # fmt: skip


def problems_of(p: Parameters, runs: int, H: int) -> list[MDP]:
    """The MDPs of the parameters: drawn anew for each run if random, else the same one.

    Raises `ParameterError` when nothing can be collected in H steps.
    """
    if p.env == "random":
        return random_mdps(runs, p.seed, p.S, p.A)
    mdp = make(p.env, p.S, p.A, p.seed, p.file)
    check_horizon(mdp, H)
    return [mdp] * runs


def main_steps(p: Parameters, H: int | None = None) -> Steps[Comparison]:
    """All chosen algorithms on the chosen problem; H: another horizon."""
    # The second horizon is refused before the first has taken its time.
    mdps, H = problems_of(p, p.runs, H or min(p.H, p.second_H or p.H)), H or p.H
    snapshots = MOST_SNAPSHOTS if H == p.H else 0
    name = f"{mdps[0].name}, H = {H}, K = {p.K:,}"
    return compare_steps(
        mdps, p.algs, H, p.K, p.seed, name=name, snapshots=snapshots, **options(p)
    )  # fmt: skip


def baselines_steps(p: Parameters) -> Steps[Comparison]:
    """Our baselines, which are not in the paper, on the chosen problem."""
    mdps = problems_of(p, p.runs, p.H)
    return compare_steps(mdps, OURS, p.H, p.K, p.seed, name=mdps[0].name, **options(p))


def short_steps(p: Parameters) -> Steps[Comparison]:
    """10,000 episodes on five random MDPs, with the bonus that practitioners use."""
    return compare_steps(
        random_mdps(SHORT_RUNS, p.seed), [*PAPER, "practitioner"], 5, SHORT_K, p.seed,
        name="random 3 x 3, H = 5, K = 10,000",
    )  # fmt: skip


def river_steps(
    runs: int, n: int, H: int, K: int, seed: int, ties: str = "first"
) -> Steps[Comparison]:
    """RiverSwim with the three algorithms that the paper runs there."""
    taken = "a random" if ties == "random" else "the first"
    name = f"RiverSwim {n}, H = {H}, ties to {taken} action"
    return compare_steps([river_swim(n)] * runs, BERNSTEINS, H, K, seed, name=name, ties=ties)


def long_river_steps(p: Parameters) -> Steps[dict[str, Comparison]]:
    """RiverSwim of 10 states: ties to the first action, which is a good one, and random ties.

    By name; the third is the river of 5 states with random ties.
    """
    found: dict[str, Comparison] = {}
    begin = 0.0
    for name, n, H, ties, end in (
        ("first", 10, 25, "first", 0.48), ("random", 10, 25, "random", 0.96),
        ("short_random", 5, 10, "random", 1.0),
    ):  # fmt: skip
        steps = river_steps(p.long_river_runs, n, H, p.K, p.seed, ties)
        found[name] = yield from part(steps, begin, end, f"{n} states, ties {ties}")
        yield Step(end, f"{n} states, ties {ties}", dict(found))
        begin = end
    return found


@dataclass(frozen=True)
class Scan:
    """Final regret and share of (h, s) with V_h < V*_h, by algorithm: (scales, runs) each.

    nan where a run has not ended.
    """

    K: int
    scales: np.ndarray
    regret: dict[str, np.ndarray]
    violated: dict[str, np.ndarray]

    def median(self, algorithm: str) -> np.ndarray:
        """Median regret over the runs, (scales,); nan where none has ended."""
        return _over_runs(np.median, self.regret[algorithm])

    def share(self, algorithm: str) -> np.ndarray:
        """Mean share of violations over the runs, (scales,); nan where none has ended."""
        return _over_runs(np.mean, self.violated[algorithm])


def _over_runs(statistic: Any, table: np.ndarray) -> np.ndarray:
    known = [row[~np.isnan(row)] for row in table]
    return np.array([statistic(row) if len(row) else np.nan for row in known])


def scan_steps(
    K: int,
    runs: int,
    seed: int = 0,
    scales: Sequence[float] = SCALES,
    algorithms: Sequence[str] = SCANNED,
) -> Steps[Scan]:
    """Multiply the bonus by each scale on random MDPs, 3 x 3, H = 5."""
    mdps = random_mdps(runs, seed)
    order = [(a, j, i) for i in range(runs) for j in range(len(scales)) for a in algorithms]
    shape = (len(scales), runs)

    def collected(found: Sequence[Run | None]) -> Scan:
        regret = {a: np.full(shape, np.nan) for a in algorithms}
        violated = {a: np.full(shape, np.nan) for a in algorithms}
        for (a, j, i), run in zip(order, found, strict=True):
            if run and len(run.episodes) and run.episodes[-1] == K:
                regret[a][j, i], violated[a][j, i] = run.pseudo[-1], run.violated[-1]
        return Scan(K, np.array(scales, float), regret, violated)

    jobs = [
        partial(
            learn_steps, mdps[i], a, H=5, K=K, scale=scales[j],
            seed=(seed, i, ALGORITHMS.index(a)),
        )
        for a, j, i in order
    ]  # fmt: skip
    names = [f"{a} times {scales[j]:g}, run {i + 1}" for a, j, i in order]
    made = part(together(jobs, os.cpu_count(), names), 0.0, 1.0, data=collected)
    return collected((yield from made))


@dataclass(frozen=True)
class Switches:
    """BF-I without a bonus at the last step, and the three with the released program's variance."""

    plain: Comparison
    last_step: Comparison
    official: Comparison


def switches_steps(p: Parameters) -> Steps[Switches]:
    """Both switches on random MDPs, 3 x 3, H = 5."""
    mdps, seed, found = random_mdps(p.runs, p.seed), p.seed, []
    for number, (algorithms, more) in enumerate([
        (["BF-I"], {}), (["BF-I"], {"last_step_bonus": False}),
        (list(BERNSTEINS), {"official_variance": True}),
    ]):  # fmt: skip
        name = ", ".join(more) or "as published"
        steps = compare_steps(mdps, algorithms, 5, p.K, seed, name=name, **more)
        found.append((yield from part(steps, number / 3, (number + 1) / 3)))
    return Switches(*found)


def long_steps(p: Parameters, H: int = 5) -> Steps[Comparison]:
    """The paper's longest runs, a million episodes by default."""
    return compare_steps(
        random_mdps(p.long_runs, p.seed), PAPER, H, p.long_K, p.seed,
        name=f"random 3 x 3, H = {H}, K = {p.long_K:,}",
    )  # fmt: skip


def grid_steps(p: Parameters) -> Steps[list[Comparison]]:
    """The paper's sizes with BF, BF-I and MVP."""
    work = np.array([S**2 * A * H for S, A, H in GRID], float)
    ends = work.cumsum() / work.sum()
    found: list[Comparison] = []
    for number, ((S, A, H), end) in enumerate(zip(GRID, ends, strict=True)):
        mdps = random_mdps(p.grid_runs, p.seed, S, A)
        name = f"S = {S}, A = {A}, H = {H}"
        steps = compare_steps(mdps, BERNSTEINS, H, p.K, p.seed, name=name)
        begin = ends[number - 1] if number else 0.0
        found.append((yield from part(steps, begin, end, name)))
        yield Step(end, name, list(found))
    return found


@dataclass(frozen=True)
class Bandits:
    """Pseudo-regret of both indices: curves[A, index] (runs, n) after `rounds` (n,)."""

    rounds: np.ndarray
    curves: dict[tuple[int, str], np.ndarray]

    def ratio(self, A: int) -> float:
        """Mean final regret of the refined index over that of the published one."""
        refined, published = (self.curves[A, i][:, -1].mean() for i in ("refined", "published"))
        return float(refined / published)


def bandit_steps(runs: int, seed: int = 0, T: int = ROUNDS) -> Steps[Bandits]:
    """Both indices on random Bernoulli bandits of 3 and of 10 arms."""
    curves: dict[tuple[int, str], list[np.ndarray]] = {}
    rounds = np.zeros(0)
    for run in range(runs):
        for A in ARMS:
            means = bandits.arms(A, seed + run)
            for index in bandits.INDICES:
                found = bandits.pull(means, T, index, seed + run)
                curves.setdefault((A, index), []).append(found.regret)
                rounds = found.rounds
        so_far = {key: np.array(found) for key, found in curves.items()}
        yield Step((run + 1) / runs, f"bandit {run + 1}", Bandits(rounds, so_far))
    return Bandits(rounds, so_far)
