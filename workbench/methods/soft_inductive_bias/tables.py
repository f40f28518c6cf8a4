"""Tables of the study, each a pure function of results; charts are in `views.py`."""

from __future__ import annotations

import numpy as np

from workbench.theme import NOT_RUN, Html, needs_result, table_html

from . import bounds, digits, drawings_bounds
from .closed_forms import Exact, Polynomials, Symmetry
from .compression import Compressed
from .experiments import Corrupted, Widths
from .posterior import Gibbs, Validity
from .representation import Learned, Universal
from .symmetry import PathwayNetworks


@needs_result
def polynomial_table(found: Polynomials) -> Html:
    """RMSE of each model on both structures and on noise, medians over the draws."""
    rows = []
    for name, e in found.errors.items():
        edge = found.edge[name]
        rows.append([
            name, *(f"{np.median(e[k]):.3g}" for k in ("simple", "complex")),
            f"{e['noise'].mean():.2g}", *(f"{edge[k]:.3g}" for k in ("simple", "complex")),
        ])  # fmt: skip
    header = ["model", "simple, test", "complex, test", "noise, train", "simple, to the edge",
              "complex, to the edge"]  # fmt: skip
    draws = len(next(iter(found.errors.values()))["noise"])
    return table_html(
        header, rows, f"RMSE, {draws} draws; test points in [-.95, .95], then [-1, 1]"
    )


@needs_result
def width_table(found: Widths) -> Html:
    """C3 in numbers."""
    rows = [
        [str(h), *(f"{v[:, i].mean():.3g}" for v in (found.train_error, found.test,
                                                     found.test_error, found.dimension))]
        for i, h in enumerate(found.widths)
    ]  # fmt: skip
    checks = "; ".join(f"width {h}: {a:.1f} by Gram matrix, {b:.1f} by Lanczos"
                       for h, (a, b) in found.lanczos.items())  # fmt: skip
    header = ["hidden units", "train error", "test loss", "test error", "N_eff"]
    return table_html(header, rows, f"Seeds in one batch: {len(found.test)}. {checks}".strip())


@needs_result
def exact_table(found: Exact) -> Html:
    """C4: simulation beside the closed form."""
    rows = [
        [str(d), f"{v.mean():.4g} ± {v.std(ddof=1) / len(v) ** 0.5:.2g}", f"{found.exact[d]:.4g}",
         f"{z:+.1f}"]
        for (d, v), z in zip(found.draws.items(), found.z(), strict=True)
    ]  # fmt: skip
    return table_html(["d", "simulated", "exact", "z"], rows,
                      f"E|θ̂ − θ|², n = {found.n}, σ = {found.sigma}, |θ| = 1")  # fmt: skip


@needs_result
def compression_table(found: dict[tuple[int, int], Compressed]) -> Html:
    """D and D3: errors, bits and bounds of the stored networks, means over seeds."""
    rows = []
    for (width, d), c in sorted(found.items(), key=lambda item: item[0][::-1]):
        if not len(c.bounds):
            continue
        parts = c.parts[0]
        rows.append([
            str(d), str(width), f"{c.plain.mean():.3f}", f"{c.train.mean():.3f}",
            f"{c.test.mean():.3f}", f"{c.bits.mean():.0f}",
            f"{parts['symbols']} + {parts['counts']} + {parts['step']} + {parts['header']}",
            f"{c.of('hoeffding').mean():.3f}", f"<b>{c.of('kl').mean():.3f}</b>",
            f"{c.of('exact').mean():.3f}",
        ])  # fmt: skip
    header = ["d", "width", "train", "decoded", "test", "bits", "symbols + counts + step + header",
              "Hoeffding", "kl", "exact"]  # fmt: skip
    note = "Each bound is for a width fixed in advance; to pick the best of four, pay 2 bits more"
    return table_html(header, rows, note)


@needs_result
def compression_scatter(found: dict[tuple[int, int], Compressed], delta: float = 0.05) -> Html:
    """The same runs among curves of equal bound."""
    runs = [
        (f"width {w}, d = {d}", float(c.train.mean()), float(c.bits.mean()))
        for (w, d), c in found.items() if len(c.bounds)
    ]  # fmt: skip
    n = next(iter(found.values())).n
    return drawings_bounds.iso_bounds(runs, n, delta)


@needs_result
def bits_view(found: dict[tuple[int, int], Compressed]) -> Html:
    """Where the bits of the first network of the last setting go."""
    c = list(found.values())[-1]
    return drawings_bounds.stored(c) if c.messages else NOT_RUN


