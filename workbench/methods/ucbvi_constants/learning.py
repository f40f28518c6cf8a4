"""Learners with a bonus and their baselines on one tabular MDP, with the regret along the way.

Rewards are known and in [0, 1], transitions are the same at every stage, episodes of H steps start
in one state. `learn(mdp, "BF-I", H=5, K=10_000)` runs to the end; `learn_steps` yields the curve so
far and can be stopped. Runs of several algorithms share nothing, so they go side by side.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from workbench.numerics.checks import choice
from workbench.numerics.mdp import MDP, backward_induction
from workbench.steps import Step, Steps, run

from . import _engine
from ._engine import Memory, Problem, Records, Rules
from .bonuses import ALGORITHMS, BERNSTEIN, C1, C3, LEADING, Sizes, rare
from .limits import check_work

TIES = ("first", "random")
MOST_RECORDS, MOST_SNAPSHOTS = 1000, 200
CHUNK_S = 0.1  # between two reports


@dataclass(frozen=True)
class Snapshots:
    """Tables before `episodes` (m,): Q, backup and bonus (m, H, S, A), visits N (m, S, A).

    backup: R + P_hat V, to which the bonus is added; Q is at most their sum. Of a pair that was
    never tried both are 0 in UCBVI, and Q is H.
    """

    episodes: np.ndarray
    Q: np.ndarray
    backup: np.ndarray
    bonus: np.ndarray
    N: np.ndarray


@dataclass(frozen=True)
class Run:
    """One learner after `episodes[-1]` episodes, with H stages, S states, A actions.

    episodes (n,) from 1; after each of them: pseudo and realized regret, summed (n,); promised (n,)
    V_k,1 of the start state; violated (n,) share of (h, s) with V_k,h < V*_h.
    N (S, A) visits, reached (H, S) visits of states by stage, Q and bonus (H, S, A) of the last
    episode, Q_star (H, S, A), V_star (H + 1, S), value: of the last policy, from the start state.
    replans: how often Q was computed. seconds: of processor time. ties: as they were broken, which
    is at random for the random policy.
    """

    algorithm: str
    episodes: np.ndarray
    pseudo: np.ndarray
    realized: np.ndarray
    promised: np.ndarray
    violated: np.ndarray
    N: np.ndarray
    reached: np.ndarray
    Q: np.ndarray
    bonus: np.ndarray
    Q_star: np.ndarray
    V_star: np.ndarray
    start: int
    value: float
    replans: int
    seconds: float
    snapshots: Snapshots | None = None
    ties: str = "first"

    @property
    def gap(self) -> float:
        """V*_1 minus the value of the last policy, at the start state."""
        return float(self.V_star[0, self.start] - self.value)

    @property
    def most_taken(self) -> float:
        """The share of all steps in which the most frequent action was taken."""
        return float(self.N.sum(0).max() / self.N.sum())

    def regret(self, kind: str = "pseudo") -> np.ndarray:
        """Summed regret (n,), "pseudo" or "realised"."""
        choice("regret", kind, ("pseudo", "realised"))
        return self.pseudo if kind == "pseudo" else self.realized


def spaced(K: int, most: int, linear: bool = True) -> np.ndarray:
    """At most `most` episodes of 1..K, log-spaced, half of them linearly spaced if wanted."""
    logarithmic = np.geomspace(1, K, most // 2 if linear else most)
    even = np.linspace(1, K, most - most // 2) if linear else []
    return np.unique(np.concatenate([logarithmic, even]).round().astype(np.int64))


def check_problem(mdp: MDP, start: int | None = None) -> int:
    """The start state of an MDP that UCBVI can learn; ValueError in one line for others."""
    low, high = mdp.R.min(), mdp.R.max()
    if low < 0 or high > 1:
        if low == high:
            raise ValueError(
                f"all rewards are {low:g}: the bonuses assume [0, 1], and where every reward is "
                "the same there is nothing to learn"
            )
        raise ValueError(
            f"rewards go from {low:g} to {high:g}: the bonuses assume [0, 1]; rescale R to "
            "(R - low) / (high - low)"
        )
    if start is None:
        if mdp.start.max() < 1 - 1e-9:
            raise ValueError(
                "the start is random: UCBVI here starts in one state; give start=, or in a file "
                "an array start that is 1 for one state"
            )
        return int(mdp.start.argmax())
    if not _whole(start) or not 0 <= start < mdp.n:
        raise ValueError(f"start = {start}: allowed are the states 0 to {mdp.n - 1}")
    return int(start)


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _checked(name: str, value: Any, least: int = 1) -> int:
    if not _whole(value) or value < least:
        raise ValueError(f"{name} = {value}: allowed are whole numbers of at least {least}")
    return int(value)


def _rules(
    algorithm: str, sizes: Sizes, scale: float, last_step_bonus: bool, official: bool, ties: str
) -> Rules:
    H, L = sizes.H, sizes.L
    kind, leading, variance, lower, less, correction, limit = (
        _engine.CHERNOFF, 0.0, 0.0, 0.0, 0, 0.0, 0.0
    )  # fmt: skip
    if algorithm in LEADING:
        leading = LEADING[algorithm] * H * L
    elif algorithm == "tight CH":
        leading = H * np.sqrt(L / 2)
    elif algorithm in BERNSTEIN:
        kind = _engine.BERNSTEIN
        of_variance, of_lower, less, correction, _ = BERNSTEIN[algorithm]
        variance, lower, limit = of_variance * L, of_lower * H * L, rare(algorithm, sizes)
    elif algorithm == "MVP":
        kind, variance, lower = _engine.DOUBLING, C1**2 * sizes.ell, C3 * H * sizes.ell
    elif algorithm == "practitioner":
        kind = _engine.PRACTITIONER
    elif algorithm == "greedy":
        scale = 0.0
    else:
        kind = _engine.RANDOM if algorithm == "random policy" else _engine.CONSTANT
    drawn = (ties == "random" and kind != _engine.CONSTANT) or kind == _engine.RANDOM
    return Rules(
        kind, float(variance), float(lower), less, float(correction), float(limit), float(leading),
        float(scale), bool(last_step_bonus), bool(official), drawn,
    )  # fmt: skip


class Learner:
    """One algorithm on one MDP: `advance(n)` plays n more episodes, `result()` is the run so far.

    mdp: rewards in [0, 1]. algorithm: of `bonuses.ALGORITHMS`. H: horizon. K: episodes, which enter
    the logarithms. delta: None for 1, or 1 / K for MVP. scale: of every bonus. ties: "first" or
    "random". regret, Q and counts as in `Run`. snapshots: how many, at most 200.
    Raises ValueError in one line for anything not allowed.
    """

    def __init__(
        self,
        mdp: MDP,
        algorithm: str = "BF-I",
        H: int = 5,
        K: int = 10_000,
        *,
        delta: float | None = None,
        scale: float = 1.0,
        last_step_bonus: bool = True,
        ties: str = "first",
        official_variance: bool = False,
        start: int | None = None,
        seed: int | tuple[int, ...] = 0,
        snapshots: int = 0,
    ):
        choice("algorithm", algorithm, ALGORITHMS)
        choice("ties", ties, TIES)
        H, K = _checked("H", H), _checked("K", K)
        if delta is not None and not 0 < delta <= 1:
            raise ValueError(f"delta = {delta}: allowed are 0 < delta <= 1")
        if not 0 <= scale < np.inf:
            raise ValueError(f"scale = {scale}: allowed are finite numbers of at least 0")
        start = check_problem(mdp, start)
        S, A = mdp.n, mdp.m
        check_work(S, A, H, K)
        mdp = mdp.dense()
        self.algorithm, self.H, self.K, self.played, self.seconds = algorithm, H, K, 0, 0.0
        self.Q_star, V_star = backward_induction(mdp, H)
        self.problem = Problem(mdp.P, mdp.P.cumsum(-1), mdp.R, V_star, start)
        self.rules = _rules(
            algorithm,
            Sizes(S, A, H, K, delta, delta),
            scale,
            last_step_bonus,
            official_variance,
            ties,
        )
        self.memory = _memory(H, S, A, self.rules.lower)
        if self.rules.random_ties:  # at first all actions are equal
            self.memory.n_tied[:] = A
        looks = spaced(K, min(_checked("snapshots", snapshots, 0), MOST_SNAPSHOTS), linear=False)
        self.records = _records(spaced(K, MOST_RECORDS), looks if snapshots else looks[:0], H, S, A)
        self.rng = np.random.Generator(np.random.SFC64(seed))

    def advance(self, n: int) -> None:
        """Play n more episodes, at most up to K."""
        last = min(self.played + n, self.K)
        before = time.thread_time()
        _engine.play(
            self.problem, self.rules, self.memory, self.records, self.rng, self.played + 1, last
        )
        self.played, self.seconds = last, self.seconds + time.thread_time() - before

    def result(self) -> Run:
        """The run so far; its arrays are copies."""
        m, r, start = self.memory, self.records, self.problem.start
        n, looked = int(m.marks[1]), int(m.marks[2])
        curves = (r.episodes, r.pseudo, r.realized, r.promised, r.violated)
        tables = (r.looks, r.Q, r.backup, r.bonus, r.N)
        return Run(
            self.algorithm,
            *(curve[:n].copy() for curve in curves),
            m.N.copy(),
            m.reached[:-1].copy(),
            m.Q.copy(),
            m.bonus.copy(),
            self.Q_star,
            self.problem.V_star,
            start,
            float(m.value[0, start]),
            int(m.marks[0]),
            self.seconds,
            Snapshots(*(table[:looked].copy() for table in tables)) if len(r.looks) else None,
            "random" if self.rules.random_ties else "first",
        )


def _memory(H: int, S: int, A: int, lower: float) -> Memory:
    full, pairs = (H, S, A), (S, A)
    V = np.zeros((H + 1, S))
    V[:H] = H
    return Memory(
        Q=np.full(full, float(H)), V=V, backup=np.zeros(full), bonus=np.zeros(full),
        counts=np.zeros((S, A, S), np.int64), P_hat=np.zeros((S, A, S)),
        N=np.zeros(pairs, np.int64), n=np.zeros(pairs, np.int64),
        reached=np.zeros((H + 1, S), np.int64), policy=np.zeros((H, S), np.int64),
        tied=np.ones(full, np.bool_), n_tied=np.ones((H, S), np.int64), value=np.zeros((H + 1, S)),
        weights=np.zeros(S), inverse=np.ones(pairs), of_pair=np.full(pairs, lower),
        totals=np.zeros(2), marks=np.zeros(4, np.int64),
    )  # fmt: skip


def _records(episodes: np.ndarray, looks: np.ndarray, H: int, S: int, A: int) -> Records:
    n, m = len(episodes), len(looks)
    return Records(
        episodes, np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), looks,
        *(np.zeros((m, H, S, A)) for _ in range(3)), np.zeros((m, S, A), np.int64),
    )  # fmt: skip


def learn_steps(mdp: MDP, algorithm: str = "BF-I", **options: Any) -> Steps[Run]:
    """`learn` as steps; data of a step: the `Run` so far. Arguments are those of `Learner`."""
    learner = Learner(mdp, algorithm, **options)
    chunk = 1
    while learner.played < learner.K:
        before = time.perf_counter()
        learner.advance(chunk)
        took = time.perf_counter() - before
        # Chunks grow to a tenth of a second, however long the first call compiles.
        chunk = max(1, min(4 * chunk, int(chunk * CHUNK_S / max(took, 1e-6))))
        done = learner.played / learner.K
        yield Step(done, f"{learner.played} of {learner.K} episodes", learner.result())
    return learner.result()


def learn(mdp: MDP, algorithm: str = "BF-I", **options: Any) -> Run:
    """Run an algorithm to its last episode; arguments are those of `Learner`."""
    return run(learn_steps(mdp, algorithm, **options))


def warm_up() -> None:
    """Compile the engine into the cache on disk."""
    mdp = MDP(np.full((2, 2, 2), 0.5), np.eye(2))
    for algorithm in ("BF-I", "MVP"):
        learn(mdp, algorithm, H=2, K=2)
