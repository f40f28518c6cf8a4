"""What the measurements say about each claim, and the headline numbers of a run.

Thresholds come from pilot measurements or are ours, as each note says; they were fixed from pilot
measurements before this run, and where one was set later, its note says so. The paper's result
tables were not available, so its figures are unknown. A claim whose experiment did not run is "not
tested". Norms of a pair of attacks are compared over the images where both succeed. With several
networks, a number is computed for each network first: what is judged is its mean, and its interval
is over networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import claims as base
from workbench.claims import Claim, Claims

from .attacks import TITLES
from .merit import figure_of_merit
from .records import AttackResult

if TYPE_CHECKING:
    from .experiments import Bench
    from .study import RisingAttackStudy

BASELINES = ("quad", "cw", "ad")
FOM_CAP = 10.0  # judged in place of more: without a success of the other a merit is infinite
CAPPED = f"Judged as {FOM_CAP:g} where it is more; ∞: no success on any image."
OVER_K = "lengths K"
PILOT, OURS = "Threshold from pilot measurements.", "Threshold ours."

Number = Callable[[dict[str, AttackResult]], float]  # of all methods on one network; nan: none


def judge(id: str, statement: str, values: Sequence[float] | None, **rule: Any) -> Claim:
    """A claim judged on the values that are numbers: nan stands for nothing to compare.

    values (n,), or (lengths K, networks): then each K is judged by its mean over the networks, and
    the interval is over networks if there are several, else over K. A note says so where the
    interval of a mean holds the threshold.
    """
    values = np.array([] if values is None else values, float)
    by_network = None
    if values.ndim == 2:
        by_network, values = _mean(values, 0), _mean(values, 1)
    values = values[~np.isnan(values)]
    claim = base.judge(id, statement, values if len(values) else None, **rule)
    if by_network is not None and len(by_network) > 1 and claim.measured is not None:
        found = by_network[~np.isnan(by_network)]
        low, high = base.interval(found)
        claim = replace(claim, low=low, high=high, n=len(found), over="networks")
    limit = rule.get("at_least", rule.get("at_most"))
    if limit is not None and claim.n > 1 and claim.low < limit < claim.high:
        note = _sentences(claim.note, "Not distinguishable from the threshold at this size.")
        claim = replace(claim, note=note)
    return claim


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean of the numbers along an axis; nan where there is none."""
    known = ~np.isnan(values)
    count = known.sum(axis)
    total = np.where(known, values, 0.0).sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def claims(study: RisingAttackStudy) -> Claims:
    """All claims of the method, judged on what has been measured so far."""
    return Claims(
        [*_glyphs(study), *_tuned(study), *_equal_time(study), *_digits(study), *_anchor(study),
         *_ablations(study), *_long(study), *_nested(study), *_networks(study)]
    )  # fmt: skip


def by_length(bench: Bench | None, number: Number, least: int = 1, most: int = 99) -> np.ndarray:
    """`number` for each K from least to most and each network: (lengths, networks)."""
    lengths = [K for K in bench.K if least <= K <= most] if bench else []
    networks = len(bench.problem.models) if bench else 0
    found = [
        [
            number({m: found[i] for (m, of_K), found in bench.results.items() if of_K == K})
            for i in range(networks)
        ]
        for K in lengths
    ]
    return np.array(found).reshape(len(lengths), networks)


def ratio_to(other: str, norm: str = "l2") -> Number:
    """Mean norm of RisingAttacK over that of another, where both succeed; nan without such."""

    def number(results: dict[str, AttackResult]) -> float:
        own, their = results["rising"], results[other]
        both = own.success & their.success
        if not both.any():
            return np.nan
        return float(getattr(own, norm)[both].mean() / getattr(their, norm)[both].mean())

    return number


def merit_over(*others: str, most: float = FOM_CAP) -> Number:
    """The least figure of merit over others, at most `most`; nan when all attacks fail."""

    def number(results: dict[str, AttackResult]) -> float:
        found = [capped_merit(results["rising"], results[other], most) for other in others]
        return min((value for value in found if not np.isnan(value)), default=np.nan)

    return number


def capped_merit(own: AttackResult, their: AttackResult, most: float = FOM_CAP) -> float:
    """FoM(own | their), at most `most`; nan when both fail everywhere."""
    value = figure_of_merit(own, their)
    return value if np.isnan(value) else min(value, most)


def _number(value: float) -> str:
    return "∞" if np.isinf(value) else f"{value:.2f}"


