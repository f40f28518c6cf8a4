"""Constants in regret bounds: UCBVI with original and improved bonuses, MVP, and baselines.

Light to import: names below load their module when first used.
"""

import lazy_loader as lazy

from workbench.catalog import Method, Minutes

METHOD = Method(
    slug="ucbvi_constants",
    title="Constants are critical: how much a regret bound's constants cost",
    theme="Reinforcement learning",
    summary="Take exploration bonuses apart, move their constants, and watch regret and optimism.",
    paper=(
        "Simone Drago, Marco Mussi, Alberto Maria Metelli: Position: Constants are Critical in "
        "Regret Bounds for Reinforcement Learning, ICML 2025 (PMLR 267)"
    ),
    link="https://github.com/marcomussi/position_constants",
    bibtex="""@inproceedings{drago2025position,
  title     = {Position: Constants are Critical in Regret Bounds for Reinforcement Learning},
  author    = {Drago, Simone and Mussi, Marco and Metelli, Alberto Maria},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  series    = {PMLR},
  volume    = {267},
  year      = {2025}
}""",
    minutes=Minutes(reading=40, quick=0.3, default=1.2, full=14),
    level="graduate",
    memory_mb=500,
    prerequisites="Markov decision processes, backward induction, Hoeffding's inequality",
)

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submodules=["exercises", "experiments", "study", "views"],
    submod_attrs={
        "study": ["Parameters", "UCBVIStudy", "run", "steps"],
        "learning": ["Learner", "Run", "learn", "learn_steps", "warm_up"],
        "bonuses": ["ALGORITHMS", "Sizes", "bonus", "regret_bound", "terms", "visits_to_inform"],
        "bandits": ["pull"],
        "problems": ["make"],
        "views": ["explorer"],
    },
)
