"""The user's own model and images: torchvision, timm or any module, and picture files.

Attacks work on images in [0, 1] and want preprocessing inside the model: `wrap_model` puts it
there. Nothing is downloaded unless it is asked for (`workbench data fetch`); torchvision, timm and
foolbox are optional. For testing models that you own or may test.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor, nn

from workbench.data import DataMissing, files_of
from workbench.numerics.checks import choice

from ._checks import number, whole
from .peers import foolbox

# How pictures are cut for ImageNet networks, as `load_image` takes it.
PICTURE: dict[str, Any] = {"size": 224, "crop": 0.875, "interpolation": "bilinear"}
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# The paper's four networks, data sets of the data cache: library, name there, weights.
PAPER_MODELS = {
    "resnet50": ("torchvision", "resnet50", "IMAGENET1K_V1"),
    "densenet121": ("torchvision", "densenet121", "IMAGENET1K_V1"),
    "vit_base": ("timm", "vit_base_patch16_224", "pretrained"),
    "deit_base": ("timm", "deit_base_patch16_224", "pretrained"),
}
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")
BUNDLED = ("imagenet", "cifar10", "cifar100", "mnist", "fashionMNIST")  # in the foolbox wheel


class Wrapped(nn.Module):
    """A model with its preprocessing inside: images (B, C, H, W) in [0, 1] -> logits.

    Where the last linear layer is found, `head` is that layer and `feats(x)` what it sees, so that
    QuadAttacK and AD apply; `head` is None otherwise. `picture` says how pictures are cut for it:
    `load_image(path, **model.picture)`.
    """

    def __init__(
        self, module: nn.Module, mean: Sequence[float] | float, std: Sequence[float] | float
    ):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))
        self.module = module
        self.picture = dict(PICTURE)
        linear = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
        # Not registered a second time: its weights are the module's.
        self.__dict__["head"] = linear[-1] if linear else None

    def forward(self, x: Tensor) -> Tensor:
        return self.module((x - self.mean) / self.std)

    def feats(self, x: Tensor) -> Tensor:
        """Features (B, F) with `head(feats(x)) == self(x)`; ValueError if the module has none."""
        if self.head is None:
            raise ValueError(f"{type(self.module).__name__} has no linear layer, so no features")
        seen: list[Tensor] = []
        hook = self.head.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        try:
            logits = self(x)
        finally:
            hook.remove()
        if len(seen) != 1 or not torch.equal(self.head(seen[0]), logits):
            raise ValueError(
                f"the last linear layer of {type(self.module).__name__} does not give its logits; "
                "methods 'rising' and 'cw' work without features"
            )
        return seen[0]


def wrap_model(
    module: nn.Module,
    mean: Sequence[float] | float = IMAGENET_MEAN,
    std: Sequence[float] | float = IMAGENET_STD,
) -> Wrapped:
    """Any module returning logits, with (x - mean) / std inside, in evaluation mode.

    mean, std: one number, or one for each channel, in units of [0, 1]; ImageNet's by default.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {type(module).__name__}")
    deviations = np.atleast_1d(np.asarray(std, float))
    if not (np.isfinite(deviations).all() and (deviations > 0).all()):
        raise ValueError(f"std = {std}; allowed are numbers > 0")
    if not np.isfinite(np.asarray(mean, float)).all():
        raise ValueError(f"mean = {mean}; allowed are finite numbers")
    if np.size(mean) > 1 and np.size(std) > 1 and np.size(mean) != np.size(std):
        raise ValueError(f"mean has {np.size(mean)} channels but std {np.size(std)}")
    return Wrapped(module, mean, std).eval()


def load_model(name: str, weights: bool = True, download: bool = False) -> Wrapped:
    """A classifier by name, preprocessing inside, from torchvision or timm.

    name: one of the paper's ("resnet50", "densenet121", "vit_base", "deit_base"), or
    "torchvision/NAME" or "timm/NAME". weights: trained ones, or False for random ones. Those of
    the paper's networks come from the data cache, others from the library, which keeps a cache of
    its own. download: whether the network may be used; without it, FileNotFoundError says how to
    get weights that are absent. Normalization, size, crop and interpolation are those that the
    library names for the weights. ImportError without the library, OSError if a download fails.
    """
    library, given, version = _resolve(name)
    package = _library(library)
    if library == "torchvision":
        models = package.models
        known = models.list_models(module=models)
        _known(name, given, known, library)
        version = version or "DEFAULT"

        def build() -> nn.Module:
            module = models.get_model(given, weights=version if weights and not file else None)
            if file:
                state = torch.load(file, map_location="cpu", weights_only=True)
                module.load_state_dict(
                    {_torchvision_key(key): value for key, value in state.items()}
                )
            return module
    else:
        _known(name, given, package.list_models(), library)

        def build() -> nn.Module:
            overlay = {"file": str(file)} if file else None
            return package.create_model(given, pretrained=weights, pretrained_cfg_overlay=overlay)

    file = _weights_file(name, download) if weights else None
    try:
        module = build()
    except Exception as error:  # each library and each network error has a type of its own
        if not weights:
            raise
        raise OSError(
            f"the weights of {name!r} could not be loaded ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no message'}). Offline: "
            "load_model(name, weights=False), or wrap_model with your own"
        ) from error
    if library == "timm":
        trained = module.default_cfg
        model = wrap_model(module, trained["mean"], trained["std"])
        size, crop, how = trained["input_size"][-1], trained["crop_pct"], trained["interpolation"]
    else:
        trained = getattr(models.get_model_weights(given), version).transforms()
        model = wrap_model(module, trained.mean, trained.std)
        (size,), (whole_side,) = trained.crop_size, trained.resize_size
        crop, how = size / whole_side, trained.interpolation.value
    model.picture = {"size": size, "crop": crop, "interpolation": how}
    return model


