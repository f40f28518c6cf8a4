"""The papers' own data: what there is, where it lives, and how it gets there.

Nothing is downloaded unless it is asked for. `fetch` brings a data set into the user's cache,
`files_of` gives its verified files or says in one line what to do. A file that was put into the
cache by hand is as good as a downloaded one. pooch keeps and verifies the files, `downloads` brings
them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from workbench import downloads
from workbench.parameters import nearest

RECORDED = ".sha256"  # of a file whose checksum was not known before it came


class DataError(OSError):
    """Data cannot be had, or are not what they should be; the message is one line."""

    def _render_traceback_(self) -> list[str]:
        # IPython shows this instead of a stack of frames that say nothing to the user.
        return [f"{type(self).__name__}: {self}"]


class DataMissing(DataError, FileNotFoundError):
    """A data set is not in the cache and nobody asked for its download."""


@dataclass(frozen=True)
class File:
    """One file of a data set. size: bytes; sha256: 64 hexadecimal digits; None where unknown."""

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class DataSet:
    """Real data that a paper used, as one or more files."""

    name: str
    method: str
    title: str
    license: str
    files: tuple[File, ...]

    @property
    def folder(self) -> Path:
        """Where its files are, or would be."""
        return cache_folder() / self.name

    @property
    def size(self) -> int | None:
        """Bytes of all files; None if that of one is unknown."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(sizes)

    def path(self, file: File) -> Path:
        """Where one of its files is, or would be."""
        return self.folder / file.name

    def has(self, file: File) -> bool:
        """Whether a file of the right size is there; its content is verified when it is used."""
        path = self.path(file)
        return path.is_file() and file.size in (None, path.stat().st_size)

    @property
    def present(self) -> bool:
        """Whether all files are there."""
        return all(self.has(file) for file in self.files)

    def describe(self) -> dict[str, Any]:
        """What is known of it, as plain values."""
        files = [
            {
                **vars(file),
                "recorded_sha256": _recorded(self.path(file)),
                "path": str(self.path(file)),
                "present": self.has(file),
            }
            for file in self.files
        ]
        return {
            "name": self.name, "method": self.method, "title": self.title,
            "license": self.license, "size": self.size, "present": self.present, "files": files,
        }  # fmt: skip


def _mnist(name: str, size: int, sha256: str) -> File:
    return File(name, f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}", size, sha256)


def _uci(folder: str, path: str) -> File:
    root = "https://archive.ics.uci.edu/ml/machine-learning-databases"
    return File(path.rsplit("/")[-1], f"{root}/{folder}/{path}")


