"""nbval waits five seconds for an output, hard-coded: a study takes longer. Loaded by -p."""

from nbval.plugin import IPyNbCell

IPyNbCell.output_timeout = 600
