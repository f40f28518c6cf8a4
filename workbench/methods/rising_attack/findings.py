"""What the measurements say about each claim, and the headline numbers of a run.

Thresholds were fixed before measuring. The paper's result tables were not available, so its figures
are unknown and every threshold is ours. A claim whose experiment did not run is "not tested". The
norms of a pair of attacks are compared over the images where both succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import claims as base
from workbench.claims import Claim, Claims

from .merit import figure_of_merit
from .records import AttackResult

if TYPE_CHECKING:
    from .experiments import Bench
    from .study import RisingAttackStudy

BASELINES = ("quad", "cw", "ad")
FOM_CAP = 10.0  # shown for a baseline that fails on every image, whose figure of merit is infinite
OVER_K = "lengths K"


def judge(id: str, statement: str, values: Sequence[float] | None, **rule: Any) -> Claim:
    """A claim judged on the values that are numbers: nan stands for nothing to compare."""
    values = None if values is None else np.asarray(values, float).ravel()
    if values is not None:
        values = values[~np.isnan(values)]
    return base.judge(id, statement, values if values is not None and len(values) else None, **rule)


def claims(study: RisingAttackStudy) -> Claims:
    """All claims of the method, judged on what has been measured so far."""
    return Claims(
        [*_glyphs(study), *_tuned(study), *_digits(study), *_anchor(study), *_ablations(study),
         *_long(study), *_nested(study), *_networks(study)]
    )  # fmt: skip


def paired_ratio(bench: Bench, K: int, other: str, norm: str = "l2") -> float | None:
    """Mean norm of RisingAttacK over that of another, where both succeed; None without such."""
    own, their = bench.all("rising", K), bench.all(other, K)
    both = own.success & their.success
    if not both.any():
        return None
    return float(getattr(own, norm)[both].mean() / getattr(their, norm)[both].mean())


def merit(bench: Bench, K: int, other: str) -> float:
    """FoM(rising | other), at most `FOM_CAP`; nan when both fail everywhere."""
    value = figure_of_merit(bench.all("rising", K), bench.all(other, K))
    return min(value, FOM_CAP)


def _linf_ratio(bench: Bench, K: int) -> float | None:
    return paired_ratio(bench, K, "quad", "linf")


def _ratios(bench: Bench | None, other: str, norm: str = "l2", most: int = 99) -> list | None:
    if bench is None:
        return None
    found = [paired_ratio(bench, K, other, norm) for K in bench.K if K <= most]
    return [r for r in found if r is not None] or None


def _merits(bench: Bench | None, others: tuple[str, ...]) -> list | None:
    """The smallest figure of merit over `others` for each K at which any attack succeeds."""
    each = [lowest_merit(bench, K, others) for K in bench.K] if bench else []
    return [value for value in each if value is not None] or None


def lowest_merit(bench: Bench, K: int, others: tuple[str, ...] = BASELINES) -> float | None:
    """The smallest figure of merit over the baselines `others`; None when all attacks fail."""
    found = [merit(bench, K, other) for other in others]
    found = [value for value in found if not np.isnan(value)]
    return min(found) if found else None


def _each(bench: Bench | None, number: Callable[[Bench, int], float | None]) -> str:
    """`K = 1: 0.98, K = 5: 1.2`: a number for each K that has one."""
    pairs = [(K, number(bench, K)) for K in bench.K] if bench else []
    return ", ".join(f"K = {K}: {value:.2f}" for K, value in pairs if value is not None)


def _successes(bench: Bench | None, method: str, least: int) -> np.ndarray | None:
    """1 for each success at K >= least on any network, else 0."""
    Ks = [K for K in bench.K if K >= least] if bench else []
    if not Ks:
        return None
    return np.concatenate([bench.all(method, K).success for K in Ks]).astype(float)


def _rates(bench: Bench, method: str) -> str:
    """`K = 1: 100 %, K = 5: 88 %`: the success rate at each K."""
    return ", ".join(f"K = {K}: {100 * bench.all(method, K).asr:.0f} %" for K in bench.K)


def _glyphs(study: RisingAttackStudy) -> list[Claim]:
    bench, p = study.bench, study.parameters
    glyphs = bench if p.data == "glyphs" else None
    long = _successes(glyphs, "rising", 20)
    quad = _successes(glyphs, "quad", 20)
    rates = "" if long is None else f"Of RisingAttacK {_rates(glyphs, 'rising')}. "
    rates += "" if long is None else f"Of QuadAttacK {_rates(glyphs, 'quad')}."
    both = bench.problem.data if bench else "images"
    return [
        judge(
            "long_orders",
            "Orders of 20 and more among 94 classes are within reach: success rate",
            long, at_least=0.9, over="attacks", note=rates,
        ),
        judge(
            "longer_than_quad",
            "There it succeeds more often than QuadAttacK: difference of success rates",
            None if long is None else long - quad, at_least=0.15, over="attacks",
        ),
        judge(
            "shorter_than_quad",
            "At every K its perturbations are shorter: mean l2 over that of QuadAttacK, glyphs",
            _ratios(glyphs, "quad"), each_at_most=0.75, over=OVER_K,
        ),
        judge(
            "shorter_than_cw",
            "And shorter than those of CW^K with 200 iterations or more: mean l2 ratio, glyphs",
            _ratios(glyphs if p.cw_iters >= 200 else None, "cw"), each_at_most=0.95, over=OVER_K,
        ),
        judge(
            "merit_quad",
            "The figure of merit against QuadAttacK is above 1 at every K",
            _merits(bench, ("quad",)), each_at_least=1.0, over=OVER_K,
            note=f"On {both}; {FOM_CAP:g} where it fails on every image. Formula reconstructed.",
        ),
        judge(
            "merit_all",
            "And against the best baseline at every K",
            _merits(bench, BASELINES), each_at_least=1.0, over=OVER_K,
            note=f"On {both}. {_each(bench, lowest_merit)}",
        ),
        judge(
            "l1_smaller",
            "l1 falls with l2: mean l1 over that of QuadAttacK at every K",
            _ratios(bench, "quad", "l1"), each_at_most=1.0, over=OVER_K, note=f"On {both}.",
        ),
        judge(
            "linf_smaller",
            "l-infinity falls too: mean l-infinity over that of QuadAttacK at every K",
            _ratios(bench, "quad", "linf"), each_at_most=1.0, over=OVER_K,
            note=f"On {both}. The program minimizes l2 alone. "
            f"{_each(bench, _linf_ratio)}",
        ),
    ]  # fmt: skip


def _tuned(study: RisingAttackStudy) -> list[Claim]:
    t = study.tuned
    merits = settings = None
    if t:
        pairs = [(K, t.rising.get(("rising", K)), t.tuned.get(("quad", K))) for K in t.K if K >= 20]
        merits = [min(figure_of_merit(a, b.result), FOM_CAP) for _, a, b in pairs if a and b]
        settings = "; ".join(
            f"K = {K}: lr {b.settings['lr']:g}, coef {b.settings['coef']:g}, "
            f"{b.settings['iters']} iterations, margin {b.settings['margin']:g}"
            for K, _, b in pairs if b
        )  # fmt: skip
    return [
        judge(
            "merit_tuned",
            "At K = 20 and 30 it beats QuadAttacK tuned on these very images: figure of merit",
            merits, each_at_least=1.1, over=OVER_K, note=settings or "",
        )
    ]  # fmt: skip


def _digits(study: RisingAttackStudy) -> list[Claim]:
    bench = study.digits_bench
    gaps = rates = None
    if bench and bench.K:
        best = {K: max(bench.all(m, K).asr for m in BASELINES) for K in bench.K}
        gaps = [bench.all("rising", K).asr - best[K] for K in bench.K]
        rates = f"{_rates(bench, 'rising')}; best baseline " + ", ".join(
            f"{100 * asr:.0f} %" for asr in best.values()
        )
    return [
        judge(
            "digits_success",
            "On real digits no baseline succeeds more often at any K: difference to the best one",
            gaps, each_at_least=0.0, over=OVER_K, note=rates or "",
        ),
        judge(
            "digits_shorter",
            "On real digits its perturbations are shorter up to K = 5: mean l2 over QuadAttacK's",
            _ratios(bench, "quad", most=5), each_at_most=0.85, over=OVER_K,
        ),
    ]  # fmt: skip


def _anchor(study: RisingAttackStudy) -> list[Claim]:
    from .experiments import TITLES
    from .peers import TITLES as PEER_TITLES

    a = study.anchor
    own = a and a.results[TITLES["rising"]]
    peer = a and a.results.get(PEER_TITLES["cw"])
    ratios = speed = None
    if peer:
        both = own.success & peer.success
        ratios, speed = own.l2[both] / peer.l2[both], [peer.seconds / own.seconds]
    note = a.missing if a else ""
    return [
        judge(
            "anchor",
            "At K = 1 it is as short as foolbox's Carlini-Wagner attack: l2 ratio",
            ratios, at_most=1.02, over="images", note=note,
        ),
        judge(
            "anchor_speed",
            "In a fraction of the time: processor seconds of Carlini-Wagner over its own",
            speed, at_least=50.0, over="runs", note=note,
        ),
    ]  # fmt: skip


def _success(result: AttackResult | None) -> np.ndarray | None:
    return None if result is None else result.success.astype(float)


def _difference(a: AttackResult | None, b: AttackResult | None) -> np.ndarray | None:
    return None if a is None or b is None else _success(a) - _success(b)


def _random_length(full: AttackResult | None, random: AttackResult | None) -> str:
    if full is None or random is None or not (full.success & random.success).any():
        return ""
    both = full.success & random.success
    ratio = random.l2[both].mean() / full.l2[both].mean()
    return f"Where it succeeds, l2 is {ratio:.2f} times as long."


def _ablations(study: RisingAttackStudy) -> list[Claim]:
    a = study.ablations
    full = a and a.results[""].get("as is")

    def get(part: str, setting: str) -> AttackResult | None:
        return a and a.results.get(part, {}).get(setting)

    residuals = a.residuals if a else None
    wide, fine = get("margin", "0.5"), get("margin", "0.05")
    shorter = None
    if wide and fine and (wide.success & fine.success).any():
        both = wide.success & fine.success
        shorter = fine.l2[both] / wide.l2[both]
    return [
        judge(
            "span",
            "Each program's solution is a combination of right singular vectors of the "
            "adversarial Jacobian: share of it outside their span",
            residuals, each_at_most=1e-8, over="programs", note="Without box, and on free pixels.",
        ),
        judge(
            "rank_needed",
            "All of them are needed: success with all 9, minus success with the leading 3",
            _difference(full, get("rank", "3")), at_least=0.5, over="images",
        ),
        judge(
            "random_directions",
            "As many random directions do not do: success rate",
            _success(get("directions", "random")), at_most=0.05, over="images",
            note=_random_length(full, get("directions", "random")),
        ),
        judge(
            "margin_length",
            "A smaller margin gives shorter perturbations: l2 at margin 0.05 over that at 0.5",
            shorter, at_most=0.95, over="images",
        ),
        judge(
            "margin_success",
            "And costs successes when it vanishes: success at margin 0.05 minus at 0.001",
            _difference(fine, get("margin", "0.001")), at_least=0.05, over="images",
        ),
        judge(
            "line_search",
            "The line search is needed: success with it minus success with full steps",
            _difference(full, get("line search", "full steps")), at_least=0.1, over="images",
        ),
        judge(
            "box",
            "The box belongs into the program: success when steps are only clipped",
            _success(get("box", "clipped only")), at_most=0.05, over="images",
        ),
    ]  # fmt: skip


def _long(study: RisingAttackStudy) -> list[Claim]:
    results = study.long_ablations.results if study.long_ablations else {}
    parts = [r for name, r in results.get("tau", {}).items() if not name.startswith("1,")]
    partial = np.concatenate([_success(r) for r in parts]) if parts else None
    rivals = results.get("rivals", {})
    whole = results.get("tau", {}).get("1, full steps")
    return [
        judge(
            "partial_steps",
            "Full steps that demand a part of each violation fail at K = 20: success at tau = 0.5 "
            "and 0.3",
            partial, at_most=0.05, over="attacks",
            note="" if whole is None else f"At tau = 1 full steps reach {100 * whole.asr:.0f} %, "
            "so it is the line search that is missing.",
        ),
        judge(
            "rivals",
            "K = 20 needs 40 rivals in the program: success with 40 minus success with 20",
            _difference(rivals.get("40"), rivals.get("20")), at_least=0.5, over="images",
        ),
    ]  # fmt: skip


def _nested(study: RisingAttackStudy) -> list[Claim]:
    n = study.nested
    rises = None if n is None else np.diff(n.norms, axis=1) / n.norms[:, 1:]
    return [
        judge(
            "nested_linear",
            "A longer order of the same targets never costs less, for a linear model exactly: "
            "relative rise of the optimal l2",
            rises, each_at_least=-1e-9, over="steps of K",
        ),
        judge(
            "nested_network",
            "Nor for the attack on networks: share of falls of l2 from one K to the next",
            falls(study.bench), at_most=0.0, over="steps of K",
            note="The attack finds a local optimum, so falls are possible.",
        ),
    ]  # fmt: skip


def falls(bench: Bench | None) -> np.ndarray | None:
    """1 where l2 of an image falls from one K of the nested orders to the next, else 0."""
    if bench is None or len(bench.K) < 2:
        return None
    runs = [bench.all("rising", K) for K in bench.K]
    found = [(b.l2 < a.l2)[a.success & b.success] for a, b in pairwise(runs)]
    return np.concatenate(found).astype(float) if sum(map(len, found)) else None


def _networks(study: RisingAttackStudy) -> list[Claim]:
    w, curves = study.widths, study.defense
    gain = room = radii = None
    if w is not None and len(w.widths) > 1:
        long = w.K >= 10
        gain = (w.asr["rising"][-1] - w.asr["rising"][0])[long]
    if curves and "smoothed" in curves:
        smoothed = curves["smoothed"]
        room = 1 - smoothed.reached - smoothed.certified
    if curves and "adversarially trained" in curves:
        plain, hard = (
            np.stack(list(curves[name].radii.values())).min(0)
            for name in ("plain", "adversarially trained")
        )
        both = np.isfinite(plain) & np.isfinite(hard)
        radii = hard[both] / plain[both]
    return [
        judge(
            "width",
            "Long orders need many features: success at K >= 10, widest network minus narrowest",
            gain, at_least=0.5, over=OVER_K,
        ),
        judge(
            "adversarial_training",
            "Adversarial training makes attacks larger at K = 1: l2 over that on a plain network",
            radii, at_least=1.2, over="images",
        ),
        judge(
            "certificate",
            "No attack reaches inside a certified radius: share of images neither certified nor "
            "reached, at every budget",
            room, each_at_least=0.0, over="budgets",
        ),
    ]  # fmt: skip


def values(study: RisingAttackStudy) -> dict[str, float]:
    """Headline numbers by name, for sweeps and the scorecard; nothing for what has no success."""
    found: dict[str, float] = {}
    benches = {"": study.bench, "digits_": study.digits}
    for prefix, bench in benches.items():
        for K in bench.K if bench else []:
            for method in ("rising", *BASELINES):
                result, key = bench.all(method, K), f"{prefix}{method}_K{K}"
                found[f"{key}_asr"] = result.asr
                found[f"{key}_seconds"] = result.seconds
                if result.asr:
                    for norm in ("l1", "l2", "linf"):
                        found[f"{key}_{norm}"] = getattr(result, norm)[result.success].mean()
    if study.bench:
        for number, right in enumerate(study.bench.problem.accuracy):
            found[f"accuracy_{number}"] = right
    for prefix, a in (("ablation", study.ablations), ("long_ablation", study.long_ablations)):
        for part, settings in (a.results if a else {}).items():
            for setting, result in settings.items():
                name = "_".join(f"{prefix} {part} {setting}".replace(",", "").split())
                found[f"{name}_asr"] = result.asr
                if result.asr:
                    found[f"{name}_l2"] = result.l2[result.success].mean()
    if study.tuned:
        t = study.tuned
        results = {**t.rising, **{key: tuned.result for key, tuned in t.tuned.items()}}
        for (name, K), result in results.items():
            key = f"tuned_{name.replace(' ', '_')}_K{K}"
            found[f"{key}_asr"], found[f"{key}_seconds"] = result.asr, result.seconds
            if result.asr:
                found[f"{key}_l2"] = result.l2[result.success].mean()
    for title, result in (study.anchor.results if study.anchor else {}).items():
        name = title.split(",")[0].replace(" ", "_").replace("-", "_").lower()
        found[f"anchor_{name}_seconds"] = result.seconds
        if result.asr:
            found[f"anchor_{name}_l2"] = result.l2[result.success].mean()
    if study.widths is not None:
        for row, width in enumerate(study.widths.widths):
            for column, K in enumerate(study.widths.K):
                for method, asr in study.widths.asr.items():
                    found[f"width_{width}_{method}_K{K}_asr"] = asr[row, column]
    for name, curve in (study.defense or {}).items():
        found[f"defense_{name.replace(' ', '_')}_clean"] = curve.clean
    return {name: float(value) for name, value in found.items()}
