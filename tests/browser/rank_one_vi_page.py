"""A page with the explorer of R1-VI on a small Garnet."""

from workbench import theme
from workbench.methods.rank_one_vi import live, study

theme.set_defaults()
live.explorer(study.Parameters.preset("quick", ql_steps=300), report=False).servable()
