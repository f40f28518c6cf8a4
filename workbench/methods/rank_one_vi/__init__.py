"""R1-VI: value iteration whose slow direction is removed by a rank-one correction.

Light to import: names below load their module when first used.
"""

import lazy_loader as lazy

from workbench.catalog import Method, Minutes

METHOD = Method(
    slug="rank_one_vi",
    title="R1-VI: value iteration without its slow direction",
    theme="Reinforcement learning",
    summary="Plan and learn in a dozen steps where value iteration takes thousands.",
    paper=(
        "Arman Sharifi Kolarijani, Tolga Ok, Peyman Mohajerin Esfahani, Mohamad Amin Sharifi "
        "Kolarijani: Rank-One Modified Value Iteration, ICML 2025 (PMLR 267)"
    ),
    link="https://arxiv.org/abs/2505.01828",
    bibtex="""@inproceedings{kolarijani2025rank,
  title     = {Rank-One Modified Value Iteration},
  author    = {Sharifi Kolarijani, Arman and Ok, Tolga and Mohajerin Esfahani, Peyman
               and Sharifi Kolarijani, Mohamad Amin},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  series    = {PMLR},
  volume    = {267},
  pages     = {31182--31201},
  year      = {2025},
  note      = {arXiv:2505.01828}
}""",
    minutes=Minutes(reading=45, quick=0.3, default=0.8, full=3),
    level="graduate",
    memory_mb=500,
    prerequisites="Markov chains, Bellman equations, eigenvalues",
)

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submodules=["exercises", "experiments", "study", "views"],
    submod_attrs={
        "study": ["Parameters", "RankOneStudy", "run", "steps"],
        "planning": ["PLANNERS", "plan", "rank_one_value_iteration", "solve"],
        "learning": ["Learner", "learn", "warm_up"],
        "speed": ["compare_peers"],
        "views": ["explorer"],
    },
)
