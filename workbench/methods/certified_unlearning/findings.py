"""Claims and headline values: what the measurements of a study say.

Thresholds come from pilot measurements with an independent program, or are ours, as each note says,
and were fixed beforehand. A claim is judged only at the settings of its threshold, else "not
tested"; accuracies are compared on the seeds where both methods are finite.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from workbench.claims import FAILS, Claim, Claims, judge

from .comparison import Accuracy
from .mechanisms import TITLES, TWINS

if TYPE_CHECKING:
    from .study import UnlearningStudy

PILOT, OURS = "Threshold from pilot measurements.", "Threshold ours."
ENOUGH = 20  # seeds from which differences of accuracy are judged
MANY = 100_000  # runs of the adversary from which the label is judged
SHORT, LONG = 40, 160  # budgets of the claims


def claims(study: UnlearningStudy) -> Claims:
    """All claims of the method, judged on what has been measured so far."""
    study = _finished(study)
    return Claims([
        *_calculator(study), *_audit(study), *_whitebox(study), *_membership(study),
        *_accuracy(study), *_survival(study), *_forget_size(study),
    ])  # fmt: skip


def _finished(study: UnlearningStudy) -> UnlearningStudy:
    """The study without the experiment that is still running."""
    return replace(study, **{study.running: None}, running="") if study.running else study


def _calculator(study: UnlearningStudy) -> list[Claim]:
    p = study.parameters
    c = study.calculator
    excess = [c.excess] if c is not None else None
    ratio = [c.noise_ratio] if c is not None and np.isfinite(c.noise_ratio) else None
    if (p.epsilon, p.delta) != (1.0, 1e-5):
        ratio = None
    few = None
    if c is not None and p.lam > 0 and p.T == 0 and p.C1 > 0:
        few = [c.automatic / (p.C0 / (p.gamma * p.C1))]
    return [
        judge("automatic_steps", "Without regularization T = C0 / (gamma C1) steps need the least "
              "noise a step: excess over the best T", excess, each_at_most=1e-3,
              over="settings", note="C0 = C1 = 1, gamma = 0.1. " + OURS),
        judge("few_steps", "With regularization fewer steps are enough: T over C0 / (gamma C1)",
              few, each_at_most=1.0, over="settings",
              paper="about ln(lam C0 / C1) / (gamma lam)", note=OURS),
        judge("released_noise", "To hold epsilon 1 exactly takes several times the noise of the "
              "accounting used in the released scripts, as we read it: ratio", ratio,
              each_at_least=5.0, each_at_most=5.5, over="settings", note=PILOT),
    ]  # fmt: skip


def _audit(study: UnlearningStudy) -> list[Claim]:
    a = study.audit
    margin = shown = chain = None
    note = ""
    if a and len(a.cases) >= 6:
        margin = [c.certified - c.lower for c in a.cases]
        if min(c.n for c in a.cases) >= MANY:
            shown = [c.lower for c in a.cases if c.accountant == "released"]
        chain = [bound - value for value, bound in a.chain]
        note = "; ".join(
            f"{c.accountant} {c.label:g}, T = {c.T}: lower {c.lower:.2f}, certified "
            f"{c.certified:.2f}" for c in a.cases
        ) + ". "  # fmt: skip
    return [
        judge("audit_sound", "No adversary beats the exact certificate: certified epsilon minus "
              "the 95 % lower bound, every noise", margin, each_at_least=0.0, over="cases",
              note=note + PILOT),
        judge("audit_label", "The adversary contradicts the label 1 of the accounting used in the "
              "released scripts, as we read it: lower bound of epsilon", shown,
              each_at_least=1.5, over="settings", paper="1 (the label)", note=PILOT),
        judge("audit_chain", "Nor does the worst chain beat model clipping's: delta_T minus what "
              "it shows, exactly", chain, each_at_least=-1e-12, over="steps", note=OURS),
    ]  # fmt: skip


def _whitebox(study: UnlearningStudy) -> list[Claim]:
    w = study.whitebox
    clear = over = None
    if w and len(w.names) == 3 and study.parameters.standard:
        clear = [a for a, e in zip(w.auc, w.epsilon, strict=True) if np.isinf(e)]
        over = [
            a - limit
            for a, limit, e in zip(w.auc, w.limit, w.epsilon, strict=True) if np.isfinite(e)
        ]  # fmt: skip
    return [
        judge("whitebox_clear", "Clipping without noise hides nothing from a white-box test: AUC",
              clear, each_at_least=0.99, over="models", note=PILOT),
        judge("whitebox_hidden", "Certified noise does: AUC minus the limit Phi(mu / sqrt 2), at "
              "epsilon 1 and 10", over, each_at_most=0.03, over="epsilons", note=PILOT),
    ]  # fmt: skip


def _membership(study: UnlearningStudy) -> list[Claim]:
    m = study.membership if study.parameters.standard else None

    def of(method: str, steps: int) -> np.ndarray | None:
        values = m.auc.get((method, steps)) if m else None
        return None if values is None else _finite(values)

    gc, clip = of("gc", LONG), of("clip", LONG)
    return [
        judge("mia_original", "The model remembers wrong labels: loss-threshold AUC", 
              of("original", 0), at_least=0.95, note=PILOT),
        judge("mia_finetune", f"Fine-tuning for {LONG} steps does not forget them: AUC",
              of("finetune", LONG), at_least=0.90, note=PILOT),
        judge("mia_gc", f"After gradient clipping the attack is blind: AUC minus 1/2 at {LONG} "
              "steps", gc if gc is None else gc - 0.5, at_least=-0.05, at_most=0.05, note=PILOT),
        judge("mia_clip", "So it is after clipping without noise, which the white-box test sees "
              "through: a failed attack is not a certificate. AUC minus 1/2",
              clip if clip is None else clip - 0.5, at_least=-0.05, at_most=0.05, note=OURS),
    ]  # fmt: skip


def _finite(values: np.ndarray) -> np.ndarray | None:
    kept = values[np.isfinite(values)]
    return kept if len(kept) else None


def _excluded(a: Accuracy | None, *keys: str) -> str:
    gone = sum(a.excluded.get(k, 0) for k in keys) if a else 0
    return f"{gone} runs were not finite and are left out. " if gone else ""


def compared(a: Accuracy, above: str, below: str, budget: int) -> str:
    """`against retrain, tuned start +0.059 ± 0.030 (15 of 24 seeds)`, or nothing."""
    differences = a.paired(above, below, budget)
    if differences is None or len(differences) < 2:
        return ""
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    wins = int((differences > 0).sum())
    return (
        f"against {TITLES[below]} {differences.mean():+.3f} ± {error:.3f} "
        f"({wins} of {len(differences)} seeds)"
    )


def _accuracy(study: UnlearningStudy) -> list[Claim]:
    p = study.parameters
    a = study.accuracy if p.standard else None
    enough = a is not None and a.seeds >= ENOUGH
    made = []
    for key in ("gc", "mc"):
        differences = a.paired(key, "retrain", SHORT) if enough else None
        note = ""
        if a is not None:
            rows = [
                compared(a, key, other, SHORT) for other in ("retrain_tuned", "retrain_torch", "op")
            ]
            if any(rows):
                note = f"Without a required sign: {', '.join(filter(None, rows))}. "
        claim = judge(
            f"{key}_retrain", f"{TITLES[key].capitalize()} beats retraining from the standard "
            f"start at {SHORT} steps: difference of test accuracy", differences, at_least=0.05,
            threshold="mean ≥ 0.05, interval above 0",
            paper=".702 against .677" if key == "gc" else ".700 against .677",
            note=note + _excluded(a, key, "retrain") + PILOT,
        )  # fmt: skip
        if claim.low is not None and claim.low <= 0:
            claim = replace(claim, verdict=FAILS)
        made.append(claim)
    for budget, limit in ((SHORT, 0.03), (LONG, 0.08)):
        gaps = None
        if a is not None:
            pairs = [a.paired(key, TWINS[key], budget) for key in ("gc", "mc")]
            if all(pair is not None and len(pair) for pair in pairs):
                gaps = [abs(float(pair.mean())) for pair in pairs]
        made.append(
            judge(f"control_{budget}", f"The same procedure from 0, which knows nothing of the old "
                  f"model, is as good at {budget} steps: difference, GC and MC", gaps,
                  each_at_most=limit, over="mechanisms", note=PILOT)
        )  # fmt: skip
    after = None
    if a is not None and {"gc", "mc"} <= a.after.keys():
        after = [float(np.nanmean(a.after[key])) for key in ("gc", "mc")]
    made.append(
        judge("collapse", "Right after the certified phase accuracy is at chance, GC and MC",
              after, each_at_most=0.15, over="mechanisms",
              paper="about .10 (CIFAR-10, from the plot)", note=OURS)
    )  # fmt: skip
    return made


def _survival(study: UnlearningStudy) -> list[Claim]:
    s = study.survival if study.parameters.standard else None
    rise = better = None
    if s is not None and {1.0, 1e5} <= set(s.epsilon.tolist()):
        first, last = list(s.epsilon).index(1.0), list(s.epsilon).index(1e5)
        rise = _finite(s.auc[:, last] - s.auc[:, first])
        better = _finite(s.accuracy[:, last] - s.accuracy[:, first])
    return [
        judge("survival_attack", "Where knowledge survives the attack succeeds: AUC of output "
              "perturbation at epsilon 100,000 minus that at 1", rise, at_least=0.10, note=PILOT),
        judge("survival_accuracy", "and accuracy rises with it: the same difference", better,
              at_least=0.0, note=PILOT),
    ]  # fmt: skip


def _forget_size(study: UnlearningStudy) -> list[Claim]:
    f = study.forget_size
    same = grows = None
    if f is not None:
        same = [float(np.ptp(f.gc)), float(np.ptp(f.mc))]
        if np.isfinite(f.dp).all():
            grows = np.diff(f.dp)
    multipliers = ", ".join(f"{z:.2f}" for z in f.dp) if f is not None else ""
    sizes = ", ".join(str(k) for k in f.size) if f is not None else ""
    note = f"z = {multipliers} for {sizes} examples at epsilon {f.epsilon:g}. " if f else ""
    return [
        judge("size_free", "The noise of GC and MC does not depend on the size of the forget set: "
              "largest difference", same, each_at_most=0.0, over="mechanisms",
              paper="independent", note=OURS),
        judge("dp_grows", "That of DP-SGD does: smallest rise of the noise multiplier", grows,
              each_at_least=1e-9, over="sizes", note=note + OURS),
    ]  # fmt: skip


def values(study: UnlearningStudy) -> dict[str, float]:
    """Headline numbers by name, for sweeps of parameters."""
    study = _finished(study)
    found: dict[str, float] = {}
    if study.calculator:
        c = study.calculator
        found |= {
            "T_gc": c.automatic, "sigma_gc": c.sigma[c.automatic - 1],
            "final_noise_gc": c.final[c.automatic - 1], "released_noise_ratio": c.noise_ratio,
        }  # fmt: skip
    for case in study.audit.cases if study.audit else ():
        found[f"audit_{case.accountant}_{case.label:g}_T{case.T}"] = case.lower
    if study.whitebox:
        for name, area in zip(study.whitebox.names, study.whitebox.auc, strict=True):
            found[f"whitebox_{name.replace(' ', '_')}"] = area
    for (method, steps), areas in (study.membership.auc if study.membership else {}).items():
        found[f"mia_auc_{method}_{steps}"] = np.nanmean(areas)
        found[f"mia_accuracy_{method}_{steps}"] = np.nanmean(
            study.membership.accuracy[method, steps]
        )
    if study.accuracy:
        found["accuracy_original"] = study.accuracy.original.mean()
        for method in study.accuracy.test:
            for budget in study.accuracy.budget:
                at = study.accuracy.at(method, budget)
                if at is not None:
                    found[f"accuracy_{method}_{budget}"] = np.nanmean(at)
        found["excluded"] = sum(study.accuracy.excluded.values())
    if study.survival:
        s = study.survival
        for k, epsilon in enumerate(s.epsilon):
            found[f"survival_accuracy_{epsilon:g}"] = np.nanmean(s.accuracy[:, k])
            found[f"survival_auc_{epsilon:g}"] = np.nanmean(s.auc[:, k])
    if study.forget_size:
        for k, z in zip(study.forget_size.size, study.forget_size.dp, strict=True):
            found[f"dp_multiplier_{k}"] = z
        for k, at in study.forget_size.accuracy.items():
            found[f"dp_accuracy_{k}"] = np.nanmean(at)
        if study.forget_size.gc_accuracy is not None:
            found["dp_accuracy_gc"] = np.nanmean(study.forget_size.gc_accuracy)
    for width, a in (study.widths or {}).items():
        for method in ("retrain", "gc", "gc_noinfo", "mc"):
            at = a.at(method, SHORT)
            if at is not None:
                found[f"width_{width}_{method}_{SHORT}"] = np.nanmean(at)
    if study.sweep:
        for method, test in study.sweep.test.items():
            for epsilon, at in zip(study.sweep.epsilon, test.T, strict=True):
                found[f"sweep_{method}_{epsilon:g}"] = np.nanmean(at)
    return {name: float(value) for name, value in found.items() if np.isfinite(value)}
