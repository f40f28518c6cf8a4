"""Claims and headline values: what the measurements of a study say.

The paper argues without numbers of its own for these experiments; thresholds come from pilot
measurements with an independent program, or are ours, as each note says, and were fixed
beforehand. A claim is judged only where its experiment ran at the sizes of its threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from workbench.claims import Claim, Claims, judge

from . import bounds
from .closed_forms import (
    EVIDENCE_ORDERS,
    SIZES,
    SOFT_RIDGE,
    TRUTHS,
    SampleEfficiency,
    hard_name,
    soft_name,
    spearman,
)
from .digits import TASKS

if TYPE_CHECKING:
    from .compression import Compressed
    from .study import SoftBiasStudy

PILOT, OURS = "Threshold from pilot measurements.", "Threshold ours."
MAIN = soft_name(1.1, 150)


def claims(study: SoftBiasStudy) -> Claims:
    """All claims of the method, judged on what has been measured so far."""
    study = _finished(study)
    return Claims([
        *_polynomials(study), *_efficiency(study), *_labels(study), *_linear(study),
        *_widths(study), *_bounds(study), *_posterior(study), *_symmetry(study), *_special(study),
    ])  # fmt: skip


def _finished(study: SoftBiasStudy) -> SoftBiasStudy:
    """The study without the experiments that are still running."""
    return replace(study, **dict.fromkeys(study.running.split()), running="")


def medians(values: np.ndarray, batches: int = 5) -> np.ndarray:
    """Medians of up to five batches of draws, for an interval of a median."""
    return np.array([np.median(b) for b in np.array_split(values, min(batches, len(values)))])


def _polynomials(study: SoftBiasStudy) -> list[Claim]:
    # Other data, or another noise, are another question than that of the thresholds.
    p = study.parameters
    a = study.polynomials if (p.n_points, p.sigma2) == (30, 0.01) else None
    soft = a.errors[MAIN] if a else None
    edge = f"On the whole of [-1, 1] {a.edge[MAIN]['complex']:.3f}. " if a else ""
    wild = [a.errors[hard_name(29)][k] for k in ("simple", "complex")] if a else None
    bends = None
    if a and a.hard:
        bends = [max(np.median(e["complex"]), e["noise"].mean()) for e in a.hard.values()]
    fixed, flat = (a.evidence.get(g) if a else None for g in (1.1, 1.0))
    at = [EVIDENCE_ORDERS.index(J) for J in (100, 300)]
    drop = [abs(float(np.diff(e[at])[0])) if e is not None else None for e in (fixed, flat)]
    over = "batches of draws"
    return [
        judge("simple", "Order 150, gamma 1.1, fits the simple structure: median test RMSE "
              "(noise of the data 0.1)", soft and medians(soft["simple"]), at_most=0.12,
              over=over, note=PILOT),
        judge("complex", "The same prior fits the complex structure: median test RMSE on "
              "[-.95, .95]", soft and medians(soft["complex"]), at_most=0.12, over=over,
              note=edge + PILOT),
        judge("noise", "The same prior fits pure noise perfectly: train RMSE (noise of 1)",
              soft and soft["noise"], at_most=0.02, over="draws", note=PILOT),
        judge("interpolation", "Interpolating by least squares of order 29 is useless: median "
              "test RMSE on each structure",
              [np.median(w) for w in wild] if wild else None, each_at_least=100.0,
              over="structures", note=PILOT),
        judge("no_hard_order", "No order up to 12 does both, test RMSE on the complex structure "
              "and train RMSE on noise below 0.1: the larger of the two", bends,
              each_at_least=0.1, over="orders", note=PILOT),
        judge("evidence_saturates", "With gamma 1.1 more coefficients cost no evidence: change "
              "from order 100 to 300", drop[:1] if drop[0] is not None else None, at_most=0.1,
              over="means", unit="nats", note=PILOT),
        judge("evidence_falls", "With gamma 1 each costs some: change from order 100 to 300",
              drop[1:] if drop[1] is not None else None, at_least=10.0, over="means",
              unit="nats", note=PILOT),
    ]  # fmt: skip


def _efficiency(study: SoftBiasStudy) -> list[Claim]:
    a = study.efficiency if study.parameters.basis == "chebyshev" else None
    sizes = SIZES[1:]
    home = rest = close = None
    if a:
        home = [_ratio(a, "quadratic", n, "soft 15", "order 2") for n in sizes]
        rest = [
            max(_ratio(a, t, n, "soft 15", hard) for hard in ("order 2", "order 15"))
            for t in TRUTHS[1:] for n in sizes
        ]  # fmt: skip
        close = [abs(_ratio(a, t, n, "soft 100", "soft 15") - 1) for t in TRUTHS for n in sizes]
    return [
        judge("home_ground", "On quadratic truths soft order 15 loses little to order 2: ratio of "
              "median RMSE, 16 examples and more", home, each_at_most=1.45, over="sizes",
              note=PILOT),
        judge("elsewhere", "On other truths it beats both hard orders, 2 and 15: ratio to the "
              "better", rest, each_at_most=1.0, over="truths and sizes", note=PILOT),
        judge("order_free", "Soft order 100 is as good as soft order 15: relative difference",
              close, each_at_most=0.05, over="truths and sizes", note=PILOT),
    ]  # fmt: skip


def _ratio(a: SampleEfficiency, truth: str, n: int, above: str, below: str) -> float:
    return a.median(truth, n, above) / a.median(truth, n, below)


def _falls(values: np.ndarray) -> list[float]:
    """The falls of the mean over seeds from one column to the next."""
    return [float(a - b) for a, b in pairwise(values.mean(0))]


def _labels(study: SoftBiasStudy) -> list[Claim]:
    b, p = study.labels, study.parameters
    standard = b is not None and (p.length_scale, p.noise) == (1.0, 0.01) and len(b.rho) > 2
    gp = b if standard and b.rho[0] == 0 and b.rho[-1] == 1 else None
    net = b if b is not None and len(b.mlp_rho) > 2 and b.mlp_rho[-1] == 1 else None
    half = None
    if gp and 0.5 in gp.rho:
        half = gp.test[:, list(gp.rho).index(0.5)]
    return [
        judge("gp_fits", "A Gaussian process fits digits at every share of random labels: train "
              "accuracy", gp and gp.train, each_at_least=0.999, over="seeds and shares",
              note=PILOT),
        judge("gp_falls", "its test accuracy falls with the share: smallest fall from one share to "
              "the next", gp and [min(_falls(gp.test))], each_at_least=1e-9, over="means",
              note=PILOT),
        judge("evidence_order", "and so does its marginal likelihood: smallest fall, nats an "
              "example", gp and [min(_falls(gp.evidence))], each_at_least=1e-9, over="means",
              note=PILOT),
        judge("gp_chance", "With labels all random it is at chance: test accuracy",
              gp and gp.test[:, -1], at_least=0.05, at_most=0.16, note=PILOT),
        judge("gp_half", "With half of them random it still reads most digits: test accuracy",
              half, at_least=0.6, note=PILOT),
        judge("mlp_fits", "A network does the same: train accuracy",
              net and net.mlp_train, each_at_least=0.999, over="seeds and shares", note=PILOT),
        judge("mlp_falls", "its test accuracy falls: smallest fall",
              net and [min(_falls(net.mlp_test))], each_at_least=1e-9, over="means", note=PILOT),
        judge("mlp_chance", "to chance: test accuracy with random labels",
              net and net.mlp_test[:, -1], at_least=0.05, at_most=0.16, note=PILOT),
    ]  # fmt: skip


def _linear(study: SoftBiasStudy) -> list[Claim]:
    weak, relu, exact = study.weak, study.relu, study.exact
    p = study.parameters
    if (p.n, p.label_noise) != (500, 0.2):
        relu = None
    peak = late = ranks = None
    if weak:
        d, test = weak.d, weak.of("test")
        peak = [abs(d[test.argmax()] / weak.n - 1)]
        late = [test[d == 1600][0] / test[d == 100][0]]
        over = d >= 210
        ranks = [spearman(test[over], weak.of("undetermined")[over])]
    at_n = second = soft = None
    if relu and {100, 450, relu.n, 4000} <= set(relu.d.tolist()):
        test = relu.test[0.0].mean(0)
        at_n = [abs(relu.d[test.argmax()] / relu.n - 1)]
        second = relu.test[0.0][:, relu.d == 4000] / relu.test[0.0][:, relu.d == 450]
        soft = [relu.test[SOFT_RIDGE].mean(0)[relu.d > 100].max()]
    return [
        judge("weak_peak", "Double descent in plain least squares: the peak of the test error is "
              "at d = n (relative distance)", peak, at_most=0.05, over="curves", note=PILOT),
        judge("weak_second", "the second descent goes below the first: error at d = 1600 over that "
              "at d = 100", late, at_most=1 / 3, over="curves", note=PILOT),
        judge("weak_dimension", "the undetermined directions follow it: rank correlation with the "
              "test error from d = 210 on", ranks, at_least=0.95, over="curves", note=PILOT),
        judge("relu_peak", "Random features of digits peak at d = n (relative distance)", at_n,
              at_most=0.0, over="curves", note=PILOT),
        judge("relu_second", "and descend again: test error at d = 4000 over that at d = 450",
              second, each_at_most=0.5, note=PILOT),
        judge("relu_ridge", "A little ridge removes the peak: largest mean test error after "
              "d = 100", soft, at_most=0.12, over="curves", note=PILOT),
        judge("exact", "Isotropic design: simulation agrees with the closed form, |z|",
              None if exact is None or len(exact.draws) < 6 else np.abs(exact.z()),
              each_at_most=4.0, over="dimensions", note=PILOT),
    ]  # fmt: skip


def _widths(study: SoftBiasStudy) -> list[Claim]:
    w, p = study.widths, study.parameters
    over4 = over256 = ranks = inside = None
    if w is not None and p.label_noise == 0.2 and np.isfinite(w.test).all():
        h, test = w.widths, w.test.mean(0)
        middle = (h >= 6) & (h <= 16)
        if {4, 256} <= set(h.tolist()) and middle.any():
            top = test[middle].max()
            inside = [float(h[test.argmax()])]
            over4, over256 = [top / test[h == 4][0]], [top / test[h == 256][0]]
        fitted = w.train_error.max(0) == 0
        if fitted.sum() > 2 and p.alpha == 10:
            ranks = [spearman(w.dimension.mean(0)[fitted], test[fitted])]
    which = ""
    if w is not None and np.isfinite(w.train_error).all():
        names = ", ".join(str(h) for h in w.widths[w.train_error.max(0) == 0])
        which = f"No training error at widths {names}. "
    return [
        judge("width_peak", "Networks peak inside: width with the largest test loss", inside,
              each_at_least=6.0, each_at_most=16.0, over="curves", unit="units", note=PILOT),
        judge("width_rise", "The peak is above the loss at width 4: ratio", over4, at_least=1.5,
              over="curves", note=PILOT),
        judge("width_fall", "and above that at width 256: ratio", over256, at_least=3.0,
              over="curves", note=PILOT),
        judge("width_dimension", "Where all labels are fitted, effective dimension follows the "
              "test loss: rank correlation", ranks, at_least=0.9, over="curves",
              note=which + PILOT),
    ]  # fmt: skip


def _bounds(study: SoftBiasStudy) -> list[Claim]:
    p = study.parameters
    found = study.compression or {}
    done = {k: v for k, v in found.items() if len(v.bounds)} if p.levels == 9 else {}
    if p.delta != 0.05:
        done = {}
    main = done.get((64, 100))
    c = study.corrupted if study.corrupted is not None and study.corrupted.done else None
    noisy = [stored for rho, stored in c.rows.items() if rho] if c is not None else []
    if (p.levels, p.delta) != (9, 0.05):
        noisy = []
    sound = [gap for stored in (*done.values(), *noisy) for gap in stored.of("kl") - stored.test]
    both = [d for d in (50, 100) if (64, d) in done and (0, d) in done]
    gain = [v for d in both for v in done[0, d].of("kl") - done[64, d].of("kl")]
    wide = ", ".join(
        f"d = {d}: {done[256, d].of('kl').mean():.3f} at 256, {done[64, d].of('kl').mean():.3f} "
        "at 64" for d in (50, 100) if (256, d) in done and (64, d) in done
    )  # fmt: skip
    wide = f"Larger still, it saturates: {wide}. " if wide else ""
    standard = (p.width, p.d, p.levels, p.delta) == (64, 100, 9, 0.05)
    kl = c.bound() if c is not None and standard else None
    ends = kl is not None and c.rho[0] == 0 and c.rho[-1] == 1
    v = study.validity
    penalty = bounds.vc(0.0, 65, 1437, 0.05)
    return [
        judge("bound", "Bound on the error of a network with 4,810 parameters and 1,437 examples, "
              "stored in some 380 bits (chance .9): kl form, width 64, d = 100",
              main and main.of("kl"), each_at_most=0.55, note=_bits(main) + PILOT),
        judge("bound_sound", "Bounds are above the errors on test data whose labels are as random "
              "as those of training: smallest difference",
              sound or None, each_at_least=0.0, over="networks", note=PILOT),
        judge("bound_size", "The larger network has the smaller bound: width 0 minus width 64",
              gain or None, each_at_least=0.05, over="seeds and d", note=wide + PILOT),
        judge("corrupt_order", "With random labels the bound grows: smallest rise from one share "
              "to the next", [np.diff(kl.mean(1)).min()] if kl is not None and len(kl) > 1 else
              None, each_at_least=0.0, over="means", note=PILOT),
        judge("corrupt_vacuous", "to vacuous when all are random: kl form", kl[-1] if ends else
              None, each_at_least=0.9, note=PILOT),
        judge("corrupt_true", "and is far below with true labels, same prior, same space",
              kl[0] if ends else None, each_at_most=0.6, note=PILOT),
        judge("valid", "Simulated data sets on which a bound is broken (delta .05; Hoeffding, kl, "
              "exact)", list(v.broken.values()) if v and p.delta == 0.05 else None,
              each_at_most=0.05, over="bounds", note=PILOT),
        judge("vc", "The VC bound says nothing even for a linear classifier of 64 pixels: its "
              "penalty", [penalty], each_at_least=1.0, over="formulas", note=PILOT),
    ]  # fmt: skip


def _bits(c: Compressed | None) -> str:
    if c is None:
        return ""
    return (
        f"{c.bits.mean():.0f} bits; training error {c.train.mean():.3f} decoded, "
        f"{c.plain.mean():.3f} before; test {c.test.mean():.3f}. "
    )


def _posterior(study: SoftBiasStudy) -> list[Claim]:
    g = study.posterior if study.parameters.delta == 0.05 else None
    words = ""
    if g:
        words = (
            f"KL {g.divergence[0]:.0f} nats, Gibbs error {g.train[0]:.3f} train and "
            f"{g.test[0]:.3f} test, {g.draws:,} draws. "
        )
    return [
        judge("gibbs", "PAC-Bayes for softmax regression, the posterior that was sampled: kl form",
              g and g.bound[:1], each_at_most=0.6, over="posteriors", note=words + PILOT),
        judge("gibbs_random", "and with random labels", g and g.bound[1:], each_at_least=0.9,
              over="posteriors", note=PILOT),
    ]  # fmt: skip


def _symmetry(study: SoftBiasStudy) -> list[Claim]:
    s = study.symmetry if study.parameters.group == "C4" else None
    found = []
    words = {"rotated": "exact", "upright": "approximate", "orient": "broken"}

    def gaps(task: str, a: str, b: Sequence[str]) -> list[float] | None:
        if s is None:
            return None
        # Thresholds are from these sizes: with few or many examples all three are alike.
        sizes = [n for t, n in s.rows if t == task and n in (100, 200) and s.rows[t, n]]
        return [
            s.of(task, n, a).mean() - max(s.of(task, n, name).mean() for name in b) for n in sizes
        ] or None  # fmt: skip

    for task in TASKS:
        found.append(judge(
            f"soft_{task}", f"Soft symmetry is as good as the better of hard and none where the "
            f"symmetry is {words[task]} ({task}): difference of accuracy",
            gaps(task, "soft", ("hard", "none")), each_at_least=-0.01, over="sizes", note=PILOT,
        ))  # fmt: skip
    found += [
        judge("soft_beats_none", "Exact symmetry: soft minus none", gaps("rotated", "soft",
              ("none",)), each_at_least=0.08, over="sizes", note=PILOT),
        judge("soft_beats_hard", "Broken symmetry: soft minus hard", gaps("orient", "soft",
              ("hard",)), each_at_least=0.1, over="sizes", note=PILOT),
    ]  # fmt: skip
    n = study.pathways
    for task in TASKS:
        found.append(judge(
            f"pathway_{task}", f"The same with networks, decay chosen on a validation split "
            f"({task}): the better of hard and none, minus soft",
            n and n.shortfall(task), at_most=0.02, note=PILOT,
        ))  # fmt: skip
    return found


def _special(study: SoftBiasStudy) -> list[Claim]:
    f, g = study.learned or {}, study.connected or {}
    many, few = f.get(1500), f.get(200)
    wide, convex, narrow = g.get(64), g.get(0), g.get(8)
    ratio = lift = None
    if wide is not None:
        ratio = wide.line.max(1) / wide.curve.max(1)
    if convex is not None:
        lift = convex.line.max(1) - np.maximum(convex.line[:, 0], convex.line[:, -1])
    note = "" if narrow is None else f"At width 8 the curve's maximum is {narrow.curve.max():.2f}. "
    return [
        judge("learned", "One direction in twenty, 1,500 examples: error of a network over that "
              "of a kernel with an oracle", many and many.net / many.kernel, at_most=0.5,
              note=PILOT),
        judge("alignment", "because the network turned to that direction: share of its weights",
              many and many.alignment, at_least=0.5, note=PILOT),
        judge("few_examples", "With 200 examples the kernel is better: the same ratio",
              few and few.net / few.kernel, at_least=1.0, note=PILOT),
        judge("connected", "Two solutions are connected by a curve of low loss, not by a line: "
              "largest loss on the line over that on the curve, width 64", ratio,
              each_at_least=20.0, over="pairs", note=note + PILOT),
        judge("convex", "For softmax regression, which is convex, the line never rises: largest "
              "loss on it minus that of the worse end", lift, each_at_most=1e-5, over="pairs",
              note=OURS),
    ]  # fmt: skip


def axes(study: SoftBiasStudy) -> list[tuple[str, float, float]]:
    """The two axes: (model, flexibility, simplicity bias), each 0 to 1, of what has run.

    Flexibility: how well pure noise, or random labels, is fitted. Simplicity bias: how well what
    is fitted to structure generalizes. Both are ours, measured and not assumed.
    """
    found = []
    if study.polynomials:
        spread = _spread()
        for name, e in study.polynomials.errors.items():
            fits = 1 - e["noise"].mean()
            lost = np.mean([np.median(e[k]) / spread[k] for k in spread])
            found.append((name, float(np.clip(fits, 0, 1)), float(np.clip(1 - lost, 0, 1))))
    b = study.labels
    if b is not None and b.rho[0] == 0 and b.rho[-1] == 1:
        found.append(("Gaussian process, digits", *_accuracies(b.train, b.test)))
    if b is not None and len(b.mlp_rho) and (b.mlp_rho[0], b.mlp_rho[-1]) == (0, 1):
        found.append(("network of 512 units, digits", *_accuracies(b.mlp_train, b.mlp_test)))
    return found


def _accuracies(train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """Train accuracy on random labels and test accuracy on true ones, from chance to 1."""
    both = (train[:, -1].mean(), test[:, 0].mean())
    return tuple(float(np.clip((v - 0.1) / 0.9, 0, 1)) for v in both)


def _spread() -> dict[str, float]:
    from . import polynomials

    x = np.linspace(-0.95, 0.95, 400)
    return {k: float(polynomials.structure(k, x).std()) for k in ("simple", "complex")}


def values(study: SoftBiasStudy) -> dict[str, float]:
    """Headline numbers by name, for sweeps and the scorecard."""
    study = _finished(study)
    found: dict[str, float] = {}
    a = study.polynomials
    if a:
        p = study.parameters
        own = a.errors[soft_name(p.gamma, p.order, p.basis)]
        found["rmse_simple"] = np.median(own["simple"])
        found["rmse_complex"] = np.median(own["complex"])
        found["train_rmse_noise"] = own["noise"].mean()
        found["rmse_complex_to_the_edge"] = a.edge[soft_name(p.gamma, p.order, p.basis)]["complex"]
    if study.labels is not None:
        b = study.labels
        for j, rho in enumerate(b.rho):
            found[f"gp_test_rho_{rho:g}"] = b.test[:, j].mean()
            found[f"gp_evidence_rho_{rho:g}"] = b.evidence[:, j].mean()
        for j, rho in enumerate(b.mlp_rho):
            found[f"mlp_test_rho_{rho:g}"] = b.mlp_test[:, j].mean()
    if study.weak is not None:
        for row in study.weak.rows:
            found[f"weak_error_d_{row.d}"] = row.test.mean()
    if study.relu is not None:
        for ridge, test in study.relu.test.items():
            for j, d in enumerate(study.relu.d):
                found[f"relu_error_ridge_{ridge:g}_d_{d}"] = test[:, j].mean()
    if study.widths is not None:
        for j, h in enumerate(study.widths.widths):
            found[f"width_{h}_test_loss"] = study.widths.test[:, j].mean()
            found[f"width_{h}_dimension"] = study.widths.dimension[:, j].mean()
    for (w, d), c in (study.compression or {}).items():
        if len(c.bounds):
            key = f"bound_width_{w}_d_{d}"
            found[f"{key}_bits"], found[f"{key}_train"] = c.bits.mean(), c.train.mean()
            found[f"{key}_kl"], found[f"{key}_test"] = c.of("kl").mean(), c.test.mean()
    if study.corrupted is not None and study.corrupted.done:
        for rho, c in study.corrupted.rows.items():
            found[f"bound_rho_{rho:g}"] = c.of("kl").mean()
            found[f"bound_rho_{rho:g}_test"] = c.test.mean()
            found[f"bound_rho_{rho:g}_test_true"] = c.test_true.mean()
    if study.posterior is not None:
        found["gibbs_bound"], found["gibbs_bound_random"] = study.posterior.bound
    if study.symmetry is not None:
        for (task, n), rows in study.symmetry.rows.items():
            for name in ("hard", "none", "soft", "r") if rows else ():
                found[f"{task}_{n}_{name}"] = study.symmetry.of(task, n, name).mean()
    for n, f in (study.learned or {}).items():
        found[f"index_{n}_net"], found[f"index_{n}_kernel"] = f.net.mean(), f.kernel.mean()
        found[f"index_{n}_alignment"] = f.alignment.mean()
    for w, g in (study.connected or {}).items():
        found[f"path_{w}_line"], found[f"path_{w}_curve"] = g.line.max(), g.curve.max()
    return {name: float(v) for name, v in found.items() if np.isfinite(v)}
