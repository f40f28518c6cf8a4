"""The card in JupyterLab's launcher: how jupyter-server-proxy starts and reaches the app.

Jupyter reads this when it starts, so nothing heavy is imported. The app listens on loopback and
is reached as `/workbench/` of the Jupyter server, behind its login.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def server() -> dict[str, Any]:
    """The entry point `jupyter_serverproxy_servers`, in the terms of its `ServerProcess`."""
    return {
        "command": [sys.executable, "-m", "workbench", "app", "--no-browser", "--port", "{port}"],
        "timeout": 60,  # seconds until the first answer, on a slow machine such as Binder's
        "new_browser_tab": False,
        # Jupyter has compared the browser's origin with its own. The app is told its own, and so
        # needs to let in no other, whatever the public address of the Jupyter server is.
        "request_headers_override": {"Origin": "http://127.0.0.1:{port}"},
        "launcher_entry": {
            "title": "Workbench",
            "icon_path": str(Path(__file__).with_suffix(".svg")),
        },
    }
