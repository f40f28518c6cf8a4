"""What the measurements say about each claim, and the headline numbers of a run.

Thresholds were fixed before measuring; where the paper states none, the note says that the
threshold is ours. The paper's result tables could not be read, so its figures are unknown.
A claim whose experiment did not run, or ran too small to count, is "not tested".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workbench.claims import Claim, Claims, judge

if TYPE_CHECKING:
    from .bipolar import Bipolar, Model
    from .experiments import Recovered
    from .study import NeuralCPMStudy

OURS = "Threshold ours."
SCENARIO_LIMITS = {"A": 0.12, "B": 0.12, "D": 0.6, "F": 0.12}


def claims(study: NeuralCPMStudy) -> Claims:
    """All claims of the method, judged on what has been measured so far."""
    return Claims([*_engine(study), *_recovery(study), *_bipolar(study), *_digits(study)])


def _engine(study: NeuralCPMStudy) -> list[Claim]:
    law = study.law
    off = away = None
    if law:
        off = [abs(runs.mean() - law.exact[rule]) for rule, runs in law.sampled.items()]
        away = np.abs(law.sampled["uniform"] - law.exact["boltzmann"])
    return [
        judge(
            "engine_law",
            "The engine samples the exact stationary law of each copy rule "
            "(mean volume of one cell on 12 sites)",
            off, each_at_most=0.05, unit="sites", over="copy rules", note=OURS,
        ),
        judge(
            "no_detailed_balance",
            "The copy rule does not sample the Boltzmann law: no detailed balance for exp(-H/T) "
            "(distance of the mean volumes)",
            away, at_least=1.0, unit="sites", over="runs", note=OURS,
        ),
    ]  # fmt: skip


def _recovery(study: NeuralCPMStudy) -> list[Claim]:
    p, recovered = study.parameters, study.recovered or {}
    own = recovered.get("own", recovered.get("B"))
    enough = p.simulations >= 16 and p.recovery_iters >= 300
    exact = own if enough else None
    found = [
        judge(
            "recovery_order",
            "The energy is recovered from still pictures: the two largest contact energies come "
            "out on top and in the right order",
            None if own is None else _right_order(own), each_at_least=1.0, over="seeds",
            threshold="every seed",
        ),
        judge(
            "recovery_error",
            "All six parameters are recovered (largest relative error)",
            exact and exact.worst_relative_error, each_at_most=0.12,
        ),
        judge(
            "recovery_scaled",
            "The energy is recovered up to a common factor (RMSE after the best scalar)",
            exact and exact.rmse_scaled, each_at_most=0.10, unit="energy",
        ),
    ]  # fmt: skip
    found += [
        judge(
            f"recovery_{letter}",
            f"Scenario {letter} of the paper is recovered (RMSE)",
            recovered[letter].rmse if letter in recovered else None,
            each_at_most=limit,
            unit="energy",
        )
        for letter, limit in SCENARIO_LIMITS.items()
    ]
    found.append(
        judge(
            "persistent_worse",
            "Persistent chains recover worse than chains restarted from data, because the "
            "data are not equilibrated (ratio of RMSE)",
            study.persistent and study.persistent.rmse / recovered["B"].rmse,
            at_least=1.0,
            note=OURS,
        )
    )
    return found


def _right_order(recovered: Recovered) -> list[float]:
    """1 for each seed whose two largest contact energies are the true ones in order."""
    wanted = np.argsort(recovered.truth[:5])[-2:]
    return [float((np.argsort(e[:5])[-2:] == wanted).all()) for e in recovered.estimates]


def _bipolar(study: NeuralCPMStudy) -> list[Claim]:
    from . import bipolar as names

    b, p = study.bipolar, study.parameters
    models = b.models if b else {}
    analytic, full = models.get(names.CELL_SORTING), models.get(names.CLOSURE)
    blind, alone = models.get(names.BLIND), models.get(names.ALONE)
    limit = _above_noise(b) if b else 1.0
    # Weights stored from a full run are one training seed and short samples: shown, not judged.
    judged = full if p.weights == "train" else None
    stored = "Needs training in this run; the stored weights of the quick preset are only shown. "
    deltas = b.exact if b else None
    return [
        judge(
            "analytic_fails",
            "The cell-sorting energy, fitted to the same pictures, cannot make two poles "
            "(RMSE of second moments; threshold: noise floor + 3 standard deviations)",
            analytic and analytic.rmse, each_at_least=limit, unit="sites²", note=OURS,
        ),
        judge(
            "closure_works",
            "NH + closure makes them: RMSE of second moments, as a share of cell sorting's",
            judged and judged.rmse / analytic.rmse.mean(), at_most=0.65, each_at_most=0.85,
            note="" if judged else stored,
        ),
        judge(
            "interactions_matter",
            "Without interactions between cells the network is of no use (the same share)",
            blind and blind.rmse / analytic.rmse.mean(), at_least=0.85,
        ),
        judge(
            "closure_matters",
            "Without the closure cells fall apart: cells in pieces, NH alone over NH + closure",
            _fragment_ratio(alone, judged), at_least=4.0,
        ),
        judge(
            "stability",
            "NH + closure keeps cells biologically consistent: share of stable final pictures",
            judged and judged.stable, at_least=0.9, note=f"{OURS} {'' if judged else stored}",
        ),
        judge(
            "first_order",
            "The first-order energy change of a copy agrees with the exact one (correlation)",
            None if deltas is None else _correlations(deltas, b.first_order),
            at_least=0.99, over="chains", note=OURS,
        ),
    ]  # fmt: skip


def _above_noise(b: Bipolar) -> float:
    """What noise alone hardly reaches: mean + 3 standard deviations of fresh data's RMSE."""
    return float(b.noise_floor.mean() + 3 * b.noise_floor.std())


