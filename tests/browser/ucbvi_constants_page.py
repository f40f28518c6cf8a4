"""A page with the explorer of the constants, 2,000 episodes a run."""

from workbench import theme
from workbench.methods.ucbvi_constants import live, study

theme.set_defaults()
live.explorer(study.Parameters.preset("quick", K=2000), report=False).servable()
