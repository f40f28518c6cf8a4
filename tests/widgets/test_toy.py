"""The inline toy: what its function returns is shown, at the start and after a move."""

import ipywidgets
import pytest
from IPython.core.interactiveshell import InteractiveShell

from workbench.widgets import toy as module


@pytest.fixture
def displayed(monkeypatch):
    objects = []
    InteractiveShell.instance()
    monkeypatch.setattr("IPython.display.display", lambda *shown: objects.extend(shown))
    yield objects
    InteractiveShell.clear_instance()


def test_what_the_function_returns_is_shown_and_follows_the_sliders(displayed, monkeypatch):
    monkeypatch.delenv(module.STILL, raising=False)
    module.toy(lambda x, y: f"{x} {y}", x=(1.0, 0.0, 5.0, 1.0), y=(2.0, 0.0, 5.0, 1.0))
    sliders, output = displayed
    assert isinstance(output, ipywidgets.Output)
    assert [o["data"]["text/plain"] for o in output.outputs] == ["'1.0 2.0'"]
    sliders.children[0].value = 3.0
    assert [o["data"]["text/plain"] for o in output.outputs] == ["'3.0 2.0'"]


def test_in_a_report_the_value_at_the_start_stands_alone(displayed, monkeypatch):
    monkeypatch.setenv(module.STILL, "1")
    module.toy(lambda x: f"{x}", x=(1.0, 0.0, 5.0, 1.0))
    assert displayed == ["1.0"]
