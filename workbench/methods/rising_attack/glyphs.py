"""Glyph-94: as many classes as ordered attacks need, rendered on the spot.

The 94 printable ASCII characters in Pillow's built-in scalable font, 28 x 28, turned, stretched,
sheared and shifted, as mid-gray ink on mid-gray paper: a perturbation has room on both sides, as
in photographs. Two networks read them: a wide one with thousands of features, and a deeper one with
few. How long an order each of them admits is measured in `ablations.width_steps`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import PIL
import torch
from PIL import Image, ImageDraw, ImageFont
from PIL import features as pillow_features
from torch import Tensor, nn

from workbench.steps import Steps, run

from . import networks
from .networks import Classifier, kept_steps, seeded, train_steps

CLASS_NAMES = tuple(chr(code) for code in range(33, 127))
N_CLASSES = len(CLASS_NAMES)
SIZE = 28
OVERSAMPLING = 3
MEAN, STD = 0.45, 0.15
EPOCHS = 8
WIDE_FEATURES = 3136
DEEP_FEATURES = 128
TRAINING, HELD_OUT = (40, 0), (6, 1)  # images for each class, seed of the rendering
_MAPS = 49  # sites of a feature map of the wide network, 7 x 7


@cache
def _font(points: int) -> ImageFont.FreeTypeFont:
    """The built-in scalable font; OSError when Pillow was built without FreeType."""
    if not pillow_features.check("freetype2"):
        raise OSError(
            "this Pillow has no FreeType, so no scalable font: install a Pillow wheel from PyPI "
            "(pip install --force-reinstall pillow)"
        )
    return ImageFont.load_default(size=points)


def _glyph(character: str, rng: np.random.Generator) -> np.ndarray:
    """One image (28, 28) of a character, distorted at random."""
    canvas = SIZE * OVERSAMPLING
    font = _font(round(canvas * rng.uniform(0.72, 0.88)))
    image = Image.new("L", (canvas, canvas))
    middle = (canvas / 2, canvas / 2)
    stroke = int(rng.integers(2))
    ImageDraw.Draw(image).text(middle, character, 255, font=font, anchor="mm", stroke_width=stroke)
    angle = np.deg2rad(rng.uniform(-10, 10))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shear = np.array([[1, rng.uniform(-0.15, 0.15)], [0, 1]])
    back = np.linalg.inv(turn @ shear @ np.diag(rng.uniform(0.88, 1.12, 2)))
    shift = rng.uniform(-1.5, 1.5, 2) * OVERSAMPLING
    offset = middle - back @ (middle + shift)  # Pillow wants the map from output to input
    affine = (*back[0], offset[0], *back[1], offset[1])
    image = image.transform(image.size, Image.Transform.AFFINE, affine, Image.Resampling.BILINEAR)
    ink = np.asarray(image.reduce(OVERSAMPLING), np.float64) / 255
    paper, contrast = rng.uniform(0.3, 0.4), rng.uniform(0.25, 0.4)
    return np.clip(paper + contrast * ink + rng.normal(0, 0.02, ink.shape), 0, 1)


def glyph94(n_per_class: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Render Glyph-94: images (94 n_per_class, 1, 28, 28) in [0, 1] and labels, about 1 ms each.

    Class by class, in the order of `CLASS_NAMES`. Seed 0 trains the networks; `held_out_glyphs`
    is seed 1. OSError when Pillow was built without FreeType.
    """
    if n_per_class < 1:
        raise ValueError(f"n_per_class = {n_per_class}; allowed is >= 1")
    rng = np.random.default_rng(seed)
    images = [_glyph(c, rng) for c in CLASS_NAMES for _ in range(n_per_class)]
    labels = torch.arange(N_CLASSES).repeat_interleave(n_per_class)
    return torch.from_numpy(np.stack(images)).float().unsqueeze(1), labels


@cache
def _rendered(n_per_class: int, seed: int) -> tuple[Tensor, Tensor]:
    return glyph94(n_per_class, seed)


def training_glyphs() -> tuple[Tensor, Tensor]:
    """The 3,760 glyphs that train, and their labels; rendered once in a process."""
    images, labels = _rendered(*TRAINING)
    return images.clone(), labels.clone()


def held_out_glyphs() -> tuple[Tensor, Tensor]:
    """The 564 glyphs that no network is trained on, and labels; rendered once in a process."""
    images, labels = _rendered(*HELD_OUT)
    return images.clone(), labels.clone()


def wide_network(features: int = WIDE_FEATURES, seed: int = 0) -> Classifier:
    """The untrained wide network: two strided convolutions, whose 7 x 7 maps are the features.

    features: a multiple of 49, 64 maps at the default; fewer for the sweep over width.
    """
    if features < _MAPS or features % _MAPS:
        near = max(_MAPS, _MAPS * round(features / _MAPS))
        raise ValueError(f"features = {features}; allowed are multiples of {_MAPS}, nearest {near}")
    with seeded(seed):
        body = nn.Sequential(
            nn.Conv2d(1, 32, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv2d(32, features // _MAPS, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Flatten(),
        )
        return Classifier(body, features, N_CLASSES, MEAN, STD)


def deep_network(features: int = DEEP_FEATURES, seed: int = 0) -> Classifier:
    """The untrained deeper network with few features: three convolutions and a hidden layer."""
    if features < 1:
        raise ValueError(f"features = {features}; allowed is >= 1")
    with seeded(seed):
        body = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.GELU(),
            nn.AvgPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.GELU(),
            nn.AvgPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(64 * _MAPS, features),
            nn.GELU(),
        )
        return Classifier(body, features, N_CLASSES, MEAN, STD)


def glyph_model_steps(
    seed: int = 0, features: int | None = None, deep: bool = False
) -> Steps[Classifier]:
    """A trained network: 8 epochs, or its kept weights; a generator of steps.

    features: width of what the last layer sees; None for the network's own. deep: the deeper
    network instead of the wide one.
    """
    build, own = (deep_network, DEEP_FEATURES) if deep else (wide_network, WIDE_FEATURES)
    width = own if features is None else features
    untrained = build(width, seed)

    def train() -> Steps[nn.Module]:
        return train_steps(build(width, seed), *training_glyphs(), EPOCHS, seed=seed)

    pillow = PIL.__version__, pillow_features.version("freetype2")
    depends = [Path(__file__), Path(networks.__file__), pillow, seed, width, deep]
    name = f"glyphs-{'deep' if deep else 'wide'}-{width}-{seed}"
    return kept_steps(name, untrained, train, depends)


def load_glyph_model(seed: int = 0, features: int | None = None, deep: bool = False) -> Classifier:
    """`glyph_model_steps`, run to the end: the wide network reads 92-94 % of held-out glyphs."""
    return run(glyph_model_steps(seed, features, deep))
