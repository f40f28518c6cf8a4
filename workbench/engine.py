"""The papermill engine of the workbench: a kernel that runs already, progress, one deadline.

Progress that a cell displays is passed on while it runs. Imported when a run starts, since it
takes half a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from workbench import _fast_import  # noqa: F401  isort: skip
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.iorw import write_ipynb

from workbench.steps import PROGRESS_MIME, Step

NAME = "workbench"
MEASURE_TAG, MEASURE_WEIGHT = "measure", 15.0  # the cell that runs the study, in ordinary cells


class _Client(PapermillNotebookClient):
    on_step: Callable[[Step], None] | None = None
    done = weight = total = 0.0

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        note = msg["content"].get("data", {}).get(PROGRESS_MIME) if "content" in msg else None
        if note and self.on_step:
            title = f"{note['title']}: {note['message']}" if note["message"] else note["title"]
            self.on_step(Step((self.done + self.weight * note["done"]) / self.total, title))
        return super().process_message(msg, cell, cell_index)

    def execute_cell(self, cell: Any, cell_index: int, *args: Any, **options: Any) -> Any:
        self.weight = _weight(cell)
        if self.on_step:
            count = f"cell {cell_index + 1} of {len(self.nb.cells)}"
            self.on_step(Step(self.done / self.total, count))
        result = super().execute_cell(cell, cell_index, *args, **options)
        self.done += self.weight
        return result


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, start_timeout: float = 60, **options: Any
    ) -> Any:
        deadline = options["deadline"]

        def remaining(_cell: Any) -> float | None:
            return max(1.0, deadline - time.monotonic()) if deadline else None

        client = _Client(
            nb_man,
            kernel_name=kernel_name,
            startup_timeout=start_timeout,
            timeout_func=remaining,
            interrupt_on_timeout=False,
            shutdown_kernel="immediate",  # all its messages are in: no reason to wait
        )
        client.km = options["kernel"]  # set afterwards: the client shuts it down as its own
        client.on_step = options["on_step"]
        client.total = sum(_weight(cell) for cell in nb_man.nb.cells)
        try:
            return client.execute()
        except Exception:  # a dead kernel or a passed deadline: keep what has run
            write_ipynb(nb_man.nb, options["output"])
            raise


papermill_engines.register(NAME, _Engine)


def _weight(cell: Any) -> float:
    if cell.cell_type != "code":
        return 0.01
    return MEASURE_WEIGHT if MEASURE_TAG in cell.metadata.get("tags", []) else 1.0
