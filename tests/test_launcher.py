"""The card in JupyterLab's launcher, as far as it can be tested without a server."""

import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from jupyter_server_proxy.config import LauncherEntry, ServerProcess

from workbench import cli, launcher

ROOT = Path(__file__).resolve().parents[1]


def test_jupyter_finds_it_by_its_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = project["entry-points"]["jupyter_serverproxy_servers"]
    assert found == {"workbench": "workbench.launcher:server"}


def test_the_proxy_accepts_it():
    """Unknown or ill-typed settings are errors of its traits."""
    settings = launcher.server()
    assert set(settings) <= set(ServerProcess.class_trait_names())
    assert set(settings["launcher_entry"]) <= set(LauncherEntry.class_trait_names())
    process = ServerProcess(name="workbench", **settings)
    assert process.launcher_entry.path_info == "workbench/"


def test_its_command_serves_on_loopback_alone_and_lets_no_other_origin_in():
    command = launcher.server()["command"]
    assert command[:3] == [sys.executable, "-m", "workbench"]
    chosen = cli.parser().parse_args([word.format(port=5006) for word in command[3:]])
    assert (chosen.verb, chosen.port, chosen.no_browser) == ("app", 5006, True)
    assert (chosen.address, chosen.allow_origin) == ("127.0.0.1", [])


def test_its_icon_is_a_picture_that_asks_for_nothing():
    path = Path(launcher.server()["launcher_entry"]["icon_path"])
    assert ElementTree.fromstring(path.read_text(encoding="utf-8")).tag.endswith("}svg")
    assert path.read_text(encoding="utf-8").count("http") == 1, "the name of the format alone"


def test_a_jupyter_server_imports_nothing_heavy_for_it():
    code = (
        "import sys\nfrom workbench import launcher\nlauncher.server()\n"
        "print(sorted({'panel', 'bokeh', 'holoviews', 'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
