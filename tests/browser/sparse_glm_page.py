"""A page with the explorer of certified sparse GLMs on the breast cancer table."""

from workbench import theme
from workbench.methods.sparse_glm import live, study

theme.set_defaults()
live.explorer(study.Parameters(k=3, lambda2=1.0, M=2.0), report=False).servable()
