"""Exercises and the recipe of the notebook: right answers pass, near misses do not, code runs."""

import re

import numpy as np
import pytest

from workbench import catalog, notebooks
from workbench.exercises import SOLVED, WRONG, check
from workbench.methods.ucbvi_constants import exercises
from workbench.methods.ucbvi_constants.learning import learn
from workbench.numerics.mdp import uniform_random


def bernstein(N, least):
    return lambda n, var, H, L: (
        2 * np.sqrt(L * var / n) + 7 * H * L / 3 / N(n, least) + 2 * H * n**-0.5
    )


def plan(untried, cap=lambda H, h: H):
    def answer(P_hat, R, N, b, H):
        V, tables = np.zeros(len(R)), []
        for h in range(H - 1, -1, -1):
            Q = R + np.einsum("say,y->sa", P_hat, V) + b
            Q = np.clip(Q, None, cap(H, h))
            Q[N == 0] = untried(H, h)
            tables.insert(0, Q)
            V = Q.max(axis=1)
        return tables

    return answer


@pytest.mark.parametrize(
    "exercise, answer, status",
    [
        ("bernstein_bonus", bernstein(lambda n, least: max(n - 1, least), 1), SOLVED),
        ("bernstein_bonus", bernstein(lambda n, least: n - 1 or least, 1), SOLVED),
        ("bernstein_bonus", bernstein(lambda n, least: max(n - 1, least), 1e-9), WRONG),
        ("bernstein_bonus", bernstein(lambda n, least: n - 1, 1), WRONG),
        ("largest_terms", ("lower order", "correction", "correction"), SOLVED),
        ("largest_terms", ("lower order", "variance", "correction"), WRONG),
        ("optimistic_plan", plan(lambda H, h: H), SOLVED),
        ("optimistic_plan", plan(lambda H, h: 1), WRONG),
        ("optimistic_plan", plan(lambda H, h: H - h), WRONG),
        ("optimistic_plan", plan(lambda H, h: H, cap=lambda H, h: H - h), WRONG),
        ("range_aware", lambda h, N, H, L: (H - h) * L * np.sqrt(4 / N), SOLVED),
        ("range_aware", lambda h, N, H, L: 2 * (H - h) * L / 10, WRONG),
        ("range_aware", lambda h, N, H, L: 2 * (5 - h) * L / np.sqrt(N), WRONG),
        ("range_aware", lambda h, N, H, L: 2 * (H - h + 1) * L / np.sqrt(N), WRONG),
    ],
)
def test_checks_take_other_right_answers_and_refuse_near_misses(exercise, answer, status):
    outcome = check(getattr(exercises, exercise), answer)
    assert outcome.status == status, outcome
    assert "Error" not in outcome.message


def test_the_recipe_for_own_data_runs(tmp_path, monkeypatch):
    cells = notebooks.read(catalog.notebooks_folder() / "ucbvi_constants.ipynb")["cells"]
    text = "\n".join(notebooks.source(c) for c in cells).split("## On your own data")[1]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    mdp = uniform_random(4, 2, 1)
    np.savez(tmp_path / "path.npz", P=mdp.P, R=mdp.R)
    monkeypatch.chdir(tmp_path)
    found = {"learn": learn}
    exec(code, found)
    assert found["run"].N.sum() == 10 * 50_000 and len(found["run"].snapshots.episodes) > 50
