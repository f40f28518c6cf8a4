"""Integer lattices as pictures: palette images in NumPy and PNG bytes, without any widget.

The pure functions under the lattice views, the frame player and the stills of reports. A lattice
is an (H, W) array of cell identities, 0 for the medium; `kind` maps identities to kinds. Colors
are those of the browser's view, so that a still and the live canvas look alike.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from workbench.theme import OKABE_ITO

MEDIUM, BORDER, MISSING = "#F4F4F1", "#1A1A1A", "#DDDDDA"
# Orange and sky first: the pair of Okabe-Ito that stays apart in print and under a black border.
KIND_COLORS = [MEDIUM] + [
    OKABE_ITO[name] for name in ("orange", "sky", "green", "purple", "yellow", "blue", "vermillion")
]


def tint(color: str, amount: float) -> str:
    """`#RRGGBB` mixed with `amount` (0 to 1) of white."""
    channels = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(c + (255 - c) * amount):02X}" for c in channels)


# Cells are told apart by their borders first; three tints of seven safe hues do the rest.
CELL_COLORS = [tint(color, amount) for amount in (0.0, 0.35, 0.65) for color in KIND_COLORS[1:]]


def colormap(name: str) -> list[str]:
    """256 colors `#RRGGBB` of a field: "viridis", "cividis", or "diverging" (blue-white-orange).

    Raises ValueError for another name.
    """
    from bokeh import palettes

    if name == "diverging":
        # Okabe-Ito's blue and vermillion, symmetric about white: zero is what white means.
        cool = [tint(OKABE_ITO["blue"], a) for a in np.linspace(0, 1, 128)]
        warm = [tint(OKABE_ITO["vermillion"], a) for a in np.linspace(1, 0, 128)]
        return cool + warm
    known = {"viridis": palettes.Viridis256, "cividis": palettes.Cividis256}
    if name not in known:
        raise ValueError(f"colormap = {name!r} is not known: use viridis, cividis or diverging")
    return [color.upper() for color in known[name]]


def borders(cell: np.ndarray) -> np.ndarray:
    """(H, W) uint8: 1 where the right neighbor is another cell, 2 the lower one, 3 both.

    The lattice is a torus: the last column is compared with the first, the last row likewise.
    """
    right = cell != np.roll(cell, -1, axis=1)
    below = cell != np.roll(cell, -1, axis=0)
    return right.astype(np.uint8) + 2 * below.astype(np.uint8)


def quantize(field: np.ndarray, low: float, high: float) -> np.ndarray:
    """(H, W) uint8: `field` mapped linearly from [low, high] to 0..254, clipped; 255 is missing."""
    span = high - low if high > low else 1.0
    missing = ~np.isfinite(field)
    steps = np.rint(254 * (np.where(missing, low, field) - low) / span)
    return np.where(missing, 255, np.clip(steps, 0, 254)).astype(np.uint8)


def lattice_image(
    cell: np.ndarray,
    kind: np.ndarray,
    *,
    color_by: str = "kind",
    scale: int = 4,
    kind_colors: Sequence[str] = KIND_COLORS,
    thickness: int = 1,
) -> tuple[np.ndarray, list[str]]:
    """A lattice as palette image: indices (H scale, W scale) uint8 and the list of colors.

    cell: (H, W) identities; kind: (N+1,) kinds of the identities; color_by: "kind" or "cell";
    thickness: of the lines between cells, in pixels, 0 for none.
    Raises ValueError for another `color_by` or a kind without color.
    """
    if color_by == "cell":
        palette = [kind_colors[0], *CELL_COLORS]
        table = np.r_[0, 1 + np.arange(len(kind) - 1) % len(CELL_COLORS)]
    elif color_by == "kind":
        palette = list(kind_colors)
        table = np.asarray(kind)
        if table.max(initial=0) >= len(palette):
            raise ValueError(f"kind = {table.max()} has no color: {len(palette)} colors are given")
    else:
        raise ValueError(f"color_by = {color_by!r} is not allowed: use 'kind' or 'cell'")
    indices = np.repeat(np.repeat(table[cell].astype(np.uint8), scale, axis=0), scale, axis=1)
    if scale > 1:
        edge = borders(cell)
        height, width = cell.shape
        blocks = indices.reshape(height, scale, width, scale)  # a view: writes reach `indices`
        for k in range(scale - thickness, scale):
            blocks[..., k][(edge & 1 > 0)[:, None].repeat(scale, 1)] = len(palette)
            blocks[:, k][(edge & 2 > 0)[:, :, None].repeat(scale, 2)] = len(palette)
    return indices, [*palette, BORDER]


def field_image(
    field: np.ndarray, low: float, high: float, *, colors: str = "cividis", scale: int = 4
) -> tuple[np.ndarray, list[str]]:
    """A scalar field (H, W) as palette image; values that are not finite are gray."""
    palette = colormap(colors)
    indices = quantize(field, low, high)
    return np.repeat(np.repeat(indices, scale, axis=0), scale, axis=1), [*palette[:255], MISSING]


def png(indices: np.ndarray, palette: Sequence[str]) -> bytes:
    """PNG bytes of a palette image: `indices` (H, W) uint8 into `palette`, colors `#RRGGBB`."""
    image = Image.fromarray(np.ascontiguousarray(indices, dtype=np.uint8))
    image.putpalette(b"".join(bytes.fromhex(color[1:]) for color in palette))
    stream = io.BytesIO()
    # Level 1: four times faster than the default for files a tenth larger.
    image.save(stream, "PNG", compress_level=1, bits=4 if len(palette) <= 16 else 8)
    return stream.getvalue()


def data_url(png: bytes) -> str:
    """A PNG as the address of a picture, for `<img src=...>`."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
