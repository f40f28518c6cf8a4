"""RisingAttacK: ordered top-K attacks from right singular vectors of the adversarial Jacobian.

Light to import: names below load their module when first used.
"""

import lazy_loader as lazy

from workbench.catalog import Method, Minutes

METHOD = Method(
    slug="rising_attack",
    title="RisingAttacK: dictating the order of a classifier's first K answers",
    theme="Robustness",
    summary="Make a network rank the classes you choose, in your order, by quadratic programs.",
    paper=(
        "Thomas Paniagua, Chinmay Savadikar, Tianfu Wu: Adversarial Perturbations Are Formed by "
        "Iteratively Learning Linear Combinations of the Right Singular Vectors of the Adversarial "
        "Jacobian, ICML 2025 (PMLR 267)"
    ),
    link="https://github.com/ivmcl/ordered-topk-attack",  # announced as the official code
    bibtex="""@inproceedings{paniagua2025adversarial,
  title     = {Adversarial Perturbations Are Formed by Iteratively Learning Linear Combinations
               of the Right Singular Vectors of the Adversarial Jacobian},
  author    = {Paniagua, Thomas and Savadikar, Chinmay and Wu, Tianfu},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  series    = {PMLR},
  volume    = {267},
  year      = {2025}
}""",
    minutes=Minutes(reading=45, quick=0.4, default=1.5, full=14),
    level="graduate",
    memory_mb=700,
    prerequisites="linear algebra (singular vectors), quadratic programs, convolutional networks",
)

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submodules=["exercises", "experiments", "study", "views"],
    submod_attrs={
        "study": ["Parameters", "RisingAttackStudy", "run", "steps"],
        "attacks": ["attack", "attack_steps"],
        "ranking": ["achieved", "random_targets", "rank_matrix"],
        "least_distance": ["boxed_least_distance", "least_distance"],
        "jacobian": ["adversarial_jacobian"],
        "merit": ["figure_of_merit"],
        "records": ["AttackResult", "Snapshot"],
        "digits": ["held_out_digits", "load_digits_model"],
        "glyphs": ["glyph94", "load_glyph_model"],
        "live": ["bench"],
        "views": ["explorer"],
    },
)
