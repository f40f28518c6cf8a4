"""Where downloaded data lives, and the one way to get it: checked, and only when asked.

Nothing in the workbench downloads by itself. A loader of a paper's own data calls `fetch` with the
address and SHA-256 of the file; it is taken from the user's cache, or downloaded when
`download=True`, or an error says what to do.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The user's data folder: `$WORKBENCH_DATA`, or the platform's cache folder."""
    import platformdirs

    return Path(os.environ.get("WORKBENCH_DATA") or platformdirs.user_cache_path("workbench"))


def fetch(address: str, sha256: str, *, download: bool = False) -> Path:
    """Path of a cached file. Raises FileNotFoundError, which says how to get it, when it is absent
    and `download` is False; ValueError when its checksum is wrong.
    """
    import pooch

    folder, name = cache_folder(), address.rsplit("/", 1)[-1]
    if not download and not (folder / name).exists():
        raise FileNotFoundError(
            f"{name} is not in {folder}; get it once with download=True (from {address}), "
            f"or put the file there yourself"
        )
    return Path(pooch.retrieve(address, known_hash=f"sha256:{sha256}", fname=name, path=folder))