def success_over(*others: str) -> Number:
    """Success rate of RisingAttacK minus the highest of others; the rate itself without others."""

    def number(results: dict[str, AttackResult]) -> float:
        return results["rising"].asr - max((results[m].asr for m in others), default=0.0)

    return number


def _each(bench: Bench | None, number: Number, least: int = 1, most: int = 99) -> str:
    """`K = 1: 0.98, K = 5: 1.2.`: the mean over networks for each K that has one."""
    lengths = [K for K in bench.K if least <= K <= most] if bench else []
    means = _mean(by_length(bench, number, least, most), 1)
    pairs = [f"K = {K}: {_number(v)}" for K, v in zip(lengths, means, strict=True) if v == v]
    return ", ".join(pairs) + "." if pairs else ""


def _rates(bench: Bench, *methods: str) -> str:
    """`K = 1: 100 %, K = 5: 88 %`: the success rate at each K, the best of the methods."""
    return ", ".join(
        f"K = {K}: {100 * max(bench.all(m, K).asr for m in methods):.0f} %" for K in bench.K
    )


def _sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _glyphs(study: RisingAttackStudy) -> list[Claim]:
    bench, p = study.bench, study.parameters
    glyphs = bench if p.data == "glyphs" else None
    rates = ""
    if glyphs and glyphs.K:
        rates = f"RisingAttacK {_rates(glyphs, 'rising')}; QuadAttacK {_rates(glyphs, 'quad')}."
    data = f"On {bench.problem.data if bench else p.data}."
    official = (p.lr, p.coef, p.search_steps, p.quad_margin) == (0.01, 20, 1, 0.2)
    settings = "its official settings" if official else f"lr {p.lr:g}, coef {p.coef:g}"
    quad = f"QuadAttacK with {settings} and {p.quad_iters} iterations"
    cw = f"CW^K with {p.cw_iters} iterations"
    enough = glyphs if p.cw_iters >= 200 else None

    def length(
        id: str, statement: str, over: Bench | None, number: Number, note: str = "",
        least: int = 1, shown: Number | None = None, **rule: float,
    ) -> Claim:  # fmt: skip
        values, each = by_length(over, number, least), _each(over, shown or number, least)
        return judge(id, statement, values, over=OVER_K, note=_sentences(each, note), **rule)

    return [
        length(
            "long_orders",
            "Orders of K >= 20 among 94 classes are within reach of RisingAttacK: success rate at "
            "each K",
            glyphs, success_over(), PILOT, least=20, each_at_least=0.9,
        ),
        length(
            "longer_than_quad",
            f"Orders of K >= 20 are reached more often than by {quad}: difference of success rates "
            "at each K",
            glyphs, success_over("quad"), _sentences(rates, PILOT), least=20, each_at_least=0.15,
        ),
        length(
            "shorter_than_quad",
            f"Perturbations of glyphs are shorter than those of {quad}: ratio of mean l2 at each K",
            glyphs, ratio_to("quad"), PILOT, each_at_most=0.75,
        ),
        length(
            "shorter_than_cw",
            f"Perturbations of glyphs are shorter than those of {cw}: ratio of mean l2 at each K",
            enough, ratio_to("cw"), _sentences("Tested from 200 iterations on.", PILOT),
            each_at_most=0.95,
        ),
        length(
            "merit_quad",
            f"The figure of merit against {quad} is above 1 at each K",
            bench, merit_over("quad"),
            f"{data} {CAPPED} Formula reconstructed. {PILOT}",
            shown=merit_over("quad", most=np.inf), each_at_least=1.0,
        ),
        length(
            "merit_all",
            "The figure of merit against the best of QuadAttacK, CW^K and AD is above 1 at each K",
            bench, merit_over(*BASELINES),
            f"{data} {CAPPED} {PILOT}", shown=merit_over(*BASELINES, most=np.inf),
            each_at_least=1.0,
        ),
        length(
            "l1_smaller",
            f"The l1 norm is smaller than that of {quad}: ratio of mean l1 at each K",
            bench, ratio_to("quad", "l1"), _sentences(data, OURS), each_at_most=1.0,
        ),
        length(
            "linf_smaller",
            f"The l-infinity norm is smaller than that of {quad}: ratio of means at each K",
            bench, ratio_to("quad", "linf"), f"{data} The program minimizes l2 alone. {OURS}",
            each_at_most=1.0,
        ),
    ]  # fmt: skip


