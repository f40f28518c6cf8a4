"""Lattices as palette images."""

import io

import numpy as np
import pytest
from PIL import Image

from workbench.widgets import images

CELL = np.array([[0, 0, 1], [0, 2, 1], [0, 2, 2]])
KIND = np.array([0, 1, 2])


def rgb(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def color(text: str) -> list[int]:
    return [int(text[i : i + 2], 16) for i in (1, 3, 5)]


def test_sites_have_the_color_of_their_kind_and_lines_run_between_cells_on_the_torus():
    picture = rgb(images.png(*images.lattice_image(CELL, KIND, scale=5)))
    assert picture.shape == (15, 15, 3)
    for row, column in np.ndindex(3, 3):
        middle = picture[5 * row + 2, 5 * column + 2]
        assert middle.tolist() == color(images.KIND_COLORS[KIND[CELL[row, column]]])
    line = color(images.BORDER)
    assert picture[2, 4].tolist() != line  # between two sites of the medium
    assert picture[2, 9].tolist() == line  # between the medium and cell 1
    assert picture[9, 12].tolist() == line  # cell 1 above cell 2
    assert picture[2, 14].tolist() == line  # cell 1 against the medium across the edge


def test_coloring_by_cell_tells_cells_of_one_kind_apart():
    indices, palette = images.lattice_image(CELL, np.array([0, 1, 1]), color_by="cell", scale=3)
    assert palette[indices[1, 7]] != palette[indices[7, 4]]


def test_a_thickness_of_zero_draws_no_lines():
    indices, palette = images.lattice_image(CELL, KIND, scale=3, thickness=0)
    assert indices.max() < len(palette) - 1


def test_a_scale_of_one_keeps_one_pixel_a_site():
    indices, _ = images.lattice_image(CELL, KIND, scale=1)
    assert np.array_equal(indices, KIND[CELL])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"color_by": "size"}, "color_by = 'size' is not allowed: use 'kind' or 'cell'"),
        ({"kind_colors": ["#FFFFFF", "#000000"]}, "kind = 2 has no color: 2 colors are given"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(options, message):
    with pytest.raises(ValueError, match=message):
        images.lattice_image(CELL, KIND, **options)


def test_quantized_fields_span_their_range_and_mark_missing_values():
    field = np.array([[-1.0, 0.0, 1.0], [np.nan, 5.0, -5.0]])
    assert images.quantize(field, -1, 1).tolist() == [[0, 127, 254], [255, 254, 0]]


def test_white_means_zero_in_the_diverging_colors():
    indices, palette = images.field_image(np.zeros((2, 2)), -1, 1, colors="diverging", scale=1)
    assert palette[indices[0, 0]] == "#FFFFFF"


def test_an_unknown_colormap_names_those_that_exist():
    with pytest.raises(ValueError, match="use viridis, cividis or diverging"):
        images.colormap("jet")
