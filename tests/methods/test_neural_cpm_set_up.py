"""Set-up: kernels compiled once, clear words without numba and for bad sizes, exported names."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from workbench.cli import main
from workbench.methods import neural_cpm
from workbench.methods.neural_cpm import _embedding, _kernels, _parallel, measures


@pytest.mark.parametrize("module", ["lattice", "ensemble", "study_run", "measures"])
def test_without_numba_one_line_says_what_is_missing(module):
    use = {
        "lattice": "from workbench.methods import neural_cpm; neural_cpm.CPM",
        "ensemble": "import workbench.methods.neural_cpm.ensemble",
        "study_run": "from workbench.methods import neural_cpm; neural_cpm.run(progress=False)",
        "measures": "from workbench.methods import neural_cpm; neural_cpm.moments",
    }[module]
    code = f"import sys; sys.modules['numba'] = None; {use}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: the cellular Potts engine needs numba, there is no slower way without it: "
        "pip install numba"
    )


def compiled() -> dict[str, int]:
    functions = (
        _kernels.advance, _kernels.relist_all, _kernels.price_at, _kernels.lowest_price,
        _parallel.propose, _parallel.accept, _embedding.embed_labels, _embedding.price_copies,
        measures._pieces,
    )  # fmt: skip
    return {function.__name__: len(function.signatures) for function in functions}


def test_after_the_warm_up_no_slider_and_no_rule_compiles_anything():
    neural_cpm.warm_up()
    before = compiled()
    assert all(before.values())
    cell = np.zeros((12, 12), np.int32)
    cell[2:5, 2:5], cell[2:5, 5:8] = 1, 2
    terms = {
        "lam_P": 0.1, "lam_act": 2.0, "lam_ch": 1.0, "mu": 1.0, "connected": True,
        "kind_fields": np.ones((3, 12, 12)),
    }  # fmt: skip
    J = np.ones((3, 3)) - np.diag([1.0, 0, 0])
    for proposal in _kernels.RULES:
        for names in itertools.chain([()], itertools.combinations(terms, 1),
                                     itertools.combinations(terms, 2)):  # fmt: skip
            options = {name: terms[name] for name in names}
            model = neural_cpm.CPM(cell, [0, 1, 2], J, 1, 9, proposal=proposal, **options)
            many = np.stack([cell] * 3)
            neural_cpm.Ensemble(many, [0, 1, 2], J, 1, 9, proposal=proposal, **options).step(1)
            model.step(1)
            model.delta((1, 1), (2, 2))
            model.lowest_delta()
    neural_cpm.fragmented(cell)
    assert compiled() == before


def test_the_sizes_of_the_paper_are_at_hand():
    assert set(neural_cpm.PAPER) == {"cellsort", "digits"}
    digits = neural_cpm.simulate("digits", 1, **{**neural_cpm.PAPER["digits"], "stages": ((1, 1),)})
    assert digits.frames.shape == (1, 100, 100) and len(digits.kind) == 51


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"bipolar_size": 12, "bipolar_cells": 50}, "bipolar_cells = 50 cells of bipolar_V_target"),
        ({"n_cells": 5000, "V_target": 1}, "n_cells = 5000 do not fit where they start"),
    ],
)
def test_cells_that_do_not_fit_are_refused_before_a_report_runs(capsys, tmp_path, values, says):
    words = [w for name, value in values.items() for w in ("-p", name, str(value))]
    code = main(["report", "neural_cpm", *words, "--out", str(tmp_path / "out")])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 and err.startswith("workbench: ") and says in err