def _tuned(study: RisingAttackStudy) -> list[Claim]:
    t = study.tuned
    merits = gaps = None
    settings = ""
    if t:
        pairs = [(K, t.rising.get(("rising", K)), t.tuned.get(("quad", K))) for K in t.K if K >= 20]
        pairs = [(K, own, found) for K, own, found in pairs if own and found]
        merits = [capped_merit(own, found.result) for _, own, found in pairs]
        gaps = [own.asr - found.result.asr for _, own, found in pairs]
        settings = "; ".join(
            f"K = {K}: lr {s['lr']:g}, coef {s['coef']:g}, {s['search_steps']} x {s['iters']} "
            f"iterations, margin {s['margin']:g}, success {100 * found.result.asr:.0f} % against "
            f"{100 * own.asr:.0f} %, merit {_number(figure_of_merit(own, found.result))}"
            for K, own, found in pairs for s in [found.settings]
        )  # fmt: skip
        settings += "." if settings else ""
    tuned = "QuadAttacK tuned on these very images"
    return [
        judge(
            "merit_tuned",
            f"The figure of merit against {tuned} is above 1.1 at K = 20 and 30",
            merits, each_at_least=1.1, over=OVER_K, note=_sentences(settings, CAPPED, PILOT),
        ),
        judge(
            "success_tuned",
            f"At K = 20 and 30 RisingAttacK does not succeed less often than {tuned}: difference "
            "of success rates at each K",
            gaps, each_at_least=0.0, over=OVER_K,
            note=_sentences(settings, "A tie holds. Threshold ours, set after an earlier run had "
                            "shown ties."),
        ),
    ]  # fmt: skip


def _equal_time(study: RisingAttackStudy) -> list[Claim]:
    e = study.equal_time
    pairs = [(m, K) for K in (e.K if e else []) for m in BASELINES]
    merits = [capped_merit(e.results["rising", K], e.results[m, K]) for m, K in pairs] or None
    rates = "; ".join(
        f"{TITLES[m]}, K = {K}: {e.iterations[m, K]} iterations, {e.results[m, K].seconds:.1f} s, "
        f"{100 * e.results[m, K].asr:.0f} %"
        for K in (e.K if e else []) for m in ("rising", *BASELINES)
    )  # fmt: skip
    found = e and ("settings tuned without a limit of time" if e.tuned else "their settings as set")
    return [
        judge(
            "equal_time",
            "Given the processor time of RisingAttacK, none of QuadAttacK, CW^K and AD is better: "
            "figure of merit against each at each K",
            merits, each_at_least=1.0, over="baselines and K",
            note=_sentences(f"Network 0, {found}. {rates}." if e else "", CAPPED, OURS),
        )
    ]  # fmt: skip


def _digits(study: RisingAttackStudy) -> list[Claim]:
    bench, tuned = study.digits_bench, study.digits_tuned
    best = success_over(*BASELINES)

    def rates(over: Bench | None) -> str:
        if not over or not over.K:
            return ""
        return f"RisingAttacK {_rates(over, 'rising')}; best baseline {_rates(over, *BASELINES)}."

    return [
        judge(
            "digits_success",
            "On real digits none of QuadAttacK, CW^K and AD with fixed settings succeeds more "
            "often: success rate minus that of the best of them at each K",
            by_length(bench, best), each_at_least=0.0, over=OVER_K,
            note=_sentences(rates(bench), PILOT),
        ),
        judge(
            "digits_success_tuned",
            "On real digits none of QuadAttacK, CW^K and AD succeeds more often, each tuned for "
            "K = 5 and 9 on network 0: success rate minus that of the best of them at each K",
            by_length(tuned, best), each_at_least=0.0, over=OVER_K,
            note=_sentences(rates(tuned), PILOT),
        ),
        judge(
            "digits_shorter",
            "On real digits perturbations are shorter than those of QuadAttacK up to K = 5: ratio "
            "of mean l2 at each K",
            by_length(bench, ratio_to("quad"), most=5), each_at_most=0.85, over=OVER_K,
            note=_sentences(_each(bench, ratio_to("quad"), most=5), PILOT),
        ),
    ]  # fmt: skip


def _anchor(study: RisingAttackStudy) -> list[Claim]:
    from .peers import TITLES as PEER_TITLES

    a = study.anchor
    own = a and a.results[TITLES["rising"]]
    peer = a and a.results.get(PEER_TITLES["cw"])
    ratios = speed = None
    if peer:
        both = own.success & peer.success
        ratios, speed = own.l2[both] / peer.l2[both], [peer.seconds / own.seconds]
    note = _sentences(a.missing if a else "", PILOT)
    return [
        judge(
            "anchor",
            "At K = 1 it is as short as foolbox's Carlini-Wagner attack: l2 ratio",
            ratios, at_most=1.02, over="images", note=note,
        ),
        judge(
            "anchor_speed",
            "At K = 1 it takes a fraction of the time of foolbox's Carlini-Wagner attack: "
            "processor seconds of that attack over its own",
            speed, at_least=50.0, over="runs", note=note,
        ),
    ]  # fmt: skip


