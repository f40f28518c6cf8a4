"""Faders: lists of equal length, changed together, heard as one."""

import base64

import pytest

from workbench.widgets.faders import Faders
from workbench.widgets.images import data_url

TWO = {"names": ["a", "b"], "values": [0.0, 1.0], "lows": [-1, 0], "highs": [1, 2]}


def test_lists_of_unequal_length_are_refused_and_change_nothing():
    faders = Faders(**TWO)
    with pytest.raises(ValueError, match="values has 3 entries: there are 2 names"):
        faders.move([1, 2, 3])
    with pytest.raises(ValueError, match="highs has 2 entries: there are 1 names"):
        faders.set(names=["c"], values=[0], lows=[0])
    assert faders.names == ["a", "b"] and faders.values == [0.0, 1.0]
    with pytest.raises(ValueError, match="lows has 0 entries: there are 1 names"):
        Faders(names=["a"], values=[1])


def test_a_new_set_of_faders_is_heard_once_with_all_of_it_in_place():
    faders, heard = Faders(**TWO), []
    faders.param.watch(lambda event: heard.append((event.new, faders.names)), "values")
    faders.set(names=["c"], values=[5], lows=[0], highs=[9], marks=[3])
    assert heard == [([5], ["c"])]
    faders.move([6])
    assert heard[-1] == ([6.0], ["c"])


def test_a_picture_is_an_address_that_holds_it():
    head, _, body = data_url(b"\x89PNG").partition(",")
    assert head == "data:image/png;base64" and base64.b64decode(body) == b"\x89PNG"
