"""A page with the explorer of certified unlearning, a small audit and a short budget."""

from workbench import theme
from workbench.methods.certified_unlearning import benches, live, study

theme.set_defaults()
benches.PACE_S = 1.5  # time to stop in the noisy phase, on a loaded machine too
live.explorer(study.Parameters(budget=[20, 40], audit_n=60_000), report=False).servable()
