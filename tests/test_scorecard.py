"""The scorecard: text, page, JSON and Markdown; stored runs that agree with methods and README."""

import importlib
import json
import os
import re

import pytest

from workbench import catalog, gallery, notebooks, results, scorecard
from workbench.claims import judge
from workbench.cli import main

CLAIMS = [
    judge("a", "x < y & so on", [1.0, 2.0], at_most=3, paper="1.4", unit="sites"),
    judge("b", "a|b gets *better*", [1.0, 1.5, 2.0], at_least=3),
    judge("c", "needs more", None, at_most=1),
]


def record(slug="neural_cpm", **changes):
    made = {
        "slug": slug, "preset": "default", "changed": [], "parameters": {"seed": 7}, "seed": 7,
        "versions": {"python": "3.12.1", "numpy": "2.4"}, "seconds": 61.4, "complete": True,
        "claims": [claim.to_json() for claim in CLAIMS], "values": {"rmse": 1.5},
    }  # fmt: skip
    return made | changes


def put(folder, name, record, age_s=0, page=True):
    """A results file, with a page beside it, last changed `age_s` ago."""
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    if page:
        path.with_suffix(".html").write_text("<p>report</p>", encoding="utf-8")
    changed = path.stat().st_mtime - age_s
    os.utime(path, (changed, changed))
    return path


@pytest.fixture
def reports(tmp_path):
    """A folder with a report of each of two methods, one with changed parameters."""
    folder = tmp_path / "my reports"
    put(folder, "neural_cpm", record())
    quick = record("rising_attack", preset="quick", changed=["K"], claims=[CLAIMS[0].to_json()])
    put(folder, "rising_attack", quick, page=False)
    return folder


@pytest.fixture
def own_notebooks(tmp_path, monkeypatch):
    """A folder of notebooks of this test's own."""
    folder = tmp_path / "tree" / "notebooks"
    folder.mkdir(parents=True)
    monkeypatch.setattr(catalog, "notebooks_folder", lambda: folder)
    return folder


def test_text_has_every_claim_a_line_for_each_method_and_one_in_all(reports):
    text = scorecard.as_text(scorecard.read(reports))
    assert "neural_cpm (default, 61 s): 1 of 2 hold (1 not tested)" in text
    assert "rising_attack (quick, 1 changed, 61 s): 1 of 1 hold" in text
    assert text.splitlines()[-1] == "in all: 2 of 3 hold (1 not tested)"
    assert "✓ holds" in text and "✗ fails" in text and "– not tested" in text


def test_the_page_shows_what_is_known_of_every_run(reports):
    page = scorecard.as_html(scorecard.read(reports), reports)
    assert '<p class="total">In all 2 of 3 hold (1 not tested)</p>' in page
    assert "NeuralCPM: 1 of 2 hold (1 not tested)" in page and "RisingAttacK: 1 of 1 hold" in page
    first = page[page.index('id="run-1"') : page.index('id="run-2"')]
    for said in [
        "x &lt; y &amp; so on", "1.4", ">unknown<", "1.5 [1, 2] sites", "mean ≤ 3", "<b>–</b>",
        "<b>Preset:</b> default", "<b>Seed:</b> 7", "61 s", "python 3.12.1, numpy 2.4",
        "✓ holds", "✗ fails", "– not tested", "#009E73", "#D55E00",
        'href="neural_cpm.html"', "Deep Neural Cellular Potts Models",
    ]:  # fmt: skip
        assert said in first, said
    second = page[page.index('id="run-2"') :]
    assert "quick, 1 changed" in second and ".html" not in second


def test_the_page_needs_no_network_and_escapes_what_it_shows():
    bad = record("<b>", preset="<script>", versions={"<i>": "1"})
    page = scorecard.as_html([bad])
    assert "<script" not in page and "<b>:" not in page and "<i>" not in page
    assert not re.findall(r"""(?:src|url\()\s*=?\s*["']?(?:https?:)?//""", page)
    assert "<link" not in page.replace('<link rel="icon" href="data:,">', "")


def test_links_start_where_the_page_is(reports, tmp_path):
    records = scorecard.read(reports)
    assert 'href="my%20reports/neural_cpm.html"' in scorecard.as_html(records, tmp_path)
    assert 'href="../my%20reports/neural_cpm.html"' in scorecard.as_html(records, tmp_path / "a")


