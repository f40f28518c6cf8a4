"""What the measurements say about each claim, and the headline numbers of a run.

Thresholds were fixed before measuring, and the notes say that they are ours: the paper's result
tables could not be read, so its figures are unknown. A claim whose experiment did not run, or ran
too small to count, is "not tested"; what was measured all the same is in `values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.claims import HOLDS, Claim, Claims, judge

from .measures import price_agreement

if TYPE_CHECKING:
    from .bipolar import Bipolar, Model
    from .experiments import Recovered
    from .study import NeuralCPMStudy

OURS = "Threshold ours."
SCENARIO_LIMITS = {"A": 0.12, "B": 0.12, "D": 0.6, "F": 0.12}
JUDGED_ITERS = 300  # of training; the pilot runs found 240 too few


def claims(study: NeuralCPMStudy) -> Claims:
    """All claims of the method, judged on what has been measured so far."""
    return Claims([*_engine(study), *_recovery(study), *_bipolar(study), *_digits(study)])


def _judge(
    id: str, statement: str, values: Sequence[float] | None, note: str = "", **rules: Any
) -> Claim:
    return judge(id, statement, values, note=f"{OURS} {note}".strip(), **rules)


def _engine(study: NeuralCPMStudy) -> list[Claim]:
    law = study.law
    off = away = None
    if law:
        off = [abs(runs.mean() - law.exact[rule]) for rule, runs in law.sampled.items()]
        away = np.abs(law.sampled["uniform"] - law.exact["boltzmann"])
    return [
        _judge(
            "engine_law",
            "The engine samples the exact stationary law of each copy rule "
            "(mean volume of one cell on 12 sites)",
            off, each_at_most=0.05, unit="sites", over="copy rules",
        ),
        _judge(
            "no_detailed_balance",
            "The copy rule does not sample the Boltzmann law: no detailed balance for exp(-H/T) "
            "(distance of the mean volumes)",
            away, at_least=1.0, unit="sites", over="runs",
        ),
    ]  # fmt: skip


def _recovery(study: NeuralCPMStudy) -> list[Claim]:
    p, recovered = study.parameters, study.recovered or {}
    own = recovered.get("own", recovered.get("B"))

    def large(simulations: int, iterations: int) -> tuple[bool, str]:
        """Whether the recovery is large enough for a limit, and the note that says so."""
        enough = p.simulations >= simulations and p.recovery_iters >= iterations
        return enough, f"Counts from {simulations} pictures and {iterations} iterations on."

    ordered, order_note = large(8, 120)
    exact, exact_note = large(16, 300)
    full, full_note = large(24, 400)
    found = [
        _judge(
            "recovery_order",
            "The energy is recovered from still pictures: the two largest contact energies come "
            "out on top and in the right order",
            _right_order(own) if own and ordered else None,
            each_at_least=1.0, over="seeds", threshold="every seed", note=order_note,
        ),
        _judge(
            "recovery_error",
            "All six parameters are recovered (largest relative error)",
            own.worst_relative_error if own and exact else None,
            each_at_most=0.12, note=exact_note,
        ),
        _judge(
            "recovery_scaled",
            "The energy is recovered up to a common factor (RMSE after the best scalar)",
            own.rmse_scaled if own and exact else None,
            each_at_most=0.10, unit="energy", note=exact_note,
        ),
    ]  # fmt: skip
    found += [
        _judge(
            f"recovery_{letter}",
            f"Scenario {letter} of the paper is recovered (RMSE)",
            recovered[letter].rmse if letter in recovered and full else None,
            each_at_most=limit, unit="energy", note=full_note,
        )
        for letter, limit in SCENARIO_LIMITS.items()
    ]  # fmt: skip
    found.append(
        _judge(
            "persistent_worse",
            "Persistent chains recover worse than chains restarted from data, because the "
            "data are not equilibrated (ratio of RMSE)",
            study.persistent.rmse / recovered["B"].rmse if study.persistent and full else None,
            at_least=1.0, note=full_note,
        )
    )  # fmt: skip
    return found


def _right_order(recovered: Recovered) -> list[float] | None:
    """1 for each seed whose two largest contact energies are the true ones in order.

    Equal true energies have no order; None if that leaves nothing to ask.
    """
    truth = recovered.truth[:5]
    above = (truth[:, None] > truth) & (truth >= np.sort(truth)[-2])[:, None]
    if not above.any():
        return None
    estimates = recovered.estimates[:, :5]
    right = (estimates[:, :, None] > estimates[:, None]) | ~above
    return right.all((1, 2)).astype(float).tolist()


def _bipolar(study: NeuralCPMStudy) -> list[Claim]:
    from . import bipolar as names

    b, p = study.bipolar, study.parameters
    enough = names.enough_samples(p)
    # Weights stored from a full run are one training seed and short samples: shown, not judged.
    trained = enough and p.weights == "train" and p.iters >= JUDGED_ITERS
    models = b.models if b else {}
    analytic = models.get(names.CELL_SORTING) if enough else None
    full = models.get(names.CLOSURE) if trained else None
    blind = models.get(names.BLIND) if trained else None
    alone = models.get(names.ALONE) if trained else None
    samples_note = f"Counts from {names.JUDGED_SAMPLES} samples of {names.JUDGED_STEPS} steps on."
    trained_note = (
        f"Counts for networks trained in this run, from {JUDGED_ITERS} iterations, "
        f"{names.JUDGED_SAMPLES} samples and {names.JUDGED_STEPS} steps on."
    )
    works = _judge(
        "closure_works",
        "NH + closure makes them: RMSE of second moments, as a share of cell sorting's",
        full and full.rmse / analytic.rmse.mean(), at_most=0.65, each_at_most=0.85,
        note=trained_note,
    )  # fmt: skip
    if works.n == 1:
        low, high = full.rmse_interval[0] / analytic.rmse.mean()
        over = "samples of one network"
        works = replace(works, low=low, high=high, n=full.frames.shape[1], over=over)
    agreement = _agreement(b) if b and b.exact is not None else None
    return [
        _judge(
            "analytic_fails",
            "The cell-sorting energy, fitted to the same pictures, cannot make two poles "
            "(RMSE of second moments; threshold: noise floor + 3 standard deviations)",
            analytic and analytic.rmse, each_at_least=_above_noise(b) if b else 1.0,
            unit="sites²", over="fits", note=samples_note,
        ),
        works,
        _judge(
            "interactions_matter",
            "Without interactions between cells the network is of no use (the same share)",
            blind.rmse / analytic.rmse.mean() if blind and works.verdict == HOLDS else None,
            at_least=0.85,
            note="Counts where NH + closure makes two poles in the same run.",
        ),
        _judge(
            "closure_matters",
            "Without the closure cells fall apart: cells in pieces, NH alone over NH + closure",
            _fragment_ratio(alone, full), at_least=4.0, note=trained_note,
        ),
        _judge(
            "stability",
            "NH + closure keeps cells biologically consistent: share of stable final pictures",
            full and full.stable, at_least=0.9, note=trained_note,
        ),
        _judge(
            "first_order",
            "The first-order energy change of a copy agrees with the exact one (correlation)",
            agreement and [chain["correlation"] for chain in agreement],
            at_least=0.99, over="chains",
        ),
        _judge(
            "first_order_slope",
            "The first-order energy change of a copy has the right size (slope on the exact one)",
            agreement and [chain["slope"] for chain in agreement],
            at_least=0.95, at_most=1.05, over="chains",
        ),
    ]  # fmt: skip


def _above_noise(b: Bipolar) -> float:
    """What noise alone hardly reaches: mean + 3 standard deviations of fresh data's RMSE."""
    return float(b.noise_floor.mean() + 3 * b.noise_floor.std(ddof=1))


