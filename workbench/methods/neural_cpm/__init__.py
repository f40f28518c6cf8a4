"""NeuralCPM: cellular dynamics with a learned (neural) Hamiltonian.

Light to import: names below load their module when first used.
"""

import lazy_loader as lazy

from workbench.catalog import Method, Minutes

METHOD = Method(
    slug="neural_cpm",
    title="NeuralCPM: learning how cells move",
    theme="Scientific machine learning",
    summary="Simulate living tissue with an energy, and learn that energy from still pictures.",
    paper=(
        "Koen Minartz, Tim d'Hondt, Leon Hillmann, Jörn Starruß, Lutz Brusch, Vlado Menkovski: "
        "Deep Neural Cellular Potts Models, ICML 2025 (PMLR 267)"
    ),
    link="https://arxiv.org/abs/2502.02129",
    bibtex="""@inproceedings{minartz2025deep,
  title     = {Deep Neural Cellular Potts Models},
  author    = {Minartz, Koen and d'Hondt, Tim and Hillmann, Leon and Starru{\\ss}, J{\\"o}rn
               and Brusch, Lutz and Menkovski, Vlado},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  series    = {PMLR},
  volume    = {267},
  year      = {2025},
  note      = {arXiv:2502.02129}
}""",
    minutes=Minutes(reading=45, quick=0.3, default=1.5, full=15),
    level="graduate",
    memory_mb=700,
    prerequisites="probability, the Boltzmann distribution, convolutional networks",
)

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submodules=["exercises", "experiments", "study", "views"],
    submod_attrs={
        "study": ["NeuralCPMStudy", "Parameters", "run", "steps"],
        "lattice": ["CPM", "Ensemble"],
        "energy": ["contact_counts"],
        "measures": ["fragmented", "inception_score", "moments"],
        "exact_chain": ["stationary"],
        "generators": ["PAPER", "SCENARIOS", "simulate"],
        "loaders": ["load_labels", "load_mnist", "load_simulations"],
        "recovery": ["fit_cellsort"],
        "hamiltonian": ["NeuralHamiltonian"],
        "closure": ["CellSorting", "Hybrid"],
        "sampling": ["sample"],
        "training": ["train", "train_many"],
        "warm": ["warm_up"],
        "weights": ["load_weights"],
        "speed": ["compare_speed"],
        "views": ["explorer"],
    },
)
