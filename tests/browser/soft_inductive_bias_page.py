"""A page with the explorer of soft inductive biases, small networks."""

from workbench import theme
from workbench.methods.soft_inductive_bias import live, study

theme.set_defaults()
live.explorer(study.Parameters.preset("quick", width=8, d=50), report=False).servable()
