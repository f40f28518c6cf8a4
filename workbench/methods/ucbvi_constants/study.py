"""The study of bonuses and their constants: hyperparameters, the run, and the claims as measured.

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
    Choices,
    Integer,
    Number,
    ParameterError,
    Text,
)
from workbench.parameters import Parameters as BaseParameters
from workbench.steps import Step, Steps

if TYPE_CHECKING:
    from .experiments import Bandits, Comparison, Scan, Switches

ALGORITHMS = [
    "CH", "CH-I", "BF", "BF-I", "MVP",
    "tight CH", "practitioner", "greedy", "random policy", "first action",
]  # fmt: skip
# The setting that the thresholds were measured in, the number of episodes aside.
STANDARD = {
    "env": "random", "S": 3, "A": 3, "delta": 1.0, "mvp_delta": 0.0, "scale": 1.0,
    "last_step_bonus": True, "ties": "first", "official_variance": False, "regret": "pseudo",
}  # fmt: skip


class Parameters(BaseParameters):
    """Hyperparameters of the MDP, of the learners and of the study."""

    slug = "ucbvi_constants"

    # fmt: off
    env = Choice("random", objects=["random", "riverswim", "frozenlake", "npz"], group="Problem",
        doc="MDP to learn, npz reads P and R from `file`")
    S = Integer(3, bounds=(2, 20), unit="states", group="Problem",
        doc="States of the random MDP, length of the river")
    A = Integer(3, bounds=(2, 10), unit="actions", group="Problem",
        doc="Actions of the random MDP")
    H = Integer(5, bounds=(1, 50), softbounds=(1, 25), unit="steps", group="Problem",
        doc="Horizon, steps of an episode")
    K = Integer(100000, bounds=(100, 2000000), softbounds=(100, 1000000), unit="episodes",
        group="Problem", doc="Episodes, which enter the logarithm L of every bonus too")
    file = Text("", group="Problem",
        doc="Path of an .npz file with arrays P and R, for env npz")

    algs = Choices(ALGORITHMS[:5], objects=ALGORITHMS, group="Learners",
        doc="Algorithms compared, the first five are the paper's")
    scale = Number(1.0, bounds=(0, 2), softbounds=(0.002, 2), group="Learners",
        doc="Multiplier of every bonus, our extension")
    delta = Number(1.0, bounds=(1e-12, 1), group="Learners",
        doc="Failure probability in the logarithm of UCBVI, 1 in the official program")
    mvp_delta = Number(0.0, bounds=(0, 1), group="Learners",
        doc="Failure probability in the logarithm of MVP, 0 means 1/K as in the official program")
    last_step_bonus = Boolean(True, group="Learners",
        doc="Bonus at the last step too, which known rewards make needless, our extension")
    ties = Choice("first", objects=["first", "random"], group="Learners",
        doc="Which of equally good actions is taken")
    official_variance = Boolean(False, group="Learners",
        doc="Variance as in the released program, which is no confidence width")
    regret = Choice("pseudo", objects=["pseudo", "realised"], group="Learners",
        doc="Regret of the policies, or of the rewards collected")

    runs = Integer(10, bounds=(1, 50), unit="runs", group="Experiments",
        doc="Random MDPs, or repetitions on the same MDP")
    second_H = Integer(10, bounds=(0, 50), unit="steps", group="Experiments",
        doc="A second horizon to compare on, 0 for none")
    baselines = Boolean(True, group="Experiments",
        doc="Run our baselines on the same problem")
    switches = Boolean(True, group="Experiments",
        doc="Run without the last bonus, and with the official variance")
    river_runs = Integer(4, bounds=(0, 50), unit="runs", group="Experiments",
        doc="Runs on RiverSwim of 5 states, horizon 10")
    scan_runs = Integer(4, bounds=(0, 50), unit="runs", group="Experiments",
        doc="Runs of the scan over multipliers of the bonus")
    bandit_runs = Integer(20, bounds=(0, 200), unit="runs", group="Experiments",
        doc="Bandits of the warm-up")
    long_runs = Integer(0, bounds=(0, 50), unit="runs", group="Experiments",
        doc="Runs of `long_K` episodes, at the horizons 5 and 10")
    long_K = Integer(1000000, bounds=(100, 2000000), unit="episodes", group="Experiments",
        doc="Episodes of the long runs")
    long_river_runs = Integer(0, bounds=(0, 50), unit="runs", group="Experiments",
        doc="Runs on RiverSwim of 10 states, horizon 25, and with random ties on both rivers")
    grid_runs = Integer(0, bounds=(0, 50), unit="runs", group="Experiments",
        doc="Runs for each of the 18 sizes of the paper")

    presets = {
        "quick": {
            "K": 10000, "runs": 5, "second_H": 0, "river_runs": 2, "scan_runs": 1,
        },
        "default": {},
        "full": {"scan_runs": 6, "long_runs": 10, "long_river_runs": 4, "grid_runs": 4},
    }
    # fmt: on

    def check(self) -> None:
        """A file for npz that serves, a reward within each horizon, no run beyond 5e10 of work."""
        if self.env == "npz" and not self.file:
            raise ParameterError("env = 'npz' needs `file`, the path of an .npz file with P and R")
        S, A = self._checked_sizes() if self.env in ("npz", "frozenlake") else self.sizes
        from .limits import check_work

        try:
            check_work(S, A, max(self.H, self.second_H), self.K)
        except ValueError as error:
            raise ParameterError(str(error)) from None

    def _checked_sizes(self) -> tuple[int, int]:
        """States and actions of an MDP that is not drawn, if it serves for both horizons."""
        from .problems import check_horizon, make

        try:
            mdp = make(self.env, file=self.file)
        except ValueError as error:
            raise ParameterError(f"file = '{self.file}' does not serve: {error}") from None
        check_horizon(mdp, min(self.H, self.second_H or self.H))
        return mdp.n, mdp.m

    @property
    def sizes(self) -> tuple[int, int]:
        """States and actions; those of a file are not known here and count as 1."""
        return {
            "random": (self.S, self.A), "riverswim": (self.S, 2), "frozenlake": (16, 4),
            "npz": (1, 1),
        }[self.env]  # fmt: skip

    @property
    def standard(self) -> bool:
        """Whether problem and learners are those that the thresholds were measured with."""
        return all(getattr(self, name) == value for name, value in STANDARD.items())


@dataclass
class UCBVIStudy(results.Study):
    """What a run leaves: one result per experiment (None while it has not run), and the claims."""

    main: Comparison | None = None
    short: Comparison | None = None
    taller: Comparison | None = None
    baselines: Comparison | None = None
    river: Comparison | None = None
    scan: Scan | None = None
    switches: Switches | None = None
    bandits: Bandits | None = None
    long: Comparison | None = None
    long_taller: Comparison | None = None
    long_river: dict[str, Comparison] | None = None
    grid: list[Comparison] | None = None


def run(parameters: Parameters | None = None, progress: bool = True) -> UCBVIStudy:
    """The whole study with a progress bar; stopped by an interrupt, it returns what is finished."""
    from . import findings

    made = steps(parameters or Parameters())
    return results.run_study("UCBVI study", made, findings, progress)


def steps(p: Parameters) -> Steps[UCBVIStudy]:
    """The study as steps; data of a step: the study so far, with claims on what is finished."""
    p.check()
    study = UCBVIStudy(p, complete=False)
    yield Step(0.0, "compiling the engine (first run only)", study)

    from . import findings

    return (yield from results.plan_steps(study, _plan(p), findings))


def _plan(p: Parameters) -> list[tuple[str, float, Any]]:
    """The experiments to run: name in the study, rough seconds of one core, generator of steps."""
    from . import experiments as e

    S, A = p.sizes
    episode = (0.5 + 0.02 * S**2 * A) * 1e-6  # seconds of a step in which one plans
    one = p.K * p.H * episode
    standard = p.K * 5e-6
    every = [
        (True, "main", p.runs * len(p.algs) * one, lambda: e.main_steps(p)),
        (True, "short", 1.5, lambda: e.short_steps(p)),
        (p.bandit_runs, "bandits", 0.03 * p.bandit_runs,
         lambda: e.bandit_steps(p.bandit_runs, p.seed)),
        (p.second_H, "taller", p.runs * len(p.algs) * one * p.second_H / p.H,
         lambda: e.main_steps(p, p.second_H)),
        (p.baselines, "baselines", p.runs * 5 * one, lambda: e.baselines_steps(p)),
        (p.river_runs, "river", p.river_runs * 8 * standard,
         lambda: e.river_steps(p.river_runs, 5, 10, p.K, p.seed)),
        (p.switches, "switches", p.runs * 4 * standard, lambda: e.switches_steps(p)),
        (p.scan_runs, "scan", p.scan_runs * 27 * standard,
         lambda: e.scan_steps(p.K, p.scan_runs, p.seed)),
        (p.long_runs, "long", p.long_runs * p.long_K * 2e-5, lambda: e.long_steps(p)),
        (p.long_runs, "long_taller", p.long_runs * p.long_K * 4e-5, lambda: e.long_steps(p, 10)),
        (p.long_river_runs, "long_river", p.long_river_runs * p.K * 3e-4,
         lambda: e.long_river_steps(p)),
        (p.grid_runs, "grid", p.grid_runs * p.K * 1.2e-3, lambda: e.grid_steps(p)),
    ]  # fmt: skip
    return [(name, cost, make) for wanted, name, cost, make in every if wanted]