def _agreement(b: Bipolar) -> list[dict[str, float]]:
    """How well the prices agree, within each chain that proposed at least two copies."""
    chains = zip(b.exact, b.first_order, b.analytic, strict=True)
    return [price_agreement(*prices) for prices in chains if np.isfinite(prices[0]).sum() > 1]


def _fragment_ratio(alone: Model | None, full: Model | None) -> np.ndarray | None:
    if alone is None or full is None:
        return None
    one = 1 / full.frames.shape[1]  # less than one broken cell in all samples cannot be told from 0
    return alone.fragmented / max(full.fragmented.mean(), one)


def _digits(study: NeuralCPMStudy) -> list[Claim]:
    d = study.digits
    return [
        _judge(
            "digits",
            "The cell-sorting energy cannot write digits: its inception score, as a share of "
            "that of held-out data",
            d and d.scores["cell sorting"] / d.scores["data"], at_most=0.6, over="fits",
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
            key = f"bipolar_{_plain(name)}"
            found[f"{key}_rmse"] = model.rmse.mean()
            found[f"{key}_fragmented"] = model.fragmented.mean()
            found[f"{key}_stable"] = model.stable.mean()
            found[f"{key}_at_edge"] = model.at_edge.mean()
        if study.bipolar.exact is not None:
            b = study.bipolar
            for name, value in price_agreement(b.exact, b.first_order, b.analytic).items():
                found[f"first_order_{name}"] = value
    if study.digits:
        found["digits_accuracy"] = study.digits.accuracy
        for name, score in study.digits.scores.items():
            found[f"digits_inception_score_{_plain(name)}"] = np.mean(score)
    return {name: float(value) for name, value in found.items()}


def _plain(name: str) -> str:
    """A name of letters and underscores: NH + closure becomes NH_closure."""
    return name.replace(" + ", "_").replace(", ", "_").replace(" ", "_")