@needs_result
def corrupted_table(found: Corrupted) -> Html:
    """D2: the bound as labels become random."""
    if not found.done:
        return NOT_RUN
    rows = [
        [f"{rho:g}", *(f"{v.mean():.3f}" for v in (
            c.train, c.test, c.of("kl"), c.of("exact"), c.test_true)),
         "vacuous" if c.of("kl").mean() >= digits.CHANCE else ""]
        for rho, c in found.rows.items()
    ]  # fmt: skip
    c = next(iter(found.rows.values()))
    header = ["random labels", "train, decoded", "test, labels as random", "kl bound on it",
              "exact bound on it", "test, true labels", ""]  # fmt: skip
    note = f"width {c.width}, d = {c.d[0]}; chance is .9, and a bound from there on is vacuous"
    return table_html(header, rows, note)


@needs_result
def posterior_table(found: Gibbs) -> Html:
    """D4: PAC-Bayes for softmax regression."""
    rows = [
        [name, f"{found.scale[i]:.2g}", f"{found.divergence[i]:.1f}", f"{found.train[i]:.3f}",
         f"{found.test[i]:.3f}", f"{found.test_true[i]:.3f}", f"{found.root[i]:.3f}",
         f"<b>{found.bound[i]:.3f}</b>"]
        for i, name in enumerate(("true labels", "random labels"))
    ]  # fmt: skip
    header = ["", "prior scale", "KL, nats", "Gibbs train", "Gibbs test, labels as random",
              "Gibbs test, true labels", "McAllester", "kl bound"]  # fmt: skip
    return table_html(header, rows, f"{found.draws:,} draws of the posterior")


@needs_result
def validity_table(found: Validity) -> Html:
    """How often each bound was broken on simulated data."""
    rows = [
        [drawings_bounds.FORMS[name][0], f"{share:.4f}", f"{found.mean[name]:.3f}",
         f"{found.risk[name]:.3f}"]
        for name, share in found.broken.items()
    ]  # fmt: skip
    header = ["bound", "broken", "mean bound", "mean true risk"]
    return table_html(header, rows, f"{found.datasets:,} data sets of 100, delta .05")


@needs_result
def symmetry_table(found: Symmetry) -> Html:
    """E: accuracies by task, and the r that the evidence chose."""
    rows = []
    for (task, n), choices in found.rows.items():
        if not choices:
            continue
        values = {k: found.of(task, n, k) for k in ("hard", "none", "soft", "r")}
        best = max(values[k].mean() for k in ("hard", "none", "soft"))
        cells = [
            f"<b>{v:.3f}</b>" if v >= best - 0.005 else f"{v:.3f}"
            for v in (values[k].mean() for k in ("hard", "none", "soft"))
        ]
        rows.append([task, str(n), *cells, f"{np.median(values['r']):.2g}",
                     f"{(values['r'] == 0).sum()} of {len(choices)}"])  # fmt: skip
    header = ["task", "examples", "hard", "none", "soft", "median r", "r = 0 chosen"]
    return table_html(header, rows, "Test accuracy of Gaussian processes; r by evidence")


@needs_result
def pathway_table(found: PathwayNetworks) -> Html:
    """E2: the same with networks."""
    rows = [
        [task, *(f"{a[k].mean():.3f}" for k in ("hard", "none", "soft")),
         ", ".join(f"{v:g}" for v in found.decay[task])]
        for task, a in found.accuracy.items()
    ]  # fmt: skip
    header = ["task", "invariant path", "residual path", "both", "decay chosen, by seed"]
    return table_html(header, rows, "Test accuracy of networks, 400 examples")


@needs_result
def learned_table(found: dict[int, Learned]) -> Html:
    """F: a network against a kernel with an oracle."""
    rows = [
        [f"{n:,}", f"{f.net.mean():.3f} ± {f.net.std():.2g}",
         f"{f.kernel.mean():.3f} ± {f.kernel.std():.2g}", f"{f.alignment.mean():.2f}"]
        for n, f in found.items()
    ]  # fmt: skip
    header = ["examples", "network", "kernel with an oracle", "alignment"]
    return table_html(header, rows, "Relative squared test error; mean ± spread over seeds")


@needs_result
def universal_table(found: Universal) -> Html:
    """H: one setting, three data sets."""
    rows = [
        [name, f"{n:,} x {d}", measure, f"{a:.3f}", f"{b:.3f}", f"{c:.3f}"]
        for name, (n, d), measure, a, b, c in zip(
            found.names, found.sizes, found.measure, found.net, found.process, found.constant,
            strict=True,
        )
    ]  # fmt: skip
    header = ["data", "examples x inputs", "score", "network", "Gaussian process", "constant"]
    return table_html(header, rows, "The same network and the same process, nothing tuned to any")


def vc_table(n: int = 1437, delta: float = 0.05) -> Html:
    """D5: the penalty of the VC bound for linear classifiers of more and more inputs."""
    rows = [[str(v - 1), f"{bounds.vc(0.0, v, n, delta):.2f}"] for v in (3, 9, 17, 33, 65)]
    return table_html(["inputs", "penalty"], rows, f"VC bound, binary linear, n = {n:,}")
