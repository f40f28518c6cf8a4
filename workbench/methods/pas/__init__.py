"""Prediction-powered adaptive shrinkage: means of many small problems from few labels and a model.

Light to import: names below load their module when first used.
"""

import lazy_loader as lazy

from workbench.catalog import Method, Minutes

METHOD = Method(
    slug="pas",
    title="PAS: shrink toward what a model predicts, as far as the data say",
    theme="Statistics",
    summary="Estimate hundreds of means from few labels and many predictions, and see who wins.",
    paper=(
        "Sida Li, Nikolaos Ignatiadis: Prediction-Powered Adaptive Shrinkage Estimation, "
        "ICML 2025 (PMLR 267:34836-34875)"
    ),
    link="https://arxiv.org/abs/2502.14166",
    bibtex="""@inproceedings{li2025prediction,
  title     = {Prediction-Powered Adaptive Shrinkage Estimation},
  author    = {Li, Sida and Ignatiadis, Nikolaos},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  series    = {PMLR},
  volume    = {267},
  pages     = {34836--34875},
  year      = {2025}
}""",
    minutes=Minutes(reading=35, quick=0.4, default=0.9, full=5),
    level="graduate",
    memory_mb=400,
    prerequisites="mean squared error, variance and covariance, what a trained model's bias is",
)

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submodules=["exercises", "experiments", "study", "views"],
    submod_attrs={
        "study": ["Parameters", "PASStudy", "run", "steps"],
        "problems": ["Problems", "from_frame"],
        "moments": ["Moments"],
        "estimators": ["NAMES", "Estimate", "Estimates", "Options", "estimate"],
        "estimator": ["PAS"],
        "shrinkage": ["RiskCurve", "cure"],
        "loaders": ["load_official"],
        "views": ["explorer"],
    },
)
