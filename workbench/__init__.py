"""A workbench of new machine-learning methods: one executable notebook and one small package each.

`from workbench.methods import neural_cpm` imports a method; `workbench list` names them all.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("workbench")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
