"""Parameters: one declaration, from which widgets, notebook cell, papermill and checks follow."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import parameters as p
from workbench.notebooks import canonical


class Example(p.Parameters):
    slug = "example"
    temperature = p.Number(1.0, bounds=(0, 100), unit="energy", group="Energy", doc="Temperature")
    size = p.Integer(100, bounds=(8, 1024), unit="sites", group="Lattice", doc="Side")
    rule = p.Choice("uniform", objects=["uniform", "edges"], group="Lattice", doc="Copy rule")
    closure = p.Boolean(True, group="Model", doc="Add the network")
    widths = p.Integers([8, 8], group="Model", doc="Channels")
    chosen = p.Integers([], each=(0, 9), empty=True, group="Model", doc="Chosen classes")
    steps = p.Numbers([1.0, 0.5], each=(0.01, 1), group="Model", doc="Steps tried")
    methods = p.Choices(["VI", "R1-VI"], objects=["VI", "R1-VI", "PI"], group="Run", doc="Curves")
    file = p.Text("", group="Run", doc="Path of an archive")
    presets = {"default": {}, "quick": {"size": 60}}


def test_names_follow_the_declaration_and_the_seed_comes_last():
    assert Example.names() == [
        "temperature", "size", "rule", "closure", "widths", "chosen", "steps",
        "methods", "file", "seed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"temprature": 2},
            "unknown parameter 'temprature' of example; did you mean 'temperature'?",
        ),
        ({"name": "x"}, "unknown parameter 'name' of example"),
        (
            {"temperature": 200},
            "temperature = 200.0 is not allowed: a number from 0 to 100 [energy]",
        ),
        ({"temperature": float("nan")}, "a number from 0 to 100"),
        ({"temperature": True}, "a number from 0 to 100"),
        ({"temperature": None}, "a number from 0 to 100"),
        ({"size": True}, "size = True is not allowed: an integer from 8 to 1024 [sites]"),
        ({"size": 60.0}, "an integer from 8 to 1024"),
        ({"size": "big"}, "size = 'big' is not allowed"),
        ({"rule": "unifrom"}, "one of 'uniform', 'edges'; did you mean 'uniform'?"),
        ({"rule": "xyz"}, "rule = 'xyz' is not allowed: one of 'uniform', 'edges'"),
        ({"closure": 1}, "closure = 1 is not allowed: True or False"),
        ({"widths": [8, 0]}, "a list of positive integers"),
        ({"widths": []}, "a list of positive integers"),
        ({"widths": [1.5]}, "a list of positive integers"),
        ({"chosen": [10]}, "a list of integers from 0 to 9, or none: []"),
        ({"steps": []}, "a list of numbers from 0.01 to 1"),
        ({"steps": [0.5, 2]}, "steps = [0.5, 2] is not allowed: a list of numbers from 0.01 to 1"),
        ({"steps": [float("nan")]}, "a list of numbers from 0.01 to 1"),
        ({"steps": [True]}, "a list of numbers from 0.01 to 1"),
        ({"methods": []}, "methods = [] is not allowed: one or more of 'VI', 'R1-VI', 'PI'"),
        ({"methods": ["VI", "IV"]}, "one or more of 'VI', 'R1-VI', 'PI'"),
        ({"methods": ["VI", "VI"]}, "one or more of"),
        ({"methods": ["VI", "R1VI"]}, "'R1-VI', 'PI'; did you mean 'R1-VI'?"),
        ({"methods": "R1-VJ"}, "did you mean 'R1-VI'?"),
        ({"methods": "VI"}, "one or more of"),
        ({"file": "a\nb"}, "one line of text"),
        ({"file": 3}, "one line of text"),
        ({"seed": -1}, "seed = -1 is not allowed"),
    ],
)
def test_bad_values_are_refused_in_one_line(values, words):
    with pytest.raises(p.ParameterError) as error:
        Example(**values)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_misspelt_assignment_is_an_error():
    example = Example()
    with pytest.raises(p.ParameterError, match="did you mean 'size'"):
        example.sice = 10
    with pytest.raises(p.ParameterError, match="from 8 to 1024"):
        example.size = 4
    assert example.size == 100


def test_the_error_shows_no_stack_of_frames_in_a_notebook():
    assert p.ParameterError("one line")._render_traceback_() == ["ParameterError: one line"]


def test_presets_and_their_changes():
    assert Example.preset("quick").size == 60
    assert Example.preset("quick", size=80).nearest_preset() == ("default", ["size"])
    assert Example.preset("quick", temperature=2.0).nearest_preset() == ("quick", ["temperature"])
    with pytest.raises(p.ParameterError, match="did you mean 'quick'"):
        Example.preset("quik")


@given(
    temperature=st.floats(0, 100),
    size=st.integers(8, 1024),
    rule=st.sampled_from(["uniform", "edges"]),
    closure=st.booleans(),
    widths=st.lists(st.integers(1, 64), min_size=1, max_size=4),
    chosen=st.lists(st.integers(0, 9), max_size=4),
    steps=st.lists(st.floats(0.01, 1), min_size=1, max_size=4),
    methods=st.lists(st.sampled_from(["VI", "R1-VI", "PI"]), min_size=1, unique=True),
    file=st.text("abc /.=,'[]", max_size=20),
    seed=st.integers(0, 2**31 - 1),
)
def test_values_survive_papermill_the_command_line_and_the_notebook(**values):
    given_ = Example(**values)
    injected = given_.to_papermill()
    assert injected == values
    assert Example.from_notebook(injected).to_papermill() == values
    assert {name: Example.parse(name, str(value)) for name, value in values.items()} == values


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_float_is_either_taken_or_refused_in_words(value):
    allowed = 0 <= value <= 100
    if allowed:
        assert Example(temperature=value).temperature == value
    else:
        with pytest.raises(p.ParameterError, match="from 0 to 100"):
            Example(temperature=value)


def test_the_parameters_cell_is_one_literal_assignment_a_line():
    tree = ast.parse(Example.cell())
    assert all(isinstance(node, ast.AnnAssign) for node in tree.body)
    values = {node.target.id: ast.literal_eval(node.value) for node in tree.body}
    assert values == Example().to_papermill()


def test_papermill_reads_name_type_default_and_help_from_the_cell(tmp_path):
    import papermill

    cell = {"cell_type": "code", "source": "", "metadata": {"tags": ["parameters"]}, "outputs": []}
    path = tmp_path / "example.ipynb"
    path.write_text(canonical({"cells": [cell]}, Example.cell()), encoding="utf-8")
    found = papermill.inspect_notebook(str(path))
    assert list(found) == Example.names()
    assert found["temperature"]["inferred_type_name"] == "float"
    assert found["temperature"]["default"] == "1.0"
    assert "0 to 100, energy" in found["temperature"]["help"]


def test_in_a_kernel_only_the_parameter_cells_are_looked_at():
    namespace = {
        "get_ipython": None,
        "In": ["", Example.cell(), "# Parameters\nsize = 20\n", "other: int = 3"],
        **Example().to_papermill(),
        "size": 20,
        "other": 3,
        "later_variable": 7,
    }
    assert Example.from_notebook(namespace).size == 20
    namespace["In"][2] = "# Parameters\nsise = 20\n"
    namespace["sise"] = 20
    with pytest.raises(p.ParameterError, match="did you mean 'size'"):
        Example.from_notebook(namespace)


def test_an_edited_parameters_cell_counts_with_and_without_annotation():
    namespace = {"get_ipython": None, **Example().to_papermill(), "temperature": 7.0}
    edited = Example.cell().replace("temperature: float = 1.0", "temperature = 7.0")
    namespace["In"] = ["", edited]
    assert Example.from_notebook(namespace).temperature == 7.0
    namespace["In"] = ["", edited.replace("temperature =", "temprature =")]
    namespace["temprature"] = 7.0
    with pytest.raises(p.ParameterError, match="did you mean 'temperature'"):
        Example.from_notebook(namespace)


def test_description_has_bounds_unit_and_choices():
    rows = {row["name"]: row for row in Example.describe()}
    assert rows["temperature"]["bounds"] == [0, 100]
    assert rows["temperature"]["unit"] == "energy"
    assert rows["rule"]["choices"] == ["uniform", "edges"]
    assert rows["rule"]["bounds"] is None


@pytest.mark.parametrize("text", ["PI, VI", "[PI,VI]", "['PI', 'VI']", '["PI","VI"]'])
def test_several_choices_are_read_from_words(text):
    assert Example.parse("methods", text) == ["PI", "VI"]


def test_text_is_taken_as_it_is():
    assert Example.parse("file", "3") == "3"
    assert Example(methods=("PI",), file="my table.npz").to_papermill()["methods"] == ["PI"]
