"""Certified sparse generalized linear models: the best k features, with a proof.

Light to import: names below load their module when first used.
"""

import lazy_loader as lazy

from workbench.catalog import Method, Minutes

METHOD = Method(
    slug="sparse_glm",
    title="Certified k-sparse GLMs: the best k features, with a proof",
    theme="Statistics",
    summary="Find the best k features of a regression or classification, and prove it.",
    paper=(
        "Jiachang Liu, Soroosh Shafiee, Andrea Lodi: Scalable First-order Method for Certifying "
        "Optimal k-Sparse GLMs, ICML 2025 (PMLR 267)"
    ),
    link="https://arxiv.org/abs/2502.09502",
    bibtex="""@inproceedings{liu2025scalable,
  title     = {Scalable First-order Method for Certifying Optimal k-Sparse GLMs},
  author    = {Liu, Jiachang and Shafiee, Soroosh and Lodi, Andrea},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  series    = {PMLR},
  volume    = {267},
  pages     = {39455--39481},
  year      = {2025},
  note      = {arXiv:2502.09502}
}""",
    minutes=Minutes(reading=50, quick=0.4, default=1.5, full=10),
    level="graduate",
    memory_mb=600,
    prerequisites="convex duality, proximal gradient methods, logistic regression",
)

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submodules=[
        "baselines", "certificate", "datasets", "exercises", "experiments", "loaders", "prox",
        "study", "views",
    ],
    submod_attrs={
        "study": ["Parameters", "SparseStudy", "run", "steps"],
        "problem": ["Problem", "make_problem"],
        "relaxation": ["Node", "dual_bound", "relax", "relaxation_steps"],
        "branch_and_bound": ["Search", "solve", "warm_up"],
        "certificate": ["Certificate", "verify"],
        "subtrees": ["solve_parted"],
        "estimators": ["SparseGLMClassifier", "SparseGLMRegressor"],
        "views": ["explorer"],
    },
)  # fmt: skip
