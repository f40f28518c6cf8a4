"""The form of parameters: derived from their declaration, checked in their words."""

from typing import ClassVar

import pytest

from workbench.parameters import (
    Boolean,
    Choice,
    Choices,
    Integer,
    Integers,
    Number,
    ParameterError,
    Parameters,
    Text,
)
from workbench.widgets.controls import Controls, rows


class Oven(Parameters):
    presets: ClassVar = {"default": {}}
    heat = Number(180.0, bounds=(0, 400), softbounds=(100, 250), unit="C", group="Fire", doc="Hot")
    minutes = Integer(30, bounds=(1, 600), unit="min", group="Fire", doc="Long")
    limit = Number(5.0, bounds=(0, None), group="Fire", doc="Unbounded above")
    fan = Boolean(False, group="Air", doc="Windy")
    mode = Choice("top", objects=["top", "bottom"], group="Air", doc="Where")
    racks = Integers([1, 2], group="Air", doc="Levels")
    trays = Choices(["a"], objects=["a", "b"], group="Air", doc="Which")
    note = Text("", group="Air", doc="Words")

    def check(self):
        if self.fan and self.heat > 300:
            raise ParameterError("fan and heat together are too much")


def by_name(**chosen):
    return {row["name"]: row for row in rows(Oven, **chosen)}


def test_each_parameter_is_a_row_with_what_the_form_needs():
    found = by_name()
    assert list(found) == Oven.names()
    heat = found["heat"]
    assert (heat["low"], heat["high"], heat["unit"], heat["group"]) == (100, 250, "C", "Fire")
    assert heat["allowed"] == "a number from 0 to 400 [C]"
    assert found["mode"]["choices"] == ["top", "bottom"]


def test_ranges_without_an_end_or_too_wide_for_a_slider_get_none():
    found = by_name()
    assert found["limit"]["high"] is None
    assert found["seed"]["low"] is None is found["seed"]["high"]


def test_only_shows_some_in_the_order_given():
    assert list(by_name(only=["mode", "heat"])) == ["mode", "heat"]


def test_what_is_entered_changes_the_parameters_and_follows_them():
    oven = Oven()
    form = Controls(oven)
    form.values = {**form.values, "heat": 200.5, "minutes": 45.0, "racks": [3], "fan": True}
    assert (oven.heat, oven.minutes, oven.racks, oven.fan) == (200.5, 45, [3], True)
    assert type(oven.minutes) is int and form.errors == {}
    oven.mode = "bottom"
    assert form.values["mode"] == "bottom"


def test_a_refused_value_leaves_the_old_one_and_says_why():
    oven = Oven()
    form = Controls(oven)
    form.values = {**form.values, "heat": 1000.0, "minutes": 31}
    assert oven.heat == 180 and oven.minutes == 31
    assert form.errors == {"heat": "heat = 1000.0 is not allowed: a number from 0 to 400 [C]"}
    assert form.values["heat"] == 180
    form.values = {**form.values, "heat": 210.0}
    assert form.errors == {} and oven.heat == 210


def test_rules_between_parameters_are_kept_and_nobody_sees_the_refused_value():
    oven = Oven(fan=True)
    seen = []
    oven.param.watch(lambda event: seen.append(event.new), "heat")
    form = Controls(oven)
    form.values = {**form.values, "heat": 350.0}
    assert form.errors == {"heat": "fan and heat together are too much"}
    assert oven.heat == 180 and seen == []


@pytest.mark.parametrize(
    ("given", "opened"), [(None, ["Fire", "Air", "Run"]), (["Air"], ["Air"]), ([], [])]
)
def test_groups_open_as_asked_and_all_in_a_short_form(given, opened):
    assert Controls(Oven(), open_groups=given).open == opened


def test_choices_and_text_are_rows_and_are_taken():
    found = by_name()
    assert found["trays"]["choices"] == ["a", "b"] and found["trays"]["type"] == "list"
    assert found["note"]["type"] == "str" and found["note"]["choices"] is None
    oven = Oven()
    form = Controls(oven)
    form.values = {**form.values, "trays": ["b", "a"], "note": "well done"}
    assert (oven.trays, oven.note) == (["b", "a"], "well done")
    form.values = {**form.values, "trays": []}
    assert "one or more of" in form.errors["trays"] and oven.trays == ["b", "a"]
