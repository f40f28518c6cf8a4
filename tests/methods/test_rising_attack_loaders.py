"""The user's own model and images: preprocessing inside, features found, mistakes named."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from workbench.data import DataMissing, cache_folder
from workbench.methods.rising_attack import loaders, peers
from workbench.methods.rising_attack.attacks import attack
from workbench.methods.rising_attack.loaders import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    bundled_images,
    image_folder,
    imagenet_names,
    load_image,
    load_model,
    wrap_model,
)
from workbench.methods.rising_attack.ranking import random_targets


def tiny(seed=0):
    """A module as torchvision's are: convolution, batch norm, pool, dropout, linear."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(128, 12),
    )


def test_preprocessing_happens_inside_and_the_model_is_in_evaluation_mode():
    module = tiny()
    model = wrap_model(module)
    assert not model.training and not module.training
    x = torch.rand(2, 3, 32, 32)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (IMAGENET_MEAN, IMAGENET_STD))
    assert torch.allclose(model(x), module((x - mean) / std))
    assert torch.equal(wrap_model(module, 0.0, 1.0)(x), module(x))


def test_features_and_head_of_a_wrapped_module_give_its_logits():
    model, x = wrap_model(tiny()), torch.rand(2, 3, 32, 32)
    assert model.feats(x).shape == (2, 128)
    assert torch.equal(model.head(model.feats(x)), model(x))
    assert len(list(model.parameters())) == len(list(tiny().parameters()))  # none counted twice
    (gradient,) = torch.autograd.grad(model.feats(x.requires_grad_()).sum(), [x])
    assert gradient.abs().sum() > 0


def test_a_module_without_a_linear_last_layer_says_so():
    convolutional = nn.Sequential(nn.Conv2d(3, 4, 8), nn.Flatten())
    model = wrap_model(convolutional, 0.0, 1.0)
    assert model.head is None
    with pytest.raises(ValueError, match="no linear layer"):
        model.feats(torch.rand(1, 3, 8, 8))
    scaled = wrap_model(nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.Tanh()), 0.0, 1.0)
    with pytest.raises(ValueError, match=r"does not give its logits.*'rising' and 'cw'"):
        scaled.feats(torch.rand(1, 3, 2, 2))


@pytest.mark.parametrize("method", ["rising", "quad", "cw", "ad"])
def test_every_attack_runs_on_a_wrapped_module(method):
    model, x = wrap_model(tiny()), torch.rand(2, 3, 32, 32, generator=torch.Generator())
    targets = random_targets(model(x).argmax(1), 2, 12)
    options = {} if method == "rising" else {"lr": 0.1}
    result = attack(model, x, targets, method, iters=15, **options)
    with torch.no_grad():
        first = model(x + result.delta).topk(2).indices
    assert torch.equal(first[result.success], targets[result.success])
    assert result.success.any()
    if method == "rising":
        assert result.success.all()


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        (0.5, 0.0, "std = 0.0; allowed are numbers > 0"),
        (float("nan"), 1.0, "mean = nan"),
        ((0.1, 0.2), (1.0, 1.0, 1.0), "mean has 2 channels but std 3"),
    ],
)
def test_bad_preprocessing_is_named(mean, std, message):
    with pytest.raises(ValueError, match=message):
        wrap_model(tiny(), mean, std)
    with pytest.raises(TypeError, match=r"must be a torch.nn.Module, got str"):
        wrap_model("resnet50")


@pytest.fixture
def pictures(tmp_path):
    """Two classes of pictures: a red wide one and a blue tall one, and a file that is none."""
    for name, color, size in [("cat", (255, 0, 0), (40, 20)), ("dog", (0, 0, 255), (20, 40))]:
        (tmp_path / name).mkdir()
        for number in range(3):
            Image.new("RGB", size, color).save(tmp_path / name / f"{number}.png")
        (tmp_path / name / "notes.txt").write_text("no picture")
    return tmp_path


def test_an_image_is_resized_cut_and_scaled(pictures, tmp_path):
    image = load_image(pictures / "cat" / "0.png", size=16)
    assert image.shape == (3, 16, 16) and image.dtype == torch.float32
    assert torch.equal(image.amax((1, 2)), torch.tensor([1.0, 0, 0]))
    assert load_image(pictures / "cat" / "0.png", size=16, gray=True).shape == (1, 16, 16)
    assert load_image(pictures / "cat" / "0.png", size=None).shape == (3, 20, 40)
    # The middle is kept: a white stripe in the center of a black picture.
    stripe = np.zeros((64, 128), np.uint8)
    stripe[:, 60:68] = 255
    Image.fromarray(stripe).save(tmp_path / "stripe.png")
    columns = load_image(tmp_path / "stripe.png", size=56, gray=True)[0].mean(0)
    assert columns[24:32].min() > 0.9 and columns[:20].max() == 0


