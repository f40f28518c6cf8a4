"""What the measurements say about each claim, and the headline numbers of a run.

Thresholds come from pilot measurements with an independent program, or are ours, as each note says.
The paper prints its results as figures without numbers, so its figures are unknown. A claim is
judged only in the setting of its threshold, else "not tested".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.claims import RESAMPLES, Claim, Claims, judge

from .bonuses import PAPER, Sizes, bernstein_below_hoeffding_from, meaningful_from, visits_to_inform

if TYPE_CHECKING:
    from .experiments import Comparison
    from .study import UCBVIStudy

PILOT, OURS = "Threshold from pilot measurements.", "Threshold ours."
MAIN_K, LONG_K = 100_000, 1_000_000
RANDOM = "random MDPs, 3 states, 3 actions"
STANDARD = Sizes(3, 3, 5, MAIN_K)
FEW = 3  # runs from which a claim about each of them is judged
MANY = 10  # runs from which an order of means is judged, as in the paper
BANDITS = 20  # sets of arms from which the ratio of means is judged, as in the pilot
ORDER = (("BF-I", "BF"), ("BF", "CH-I"), ("CH-I", "CH"), ("CH-I", "MVP"))  # the smaller first
# By this factor a median may exceed the one before it and still count as falling.
MONOTONE = 1.05


def claims(study: UCBVIStudy) -> Claims:
    """All claims of the method, judged on what has been measured so far."""
    return Claims([
        *_main(study), *_short(study), *_long(study), *_river(study), *_scan(study),
        *_switches(study), *_bounds(study), *_bandits(study), *_grid(study),
    ])  # fmt: skip


def means(comparison: Comparison, kind: str = "pseudo") -> str:
    """`BF-I 5,615, BF 10,402.`: mean regret of each algorithm, the smallest first."""
    found = sorted((comparison.mean(a, kind), a) for a in comparison.algorithms)
    return ", ".join(f"{a} {mean:,.0f}" for mean, a in found) + "."


def steps_of_the_order(means: np.ndarray) -> np.ndarray:
    """Ratios (4, ...) of `means` (5, ...) of PAPER: below 1 if BF-I < BF < CH-I < CH and MVP."""
    return np.array([means[PAPER.index(a)] / means[PAPER.index(b)] for a, b in ORDER])


def _with_interval(
    claim: Claim, statistic: Callable[[np.ndarray], np.ndarray], finals: np.ndarray, over: str
) -> Claim:
    """The claim with the 95 % interval of a statistic of means: a bootstrap of whole runs.

    finals (m, n): n regrets of each of m quantities; statistic: of their means (m, ...).
    """
    n = finals.shape[1]
    drawn = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))
    low, high = np.quantile(statistic(finals[:, drawn].mean(-1)), (0.025, 0.975))
    return replace(claim, low=float(low), high=float(high), n=n, over=over)


def _usable(comparison: Comparison | None, *needed: str, runs: int = FEW) -> Comparison | None:
    """The comparison if enough `runs` were asked for and all of the needed algorithms have ended.

    Fewer than three MDPs, or repetitions, say nothing of "each".
    """
    if comparison is None or runs < FEW:
        return None
    runs = [run for a in needed for run in comparison.runs.get(a, [None])]
    ended = all(run and run.episodes[-1] == comparison.sizes.K for run in runs)
    return comparison if ended else None


def _main(study: UCBVIStudy) -> list[Claim]:
    p = study.parameters
    standard = p.standard and p.K >= MAIN_K
    found = []
    for H, result in ((5, study.main if p.H == 5 else None),
                      (10, study.taller if p.second_H == 10 else None)):  # fmt: skip
        c = _usable(result if standard else None, *PAPER, runs=p.runs)
        place = f"{RANDOM}, H = {H}"
        found += [
            judge(
                f"constants_bf_{H}",
                f"Better constants alone: regret of BF-I over that of BF ({place})",
                c and c.ratio("BF-I", "BF"), each_at_least=0.45, each_at_most=0.70,
                over="MDPs", note=f"{means(c) if c else ''} {PILOT}".strip(),
            ),
            judge(
                f"bernstein_mvp_{H}",
                f"BF beats MVP, whose bound has the better order: ratio of regret ({place})",
                c and c.ratio("BF", "MVP"), each_at_most=0.2, over="MDPs", note=PILOT,
            ),
            _order(f"order_{H}", place, c if p.runs >= MANY else None),
        ]  # fmt: skip
    return found


def _order(id: str, place: str, c: Comparison | None) -> Claim:
    finals = np.array([c.final(a) for a in PAPER]) if c else None
    ratios = None if finals is None else steps_of_the_order(finals.mean(1))
    note = ""
    if c is not None and ratios is not None:
        each = zip(ORDER, ratios, strict=True)
        note = ", ".join(f"{a} / {b} {ratio:.2f}" for (a, b), ratio in each)
        note += f". {_exceptions(c)} "
    claim = judge(
        id,
        "Mean regret is ordered BF-I < BF < CH-I < CH and CH-I < MVP: largest ratio of "
        f"neighbors ({place})",
        None if ratios is None else [ratios.max()], each_at_most=1.0, threshold="largest ≤ 1",
        over="MDPs", note=note + PILOT,
    )  # fmt: skip
    if finals is None:
        return claim
    return _with_interval(claim, lambda m: steps_of_the_order(m).max(0), finals, "MDPs")


def _exceptions(c: Comparison) -> str:
    ratio = c.ratio("CH-I", "CH")
    worse = np.flatnonzero(ratio > 1)
    if not len(worse):
        return "CH-I beats CH on every MDP."
    ch, ch_i = (np.mean([c.runs[a][i].most_taken for i in worse]) for a in ("CH", "CH-I"))
    return (
        f"On {len(worse)} of {len(ratio)} MDPs CH-I loses to CH (largest ratio {ratio.max():.2f}): "
        f"there CH took the same action in {ch:.0%} of all steps, CH-I in {ch_i:.0%}."
    )


def _short(study: UCBVIStudy) -> list[Claim]:
    c = _usable(study.short, "BF", "BF-I", "practitioner")
    return [
        judge(
            "constants_bf_short",
            f"BF-I over BF after 10,000 episodes ({RANDOM}, H = 5)",
            c and c.ratio("BF-I", "BF"), each_at_most=0.70, over="MDPs",
            note=f"{means(c) if c else ''} {PILOT}".strip(),
        ),
        judge(
            "practitioners",
            "The bonus that practitioners use, with no guarantee, has far less regret than BF-I: "
            f"ratio of realised regret after 10,000 episodes ({RANDOM}, H = 5)",
            c and c.ratio("practitioner", "BF-I", "realised"), each_at_most=0.2, over="MDPs",
            note=f"Not in the paper. {OURS}",
        ),
    ]  # fmt: skip


def _long(study: UCBVIStudy) -> list[Claim]:
    p = study.parameters
    c = _usable(study.long if p.long_K >= LONG_K else None, *PAPER, runs=p.long_runs)
    note = f"{means(c)} " if c else ""
    if c:
        gaps = {a: np.mean([run.gap for run in c.runs[a]]) for a in PAPER}
        each = ", ".join(f"{a} {gap:.2g}" for a, gap in gaps.items())
        note += f"Regret of one episode in the end: {each}. "
    return [
        judge(
            "long_chi",
            f"After a million episodes BF-I has less regret than CH-I: ratio ({RANDOM}, H = 5)",
            c and c.ratio("BF-I", "CH-I"), each_at_most=1.0, over="MDPs", note=note + PILOT,
        ),
        judge(
            "long_mvp",
            "MVP, slow to learn anything, has at least ten times the regret of BF-I even then: "
            f"ratio BF-I / MVP ({RANDOM}, H = 5)",
            c and c.ratio("BF-I", "MVP"), each_at_most=0.1, over="MDPs", note=PILOT,
        ),
    ]  # fmt: skip


def _river(study: UCBVIStudy) -> list[Claim]:
    p = study.parameters
    long = study.long_river or {}
    c, tied, first = (
        _usable(result if p.K >= MAIN_K else None, "BF", "BF-I", "MVP", runs=runs)
        for result, runs in (
            (study.river, p.river_runs), (long.get("random"), p.long_river_runs),
            (long.get("first"), p.long_river_runs),
        )
    )  # fmt: skip
    river = "RiverSwim of 5 states, H = 10"
    return [
        judge(
            "river_constants", f"Better constants alone: BF-I over BF ({river})",
            c and c.ratio("BF-I", "BF"), each_at_least=0.5, each_at_most=0.65, over="runs",
            note=f"{means(c) if c else ''} {PILOT}".strip(),
        ),
        judge(
            "river_mvp", f"MVP has at least five times the regret of BF ({river})",
            c and c.ratio("MVP", "BF"), each_at_least=5.0, over="runs", note=PILOT,
        ),
        judge(
            "long_river_first",
            "RiverSwim of 10 states, H = 25, as the paper runs it: BF-I has less regret than MVP "
            "(ratio)",
            first and first.ratio("BF-I", "MVP"), each_at_most=1.0, over="runs",
            note=f"{means(first) if first else ''} Counter-example: the table of MVP is at its cap "
            "H, and among equals it takes the first action, left, which is nearly optimal. "
            f"{OURS}".strip(),
        ),
        judge(
            "long_river_random",
            "The same river with ties broken at random: BF-I has less regret than MVP (ratio)",
            tied and tied.ratio("BF-I", "MVP"), each_at_most=0.85, over="runs",
            note=f"{means(tied) if tied else ''} {PILOT}".strip(),
        ),
    ]  # fmt: skip


def _scan(study: UCBVIStudy) -> list[Claim]:
    p, scan = study.parameters, study.scan
    judged = p.K >= MAIN_K and p.scan_runs >= FEW
    enough = judged and scan is not None and not np.isnan(scan.regret["BF-I"]).any()
    growth = violated = None
    note = ""
    if enough:
        valid = scan.scales >= 0.02
        median = scan.median("BF-I")
        growth = median[valid][1:] / median[valid][:-1]
        violated = scan.violated["BF-I"][valid].max(0)
        each = ", ".join(f"{s:g}: {m:,.0f}" for s, m in zip(scan.scales, median, strict=True))
        below = ", ".join(
            f"{v:.2f} at {s:g}"
            for s, v in zip(scan.scales[~valid], scan.share("BF-I")[~valid], strict=True)
        )
        note = f"Median regret by multiplier: {each}. Violations below .02: {below}. "
    return [
        judge(
            "scan_falls",
            f"The smaller the bonus of BF-I, down to a fiftieth, the less regret: each step of the "
            f"medians ({RANDOM}, H = 5)",
            growth, each_at_most=MONOTONE, over="steps", note=note + PILOT,
        ),
        judge(
            "scan_optimism",
            "Optimism survives a fiftieth of the bonus of BF-I: largest share of V_h < V*_h in the "
            "last episode, multipliers 1 to .02",
            violated, each_at_most=0.0, over="MDPs", note=PILOT,
        ),
    ]  # fmt: skip


def _switches(study: UCBVIStudy) -> list[Claim]:
    p, s = study.parameters, study.switches
    enough = s is not None and p.K >= MAIN_K and p.runs >= FEW
    finals = official = violated = None
    note = saved = ""
    if enough:
        finals = np.array([c.final("BF-I") for c in (s.last_step, s.plain)])
        without, plain = finals.mean(1)
        apart = finals[0] / finals[1]
        saved = (
            f"Means {plain:,.0f} with and {without:,.0f} without it. On a single MDP it may hurt: "
            f"ratios {apart.min():.2f} to {apart.max():.2f}, above 1 on {(apart > 1).sum()} of "
            f"{len(apart)}. "
        )
        violated = [run.violated.max() for run in s.last_step.runs["BF-I"]]
        official = np.maximum(s.official.ratio("BF-I", "BF"), s.official.ratio("BF", "MVP"))
        note = f"{means(s.official)} "
    last = judge(
        "last_step",
        "No bonus at the last step, where rewards are known, lowers the mean regret of BF-I by "
        "5 to 25 % (ratio of means)",
        [without / plain] if enough and p.runs >= MANY else None, at_least=0.75, at_most=0.95,
        over="MDPs", note=f"{saved}Not in the paper. {PILOT}",
    )  # fmt: skip
    if last.measured is not None:
        last = _with_interval(last, lambda m: m[0] / m[1], finals, "MDPs")
    return [
        last,
        judge(
            "last_step_optimism",
            "BF-I stays optimistic without a bonus at the last step: largest share of V_h < V*_h "
            "at any recorded episode",
            violated, each_at_most=0.0, over="MDPs", note=PILOT,
        ),
        judge(
            "official_variance",
            "The ranking BF-I < BF < MVP is the same with the variance of the released program: "
            "the larger ratio of neighbors on each MDP",
            official, each_at_most=1.0, over="MDPs", note=note + OURS,
        ),
    ]  # fmt: skip


def _bounds(study: UCBVIStudy) -> list[Claim]:
    p = study.parameters
    crossing = {a: np.log10(meaningful_from(a, STANDARD)) for a in ("CH", "BF")}
    later = np.log10(bernstein_below_hoeffding_from(STANDARD))
    where = "3 states, 3 actions, H = 5"
    source = f"Arithmetic, no run decides it: bound from memory of Azar et al., delta = 1. {OURS}"
    c = _usable(study.main if p.standard and p.H == 5 else None, "CH", "BF")
    measured = ""
    if c:
        times = c.mean("CH") / c.mean("BF")
        measured = f"Measured after {p.K:,} episodes, CH has {times:.1f} times the regret of BF. "
    return [
        judge(
            f"bound_{a.lower()}",
            f"The published bound of {a} says less than H K until K = 10^x ({where})",
            [crossing[a]], at_least=low, at_most=low + 1, over="formulas",
            note=source,
        )
        for a, low in (("CH", 7.0), ("BF", 8.0))
    ] + [
        judge(
            "bound_order",
            f"The published bound of BF is below that of CH only from K = 10^x ({where})",
            [later], at_least=10.0, over="formulas", note=measured + source,
        )
    ]  # fmt: skip


def _bandits(study: UCBVIStudy) -> list[Claim]:
    from .experiments import ARMS

    b = study.bandits
    if b is None or min(len(curves) for curves in b.curves.values()) < BANDITS:
        b = None  # maybe stopped
    each = ", ".join(f"{A} arms {b.ratio(A):.2f}" for A in ARMS) + ". " if b else ""
    claim = judge(
        "bandits",
        "Bandits: the refined index has a fifth to a half of the regret of the published one "
        "(ratio of means, 100,000 rounds)",
        [b.ratio(A) for A in ARMS] if b else None, each_at_least=0.2, each_at_most=0.5,
        over="sets of arms", note=each + PILOT,
    )  # fmt: skip
    if b is None:
        return [claim]
    order = [(A, index) for index in ("refined", "published") for A in ARMS]
    finals = np.array([b.curves[key][:, -1] for key in order])
    half = len(ARMS)
    return [_with_interval(claim, lambda m: (m[:half] / m[half:]).mean(0), finals, "sets of arms")]


def _grid(study: UCBVIStudy) -> list[Claim]:
    from .experiments import GRID

    p, done = study.parameters, study.grid or []
    ratios: Sequence[float] | None = None
    # Every size, and not those before an interrupt.
    if p.K >= MAIN_K and p.grid_runs >= FEW and len(done) == len(GRID):
        ratios = [max(c.mean("BF-I") / c.mean("BF"), c.mean("BF") / c.mean("MVP")) for c in done]
    return [
        judge(
            "grid",
            "BF-I < BF < MVP in mean regret for every size of the paper (3, 5 and 10 states and "
            "actions, H = 5 and 10): the larger ratio of neighbors",
            ratios, each_at_most=1.0, over="sizes", note=OURS,
        )
    ]  # fmt: skip


def values(study: UCBVIStudy) -> dict[str, float]:
    """Headline numbers by name, for sweeps and the scorecard."""
    found: dict[str, float] = {}
    kind, s = study.parameters.regret, study.switches
    rivers, grid = study.long_river or {}, study.grid or []
    for prefix, comparison in (
        ("", study.main), ("baseline_", study.baselines), ("second_horizon_", study.taller),
        ("river_", study.river), ("long_", study.long), ("long_second_horizon_", study.long_taller),
        ("short_", study.short), ("plain_", s and s.plain),
        ("no_last_bonus_", s and s.last_step), ("official_variance_", s and s.official),
        *((f"long_river_{name}_", c) for name, c in rivers.items()),
        *((f"grid_{c.sizes.S}_{c.sizes.A}_{c.sizes.H}_", c) for c in grid),
    ):  # fmt: skip
        for a in comparison.algorithms if comparison else ():
            name = a.lower().replace("-", "_").replace(" ", "_")
            final = comparison.final(a, kind)
            if len(final):
                found[f"{prefix}regret_{name}"] = final.mean()
                ends = [run.gap for run in comparison.ended(a).values()]
                found[f"{prefix}last_gap_{name}"] = np.mean(ends)
    for a in ("BF-I", "BF", "CH", "CH-I", "MVP"):
        visits = visits_to_inform(a, STANDARD)
        found[f"visits_to_inform_{a.lower().replace('-', '_')}"] = visits or np.inf
    if study.scan:
        for a in study.scan.regret:
            name, ends = a.lower().replace("-", "_"), study.scan.median(a)
            for scale, median in zip(study.scan.scales, ends, strict=True):
                if not np.isnan(median):
                    found[f"scan_{name}_{scale:g}"] = median
    if study.bandits:
        for A, index in study.bandits.curves:
            found[f"bandit_{A}_{index}"] = study.bandits.curves[A, index][:, -1].mean()
    return {name: float(value) for name, value in found.items()}
