"""Certified unlearning: noisy fine-tuning whose guarantee is computed, audited and attacked.

Light to import: names below load their module when first used.
"""

import lazy_loader as lazy

from workbench.catalog import Method, Minutes

METHOD = Method(
    slug="certified_unlearning",
    title="Certified unlearning: forget with a guarantee, and audit it",
    theme="Learning theory",
    summary="Wipe a user's data out of a network with noise, and see what epsilon really buys.",
    paper=(
        "Anastasia Koloskova, Youssef Allouah, Animesh Jha, Rachid Guerraoui, Sanmi Koyejo: "
        "Certified Unlearning for Neural Networks, ICML 2025"
    ),
    link="https://arxiv.org/abs/2506.06985",
    bibtex="""@inproceedings{koloskova2025certified,
  title     = {Certified Unlearning for Neural Networks},
  author    = {Koloskova, Anastasia and Allouah, Youssef and Jha, Animesh and Guerraoui, Rachid
               and Koyejo, Sanmi},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  year      = {2025},
  note      = {arXiv:2506.06985}
}""",
    minutes=Minutes(reading=50, quick=0.4, default=1, full=10),
    level="graduate",
    memory_mb=500,
    prerequisites="a trained network and its gradient, the normal distribution, what a test is",
)

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submodules=[
        "accounting",
        "audit",
        "certificates",
        "exercises",
        "experiments",
        "study",
        "views",
    ],
    submod_attrs={
        "study": ["Parameters", "UnlearningStudy", "run", "steps"],
        "accounting": ["epsilon_of", "mu_of", "theta"],
        "certificates": [
            "GradientClipping",
            "ModelClipping",
            "NoiseFirst",
            "OutputPerturbation",
            "cascade",
        ],
        "clock": ["Clock"],
        "unlearner": ["Certificate", "Unlearner"],
        "views": ["explorer"],
    },
)
