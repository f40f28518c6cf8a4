"""Tables of the study, each a pure function of results; charts are in `views.py`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from workbench.theme import Html, needs_result, table_html

from . import protocol
from .comparison import Accuracy
from .curves import mean_and_error, shown_methods
from .drawings import ACCOUNTANTS, METHODS
from .experiments import Audit, Calculator, ForgetSize
from .memory import Membership, Survival, WhiteBox

PAPER = ("retrain", "op", "gc", "mc")  # columns of the paper's figures


@needs_result
def accountant_table(found: Calculator) -> Html:
    """Epsilon by four accountants for the same noise."""
    header = ["accountant", *(f"ρ = {r:g}" for r in found.rho)]
    rows = [
        [title, *(f"{e:.4g}" if key != "exact" else f"<b>{e:.4g}</b>" for e in found.epsilon[key])]
        for key, (title, *_) in ACCOUNTANTS.items()
    ]
    note = f"ε from ρ = μ²/2; for ε = {found.target:g} exactly, {found.noise_ratio:.3g} times the "
    return table_html(header, rows, note + "noise of the released scripts, as we read them")


@needs_result
def released_table(found: Calculator) -> Html:
    """Settings released by the authors, with the noise of both accountings."""
    rows = [
        [r.name, str(r.T), f"{r.d:,}", f"{r.sigma:.4g}",
         "–" if r.epsilon is None else f"<b>{r.epsilon:.3f}</b>", f"{r.sigma_exact:.4g}",
         f"{r.survival:.4f}"]
        for r in found.released
    ]  # fmt: skip
    header = ["setting", "T", "d", "σ for a printed ε of 1", "exact ε of that noise",
              "σ for an exact ε of 1", "old model / noise"]  # fmt: skip
    note = (
        "Accounting used in the released scripts, as we read it, δ = 1e-05; model clipping has its "
        "own, exact certificate, and its old model / noise is C2 / (σ √d), to which the bound for "
        "gradient clipping does not apply"
    )
    return table_html(header, rows, note)


@needs_result
def audit_table(found: Audit) -> Html:
    """What each accountant prints, what is right, and what the attacker shows."""
    rows = []
    for c in found.cases:
        refuted = c.lower > c.label
        rows.append([
            f"({c.C0:g}, {c.C1:g}, {c.gamma:g}, {c.lam:g}), T = {c.T}", c.accountant,
            f"{c.label:g}", f"<b>{c.certified:.3f}</b>", f"<b>{c.lower:.3f}</b>", f"{c.exact:.3f}",
            "✗ the printed figure is refuted" if refuted else "✓ no contradiction",
        ])  # fmt: skip
    header = ["(C0, C1, γ, λ)", "accountant", "ε printed", "ε exact", "attacker shows",
              "the same attacker, exactly", ""]  # fmt: skip
    n = found.cases[0].n if found.cases else 0
    return table_html(header, rows, f"{n:,} runs a side; 95 % lower bounds")


@needs_result
def accuracy_table(found: Accuracy) -> Html:
    """Mean test accuracy by budget, right after the noisy phase, and what was excluded."""
    rows = []
    for key in shown_methods(found.test, twins=True):
        mean, error = mean_and_error(found.test[key])
        after = found.after.get(key)
        rows.append([
            METHODS[key][0], *(f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)),
            str(found.noisy.get(key, 0)) if found.noisy.get(key) else "–",
            f"{np.nanmean(after):.3f}" if after is not None and found.noisy.get(key) else "–",
            _guarantee(found.exact.get(key, np.nan)), str(found.excluded.get(key, 0)),
        ])  # fmt: skip
    header = ["method", *(f"{b} steps" for b in found.budget), "noisy steps",
              "after them", "exact ε", "excluded"]  # fmt: skip
    searched = f"{found.trials} trials" if found.trials > 1 else "the defaults, 1 trial"
    note = (
        f"Test accuracy, mean ± standard error of {found.seeds} seeds, d = {found.d:,}; {searched} "
        f"for each method; original model {np.nanmean(found.original):.3f}"
    )
    return table_html(header, rows, note)


def _guarantee(exact: float) -> str:
    """Exact epsilon of a method, in words where it never saw the deleted data or hides nothing."""
    if np.isnan(exact):
        return "–"
    if exact == 0:
        return "never saw them"
    return f"{exact:.3g}" if np.isfinite(exact) else "no guarantee"


@needs_result
def widths_table(found: Mapping[int, Accuracy]) -> Html:
    """Accuracy with other hidden layers, at 40 steps or the budget nearest to it."""
    rows = []
    keys = shown_methods(next(iter(found.values())).test, twins=True)
    for width, one in found.items():
        column = int(np.argmin(np.abs(one.budget - 40)))
        means = [mean_and_error(one.test[k])[0][column] for k in keys]
        rows.append([f"64-{width}-10, d = {one.d:,}", str(one.budget[column]),
                     *(f"{m:.3f}" for m in means)])  # fmt: skip
    return table_html(["network", "steps", *(METHODS[k][0] for k in keys)], rows)


@needs_result
def size_table(found: ForgetSize) -> Html:
    """Noise by the number of deleted examples; accuracy where networks were trained."""
    rows = []
    for k, size in enumerate(found.size):
        accuracy = found.accuracy.get(int(size))
        rows.append([
            f"{size}", f"{found.gc[k]:.4g}", f"{found.mc[k]:.4g}", f"<b>{found.dp[k]:.3g}</b>",
            f"{found.one[k, 0]:.3g}, {found.one[k, 1]:.2g}",
            "–" if accuracy is None else f"{np.nanmean(accuracy):.3f}", _setting(found, int(size)),
        ])  # fmt: skip
    header = ["to forget", "σ of gradient clipping", "σ of model clipping", "z of DP-SGD",
              "its ε, δ for one example", "accuracy of DP-SGD", "rate, C"]  # fmt: skip
    own, z = found.own
    beyond = f"z = {z:.3g}" if np.isfinite(z) else "beyond its accountant"
    note = (
        f"ε = {found.epsilon:g}; DP-SGD: batch {found.batch} of {found.n:,}, {found.steps} steps, "
        f"noise multiplier z, clipping norm C, noise z C / {found.batch} on the mean gradient. For "
        f"{own} examples: {beyond}"
    )
    if found.gc_accuracy is not None:
        note += f". Gradient clipping, same ε and steps: {np.nanmean(found.gc_accuracy):.3f}"
    return table_html(header, rows, note)


def _setting(found: ForgetSize, size: int) -> str:
    if size in found.chosen:
        lr, C = found.chosen[size]
        return f"{lr:.2g}, {C:.2g}"
    return f"C = {found.C:g}"


@needs_result
def whitebox_table(found: WhiteBox) -> Html:
    """Telling the runs of two real networks apart, knowing everything but the noise."""
    rows = [
        [name.replace("epsilon", "ε ="), f"<b>{auc:.3f}</b> [{low:.3f}, {high:.3f}]",
         "–" if np.isinf(e) else f"{limit:.3f}"]
        for name, e, auc, low, high, limit in zip(
            found.names, found.epsilon, found.auc, found.low, found.high, found.limit, strict=True
        )
    ]  # fmt: skip
    rows += [
        [f"ε = 1, {size} forgotten (starts {found.size_distance[size]:.3f} apart)",
         f"<b>{auc:.3f}</b>", f"{found.size_limit:.3f}"]
        for size, auc in sorted(found.size_auc.items())
    ]  # fmt: skip
    note = f"{found.runs:,} runs from each of the two models, d = {found.d:,}, one pair of models"
    return table_html(["noise for", "AUC [95 %]", "largest allowed, Φ(μ / √2)"], rows, note)


@needs_result
def membership_table(found: Membership) -> Html:
    """AUC of the loss attack and test accuracy by method and steps."""
    steps = sorted({s for _, s in found.auc if s})
    rows = []
    for key in dict.fromkeys(key for key, _ in found.auc):
        cells = []
        for s in [0] if key == "original" else steps:
            if (key, s) not in found.auc:
                cells.append("–")
                continue
            mean, error = (float(v[0]) for v in mean_and_error(found.auc[key, s][:, None]))
            spread = f" ± {error:.3f}" if np.isfinite(error) else ""
            cells.append(f"<b>{mean:.3f}</b>{spread}; {np.nanmean(found.accuracy[key, s]):.3f}")
        if key == "original":
            cells = cells * len(steps) if steps else cells
        title = "original model" if key == "original" else METHODS[key][0]
        rows.append([title, *cells, str(found.excluded.get(key, 0))])
    header = ["", *(f"{s} steps" for s in steps or [0]), "excluded"]
    seeds = len(next(iter(found.auc.values())))
    note = f"AUC of the attack, mean ± standard error of {seeds} seeds; then test accuracy"
    return table_html(header, rows, note)


@needs_result
def survival_table(found: Survival) -> Html:
    """Accuracy and attack by epsilon."""
    rows = []
    for k, e in enumerate(found.epsilon):
        accuracy, auc = (mean_and_error(v[:, [k]]) for v in (found.accuracy, found.auc))
        cells = [
            f"{float(m[0]):.3f}" + (f" ± {float(s[0]):.3f}" if np.isfinite(s[0]) else "")
            for m, s in (accuracy, auc)
        ]
        rows.append([f"{e:,g}", *cells, f"{found.bound[k]:.3g}"])
    note = f"Output perturbation, C0 = {found.C0:g}, d = {found.d:,}; excluded {found.excluded}"
    header = ["ε", "test accuracy", "AUC of the attack", "signal / noise ≤"]
    return table_html(header, rows, note)


def paper_table() -> Html:
    """The paper's own accuracies, read from the plots that its authors released."""
    empty = "–"
    rows = [
        [f"MNIST, epoch {k + 1}", *(f"{protocol.MNIST_CURVES[key][k]:.3f}" for key in PAPER), empty]
        for k in (0, 1, 5)
    ]  # fmt: skip
    rows += [
        [f"CIFAR-10, epoch {epoch}", *(f"{protocol.CIFAR10_CURVES[key][k]:.3f}" for key in PAPER),
         empty]
        for k, epoch in enumerate(protocol.CIFAR10_EPOCHS)
    ]  # fmt: skip
    for data in ("CIFAR-10", "CIFAR-100"):
        cells = []
        for name in ("retrain", "gradient clipping", "DP-SGD, epsilon 50"):
            last = protocol.TRANSFER_CURVES[data, name][-1]
            cells.append(f"{last:.3f}")
        retrain, gc, dp = cells
        rows.append([f"{data}, transfer, epoch {protocol.TRANSFER_EPOCHS[-1]}", retrain, empty, gc,
                     empty, dp])  # fmt: skip
    note = (
        "Validation accuracy, labelled ε = 1 (DP-SGD: 50, half a percent to forget); read from the "
        "plots (± .005) or exact means of the repository"
    )
    header = ["", *(METHODS[key][0] for key in PAPER), "DP-SGD"]
    return table_html(header, rows, note)