def test_what_a_record_does_not_say_is_unknown():
    page = scorecard.as_html([{"slug": "gone", "claims": [], "parameters": {}}])
    assert "<b>Preset:</b> unknown" in page and "<b>Seed:</b> unknown" in page
    assert "<b>Run time of the study:</b> unknown" in page and "Versions: unknown." in page


def test_json_has_the_same(reports):
    card = scorecard.as_json(scorecard.read(reports))
    assert card["summary"] == {"holds": 2, "fails": 1, "tested": 3, "not_tested": 1}
    first, second = card["methods"]
    assert first["summary"] == {"holds": 1, "fails": 1, "tested": 2, "not_tested": 1}
    assert (first["title"], first["preset"], first["seed"]) == ("NeuralCPM", "default", 7)
    assert first["report"].endswith("neural_cpm.html") and second["report"] is None
    assert [c["verdict"] for c in first["claims"]] == ["holds", "fails", "not tested"]
    assert [c["paper"] for c in first["claims"]] == ["1.4", None, None]
    assert first["claims"][2]["measured"] is None
    json.dumps(card, allow_nan=False)


def test_the_command_writes_the_page_whole_or_not_at_all(reports, tmp_path, capsys):
    page = tmp_path / "pages" / "scorecard.html"
    assert main(["scorecard", str(reports), "--html", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["tested"] == 3
    assert 'href="../my%20reports/neural_cpm.html"' in page.read_text(encoding="utf-8")
    assert list(page.parent.iterdir()) == [page]
    assert main(["scorecard", str(reports), "--html", str(page.parent)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "cannot write" in err
    assert list(page.parent.iterdir()) == [page]


def test_files_that_are_no_results_are_passed_over_and_broken_ones_are_named(reports, capsys):
    (reports / "package.json").write_text('{"name": "else"}', encoding="utf-8")
    (reports / "broken.json").write_text("{", encoding="utf-8")
    assert len(scorecard.read(reports)) == 2
    put(reports, "old", record(claims=[{"id": "a", "wording": "?"}]))
    assert main(["scorecard", str(reports)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "old.json cannot be read" in err and "wording" in err


def test_a_folder_without_reports_says_how_to_make_one(tmp_path, capsys):
    assert main(["scorecard", str(tmp_path)]) == 2
    assert "workbench report SLUG --out" in capsys.readouterr().err


def test_the_newest_run_of_a_method_counts(tmp_path):
    put(tmp_path, "a", record(seconds=1), age_s=10)
    put(tmp_path, "z", record(seconds=2), age_s=20)
    records = scorecard.read(tmp_path)
    assert [r["seconds"] for r in records] == [2, 1], "oldest first"
    assert scorecard.latest(records)["neural_cpm"]["seconds"] == 1


def test_only_whole_default_runs_are_stored(reports, own_notebooks, capsys):
    assert main(["scorecard", str(reports), "--store"]) == 0
    path = own_notebooks / "results" / "neural_cpm.json"
    assert f"written   {path}" in capsys.readouterr().out
    assert list(path.parent.iterdir()) == [path], "the quick run of rising_attack is not stored"
    assert json.loads(path.read_text(encoding="utf-8")) == record()
    assert [r["slug"] for r in scorecard.stored()] == ["neural_cpm"]


@pytest.mark.parametrize("change", [{"preset": "quick"}, {"changed": ["J"]}, {"complete": False}])
def test_other_runs_are_refused(tmp_path, own_notebooks, capsys, change):
    put(tmp_path / "reports", "neural_cpm", record(**change))
    assert main(["scorecard", str(tmp_path / "reports"), "--store"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "nothing to store" in err and "neural_cpm" in err
    assert not (own_notebooks / "results").exists()


def test_storing_needs_a_folder_of_reports(capsys):
    assert main(["scorecard", "--store"]) == 2
    assert "--store needs a folder" in capsys.readouterr().err


def test_cards_show_the_users_reports_before_the_stored_runs(own_notebooks):
    put(own_notebooks / "results", "neural_cpm", record(), page=False)
    put(own_notebooks / "results", "rising_attack", record("rising_attack"), page=False)
    own = record(preset="quick", claims=[CLAIMS[0].to_json()])
    put(own_notebooks.parent / "reports", "neural_cpm", own)
    cards = gallery.show()
    assert "Claims: 1 of 1 hold · your report, preset quick" in cards
    assert "Claims: 1 of 2 hold (1 not tested) · stored run, preset default" in cards
    assert "no report yet" in gallery.cards(catalog.methods(), lambda m: m.slug)


def test_markdown_is_a_table_of_methods_and_one_of_each_methods_claims():
    text = scorecard.as_markdown([{**record(), "report": None}], notebooks="notebooks/")
    assert "| [NeuralCPM](notebooks/neural_cpm.ipynb) | 1 | 1 | 1 | default | 7 | 61 s |" in text
    assert r"a\|b gets \*better\* | unknown | 1.5 [" in text and r"x \< y & so on | 1.4" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8, 6}


def test_sync_writes_scorecard_into_gallery_and_readme(own_notebooks, capsys):
    put(own_notebooks / "results", "neural_cpm", record(), page=False)
    cell = {"cell_type": "markdown", "metadata": {"tags": ["scorecard"]}, "source": "old"}
    index, readme = own_notebooks / "index.ipynb", own_notebooks.parent / "README.md"
    index.write_text(notebooks.canonical({"cells": [cell]}), encoding="utf-8")
    around = f"before\n{notebooks.README_BEGIN}\nstale words\n{notebooks.README_END}\nafter\n"
    readme.write_text(around, encoding="utf-8")
    assert main(["sync", "--check"]) == 1
    said = "index.ipynb is out of line: workbench sync\nREADME.md is out of line: workbench sync\n"
    assert capsys.readouterr().out == said
    assert main(["sync"]) == 0 and main(["sync", "--check"]) == 0
    text = readme.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "stale words" not in text
    assert "1 of 2 hold" in text and "[NeuralCPM](notebooks/neural_cpm.ipynb)" in text
    assert "[NeuralCPM](neural_cpm.ipynb)" in notebooks.source(notebooks.read(index)["cells"][0])
    put(own_notebooks / "results", "neural_cpm", record(seconds=70.2), page=False)
    assert main(["sync", "--check"]) == 1, "other results: both are stale"


# What is stored in this repository --------------------------------------------------------------

STORED = scorecard.stored()


def test_every_method_has_a_stored_run():
    missing = {m.slug for m in catalog.methods()} - {r["slug"] for r in STORED}
    assert not missing, "workbench report SLUG --out DIR, workbench scorecard DIR --store"


@pytest.mark.parametrize("stored", STORED, ids=lambda r: r["slug"])
def test_a_stored_run_agrees_with_its_method(stored):
    parameters = catalog.load(stored["slug"]).Parameters.preset("default")
    assert stored["parameters"] == parameters.to_papermill(), "store a new report"
    study = importlib.import_module(f"workbench.methods.{stored['slug']}.study")
    findings = importlib.import_module(f"workbench.methods.{stored['slug']}.findings")
    (kind,) = (
        c
        for c in vars(study).values()
        if isinstance(c, type) and issubclass(c, results.Study) and c is not results.Study
    )
    now, then = findings.claims(kind(parameters)), scorecard.claims_of(stored)
    for name in ("id", "statement", "paper", "unit"):  # a threshold may need a measured noise floor
        assert [getattr(c, name) for c in then] == [getattr(c, name) for c in now], name


@pytest.mark.parametrize("stored", STORED, ids=lambda r: r["slug"])
def test_a_stored_run_is_whole_and_names_no_machine(stored):
    assert (stored["preset"], stored["changed"], stored["complete"]) == ("default", [], True)
    assert {"python", "numpy", "workbench"} <= stored["versions"].keys()
    assert stored["seconds"] > 0 and stored["values"] and stored["seed"] >= 0
    text = json.dumps({k: v for k, v in stored.items() if k != "report"})
    assert not re.search(r'"(/|~|[A-Z]:)|/home/|/work/|/tmp/|/Users/', text)


def test_readme_and_gallery_show_the_stored_runs():
    assert notebooks.sync(write=False) == []
    folder = catalog.notebooks_folder()
    readme = (folder.parent / "README.md").read_text(encoding="utf-8")
    for text in (readme, (folder / "index.ipynb").read_text(encoding="utf-8")):
        for stored in STORED:
            assert f"each of the {len(stored['claims'])} claims" in text
