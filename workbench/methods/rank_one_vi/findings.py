"""What the measurements say about each claim, and the headline numbers of a run.

Sizes and figures of the paper's experiments were not at hand, so its figures are unknown;
thresholds come from pilot measurements with an independent program, or are ours, as each note says,
and were fixed before. A claim whose experiment did not run, or on too few seeds, is "not tested".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.claims import RESAMPLES, Claim, Claims, judge

from . import experiments

if TYPE_CHECKING:
    from .experiments import Case
    from .learning import Learning
    from .study import RankOneStudy

ROUNDING = 1e-12
NETWORKS = ("karate", "lesmis", "graph6")
ACCELERATED = ("NVI", "AVI-1", "AVI-5")
PILOT, OURS = "Threshold from pilot measurements.", "Threshold ours."
LEAST_SEEDS, LEAST_STEPS = 20, 2000  # of the thresholds for learning


def claims(study: RankOneStudy) -> Claims:
    """All claims of the method, judged on the experiments that are finished so far."""
    if study.running:
        study = replace(study, **{study.running: None}, running="")
    return Claims([*_sweep(study), *_facts(study), *_cases(study), *_learning(study)])


def judge_medians(
    id: str, statement: str, pairs: list[tuple[np.ndarray, np.ndarray]], *, over: str, **rest: Any
) -> Claim:
    """Judge the ratios of medians top / bottom, a pair of arrays over the same repetitions each.

    The interval is that of the mean ratio over repetitions, resampled together in all pairs. No
    pairs: not tested.
    """
    ratios = [np.median(top) / np.median(bottom) for top, bottom in pairs]
    claim = judge(id, statement, ratios or None, over=over, **rest)
    if not pairs:
        return claim
    count = len(pairs[0][0])
    if count == 1:
        return replace(claim, low=None, high=None, n=1)
    drawn = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    resampled = [np.median(top[drawn], 1) / np.median(bottom[drawn], 1) for top, bottom in pairs]
    low, high = np.quantile(np.mean(resampled, 0), [0.025, 0.975])
    return replace(claim, low=float(low), high=float(high), n=count)


def counts(study: RankOneStudy) -> dict[float, dict[str, np.ndarray]]:
    """Iterations of the sweep by discount and planner, at discounts where the tolerance tells.

    A planner that did not arrive has the count at which it was given up: its own is larger. Where
    rounding decides whether the tolerance is reached, counts say nothing of the method.
    """
    if study.sweep is None:
        return {}
    return {
        gamma: {
            name: np.where(np.isfinite(found), found, experiments.longest(gamma))
            for name, found in rows.items()
        }
        for gamma, rows in study.sweep.iterations.items()
        if study.parameters.tol >= experiments.rounding(gamma)
    }


def _sweep(study: RankOneStudy) -> list[Claim]:
    p, sweep, found = study.parameters, study.sweep, counts(study)
    at = found.get(0.99)
    rates = None
    if sweep and np.isfinite(sweep.fitted).any():
        known = np.isfinite(sweep.fitted)
        rates = np.abs(sweep.fitted[known] / sweep.predicted[known] - 1)
    garnets = f"Garnets ({p.n}, {p.m}, {p.b}), to {p.tol:g}"
    ends = [0.999, 0.9]
    return [
        judge(
            "fewer_than_vi", "R1-VI needs at most a fiftieth of the iterations of value iteration",
            at and at["VI"] / at["R1-VI"], each_at_least=50, unit="times", over="MDPs",
            note=f"{garnets}, at discount .99. {PILOT}",
        ),
        judge(
            "fewer_than_nvi", "and a tenth of those of Nesterov's accelerated value iteration",
            at and at["NVI"] / at["R1-VI"], each_at_least=10, unit="times", over="MDPs",
            note=f"{garnets}, at discount .99. {PILOT}",
        ),
        judge_medians(
            "discount_free", "Its number of iterations hardly grows with the discount",
            [tuple(found[g]["R1-VI"] for g in ends)] if set(ends) <= set(found) else [],
            each_at_most=1.5, unit="times", over="MDPs",
            note=f"{garnets}: the median at .999 over that at .9. {PILOT}",
        ),
        judge(
            "local_rate", "Its error falls by gamma |lambda_2| in each iteration",
            rates, each_at_most=0.08, over="numbers of successors",
            note="Garnets (100, 5, 2 to 50), discount .9: relative difference of a fitted rate; "
            f"short fits are biased. {PILOT}",
        ),
        judge_medians(
            "midpoint_close", "The midpoint of MacQueen's bracket (1966) is nearly as fast",
            [(rows["midpoint"], rows["R1-VI"]) for g, rows in found.items() if g <= 0.999],
            each_at_most=1.5, unit="times", over="MDPs",
            note=f"Our addition, the honest competitor: its median over R1-VI's, at each discount. "
            f"{garnets}. {OURS}",
        ),
    ]  # fmt: skip


def _facts(study: RankOneStudy) -> list[Claim]:
    facts = study.facts
    return [
        judge(
            "shift_identity", "R1-VI's values are those of value iteration plus a constant",
            facts and facts.span, each_at_most=ROUNDING, over="MDPs",
            note="Fact A, derived here: greatest spread of the difference, relative to the value.",
        ),
        judge(
            "bracket", "MacQueen's bracket holds the optimal value and R1-VI's",
            facts and facts.outside, each_at_most=0, unit="violations", over="MDPs",
            note="Fact B: the bracket is of 1966, that R1-VI lies in it is derived here.",
        ),
        judge(
            "error_bound", "The error is at most gamma / (1 - gamma) times the span of the change",
            facts and facts.above, each_at_most=0, unit="violations", over="MDPs",
            note="Fact C, derived here: a bound that can be computed, so a stopping rule.",
        ),
        judge(
            "deflation", "R1-VI's error loses the eigenvalue gamma and keeps the others, for any d",
            facts and facts.deflation, each_at_most=1e-6, over="MDPs",
            note="Fact D, derived here: greatest difference between coefficients of characteristic "
            "polynomials. Rounding grows like 1 / (1 - gamma)^2.",
        ),
        judge(
            "exact_in_few", "From v = 0, constant rewards take one step, equal rows two",
            facts and np.maximum(facts.one_step, facts.two_step), each_at_most=1e-10, over="MDPs",
            note="Fact E, derived here: relative error.",
        ),
        judge(
            "learning_shift", "R1-QL's values are those of Q-learning plus a constant",
            facts and facts.shift, each_at_most=ROUNDING * 10, over="MDPs",
            note="Fact F, derived here, same draws and step sizes; R1-QL is reconstructed.",
        ),
    ]  # fmt: skip


def fewest_over(case: Case, names: Sequence[str], other: str) -> float | None:
    """Fewest iterations of planners over those of another; None when none of all arrived.

    Who did not arrive has the count at which all were given up.
    """
    known = [case.iterations[name] for name in (*names, other)]
    if not np.isfinite(known).any():
        return None
    *first, last = np.where(np.isfinite(known), known, experiments.MOST)
    return float(min(first) / last)


def cases(study: RankOneStudy) -> dict[str, Case]:
    """Named problems by key, if the tolerance is above rounding."""
    told = study.cases and study.parameters.tol >= experiments.rounding(0.99)
    return study.cases if told else {}


def _ratio(study: RankOneStudy, key: str, name: str, other: str) -> float | None:
    found = cases(study)
    return fewest_over(found[key], [name], other) if key in found else None


def _listed(*values: float | None) -> list[float] | None:
    known = [value for value in values if value is not None]
    return known or None


def _cases(study: RankOneStudy) -> list[Claim]:
    complete = "graph6 at .9" in cases(study)
    consistent = None
    if complete:
        consistent = _listed(*(fewest_over(c, ACCELERATED, "R1-VI") for c in cases(study).values()))
    return [
        judge(
            "guarantee", "R1-VI converges at least at the rate of value iteration",
            _listed(*(
                np.nan_to_num(case.iterations["R1-VI"], nan=experiments.MOST) / case.allowed
                for case in cases(study).values()
            )) if complete else None,
            each_at_most=1, unit="times", over="problems",
            note="Iterations over those after which 2 gamma^k / (1 - gamma) times the first change "
            "is at most the tolerance, on every problem here; the constant is ours, the paper's is "
            "unknown.",
        ),
        judge(
            "networks", "On small networks it needs at most a fortieth of value iteration",
            _listed(*(_ratio(study, key, "VI", "R1-VI") for key in NETWORKS)) if complete else None,
            each_at_least=40, unit="times", over="networks",
            note=f"Karate club, Les Misérables, the graph of 6 nodes; discount .99. {PILOT}",
        ),
        judge(
            "absorbing_no_gain", "With several recurrent classes it gains nothing",
            _listed(_ratio(study, "frozenlake8 absorbing", "R1-VI", "VI")), each_at_least=0.9,
            unit="times", over="tables",
            note="FrozenLake 8x8 with absorbing ends: iterations over those of value iteration. "
            f"{PILOT}",
        ),
        judge(
            "periodic_no_gain", "On a periodic chain it gains little",
            _listed(_ratio(study, "cliff restart", "R1-VI", "VI")), each_at_least=0.7,
            unit="times", over="tables", note=f"CliffWalking that restarts. {PILOT}",
        ),
        judge(
            "consistent", "It is consistently better than accelerated value iteration",
            consistent, each_at_least=1, unit="times", over="problems",
            note="The abstract's word, threshold ours: iterations of the best of NVI, AVI-1 and "
            "AVI-5 over those of R1-VI, on every problem here.",
        ),
    ]  # fmt: skip


def _ends(found: dict[str, Learning], name: str, other: str) -> tuple[np.ndarray, np.ndarray]:
    """(seeds,) last errors of two learners."""
    return found[name].errors[:, -1], found[other].errors[:, -1]


def _at_end(found: dict[str, Learning], name: str, other: str) -> float:
    """Median over seeds of the last error, of `name` over that of `other`."""
    top, bottom = _ends(found, name, other)
    return float(np.median(top) / np.median(bottom))


def _learning(study: RankOneStudy) -> list[Claim]:
    p, runs = study.parameters, study.learning or {}
    garnets = {gamma: found for (name, gamma), found in runs.items() if name == "garnet"}
    costs = None
    if garnets:
        first = next(iter(garnets.values()))
        costs = first["Zap"].seconds / np.maximum(first["R1-QL"].seconds, 1e-9)
    enough = p.ql_seeds >= LEAST_SEEDS and p.ql_steps >= LEAST_STEPS
    hard = [found for gamma, found in garnets.items() if gamma >= 0.95 and enough]
    graph = [runs["graph6", 0.99]] if ("graph6", 0.99) in runs and enough else []
    medians = (
        f"Garnets (20, 3, 5), medians over seeds after {p.ql_steps:,} steps; not tested below "
        f"{LEAST_STEPS:,} steps and {LEAST_SEEDS} seeds."
    )
    return [
        judge_medians(
            "beats_q_learning", "R1-QL's error is at most a third of Q-learning's",
            [_ends(found, "R1-QL", "QL (rescaled)") for found in hard],
            each_at_most=1 / 3, unit="times", over="seeds",
            note=f"{medians} R1-QL is reconstructed, Q-learning has its best known step sizes. "
            f"{PILOT}",
        ),
        judge_medians(
            "beats_speedy", "and of speedy Q-learning's",
            [_ends(found, "R1-QL", "SQL") for found in hard],
            each_at_most=1 / 3, unit="times", over="seeds", note=f"The same. {PILOT}",
        ),
        judge(
            "cheaper_than_zap", "A step of Zap Q-learning takes at least twice the time of R1-QL's",
            costs, each_at_least=2, unit="times", note=f"60 pairs of state and action. {PILOT}",
        ),
        judge_medians(
            "as_good_as_zap", "with an error like Zap's",
            [_ends(found, "R1-QL", "Zap") for found in hard], each_at_most=1.5,
            unit="times", over="seeds", note=f"The errors as above. {OURS}",
        ),
        judge_medians(
            "tracked_d", "The tracked distribution halves the error of a uniform one at least",
            [_ends(found, "R1-QL (uniform d)", "R1-QL") for found in graph],
            each_at_least=2, unit="times", over="seeds",
            note=f"Graph of 6 nodes, discount .99, medians over seeds. {PILOT}"
            + _on_garnets(garnets),
        ),
    ]  # fmt: skip


def _on_garnets(garnets: dict[float, dict[str, Learning]]) -> str:
    """What the tracked distribution is worth on Garnets, in words."""
    ratios = [
        f"{_at_end(found, 'R1-QL (uniform d)', 'R1-QL'):.1f} at {gamma:g}"
        for gamma, found in garnets.items()
    ]
    return f" On Garnets: {', '.join(ratios)}." if ratios else ""


def values(study: RankOneStudy) -> dict[str, float]:
    """Headline numbers, for sweeps: iterations, rates, errors of learners and their ratios."""
    found: dict[str, Any] = {}
    if study.comparison:
        solved = study.comparison.solved
        found["predicted_rate"] = solved.rate
        found["second_eigenvalue"] = solved.rate / solved.gamma
        for name, plan in study.comparison.plans.items():
            if plan.iterations is not None:
                found[f"iterations_{_word(name)}"] = plan.iterations
    for gamma, rows in (study.sweep.iterations if study.sweep else {}).items():
        for name, counts in rows.items():
            if np.isfinite(counts).all():
                found[f"sweep_{gamma:g}_{_word(name)}"] = np.median(counts)
    anderson = _ratio(study, "graph6 at .9", "AVI-5", "R1-VI")
    if anderson is not None:
        found["iterations_graph6_0.9_AVI_5_over_R1_VI"] = anderson
    for (problem, gamma), rows in (study.learning or {}).items():
        for name, learned in rows.items():
            found[f"error_{problem}_{gamma:g}_{_word(name)}"] = np.median(learned.errors[:, -1])
        uniform_over_tracked = _at_end(rows, "R1-QL (uniform d)", "R1-QL")
        found[f"error_{problem}_{gamma:g}_uniform_over_tracked_d"] = uniform_over_tracked
    return {name: float(value) for name, value in found.items()}


def _word(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).strip("_").replace("__", "_")
