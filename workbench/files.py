"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write(path: str | Path, text: str) -> Path:
    """Write a text file through a temporary one beside it; folders are made. Returns the path.

    Raises ValueError, in one line, when that cannot be done.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent) as scratch:
            made = Path(scratch) / path.name
            made.write_text(text, encoding="utf-8")
            os.replace(made, path)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None
    return path
