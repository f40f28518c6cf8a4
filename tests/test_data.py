"""The data cache, against a server on loopback that misbehaves in every way the network does."""

import gzip
import hashlib
import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from workbench import catalog, data, downloads, notebooks
from workbench.cli import main
from workbench.data import DataError, DataMissing, DataSet, File
from workbench.methods.neural_cpm import loaders
from workbench.methods.rising_attack.loaders import PAPER_MODELS, load_model

CONTENT = np.random.default_rng(0).bytes(400_000)
HALF = len(CONTENT) // 2


class Handler(BaseHTTPRequestHandler):
    """Serves `server.content` with byte ranges; `server.fault` says what goes wrong."""

    def do_GET(self):
        server, content = self.server, self.server.content
        asked = self.headers.get("Range")
        server.asked.append(asked)
        fault = server.fault
        if fault == "absent":
            return self.send_error(404)
        start = 0
        same = self.headers.get("If-Range") in (None, server.etag)
        if asked and same and fault != "no ranges":
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
        if start and start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", "text/html" if fault == "page" else "application/gzip")
        if server.etag:
            self.send_header("ETag", server.etag)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if fault != "endless":
            self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = len(content)
        if fault in ("drop once", "drop", "stall", "no ranges"):
            end = start + (len(content) - start) // 2
            if fault == "drop once" and start:
                end = len(content)
        if fault == "drop" and start:
            end = start
        for place in range(start, end, 1 << 14):
            self.wfile.write(content[place : min(place + (1 << 14), end)])
            self.wfile.flush()
            time.sleep(server.pause_s)
        if fault == "stall":
            server.released.wait(30)
        if fault == "endless":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server on loopback and no proxy."""
    monkeypatch.setenv("NO_PROXY", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # of a client that went away
    server.content, server.fault, server.etag = CONTENT, None, '"one"'
    server.asked, server.pause_s, server.released = [], 0.0, threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}/toy.gz"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("WORKBENCH_DATA", str(folder))
    return folder


@pytest.fixture
def toy(monkeypatch, server, cache) -> DataSet:
    """A data set of one file at that server, beside the real ones."""
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    toy = DataSet(
        "toy", "neural_cpm", "Noise", "CC0", (File("toy.gz", server.url, len(CONTENT), sha256),)
    )
    monkeypatch.setattr(data, "DATA_SETS", (*data.DATA_SETS, toy))
    return toy


@pytest.fixture
def unknown(monkeypatch, toy) -> DataSet:
    """The same data set, size and checksum unknown."""
    unknown = replace(toy, files=(replace(toy.files[0], size=None, sha256=None),))
    monkeypatch.setattr(data, "DATA_SETS", (*data.DATA_SETS[:-1], unknown))
    return unknown


@pytest.fixture
def no_network(monkeypatch):
    """Any use of the network is an error that no library takes for being offline."""

    def refuse(*arguments, **_):
        raise AssertionError(f"the network was used: {arguments}")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def run(capsys, *words):
    """Exit code, standard output and standard error of `workbench data ...`."""
    code = main(["data", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def others(folder: Path) -> list[str]:
    """Names in a folder besides the data file."""
    return sorted(p.name for p in folder.iterdir() if p.name != "toy.gz")


# The registry


def test_the_cache_is_the_platforms_or_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("WORKBENCH_DATA", raising=False)
    assert data.cache_folder().name == "workbench"
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    assert data.cache_folder() == tmp_path


def test_every_data_set_says_what_it_is_and_where_it_comes_from():
    slugs = {method.slug for method in catalog.methods()}
    names = [data_set.name for data_set in data.DATA_SETS]
    assert len(set(names)) == len(names)
    for data_set in data.DATA_SETS:
        assert re.fullmatch(r"[a-z0-9_]+", data_set.name) and data_set.name not in slugs
        assert data_set.method in slugs and data_set.title and data_set.license
        for file in data_set.files:
            assert file.url.startswith("https://") and Path(file.name).name == file.name
            assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert file.size is None or file.size > 0
    assert set(PAPER_MODELS) <= set(names)


def test_weights_have_the_checksum_that_their_file_names_promise():
    """torchvision writes the first eight digits of SHA-256 into the names of its files."""
    for name in ("resnet50", "densenet121"):
        (file,) = data.find(name).files
        assert file.sha256.startswith(re.search(r"-([0-9a-f]{8})\.pth", file.name)[1])


def test_the_published_simulation_is_the_one_with_that_checksum():
    shared = Path(__file__).resolve().parents[2] / "shared/data/neural-cpm/cellular_mnist_sim1.npz"
    if not shared.exists():
        pytest.skip("the authors' file may not be passed on")
    (file,) = data.find("cellular_digit").files
    assert shared.stat().st_size == file.size
    assert hashlib.sha256(shared.read_bytes()).hexdigest() == file.sha256


# The command line


def test_list_for_people_and_programs(capsys, toy):
    code, out, _ = run(capsys, "list")
    assert code == 0
    assert str(data.cache_folder()) in out
    file = toy.files[0]
    for fact in ("toy", "neural_cpm", "CC0", "0.4 MB", file.url, file.sha256):
        assert fact in out
    assert "SHA-256 unknown, recorded on first use" in out, "DeiT's is not known"
    data.fetch("toy", progress=False)
    code, out, _ = run(capsys, "list", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert rows["toy"]["present"] and not rows["mnist"]["present"]
    assert rows["mnist"]["size"] == sum(file["size"] for file in rows["mnist"]["files"])
    assert set(rows["toy"]) == {
        "name", "method", "title", "license", "size", "present", "files",
    }  # fmt: skip
    assert set(rows["toy"]["files"][0]) == {
        "name", "url", "size", "sha256", "recorded_sha256", "path", "present",
    }  # fmt: skip


def test_where_prints_paths_for_scripts(capsys, toy, cache):
    assert run(capsys, "where") == (0, f"{cache}\n", "")
    code, out, err = run(capsys, "where", "toy")
    assert (code, out) == (0, f"{cache / 'toy' / 'toy.gz'}\n")
    assert "workbench data fetch toy" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fetch", "mnits"], "unknown data set 'mnits'; did you mean 'mnist'?"),
        (["where", "xyzzy"], "there are: mnist, cellular_digit"),
        (["clean", "mnits", "--yes"], "did you mean 'mnist'?"),
        (["clean"], "names of data sets, or --all"),
        (["clean", "mnist", "--all"], "not both"),
        (["fetch"], "required: NAME"),
        (["fetsh"], "unknown command 'fetsh'; did you mean 'fetch'?"),
        ([], "required: COMMAND"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, cache, no_network, words, says):
    code, out, err = run(capsys, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert not cache.exists()


def test_fetch_downloads_verifies_and_then_needs_no_network(capsys, toy, cache, server):
    code, out, err = run(capsys, "fetch", "toy")
    path = cache / "toy" / "toy.gz"
    assert (code, err) == (0, "")
    assert out == f"{path}  SHA-256 {toy.files[0].sha256}\n"
    assert path.read_bytes() == CONTENT
    assert others(path.parent) == []
    server.shutdown()
    assert run(capsys, "fetch", "toy")[0] == 0
    assert data.files_of("toy") == {"toy.gz": path}
    assert server.asked == [None], "one request in all"


def test_the_doctor_tells_of_the_cache(toy, tmp_path):
    from workbench import doctor

    data.fetch("toy", progress=False)
    (check,) = [c for c in doctor.examine(tmp_path) if c.name == "data cache"]
    assert check.ok and not check.needed
    assert check.detail == f"{data.cache_folder()}: toy"


# Resumable


def test_a_dropped_connection_is_continued_at_once(toy, cache, server):
    server.fault = "drop once"
    assert data.fetch("toy", progress=False)["toy.gz"].read_bytes() == CONTENT
    assert len(server.asked) == 2 and server.asked[1].startswith("bytes=")
    assert int(server.asked[1][6:-1]) > HALF - 2 * downloads.CHUNK_BYTES


def test_what_came_is_kept_and_the_next_fetch_goes_on_from_there(capsys, toy, cache, server):
    server.fault = "drop"
    code, out, err = run(capsys, "fetch", "toy")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "are kept and the next fetch goes on from there" in err and "lost" in err
    part = cache / "toy" / "toy.gz.part"
    kept = part.stat().st_size
    assert 0 < kept <= HALF and part.read_bytes() == CONTENT[:kept]
    assert not (cache / "toy" / "toy.gz").exists()
    assert not data.find("toy").present
    server.fault = None
    assert run(capsys, "fetch", "toy")[0] == 0
    assert server.asked[-1] == f"bytes={kept}-"
    assert (cache / "toy" / "toy.gz").read_bytes() == CONTENT
    assert others(cache / "toy") == []


def test_a_server_without_ranges_starts_over_and_does_not_loop(toy, cache, server):
    server.fault = "no ranges"
    with pytest.raises(DataError, match=r"the connection to 127\.0\.0\.1 was lost"):
        data.fetch("toy", progress=False)
    assert len(server.asked) == 2, "the second attempt brought no more than the first"
    server.fault = None
    server.etag = ""
    assert data.fetch("toy", progress=False)["toy.gz"].read_bytes() == CONTENT


def test_two_versions_of_a_file_are_never_mixed(unknown, cache, server):
    server.fault = "drop"
    with pytest.raises(DataError):
        data.fetch("toy", progress=False)
    server.fault, server.content, server.etag = None, CONTENT[::-1], '"two"'
    assert data.fetch("toy", progress=False)["toy.gz"].read_bytes() == CONTENT[::-1]


def test_without_version_and_checksum_a_download_starts_over(unknown, cache, server):
    server.fault, server.etag = "drop", ""
    with pytest.raises(DataError):
        data.fetch("toy", progress=False)
    server.fault = None
    data.fetch("toy", progress=False)
    assert server.asked[-1] is None


@pytest.mark.parametrize("extra", [b"", b"x"], ids=["complete", "too long"])
def test_a_part_that_was_complete_or_too_long_is_dealt_with(toy, cache, server, extra):
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "toy.gz.part").write_bytes(CONTENT + extra)
    assert data.fetch("toy", progress=False)["toy.gz"].read_bytes() == CONTENT
    assert len(server.asked) == (2 if extra else 0)


def test_a_terminal_sees_a_bar_that_starts_at_what_was_kept(toy, cache, server, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "toy.gz.part").write_bytes(CONTENT[:HALF])
    monkeypatch.setattr(sys, "stderr", Terminal())
    data.fetch("toy")
    shown = sys.stderr.getvalue()
    assert "toy.gz:  50%" in shown and "200k/400k" in shown
    assert "toy.gz: 100%" in shown and "400k/400k" in shown


# Whole or not at all

SCRIPT = """
import json, sys
from workbench import cli, data
name, method, title, license, files = json.loads(sys.argv[1])
files = tuple(data.File(*file) for file in files)
data.DATA_SETS = (data.DataSet(name, method, title, license, files),)
sys.exit(cli.main(["data", "fetch", "toy"]))
"""


def start_fetch(toy: DataSet) -> subprocess.Popen:
    """`workbench data fetch toy` in a process of its own."""
    files = [list(vars(file).values()) for file in toy.files]
    given = json.dumps([toy.name, toy.method, toy.title, toy.license, files])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, given],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_fetch_leaves_a_part_that_is_continued(toy, cache, server, sent):
    server.fault = "stall"
    process = start_fetch(toy)
    part = cache / "toy" / "toy.gz.part"
    deadline = time.monotonic() + 60
    while downloads.size_of(part) < HALF // 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    kept = part.stat().st_size
    assert kept >= HALF // 2
    assert not (cache / "toy" / "toy.gz").exists()
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted; the same command goes on from there" in err
        assert "Traceback" not in err
    server.fault = None
    assert data.fetch("toy", progress=False)["toy.gz"].read_bytes() == CONTENT
    assert server.asked[-1] == f"bytes={kept}-"


def test_two_processes_that_fetch_the_same_file_do_not_disturb_each_other(toy, cache, server):
    server.pause_s = 0.05
    processes = [start_fetch(toy) for _ in range(2)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    assert (cache / "toy" / "toy.gz").read_bytes() == CONTENT
    assert server.asked == [None], "the second waited and found the file"
    assert any("waiting for another process" in error for error in errors)


@pytest.mark.parametrize(
    "content", [CONTENT[::-1], CONTENT[:-1], CONTENT + b"x"], ids=["other", "short", "long"]
)
def test_wrong_bytes_never_get_the_name_of_the_file(capsys, toy, cache, server, content):
    server.content = content
    code, out, err = run(capsys, "fetch", "toy")
    assert (code, out, err.count("\n")) == (1, "", 1)
    wrong = "does not have SHA-256" if len(content) == len(CONTENT) else "bytes, expected are"
    assert wrong in err
    assert list((cache / "toy").iterdir()) == []
    server.content = CONTENT
    assert run(capsys, "fetch", "toy")[0] == 0


def test_more_than_the_expected_bytes_are_not_taken(toy, cache, server):
    server.fault = "endless"
    with pytest.raises(DataError, match="more than the expected 400000 bytes came"):
        data.fetch("toy", progress=False)
    assert not list((cache / "toy").glob("toy.gz*"))


def test_a_web_page_is_not_taken_for_data(unknown, cache, server):
    server.fault = "page"
    with pytest.raises(DataError, match=r"127\.0\.0\.1 answered with a web page"):
        data.fetch("toy", progress=False)
    assert not data.find("toy").present


# Offline


def test_offline_is_one_line_that_says_what_to_do(capsys, toy, cache, server):
    server.shutdown()
    server.server_close()
    code, out, err = run(capsys, "fetch", "toy")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "no connection to 127.0.0.1" in err
    assert f"get {server.url} elsewhere" in err
    assert f"save it as {cache / 'toy' / 'toy.gz'}" in err
    assert "run `workbench data fetch toy`, which verifies it" in err


@pytest.mark.parametrize(
    ("fault", "says"), [("absent", "answered 404"), ("stall", "did not answer|lost|no connection")]
)
def test_a_server_that_refuses_or_hangs_is_one_line_too(
    monkeypatch, toy, cache, server, fault, says
):
    monkeypatch.setattr(downloads, "TIMEOUT_S", 0.5)
    server.fault = fault
    with pytest.raises(DataError, match=says):
        data.fetch("toy", progress=False)


def test_a_file_placed_by_hand_is_accepted_once_verified(toy, cache, no_network):
    (cache / "toy").mkdir(parents=True)
    path = cache / "toy" / "toy.gz"
    path.write_bytes(CONTENT)
    assert data.fetch("toy") == data.files_of("toy") == {"toy.gz": path}


def test_a_file_that_changed_is_found_and_replaced_by_a_fetch(toy, cache, server):
    path = data.fetch("toy", progress=False)["toy.gz"]
    path.write_bytes(CONTENT[::-1])
    with pytest.raises(DataError, match=r"expected is .*`workbench data fetch toy` replaces it"):
        data.files_of("toy")
    assert data.fetch("toy", progress=False)["toy.gz"].read_bytes() == CONTENT


def test_an_unknown_checksum_is_trusted_on_first_use_and_verified_afterwards(
    capsys, unknown, cache, server
):
    code, out, _ = run(capsys, "fetch", "toy")
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    assert code == 0 and f"SHA-256 {sha256}, trusted and recorded on first use" in out
    assert f"{sha256} (recorded)" in run(capsys, "list")[1]
    recorded = cache / "toy" / "toy.gz.sha256"
    assert recorded.read_text() == f"{sha256}  toy.gz\n", "as sha256sum writes it"
    (cache / "toy" / "toy.gz").write_bytes(b"changed")
    with pytest.raises(DataError, match="has SHA-256"):
        data.files_of("toy")
    server.content = CONTENT[::-1]
    (cache / "toy" / "toy.gz").unlink()
    code, _, err = run(capsys, "fetch", "toy")
    assert code == 1 and "does not have SHA-256" in err, "another file at the address is refused"


def test_a_shared_cache_may_be_read_only(unknown, cache, no_network, monkeypatch):
    (cache / "toy").mkdir(parents=True)
    (cache / "toy" / "toy.gz").write_bytes(CONTENT)

    def refuse(*_):
        raise ValueError("cannot write: Read-only file system")

    monkeypatch.setattr("workbench.files.write", refuse)
    assert list(data.files_of("toy")) == ["toy.gz"]


def test_a_cache_that_cannot_be_written_is_one_line(capsys, toy, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path / "file" / "cache"))
    code, _, err = run(capsys, "fetch", "toy")
    assert (code, err.count("\n")) == (1, 1)
    assert "cannot write to" in err and "WORKBENCH_DATA names another folder" in err


# Clean


def test_clean_says_what_it_frees_asks_and_removes_only_its_own(
    capsys, toy, cache, server, monkeypatch
):
    data.fetch("toy", progress=False)
    (cache / "toy" / "toy.gz.part").write_bytes(b"12345")
    notes, weights = cache / "toy" / "notes.txt", cache / "rising_attack" / "digits.pt"
    weights.parent.mkdir()
    notes.touch()
    weights.touch()
    for answer in ("", "n"):
        monkeypatch.setattr("builtins.input", lambda question, answer=answer: answer)
        assert "nothing was removed" in run(capsys, "clean", "toy")[1]
    monkeypatch.setattr("builtins.input", lambda question: (_ for _ in ()).throw(EOFError))
    code, out, _ = run(capsys, "clean", "--all")
    assert code == 0 and "nothing was removed" in out, "no terminal, no removal"
    assert f"{cache / 'toy' / 'toy.gz'} (0.4 MB)" in out and "toy.gz.part (0.0 kB)" in out
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "y")
    code, out, _ = run(capsys, "clean", "toy")
    assert asked == ["Remove what is listed and free 0.4 MB? [y/N] "]
    assert code == 0 and out.endswith("0.4 MB freed\n")
    assert others(cache / "toy") == ["notes.txt"] and not toy.present
    assert notes.exists() and weights.exists()
    assert run(capsys, "clean", "--all", "--yes")[1] == "nothing to remove\n"


def test_clean_all_with_yes_does_not_ask_and_removes_the_folder(
    capsys, toy, cache, server, monkeypatch
):
    data.fetch("toy", progress=False)
    monkeypatch.setattr("builtins.input", lambda question: pytest.fail("asked"))
    assert run(capsys, "clean", "--all", "--yes")[0] == 0
    assert not (cache / "toy").exists()


def test_clean_does_not_follow_links_out_of_the_cache(capsys, toy, cache, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "toy.gz").write_bytes(CONTENT)
    cache.mkdir()
    (cache / "toy").symlink_to(elsewhere)
    assert run(capsys, "clean", "toy", "--yes")[1] == "nothing to remove\n"
    (cache / "toy").unlink()
    (cache / "toy").mkdir()
    (cache / "toy" / "toy.gz").symlink_to(elsewhere / "toy.gz")
    assert run(capsys, "clean", "toy", "--yes")[0] == 0
    assert (elsewhere / "toy.gz").read_bytes() == CONTENT
    assert not (cache / "toy").exists()


# Never unless asked


def test_no_loader_uses_the_network_and_each_says_how_to_get_its_data(
    cache, no_network, monkeypatch
):
    from types import SimpleNamespace

    weights = SimpleNamespace(list_models=lambda *_, **__: ["resnet50", "densenet121", "other"])
    monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace(models=weights))
    timm = SimpleNamespace(list_models=lambda: ["vit_base_patch16_224", "deit_base_patch16_224"])
    monkeypatch.setitem(sys.modules, "timm", timm)
    with pytest.raises(FileNotFoundError, match="`workbench data fetch mnist`"):
        loaders.load_mnist()
    for name in PAPER_MODELS:
        with pytest.raises(DataMissing, match=f"`workbench data fetch {name}`"):
            load_model(name)
    with pytest.raises(DataMissing, match="download=True"):
        load_model("torchvision/other")
    assert not cache.exists()


def test_no_notebook_asks_for_a_download():
    for path in catalog.notebooks_folder().glob("*.ipynb"):
        for cell in notebooks.read(path)["cells"]:
            if cell["cell_type"] == "code":
                source = notebooks.source(cell)
                assert not re.search(r"download|load_mnist|load_model\(|files_of", source), path


def test_kernels_of_the_notebook_tests_cannot_reach_the_network():
    """tests/notebooks/test_notebooks.py runs every notebook under this guard."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent / "notebooks")}
    for host, error in [("192.0.2.1", "wants the network"), ("127.0.0.1", "Connection refused")]:
        code = f"import socket; socket.create_connection(({host!r}, 9), timeout=1)"
        process = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert error in process.stderr