def _success(result: AttackResult | None) -> np.ndarray | None:
    return None if result is None else result.success.astype(float)


def _difference(a: AttackResult | None, b: AttackResult | None) -> np.ndarray | None:
    return None if a is None or b is None else _success(a) - _success(b)


def _kept(results: dict[str, AttackResult]) -> str:
    """Success by how many are kept, for a note; nothing without results."""
    rates = ", ".join(f"{n}: {100 * r.asr:.0f} %" for n, r in results.items())
    return f"Success by how many are kept: {rates}." if rates else ""


def _random_length(full: AttackResult | None, random: AttackResult | None) -> str:
    if full is None or random is None or not (full.success & random.success).any():
        return ""
    both = full.success & random.success
    ratio = random.l2[both].mean() / full.l2[both].mean()
    return f"Where both succeed, l2 is {ratio:.2f} times as long."


def _ablations(study: RisingAttackStudy) -> list[Claim]:
    a = study.ablations
    full = a and a.results[""].get("as is")

    def get(part: str, setting: str) -> AttackResult | None:
        return a and a.results.get(part, {}).get(setting)

    residuals = a.residuals if a else None
    ranks = _kept(a.results.get("rank", {}) if a else {})
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
            residuals, each_at_most=1e-8, over="programs",
            note="Along the way of an attack, without the box, and with it on the free pixels. "
            + PILOT,
        ),
        judge(
            "rank_needed",
            "Three of nine right singular vectors are not enough for K = 5 on digits: success with "
            "all, minus success with the leading three",
            _difference(full, get("rank", "3")), at_least=0.5, over="images",
            note=_sentences(ranks, OURS),
        ),
        judge(
            "random_directions",
            "As many random directions in place of the right singular vectors do not do: success "
            "rate at K = 5 on digits",
            _success(get("directions", "random")), at_most=0.05, over="images",
            note=_sentences(_random_length(full, get("directions", "random")), OURS),
        ),
        judge(
            "margin_length",
            "A smaller margin gives shorter perturbations: l2 at margin 0.05 over that at 0.5",
            shorter, at_most=0.95, over="images", note=OURS,
        ),
        judge(
            "margin_success",
            "A margin that vanishes costs successes: success at margin 0.05 minus that at 0.001",
            _difference(fine, get("margin", "0.001")), at_least=0.05, over="images", note=OURS,
        ),
        judge(
            "line_search",
            "The line search is needed: success with it minus success with full steps",
            _difference(full, get("line search", "full steps")), at_least=0.1, over="images",
            note=OURS,
        ),
        judge(
            "box",
            "The box belongs into the program: success when steps are only clipped",
            _success(get("box", "clipped only")), at_most=0.05, over="images", note=OURS,
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
            note=OURS if whole is None else f"At tau = 1 full steps reach {100 * whole.asr:.0f} "
            f"%, so it is the line search that is missing. {OURS}",
        ),
        judge(
            "rivals",
            "20 rivals in the program are not enough at K = 20, 40 are: success with 40 minus "
            "success with 20",
            _difference(rivals.get("40"), rivals.get("20")), at_least=0.5, over="images",
            note=_sentences(_kept(rivals), OURS),
        ),
    ]  # fmt: skip


def _nested(study: RisingAttackStudy) -> list[Claim]:
    n = study.nested
    rises = None if n is None else (np.diff(n.norms, axis=1) / n.norms[:, 1:]).ravel()
    shares, over = falls(study.bench)
    return [
        judge(
            "nested_linear",
            "A longer order of the same targets never costs less, for a linear model exactly: "
            "relative rise of the optimal l2",
            rises, each_at_least=-1e-9, over="steps of K", note=PILOT,
        ),
        judge(
            "nested_network",
            "A longer order of the same targets never costs less, for attacks on networks: share "
            "of falls of l2 from one K to the next",
            shares, at_most=0.0, over=over,
            note=f"The attack finds a local optimum, so falls are possible. {OURS}",
        ),
    ]  # fmt: skip


def falls(bench: Bench | None) -> tuple[np.ndarray | None, str]:
    """How often l2 of an image falls from one K of the nested orders to the next, and over what.

    The share on each network, or with a single network 1 or 0 for each image and step of K.
    """
    over = "steps of K"
    if bench is None or len(bench.K) < 2:
        return None, over
    each = []
    for network in range(len(bench.problem.models)):
        runs = [bench.results["rising", K][network] for K in bench.K]
        fell = [(b.l2 < a.l2)[a.success & b.success] for a, b in pairwise(runs)]
        each.append(np.concatenate(fell).astype(float))
    each = [fell for fell in each if len(fell)]
    if len(each) > 1:
        return np.array([fell.mean() for fell in each]), "networks"
    return (each[0] if each else None), over


