"""A page with the energy landscape of neural_cpm: a bi-polar aggregate under stored weights."""

from workbench import theme
from workbench.methods.neural_cpm import study, views

theme.set_defaults()
views.energy_landscape(study.Parameters()).__panel__().servable()