def test_an_error_of_the_cache_is_one_line_in_a_notebook(toy):
    with pytest.raises(DataMissing) as caught:
        data.files_of("toy")
    (line,) = caught.value._render_traceback_()
    assert line.startswith("DataMissing: ") and "workbench data fetch toy" in line


# MNIST


def idx(array: np.ndarray) -> bytes:
    """An array of bytes as a gzipped IDX file."""
    shape = struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(struct.pack(">HBB", 0, 8, array.ndim) + shape + array.tobytes())


@pytest.mark.parametrize(("part", "prefix"), [("test", "t10k"), ("train", "train")])
def test_mnist_is_read_from_the_cache(cache, monkeypatch, no_network, part, prefix):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (3, 28, 28), np.uint8), np.array([7, 2, 1], np.uint8)
    files = {
        f"{prefix}-images-idx3-ubyte.gz": idx(images),
        f"{prefix}-labels-idx1-ubyte.gz": idx(labels),
    }
    mnist = data.find("mnist")
    mine = tuple(
        replace(f, size=len(files[f.name]), sha256=hashlib.sha256(files[f.name]).hexdigest())
        for f in mnist.files
        if f.name in files
    )
    monkeypatch.setattr(data, "DATA_SETS", (replace(mnist, files=mine),))
    (cache / "mnist").mkdir(parents=True)
    for name, content in files.items():
        (cache / "mnist" / name).write_bytes(content)
    read, digits = loaders.load_mnist(part)
    assert read.dtype == np.float32 and read.shape == (3, 28, 28) and read.max() <= 1
    assert np.array_equal((read * 255).round(), images)
    assert digits.tolist() == [7, 2, 1]
    with pytest.raises(ValueError, match=r"part = 'tset'; allowed are test, train.*'test'"):
        loaders.load_mnist("tset")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"no gzip", "is no gzipped IDX file"),
        (idx(np.zeros((2, 3), np.uint8))[:-12], "is no gzipped IDX file"),
        (gzip.compress(struct.pack(">HBBI", 0, 8, 1, 5) + b"abc"), "is no gzipped IDX file"),
        (gzip.compress(struct.pack(">HBBI", 0, 13, 1, 1) + b"abcd"), "needed is 0x08"),
    ],
    ids=["no gzip", "cut gzip", "short", "floats"],
)
def test_a_file_that_is_not_idx_is_an_error(tmp_path, content, says):
    path = tmp_path / "x.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=says):
        loaders.read_idx(path)