def _weights_file(name: str, download: bool) -> Path | None:
    """The file with the weights of one of the paper's networks; None for others, if allowed."""
    if name in PAPER_MODELS:
        return next(iter(files_of(name, download).values()))
    if not download:
        raise DataMissing(
            f"the weights of {name!r} are not in the data cache: load_model({name!r}, "
            "download=True) lets its library download them, weights=False does without"
        )
    return None


def _torchvision_key(key: str) -> str:
    """The name of a weight today; the file of DenseNet-121 has dots that are no longer allowed."""
    return re.sub(r"(denselayer\d+\.(?:norm|conv))\.([12])\.", r"\1\2.", key)


def _resolve(name: str) -> tuple[str, str, str | None]:
    if name in PAPER_MODELS:
        return PAPER_MODELS[name]
    library, _, given = name.partition("/")
    if library in ("torchvision", "timm") and given:
        return library, given, None
    near = get_close_matches(name, PAPER_MODELS, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"name = {name!r}; allowed are {', '.join(PAPER_MODELS)}, torchvision/NAME and "
        f"timm/NAME{hint}"
    )


def _known(name: str, given: str, known: Sequence[str], library: str) -> None:
    if given not in known:
        near = get_close_matches(given, known, 1)
        hint = f"; did you mean '{library}/{near[0]}'?" if near else ""
        raise ValueError(f"name = {name!r}; {library} has {len(known)} models, not this one{hint}")


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        install = "pip install workbench[vision]" if name == "torchvision" else "pip install timm"
        raise ImportError(f"{name} is missing: {install}") from error


def load_image(
    path: str | Path,
    size: int | None = 224,
    gray: bool = False,
    crop: float = 0.875,
    interpolation: str = "bilinear",
) -> Tensor:
    """A picture file as (3, size, size) in [0, 1], or (1, size, size) with `gray`.

    The shorter side is resized to size / crop (256 for 224, as usual for ImageNet) and the middle
    is cut out; size=None keeps the picture as it is. interpolation: "nearest", "bilinear",
    "bicubic" or another of Pillow's. OSError for what is no picture.
    """
    if size is not None:
        whole("size", size, 1)
    number("crop", crop, 0, 1, above=True)
    choice("interpolation", interpolation, [kind.name.lower() for kind in Image.Resampling])
    try:
        with Image.open(path) as file:
            image = file.convert("L" if gray else "RGB")
    except UnidentifiedImageError as error:
        raise OSError(f"{path} is no picture that Pillow reads") from error
    if size is not None:
        scale = size / crop / min(image.size)
        width, height = (max(size, round(scale * side)) for side in image.size)
        image = image.resize((width, height), Image.Resampling[interpolation.upper()])
        left, top = (width - size) // 2, (height - size) // 2
        image = image.crop((left, top, left + size, top + size))
    values = torch.from_numpy(np.array(image, np.float32) / 255)
    return values.unsqueeze(0) if gray else values.permute(2, 0, 1).contiguous()


def image_folder(
    folder: str | Path, size: int = 224, n: int | None = None, gray: bool = False, **cut: Any
) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Pictures of a folder with one subfolder a class: (images, labels, class names).

    Classes are the subfolders, in sorted order, as in the ImageNet validation folder. n: at most
    so many of each class, the first by name. cut: crop and interpolation, as in `load_image`.
    """
    if n is not None:
        whole("n", n, 1)
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"folder = {str(folder)!r} is no folder")
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    images, labels = [], []
    for label, name in enumerate(names):
        files = sorted(p for p in (folder / name).iterdir() if p.suffix.lower() in SUFFIXES)
        images += [load_image(path, size, gray, **cut) for path in files[:n]]
        labels += [label] * len(files[:n])
    if not images:
        raise ValueError(
            f"folder = {str(folder)!r} holds no pictures; needed are subfolders, one a class, with "
            f"{', '.join(SUFFIXES)}"
        )
    return torch.stack(images), torch.tensor(labels), tuple(names)


def imagenet_names() -> tuple[str, ...]:
    """The 1,000 class names of ImageNet, in the order of the logits; needs torchvision."""
    _library("torchvision")
    weights = importlib.import_module("torchvision.models").ResNet50_Weights
    return tuple(weights.IMAGENET1K_V1.meta["categories"])


def bundled_images(dataset: str = "imagenet", n: int = 20) -> tuple[Tensor, Tensor]:
    """Real pictures that come with foolbox: images (n, C, H, W) in [0, 1] and labels (n,).

    dataset: "imagenet" (224 x 224), "cifar10", "cifar100", "mnist" or "fashionMNIST"; n up to 20.
    """
    choice("dataset", dataset, BUNDLED)
    whole("n", n, 1, 20)
    package = foolbox()
    # `samples` wants a model for its bounds and layout alone.
    model = package.PyTorchModel(nn.Flatten().eval(), bounds=(0, 1), device="cpu")
    images, labels = package.samples(model, dataset=dataset, batchsize=n)
    return images.float(), labels.long()
