"""Soft inductive biases: large hypothesis spaces that prefer simple solutions, measured.

Light to import: names below load their module when first used.
"""

import lazy_loader as lazy

from workbench.catalog import Method, Minutes

METHOD = Method(
    slug="soft_inductive_bias",
    title="Deep learning is not so mysterious: soft inductive biases, measured",
    theme="Learning theory",
    summary="Fit pure noise, count the bits of a network, and watch a bound hold or turn vacuous.",
    paper=(
        "Andrew Gordon Wilson: Position: Deep Learning is Not So Mysterious or Different, "
        "ICML 2025 (position track)"
    ),
    link="https://arxiv.org/abs/2503.02113",
    bibtex="""@inproceedings{wilson2025position,
  title     = {Position: Deep Learning is Not So Mysterious or Different},
  author    = {Wilson, Andrew Gordon},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  year      = {2025},
  note      = {arXiv:2503.02113}
}""",
    minutes=Minutes(reading=60, quick=0.4, default=0.7, full=7),
    level="graduate",
    memory_mb=700,
    prerequisites="ridge regression, Gaussian processes, a trained network, what a bound is",
)

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submodules=["closed_forms", "exercises", "experiments", "study", "views"],
    submod_attrs={
        "study": ["Parameters", "SoftBiasStudy", "run", "steps"],
        "polynomials": ["Fit", "fit", "least_squares"],
        "processes": ["Regression", "regression"],
        "bounds": ["Bounds", "kl_inverse", "occam"],
        "compression": ["CompressedClassifier"],
        "dimension": ["effective_dimension"],
        "loaders": ["load_images"],
        "views": ["explorer"],
    },
)
