"""Where downloaded data lives. Nothing downloads unless a loader is called for it."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The user's data folder: `$WORKBENCH_DATA`, or the platform's cache folder."""
    import platformdirs

    return Path(os.environ.get("WORKBENCH_DATA") or platformdirs.user_cache_path("workbench"))