_DOROTHEA = (
    "DOROTHEA/dorothea_train.data", "DOROTHEA/dorothea_train.labels",
    "DOROTHEA/dorothea_valid.data", "dorothea_valid.labels",
)  # fmt: skip
# Addresses, sizes and checksums are those of public records that agree with each other (for MNIST
# torchvision's and TensorFlow Datasets'). What no record says is None, never a guess.
_IMAGENET = "trained on ImageNet, which is for non-commercial research"
DATA_SETS = (
    DataSet(
        "mnist",
        "neural_cpm",
        "MNIST: 60,000 + 10,000 handwritten digits, 28 x 28",
        "CC BY-SA 3.0 (Y. LeCun, C. Cortes)",
        (
            _mnist(
                "train-images-idx3-ubyte.gz",
                9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            _mnist(
                "train-labels-idx1-ubyte.gz",
                28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            _mnist(
                "t10k-images-idx3-ubyte.gz",
                1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            _mnist(
                "t10k-labels-idx1-ubyte.gz",
                4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
    ),
    DataSet(
        "cellular_digit",
        "neural_cpm",
        "One simulation of the authors, shaped by an MNIST digit: 20 frames, 100 x 100",
        "none stated: for your own study, not to be passed on",
        (
            File(
                "all_cpms_1.npz",
                "https://raw.githubusercontent.com/kminartz/NeuralCPM/"
                "ac642da3b94df62f7e8642b21a2e5407dd6be0be/data/unittest_data/all_cpms_1.npz",
                34_880,
                "28089dda6fe3a72cf1033ae0b4f9059233fe8f3120d14875327be07908a43d57",
            ),
        ),
    ),
    DataSet(
        "resnet50",
        "rising_attack",
        "ResNet-50, weights IMAGENET1K_V1 of torchvision",
        f"none stated for the weights; {_IMAGENET}",
        (
            File(
                "resnet50-0676ba61.pth",
                "https://download.pytorch.org/models/resnet50-0676ba61.pth",
                102_530_333,
                "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
            ),
        ),
    ),
    DataSet(
        "densenet121",
        "rising_attack",
        "DenseNet-121, weights IMAGENET1K_V1 of torchvision",
        f"none stated for the weights; {_IMAGENET}",
        (
            File(
                "densenet121-a639ec97.pth",
                "https://download.pytorch.org/models/densenet121-a639ec97.pth",
                32_342_954,
                "a639ec97d7c33b07ae66f0b5fb7d0192f95a3b11b7576c66c0126c2a727c4395",
            ),
        ),
    ),
    DataSet(
        "vit_base",
        "rising_attack",
        "ViT-B/16, weights augreg2_in21k_ft_in1k of timm",
        f"Apache-2.0; {_IMAGENET}",
        (
            File(
                "model.safetensors",
                "https://huggingface.co/timm/vit_base_patch16_224.augreg2_in21k_ft_in1k/resolve/"
                "063c6c38a5d8510b2e57df480445e94b231dad2c/model.safetensors",
                346_284_714,
                "32aa17d6e17b43500f531d5f6dc9bc93e56ed8841b8a75682e1bb295d722405b",
            ),
        ),
    ),
    DataSet(
        "deit_base",
        "rising_attack",
        "DeiT-B/16, weights fb_in1k of its authors",
        f"Apache-2.0; {_IMAGENET}",
        (
            File(
                "deit_base_patch16_224-b5f2ef4d.pth",
                "https://dl.fbaipublicfiles.com/deit/deit_base_patch16_224-b5f2ef4d.pth",
            ),
        ),
    ),
    DataSet(
        "dorothea",
        "sparse_glm",
        "DOROTHEA: 1,150 compounds, 100,000 binary features, active or not",
        "CC BY 4.0 (UCI Machine Learning Repository; DuPont Pharmaceuticals)",
        tuple(_uci("dorothea", path) for path in _DOROTHEA),
    ),
)


def cache_folder() -> Path:
    """The user's data folder: `$WORKBENCH_DATA`, or the platform's cache folder."""
    import platformdirs

    return Path(os.environ.get("WORKBENCH_DATA") or platformdirs.user_cache_path("workbench"))


def find(name: str) -> DataSet:
    """The data set called `name` (hyphens or underscores); ValueError names the nearest."""
    known = {data_set.name: data_set for data_set in DATA_SETS}
    found = known.get(name.replace("-", "_").lower())
    if found is None:
        hint = nearest(name, known) or f"; there are: {', '.join(known)}"
        raise ValueError(f"unknown data set '{name}'{hint}")
    return found


def files_of(name: str, download: bool = False) -> dict[str, Path]:
    """The files of a data set by name, each verified; with `download`, fetched if need be.

    Without it nothing touches the network: DataMissing (a FileNotFoundError) says how to get what
    is absent, DataError that a file is not what it should be.
    """
    return fetch(name) if download else _verified(find(name))


def fetch(name: str, progress: bool = True) -> dict[str, Path]:
    """Download what the cache lacks of a data set and verify it: its files by name.

    An interrupted download goes on where it stopped; other processes that want the same wait. A
    file appears under its name only when complete and verified. The checksum of a file that has
    none in the registry is recorded when it comes, and verified from then on. Raises DataError.
    """
    data_set = find(name)
    with suppress(DataError):
        return _verified(data_set)
    with _locked(data_set, progress):
        for file in data_set.files:
            _fetch(data_set, file, progress)
    return _verified(data_set)


def held(data_set: DataSet) -> dict[Path, int]:
    """What the cache holds of a data set, parts too, with sizes in bytes; never other files."""
    if data_set.folder.is_symlink():  # it leads to a place that is not the cache's
        return {}
    names = [f.name + end for f in data_set.files for end in ("", *downloads.ENDINGS, RECORDED)]
    found = [data_set.folder / name for name in names]
    return {p: p.lstat().st_size for p in found if p.is_symlink() or p.is_file()}


def clean(data_set: DataSet) -> int:
    """Remove what the cache holds of a data set; the bytes freed."""
    freed = 0
    if held(data_set):
        with _locked(data_set):
            for path, size in held(data_set).items():
                path.unlink()
                freed += size
            with suppress(OSError):  # something else is in it
                data_set.folder.rmdir()
    return freed


def size_text(size: int | None) -> str:
    """Bytes for people, in decimal units."""
    if size is None:
        return "size unknown"
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _verified(data_set: DataSet) -> dict[str, Path]:
    import pooch

    found = {}
    for file in data_set.files:
        path = data_set.path(file)
        if not path.is_file():
            raise DataMissing(
                f"{path} is absent: `workbench data fetch {data_set.name}` downloads it "
                f"({size_text(data_set.size)}; license: {data_set.license})"
            )
        known, came = file.sha256 or _recorded(path), pooch.file_hash(str(path))
        if came != (known or came):
            raise DataError(
                f"{path} has SHA-256 {came}, expected is {known}: "
                f"`workbench data fetch {data_set.name}` replaces it"
            )
        if known is None:
            _record(path, came)
        found[file.name] = path
    return found


def _recorded(path: Path) -> str | None:
    """The checksum that a file had when it was first seen, in the format of `sha256sum`."""
    try:
        return Path(f"{path}{RECORDED}").read_text(encoding="utf-8").split()[0]
    except (OSError, IndexError):
        return None


def _record(path: Path, sha256: str) -> None:
    from workbench import files

    with suppress(ValueError):  # a folder that is shared and read-only
        files.write(f"{path}{RECORDED}", f"{sha256}  {path.name}\n")


@contextmanager
def _locked(data_set: DataSet, progress: bool = False) -> Iterator[None]:
    """One process at a time fetches or cleans a data set; a killed one leaves no lock behind."""
    from filelock import FileLock, Timeout

    path = cache_folder() / ".locks" / f"{data_set.name}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        data_set.folder.mkdir(exist_ok=True)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if progress:
                print(f"waiting for another process at {data_set.name}", file=sys.stderr)
            lock.acquire()
    except OSError as error:
        raise DataError(
            f"cannot write to {data_set.folder}: {error.strerror}; WORKBENCH_DATA names another "
            "folder"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _fetch(data_set: DataSet, file: File, progress: bool) -> None:
    """Bring one file into the cache, or raise DataError with what to do."""
    import pooch
    import requests

    path, host = data_set.path(file), urlsplit(file.url).hostname
    known = file.sha256 or _recorded(path)
    part = Path(f"{path}{downloads.PART}")
    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            file.url, known and f"sha256:{known}", file.name, data_set.folder,
            downloader=partial(
                downloads.resume, part=part, size=file.size, checked=bool(known), progress=progress
            ),
        )  # fmt: skip
        return
    except requests.HTTPError as error:
        reason = f"{host} answered {error.response.status_code} {error.response.reason}"
    except requests.Timeout:
        reason = f"{host} did not answer within {downloads.TIMEOUT_S:g} s"
    except requests.exceptions.ChunkedEncodingError:
        reason = f"the connection to {host} was lost"
    except requests.RequestException:
        reason = f"no connection to {host}"
    except ValueError:  # pooch's word for a checksum that is another; it has removed the file
        reason = f"what came from {host} does not have SHA-256 {known} and was discarded"
    except OSError as error:
        reason = error.strerror or str(error)
    got = downloads.size_of(part)
    kept = f"; {size_text(got)} are kept and the next fetch goes on from there" if got else ""
    raise DataError(
        f"cannot download {file.name}: {reason}{kept}. Without network, get {file.url} elsewhere, "
        f"save it as {path} and run `workbench data fetch {data_set.name}`, which verifies it"
    )
