"""Fixtures of the browser tests: headless Chromium, Panel pages, and a JupyterLab on loopback.

Everything runs on 127.0.0.1. Tests are skipped, with the reason, where Chromium or Playwright is
missing. `serve(script)` and `lab(folder)` start servers as child processes and stop them at the
end of the test or session.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_MS = 60_000  # a loaded machine is slow, not wrong
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in Path(item.path).parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")  # while Playwright runs, no other test can use asyncio.run
def browser() -> Iterator:
    """A headless Chromium driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api")
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as driver:
        if executable is None and not Path(driver.chromium.executable_path).exists():
            pytest.skip("no Chromium: install Debian's `chromium` or `playwright install chromium`")
        chromium = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser) -> Iterator:
    """A fresh page whose script errors fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert not errors, errors


@pytest.fixture
def offline_page(browser) -> Iterator:
    """A page without network; `page.requests` lists whatever it tried to fetch beyond files."""
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    page = context.new_page()
    page.requests = []

    def refuse(route):
        if route.request.url.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            page.requests.append(route.request.url)
            route.abort()

    context.route("**/*", refuse)
    yield page
    context.close()


def free_port() -> int:
    """A port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(command: list[str], url: str, log: Path, timeout_s: float = 180) -> subprocess.Popen:
    """Start a server in a process group of its own and wait until `url` answers."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with log.open("w") as stream:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=stream, stderr=stream, start_new_session=True
        )
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return process
        except urllib.error.HTTPError:
            return process
        except OSError:
            time.sleep(0.1)
    stop(process)
    raise RuntimeError(f"{command} did not answer at {url}:\n{log.read_text()[-2000:]}")


def stop(process: subprocess.Popen) -> None:
    """End a server and whatever it started, by its own process group."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, sign)
            try:
                process.wait(8)
            except subprocess.TimeoutExpired:
                continue


@pytest.fixture(scope="session")
def serve(tmp_path_factory) -> Iterator[Callable[..., str]]:
    """`serve(path)`: the address of a Panel page made from a script; or of `command` + --port."""
    running: list[subprocess.Popen] = []

    def serve(script: str | Path | None = None, command: list[str] | None = None) -> str:
        port = free_port()
        if script is not None:
            command = ["-m", "panel", "serve", str(script), "--address", "127.0.0.1"]
            url = f"http://127.0.0.1:{port}/{Path(script).stem}"
        else:
            url = f"http://127.0.0.1:{port}/"
        log = tmp_path_factory.mktemp("serve") / "log.txt"
        running.append(start([sys.executable, *command, "--port", str(port)], url, log))
        return url

    yield serve
    for process in running:
        stop(process)


@pytest.fixture(scope="session")
def lab(tmp_path_factory) -> Iterator[Callable[[Path], str]]:
    """`lab(folder)`: address format of a JupyterLab there: `url.format("notebook.ipynb")`."""
    running: list[subprocess.Popen] = []

    def lab(folder: Path) -> str:
        port, token = free_port(), secrets.token_hex(16)
        log = tmp_path_factory.mktemp("lab") / "log.txt"
        workspace = tmp_path_factory.mktemp("workspaces")
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
            "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", "--allow-root",
            f"--ServerApp.root_dir={folder}", f"--LabApp.workspaces_dir={workspace}",
            "--LabApp.news_url=", "--LabApp.check_for_updates_class="
            "jupyterlab.NeverCheckForUpdate", "--LabApp.extension_manager=readonly",
        ]  # fmt: skip
        running.append(start(command, f"http://127.0.0.1:{port}/api", log))
        return f"http://127.0.0.1:{port}/lab/tree/{{}}?token={token}"

    yield lab
    for process in running:
        stop(process)


@pytest.fixture
def run_in_lab(page, lab, tmp_path) -> Callable:
    """`run_in_lab(*cells)`: the page with a notebook of these cells in JupyterLab, all started.

    Without cells it is the one notebook in `tmp_path`.
    """

    def run(*cells: str):
        if cells:
            made = nbformat.v4.new_notebook(
                cells=[nbformat.v4.new_code_cell(source) for source in cells],
                metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            )
            nbformat.write(made, tmp_path / "live.ipynb")
        (path,) = tmp_path.glob("*.ipynb")
        page.goto(lab(tmp_path).format(path.name))
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=180_000)
        page.get_by_text("Python 3", exact=False).first.wait_for(timeout=180_000)
        prompt = page.locator(".jp-Notebook .jp-CodeCell .jp-InputPrompt").first
        end = time.monotonic() + 180
        while prompt.inner_text().strip() == "[ ]:":  # too early, the menu does nothing
            assert time.monotonic() < end, "JupyterLab does not run the cells"
            page.get_by_role("menuitem", name="Run").click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            page.wait_for_timeout(2_000)
        return page

    return run
