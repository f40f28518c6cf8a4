"""Small pieces of HTML in the common look."""

from xml.etree import ElementTree

from workbench.theme import Html, progress_html


def test_progress_is_a_named_bar_with_its_words_escaped():
    text = progress_html(0.256, "step <3> of 9")
    status = ElementTree.fromstring(text)
    bar = status.find("progress")
    assert status.get("role") == "status" and bar.get("aria-label") == "Progress"
    assert (bar.get("value"), bar.get("max")) == ("26", "100")
    assert "".join(status.itertext()) == " 26 % · step <3> of 9"
    assert isinstance(text, Html)
