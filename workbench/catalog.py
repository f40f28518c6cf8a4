"""Which methods exist: light metadata read from `workbench/methods/*/__init__.py`.

Importing a method's package is cheap by contract (no torch, no numba, no panel), so the catalog
is whatever is on disk: no list is kept by hand.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from workbench.parameters import nearest


@dataclass(frozen=True)
class Minutes:
    """How long a method takes: reading the notebook, and running each preset on two cores."""

    reading: float
    quick: float
    default: float
    full: float


@dataclass(frozen=True)
class Method:
    """What is known of a method without importing anything heavy."""

    slug: str
    title: str
    theme: str
    summary: str  # one line: what the reader gets
    paper: str  # authors, title, venue
    link: str
    bibtex: str
    minutes: Minutes
    level: str
    memory_mb: int
    prerequisites: str

    @property
    def notebook(self) -> Path:
        """Path of the method's notebook: in a source tree or inside the installed package."""
        return notebooks_folder() / f"{self.slug}.ipynb"

    @property
    def thumbnail(self) -> Path:
        """Path of the picture shown in the gallery."""
        return notebooks_folder() / "thumbnails" / f"{self.slug}.png"


def notebooks_folder() -> Path:
    """The folder that holds the notebooks."""
    package = Path(__file__).resolve().parent
    source = package.parent / "notebooks"
    return source if source.is_dir() else package / "_notebooks"


def methods() -> list[Method]:
    """All methods, by theme and title."""
    from workbench import methods as package

    found = [
        importlib.import_module(f"{package.__name__}.{module.name}").METHOD
        for module in pkgutil.iter_modules(package.__path__)
        if module.ispkg
    ]
    return sorted(found, key=lambda m: (m.theme, m.title))


def find(name: str) -> Method:
    """The method called `name` (hyphens or underscores); ValueError names the nearest."""
    known = {m.slug: m for m in methods()}
    slug = name.replace("-", "_").lower()
    if slug not in known:
        hint = nearest(slug, known) or f"; there are: {', '.join(known)}"
        raise ValueError(f"unknown method '{name}'{hint}")
    return known[slug]


def load(slug: str) -> ModuleType:
    """The package of a method, whose `Parameters`, `run` and `views` load when first used."""
    return importlib.import_module(f"workbench.methods.{find(slug).slug}")