def _networks(study: RisingAttackStudy) -> list[Claim]:
    w, defense = study.widths, study.defense or {}
    gain = None
    deep = ""
    if w is not None and len(w.widths) > 1:
        long = w.K >= 10
        gain = (w.asr["rising"][-1] - w.asr["rising"][0])[long]
    if w is not None and w.deep:
        rates = ", ".join(
            f"K = {K}: {100 * asr:.0f} %" for K, asr in zip(w.K, w.deep["rising"], strict=True)
        )
        deep = f"A deeper network with {w.deep_width} features: {rates}."
    rooms, certificate = [], []
    for K, curves in sorted(defense.items()):
        if "smoothed" not in curves:
            continue
        smoothed = curves["smoothed"]
        sure = smoothed.radius > 0
        best = smoothed.smallest[sure]
        rooms.append((best - smoothed.radius[sure])[np.isfinite(best)])
        certificate.append(
            f"K = {K}: {sure.sum()} of {len(sure)} images certified, {np.isfinite(best).sum()} of "
            "these reached by an attack."
        )

    def trained(id: str, statement: str, K: int) -> Claim:
        curves, ratios, note = defense.get(K, {}), None, ""
        if "adversarially trained" in curves:
            plain, hard = (curves[name].smallest for name in ("plain", "adversarially trained"))
            both = np.isfinite(plain) & np.isfinite(hard) & (plain > 0)
            ratios = hard[both] / plain[both]
            note = (
                f"Reached: {np.isfinite(plain).sum()} of {len(plain)} images on the plain network, "
                f"{np.isfinite(hard).sum()} on the trained one."
            )
        return judge(
            id, f"{statement}: smallest l2 found for an image over that on a plain network",
            ratios, at_least=1.2, over="images", note=_sentences(note, OURS),
        )  # fmt: skip

    return [
        judge(
            "width",
            "Long orders need many features: success at K >= 10, widest network minus narrowest",
            gain, at_least=0.5, over=OVER_K, note=_sentences(deep, OURS),
        ),
        trained("adversarial_training", "Adversarial training makes attacks larger at K = 1", 1),
        trained(
            "adversarial_training_ordered",
            "Adversarial training makes attacks with an order of K = 3 larger", 3,
        ),
        judge(
            "certificate",
            "No attack on the smoothed network reaches inside the certified radius of its image, "
            "at K = 1 or 3: smallest l2 found minus the radius",
            np.concatenate(rooms) if rooms else None, each_at_least=0.0, over="attacked images",
            note=_sentences(*certificate, "The certificate holds with probability 0.999 for each "
                            "image. Attacks are judged by the same majority vote.", OURS),
        ),
    ]  # fmt: skip


def values(study: RisingAttackStudy) -> dict[str, float]:
    """Headline numbers by name, for sweeps and the scorecard; nothing for what has no success."""
    found: dict[str, float] = {}
    benches = {"": study.bench, "digits_": study.digits, "digits_tuned_": study.digits_tuned}
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
        for method, rates in (study.widths.deep or {}).items():
            for K, asr in zip(study.widths.K, rates, strict=True):
                found[f"width_deep_{study.widths.deep_width}_{method}_K{K}_asr"] = asr
    if study.equal_time:
        e = study.equal_time
        for (method, K), result in e.results.items():
            key = f"equal_time_{method}_K{K}"
            found[f"{key}_asr"], found[f"{key}_seconds"] = result.asr, result.seconds
            found[f"{key}_iterations"] = e.iterations[method, K]
            if result.asr:
                found[f"{key}_l2"] = result.l2[result.success].mean()
    curves = [(K, *row) for K, of_K in (study.defense or {}).items() for row in of_K.items()]
    for K, name, curve in curves:
        key = f"defense_{name.replace(' ', '_')}"
        found[f"{key}_clean"] = curve.clean
        key += f"_K{K}"
        reached = curve.smallest[np.isfinite(curve.smallest)]
        found[f"{key}_reached"] = len(reached) / len(curve.smallest)
        if len(reached):
            found[f"{key}_l2"] = reached.mean()
        if curve.radius is not None:
            found[f"{key}_certified_radius"] = curve.radius.mean()
    return {name: float(value) for name, value in found.items()}