def test_a_folder_gives_images_labels_and_names(pictures):
    images, labels, names = image_folder(pictures, size=16)
    assert images.shape == (6, 3, 16, 16) and labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert names == ("cat", "dog")
    assert image_folder(pictures, size=16, n=1)[1].tolist() == [0, 1]


def test_files_and_folders_that_do_not_fit_are_named(pictures, tmp_path):
    with pytest.raises(OSError, match=r"notes.txt is no picture"):
        load_image(pictures / "cat" / "notes.txt")
    with pytest.raises(FileNotFoundError):
        load_image(tmp_path / "absent.png")
    with pytest.raises(ValueError, match="is no folder"):
        image_folder(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no pictures"):
        image_folder(tmp_path / "empty")
    with pytest.raises(ValueError, match="size = 0"):
        load_image(pictures / "cat" / "0.png", size=0)


@pytest.mark.parametrize(
    ("name", "message"),
    [("resnet5", "did you mean 'resnet50'"), ("timm/", "timm/NAME"), ("keras/x", "allowed are")],
)
def test_an_unknown_model_is_answered_with_what_is_allowed(name, message):
    with pytest.raises(ValueError, match=message):
        load_model(name)


class Dense(nn.Module):
    """A module whose weights have the names of DenseNet's, and those in its file."""

    def __init__(self):
        super().__init__()
        self.denselayer1 = nn.ModuleDict({"norm1": nn.BatchNorm2d(3), "conv2": nn.Conv2d(3, 3, 1)})
        self.classifier = nn.Linear(3, 12)

    def file(self):
        names = {"norm1": "norm.1", "conv2": "conv.2"}
        state = self.state_dict()
        for name, old in names.items():
            state = {key.replace(f".{name}.", f".{old}."): value for key, value in state.items()}
        return state


def fake_torchvision(error=None):
    def get_model(name, weights):
        if weights and error:
            raise error
        return Dense() if name == "densenet121" else tiny()

    transforms = SimpleNamespace(
        mean=[0.4, 0.5, 0.6], std=[0.2, 0.2, 0.3], crop_size=[32], resize_size=[40],
        interpolation=SimpleNamespace(value="bicubic"),
    )  # fmt: skip
    version = SimpleNamespace(transforms=lambda: transforms)
    weights = SimpleNamespace(IMAGENET1K_V1=version, DEFAULT=version)
    models = SimpleNamespace(
        list_models=lambda module: ["resnet50", "densenet121"], get_model=get_model,
        get_model_weights=lambda name: weights,
    )  # fmt: skip
    return SimpleNamespace(models=models)


def test_weights_that_cannot_be_downloaded_are_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", fake_torchvision(OSError("no route to host")))
    with pytest.raises(OSError, match=r"resnet50' could not be loaded.*no route.*weights=False"):
        load_model("torchvision/resnet50", download=True)
    model = load_model("resnet50", weights=False)
    assert model(torch.rand(1, 3, 32, 32)).shape == (1, 12)
    with pytest.raises(ValueError, match="did you mean 'torchvision/resnet50'"):
        load_model("torchvision/resnet5")


@pytest.fixture
def in_cache(monkeypatch, tmp_path):
    """Stand-ins for the published weights, in a data cache."""
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path / "cache"))
    files = {}

    def put(name, state):
        files[name] = cache_folder() / f"{name}.pth"
        files[name].parent.mkdir(exist_ok=True)
        torch.save(state, files[name])

    put("resnet50", tiny(seed=1).state_dict())
    put("densenet121", Dense().file())
    put("vit_base", {"model": tiny(seed=1).state_dict()})
    monkeypatch.setattr(loaders, "files_of", lambda name, download: {"file": files[name]})
    return files


def test_weights_of_the_papers_networks_come_from_the_data_cache(monkeypatch, in_cache):
    monkeypatch.setitem(sys.modules, "torchvision", fake_torchvision(OSError("downloads")))
    monkeypatch.setitem(sys.modules, "timm", fake_timm())
    for name in ("resnet50", "vit_base"):
        assert torch.equal(load_model(name).head.weight, tiny(seed=1)[-1].weight)
        assert not torch.equal(load_model(name, weights=False).head.weight, tiny(1)[-1].weight)
    dense, stored = load_model("densenet121").module, torch.load(in_cache["densenet121"])
    assert torch.equal(dense.denselayer1["conv2"].weight, stored["denselayer1.conv.2.weight"])
    assert torch.equal(dense.denselayer1["norm1"].bias, stored["denselayer1.norm.1.bias"])
    torch.save({"other": torch.zeros(1)}, in_cache["resnet50"])
    with pytest.raises(OSError, match=r"'resnet50' could not be loaded.*weights=False"):
        load_model("resnet50")


