"""`workbench app` with one toy method: slow to open, and its run tells a file how it ended.

Usage: app_page.py FOLDER [options of workbench app]
"""

import sys
import time
from pathlib import Path

from explorer_page import Toy, live

from workbench import catalog, cli
from workbench.explorer import Explorer
from workbench.steps import Step

PIECES = 300  # of 0.1 s: longer than a session without a page may live


def serve_toy(folder: Path) -> None:
    """Put the toy in the place of all methods."""
    toy = catalog.Method(
        slug="toy", title="Toy: waves", theme="Toys", summary="It waves.", paper="None",
        link="https://example.org", bibtex="", minutes=catalog.Minutes(1, 1, 1, 1), level="all",
        memory_mb=1, prerequisites="",
    )  # fmt: skip

    def steps(parameters):
        name, ending = f"{parameters.frequency:g} Hz", "cancelled"
        try:
            for k in range(PIECES):
                time.sleep(0.1)
                yield Step((k + 1) / PIECES)
            ending = "finished"
        finally:
            (folder / name).write_text(ending)

    class Module:
        @property
        def explorer(self):
            if not opened:
                time.sleep(3)  # as an import would
                opened.append(True)
            return lambda: Explorer(Toy(), live=live, steps=steps, report=False)

    opened = []
    catalog.methods = lambda: [toy]
    catalog.load = lambda slug: Module()


if __name__ == "__main__":
    serve_toy(Path(sys.argv[1]))
    sys.exit(cli.main(["app", "--no-browser", *sys.argv[2:]]))
