"""The study of RisingAttacK: its hyperparameters, the run, and the paper's claims as measured.

`run(parameters)` is the whole experiment, `steps(parameters)` the same as a generator with
progress; the numerical work itself is in `experiments.py`, imported when a run starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench import results
from workbench.parameters import (
    Boolean,
    Choice,
    Integer,
    Integers,
    Number,
    Numbers,
    ParameterError,
)
from workbench.parameters import Parameters as BaseParameters
from workbench.steps import Step, Steps

if TYPE_CHECKING:
    from .ablations import Ablations, Nested, Widths
    from .defense import Curve
    from .experiments import Anchor, Bench, EqualTime, TunedBench

N_CLASSES = {"glyphs": 94, "digits": 10}


class Parameters(BaseParameters):
    """Hyperparameters of the attack, of its baselines and of the study."""

    slug = "rising_attack"

    # fmt: off
    data = Choice("glyphs", objects=["glyphs", "digits"], group="Data",
        doc="Images to attack, 94 rendered characters or 10 real digits")
    networks = Integer(1, bounds=(1, 10), unit="networks", group="Data",
        doc="Networks attacked, each trained from its own seed")
    images = Integer(8, bounds=(1, 200), softbounds=(1, 32), unit="images", group="Data",
        doc="Images attacked, read correctly by all networks")
    K_list = Integers([1, 5, 10, 20, 30], each=(1, 93), group="Data",
        doc="Lengths K of the orders compared")
    targets = Integers([], each=(0, 93), empty=True, group="Data",
        doc="Ordered target classes, first wanted first, [] draws them at random")

    method = Choice("rising", objects=["rising", "quad", "cw", "ad"], group="Attack",
        doc="Attack of the live bench, the study compares all four")
    K = Integer(5, bounds=(1, 93), softbounds=(1, 30), unit="targets", group="Attack",
        doc="Length of the order on the live bench")
    iters = Integer(30, bounds=(1, 500), softbounds=(1, 60), unit="iterations", group="Attack",
        doc="Steps of sequential quadratic programming")
    margin = Number(0.05, bounds=(0, 5), softbounds=(0, 1), unit="logits", group="Attack",
        doc="By how much each inequality of the order is demanded")
    rivals = Integer(0, bounds=(0, 93), unit="rows", group="Attack",
        doc="Highest non-targets kept in the program, 0 keeps all")
    rank = Integer(0, bounds=(0, 93), unit="vectors", group="Attack",
        doc="Leading singular vectors kept, 0 keeps all")
    box = Choice("active", objects=["active", "none"], group="Attack",
        doc="Limits 0 and 1 of a pixel, inside the program or only clipped after it")
    line_search = Boolean(True, group="Attack",
        doc="Try fractions of a step, or take it whole")
    alphas = Numbers([1.0, 0.5, 0.25, 0.1], each=(0.001, 1), group="Attack",
        doc="Fractions of a step that the line search tries")
    tau = Number(1.0, bounds=(0.01, 1), group="Attack",
        doc="Fraction of each violation demanded in a step")
    trust = Number(0.0, bounds=(0, 100), softbounds=(0, 3), unit="l2", group="Attack",
        doc="Longest step, 0 sets no limit")
    chunk = Integer(256, bounds=(1, 100000), softbounds=(16, 1024), unit="rows", group="Attack",
        doc="Rows of the Jacobian in one backward pass")

    lr = Number(0.01, bounds=(1e-05, 1), softbounds=(0.001, 0.1), group="Baselines",
        doc="Learning rate of AdamW")
    coef = Number(20.0, bounds=(0.001, 10000), softbounds=(1, 50), group="Baselines",
        doc="Twice the weight of the loss at the start")
    search_steps = Integer(1, bounds=(1, 20), softbounds=(1, 9), unit="rounds", group="Baselines",
        doc="Rounds of bisection on the weight of the loss")
    quad_margin = Number(0.2, bounds=(0, 5), softbounds=(0, 1), unit="logits", group="Baselines",
        doc="Margin of QuadAttacK's target features")
    quad_iters = Integer(60, bounds=(1, 10000), softbounds=(10, 400), unit="iterations",
        group="Baselines", doc="Iterations of QuadAttacK")
    cw_iters = Integer(200, bounds=(1, 10000), softbounds=(10, 400), unit="iterations",
        group="Baselines", doc="Iterations of CW^K")
    ad_iters = Integer(200, bounds=(1, 10000), softbounds=(10, 400), unit="iterations",
        group="Baselines", doc="Iterations of Adversarial Distillation")

    ablations = Boolean(True, group="Experiments",
        doc="Take parts of the attack away, on digits")
    margin_images = Integer(24, bounds=(1, 400), softbounds=(1, 240), unit="images",
        group="Experiments", doc="Digits on which margins are compared, among the ablations")
    nested = Boolean(True, group="Experiments",
        doc="Compare the norms of nested orders, for a linear model exactly")
    equal_time = Boolean(False, group="Experiments",
        doc="Give baselines the processor time of RisingAttacK")
    long_ablations = Boolean(False, group="Experiments",
        doc="Take parts away for orders of 20 glyphs too")
    digits = Boolean(False, group="Experiments",
        doc="Compare all attacks on real digits too")
    tuned = Boolean(False, group="Experiments",
        doc="Compare with baselines tuned on the same images, on digits for network 0")
    peers = Boolean(False, group="Experiments",
        doc="Compare orders of one target with the attacks of foolbox")
    width_sweep = Boolean(False, group="Experiments",
        doc="Attack networks of several feature widths")
    defense = Boolean(True, group="Experiments",
        doc="Attack an adversarially trained and a smoothed network")
    defense_images = Integer(12, bounds=(1, 400), softbounds=(1, 48), unit="images",
        group="Experiments", doc="Digits attacked on each network of the defense")
    # fmt: on

    # fmt: off
    presets = {
        "quick": {
            "data": "digits", "K_list": [1, 5, 9], "iters": 15, "lr": 0.05,
            "cw_iters": 60, "ad_iters": 60, "ablations": False, "defense": False,
        },
        "default": {},
        "full": {
            "networks": 3, "images": 16, "K_list": [1, 5, 10, 15, 20, 25, 30], "margin_images": 240,
            "defense_images": 24, "long_ablations": True, "digits": True, "tuned": True,
            "peers": True, "width_sweep": True, "equal_time": True,
        },
    }
    # fmt: on

    @property
    def n_classes(self) -> int:
        """Classes of the data."""
        return N_CLASSES[self.data]

    def check(self) -> None:
        """Orders must leave a class out, and given targets be distinct classes and long enough."""
        most = self.n_classes - 1
        where = f"data = '{self.data}' with {self.n_classes} classes"
        longest = max(self.K_list)
        if longest > most:
            raise ParameterError(
                f"K_list holds {longest}, too long for {where}: allowed are 1 to {most}"
            )
        if self.K > most:
            raise ParameterError(f"K = {self.K} is too long for {where}: allowed are 1 to {most}")
        if not self.targets:
            return
        if max(self.targets) > most:
            raise ParameterError(
                f"targets holds {max(self.targets)}, but {where} has 0 to {most}, the nearest is "
                f"{most}"
            )
        if len(set(self.targets)) < len(self.targets):
            raise ParameterError(f"targets = {self.targets} repeats a class")
        longest = max(longest, self.K)
        if longest > len(self.targets):
            raise ParameterError(
                f"targets names {len(self.targets)} classes, but K and K_list go up to {longest}: "
                "name more or ask for shorter orders"
            )

    def options(self, method: str) -> dict[str, Any]:
        """Keyword arguments of `attack` for a method: "rising", "quad", "cw" or "ad"."""
        if method == "rising":
            return {
                "iters": self.iters, "margin": self.margin, "rivals": self.rivals or None,
                "rank": self.rank or None, "box": self.box, "line_search": self.line_search,
                "alphas": tuple(self.alphas), "tau": self.tau, "trust": self.trust or None,
                "chunk": self.chunk, "seed": self.seed,
            }  # fmt: skip
        return {
            "iters": getattr(self, f"{method}_iters"), "lr": self.lr, "coef": self.coef,
            "search_steps": self.search_steps, "margin": self.quad_margin, "chunk": self.chunk,
            "seed": self.seed,
        }  # fmt: skip


@dataclass
class RisingAttackStudy(results.Study):
    """What a run leaves: one result per experiment (None while it has not run), and the claims."""

    bench: Bench | None = None
    ablations: Ablations | None = None
    nested: Nested | None = None
    digits: Bench | None = None
    long_ablations: Ablations | None = None
    digits_tuned: Bench | None = None
    tuned: TunedBench | None = None
    equal_time: EqualTime | None = None
    widths: Widths | None = None
    anchor: Anchor | None = None
    defense: dict[int, dict[str, Curve]] | None = None

    @property
    def digits_bench(self) -> Bench | None:
        """The comparison on digits: its own experiment, or the main one when it is on digits."""
        return self.digits or (self.bench if self.parameters.data == "digits" else None)


def run(parameters: Parameters | None = None, progress: bool = True) -> RisingAttackStudy:
    """The whole study with a progress bar; stopped by an interrupt, it returns what is finished."""
    from . import findings

    made = steps(parameters or Parameters())
    return results.run_study("RisingAttacK study", made, findings, progress)


def steps(p: Parameters) -> Steps[RisingAttackStudy]:
    """The study as steps; data of a step: the study so far, with claims on what is finished."""
    p.check()
    study = RisingAttackStudy(p, complete=False)
    yield Step(0.0, "loading", study)

    from . import findings

    return (yield from results.plan_steps(study, _plan(p, study), findings, titled=False))


def _plan(p: Parameters, study: RisingAttackStudy) -> list[tuple[str, float, Any]]:
    """The experiments to run: name in the study, rough seconds of one core, generator of steps.

    Some build on what earlier ones have left in `study`.
    """
    from . import ablations, experiments

    attacked = len(p.K_list) * p.networks * p.images
    every = [
        (True, "bench", attacked * (1.2 if p.data == "glyphs" else 0.2),
         lambda: experiments.main_bench_steps(p)),
        (p.ablations, "ablations", 11 + p.margin_images / 8,
         lambda: ablations.digits_ablations_steps(p)),
        (p.nested, "nested", 0.5, lambda: ablations.nested_steps(p)),
        (p.digits, "digits", 40, lambda: experiments.digits_bench_steps(p)),
        (p.digits and p.tuned, "digits_tuned", 150,
         lambda: experiments.tuned_digits_steps(p, study.digits)),
        (p.long_ablations, "long_ablations", 40, lambda: ablations.long_ablations_steps(p)),
        (p.tuned, "tuned", 420, lambda: experiments.tuned_steps(p)),
        (p.equal_time, "equal_time", 30 if p.tuned or p.data == "glyphs" else 3,
         lambda: experiments.equal_time_steps(p, study.bench, study.tuned)),
        (p.width_sweep, "widths", 120, lambda: ablations.width_steps(p)),
        (p.peers, "anchor", 90, lambda: experiments.anchor_steps(p)),
        (p.defense, "defense", 3 + p.defense_images, lambda: ablations.defense_steps(p)),
    ]  # fmt: skip
    return [(name, cost, make) for wanted, name, cost, make in every if wanted]
