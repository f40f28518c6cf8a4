"""A page with the explorer of shrinkage, few trials."""

from workbench import theme
from workbench.methods.pas import study, views

theme.set_defaults()
views.explorer(study.Parameters.preset("quick", trials=4, regret_m=20)).servable()
