"""The inline toy: what its function returns is shown, at the start and after a move."""

import ipywidgets

from workbench.widgets import toy as module


def test_what_the_function_returns_is_displayed(monkeypatch):
    shown, made = [], []
    monkeypatch.delenv(module.STILL, raising=False)
    monkeypatch.setattr("IPython.display.display", lambda *objects: shown.append(objects))
    original = ipywidgets.FloatSlider
    monkeypatch.setattr(
        ipywidgets, "FloatSlider", lambda **s: made.append(original(**s)) or made[-1]
    )
    module.toy(lambda x, y: f"{x} {y}", x=(1.0, 0.0, 5.0, 1.0), y=(2.0, 0.0, 5.0, 1.0))
    assert ("1.0 2.0",) in shown
    made[0].value = 3.0
    assert shown[-1] == ("3.0 2.0",)


def test_in_a_report_the_value_at_the_start_stands_alone(monkeypatch):
    shown = []
    monkeypatch.setenv(module.STILL, "1")
    monkeypatch.setattr("IPython.display.display", lambda *objects: shown.append(objects))
    module.toy(lambda x: f"{x}", x=(1.0, 0.0, 5.0, 1.0))
    assert shown == [("1.0",)]
