"""`python -m workbench.thumbnails [SLUG ...]` draws the gallery's pictures from the methods."""

from __future__ import annotations

import os
import sys

from workbench import catalog


def draw(slug: str) -> None:
    """Write the thumbnail of a method: the PNG bytes that its `views.thumbnail()` returns."""
    method = catalog.find(slug)
    method.thumbnail.parent.mkdir(exist_ok=True)
    scratch = method.thumbnail.with_suffix(".tmp")
    scratch.write_bytes(catalog.load(method.slug).views.thumbnail())
    os.replace(scratch, method.thumbnail)
    print(method.thumbnail)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or [m.slug for m in catalog.methods()]:
        draw(chosen)