def test_other_weights_are_downloaded_by_their_library_only_when_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", fake_torchvision(OSError("downloads")))
    with pytest.raises(DataMissing, match="download=True"):
        load_model("torchvision/resnet50")
    monkeypatch.setitem(sys.modules, "torchvision", fake_torchvision())
    assert load_model("torchvision/resnet50", download=True).head.out_features == 12


def fake_timm():
    def create_model(name, pretrained, pretrained_cfg_overlay):
        module = tiny()
        if pretrained:
            state = torch.load(pretrained_cfg_overlay["file"], weights_only=True)
            module.load_state_dict(state["model"])
        module.default_cfg = {
            "mean": (0.5,) * 3, "std": (0.25,) * 3, "input_size": (3, 48, 48), "crop_pct": 0.9,
            "interpolation": "bicubic",
        }  # fmt: skip
        return module

    return SimpleNamespace(list_models=lambda: ["vit_base_patch16_224"], create_model=create_model)


def test_a_model_brings_how_its_pictures_are_normalized_and_cut(monkeypatch, pictures, in_cache):
    monkeypatch.setitem(sys.modules, "torchvision", fake_torchvision())
    monkeypatch.setitem(sys.modules, "timm", fake_timm())
    expected = {
        "resnet50": ([0.4, 0.5, 0.6], {"size": 32, "crop": 0.8, "interpolation": "bicubic"}),
        "vit_base": ([0.5] * 3, {"size": 48, "crop": 0.9, "interpolation": "bicubic"}),
    }
    for name, (mean, cut) in expected.items():
        model = load_model(name)
        assert model.mean.flatten().tolist() == pytest.approx(mean) and model.picture == cut
        image = load_image(pictures / "cat" / "0.png", **model.picture)
        assert image.shape == (3, cut["size"], cut["size"])
        assert image_folder(pictures, n=1, **model.picture)[0].shape == (2, *image.shape)
    assert wrap_model(tiny()).picture == {"size": 224, "crop": 0.875, "interpolation": "bilinear"}


def test_crop_and_interpolation_are_obeyed(tmp_path):
    ramp = np.tile(np.arange(0, 256, 4, np.uint8), (64, 1))
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    span = {}
    for crop in (1.0, 0.5):
        row = load_image(tmp_path / "ramp.png", 32, gray=True, crop=crop)[0, 0]
        span[crop] = float(row[-1] - row[0])
    assert span[0.5] == pytest.approx(span[1.0] / 2, rel=0.05)
    sharp = load_image(tmp_path / "ramp.png", 32, True, 0.5, interpolation="nearest")
    assert set((255 * sharp).round().int().unique().tolist()) <= set(ramp.ravel().tolist())
    with pytest.raises(ValueError, match="crop = 0; allowed is > 0 and <= 1"):
        load_image(tmp_path / "ramp.png", crop=0)
    with pytest.raises(ValueError, match="did you mean 'bicubic'"):
        load_image(tmp_path / "ramp.png", interpolation="bicubi")


@pytest.mark.parametrize(
    ("name", "library", "install"),
    [("resnet50", "torchvision", r"workbench\[vision\]"), ("vit_base", "timm", "install timm")],
)
def test_a_missing_library_is_said_with_what_to_install(monkeypatch, name, library, install):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        ImportError, match=f"{library} is missing: pip install.*{install}|{install}"
    ):
        load_model(name)


def test_torchvision_gives_a_model_and_the_names_of_imagenet():
    pytest.importorskip("torchvision")
    assert load_model("torchvision/resnet18", weights=False).head.out_features == 1000
    names = imagenet_names()
    assert len(names) == 1000 and names[0] == "tench"


def test_timm_gives_a_model_with_its_own_preprocessing():
    pytest.importorskip("timm")
    model = load_model("timm/vit_tiny_patch16_224", weights=False)
    assert torch.allclose(model.mean.flatten(), torch.tensor(model.module.default_cfg["mean"]))


@pytest.mark.skipif(not peers.available(), reason="foolbox is not installed")
@pytest.mark.parametrize(
    ("dataset", "shape"), [("imagenet", (3, 224, 224)), ("mnist", (1, 28, 28))]
)
def test_foolbox_brings_real_pictures(dataset, shape):
    images, labels = bundled_images(dataset, 4)
    assert images.shape == (4, *shape) and 0 <= images.min() and images.max() <= 1
    assert labels.shape == (4,) and labels.dtype == torch.int64
    with pytest.raises(ValueError, match="did you mean 'mnist'"):
        bundled_images("mnits")
    with pytest.raises(ValueError, match="n = 21"):
        bundled_images("mnist", 21)