def _correlations(exact: np.ndarray, first_order: np.ndarray) -> list[float]:
    """Correlation of the prices within each chain."""
    real = np.isfinite(exact)
    pairs = zip(exact, first_order, real, strict=True)
    return [float(np.corrcoef(e[r], f[r])[0, 1]) for e, f, r in pairs if r.sum() > 1]


def _fragment_ratio(alone: Model | None, full: Model | None) -> np.ndarray | None:
    if alone is None or full is None:
        return None
    one = 1 / full.frames.shape[1]  # less than one broken cell in all samples cannot be told from 0
    return alone.fragmented / max(full.fragmented.mean(), one)


def _digits(study: NeuralCPMStudy) -> list[Claim]:
    d = study.digits
    return [
        judge(
            "digits",
            "The cell-sorting energy cannot write digits: its inception score, as a share of "
            "that of held-out data",
            d and d.scores["cell sorting"] / d.scores["data"], at_most=0.6, over="fits", note=OURS,
        )
    ]  # fmt: skip


def values(study: NeuralCPMStudy) -> dict[str, float]:
    """Headline numbers by name, for sweeps and the scorecard."""
    found: dict[str, float] = {}
    if study.law:
        found["mean_volume_exact"] = study.law.exact["uniform"]
        found["mean_volume_engine"] = study.law.sampled["uniform"].mean()
        found["mean_volume_boltzmann"] = study.law.exact["boltzmann"]
    if study.tissue:
        tissue = study.tissue
        found["sorting_index_start"] = tissue.sorting_index[0]
        found["sorting_index"] = tissue.sorting_index[-1]
        found["acceptance"] = tissue.acceptance[-1]
        found["energy"] = sum(term[-1] for term in tissue.energy.values())
        found["living_cells"] = (tissue.volumes[-1, 1:] > 0).sum()
    for name, r in (study.recovered or {}).items():
        found[f"recovery_{name}_rmse"] = r.rmse.mean()
        found[f"recovery_{name}_rmse_scaled"] = r.rmse_scaled.mean()
        found[f"recovery_{name}_worst_relative_error"] = r.worst_relative_error.max()
    if study.persistent:
        found["recovery_B_persistent_rmse"] = study.persistent.rmse.mean()
    if study.bipolar:
        found["bipolar_noise_floor"] = study.bipolar.noise_floor.mean()
        for name, model in study.bipolar.models.items():
            key = "bipolar_" + name.replace(" + ", "_").replace(", ", "_").replace(" ", "_")
            found[f"{key}_rmse"] = model.rmse.mean()
            found[f"{key}_fragmented"] = model.fragmented.mean()
            found[f"{key}_stable"] = model.stable.mean()
            found[f"{key}_at_edge"] = model.at_edge.mean()
    if study.digits:
        found["digits_accuracy"] = study.digits.accuracy
        for name, score in study.digits.scores.items():
            found[f"digits_inception_score_{name.replace(' ', '_')}"] = np.mean(score)
    return {name: float(value) for name, value in found.items()}
