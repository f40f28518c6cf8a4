"""A page with the explorer of RisingAttacK on digits."""

from workbench import theme
from workbench.methods.rising_attack import live, study

theme.set_defaults()
parameters = study.Parameters.preset("quick", K=3, iters=20)
live.explorer(parameters, report=False).servable()
