"""The MDPs of the study by name, and the deterministic chain whose regret is known exactly."""

from __future__ import annotations

import numpy as np

from workbench.numerics.checks import choice
from workbench.numerics.mdp import (
    MDP,
    gymnasium_table,
    load_npz,
    river_swim,
    uniform_random,
)
from workbench.parameters import ParameterError

from .learning import check_problem

ENVS = ("random", "riverswim", "frozenlake", "npz")


def make(env: str = "random", S: int = 3, A: int = 3, seed: int = 0, file: str = "") -> MDP:
    """An MDP by name, checked: rewards in [0, 1] and one start state.

    "random": S states and A actions drawn from `seed` as in the paper's program. "riverswim": S
    states. "frozenlake": 4 x 4, slippery, ends absorbing. "npz": arrays P and R in `file`.
    """
    choice("env", env, ENVS)
    if env == "random":
        mdp = uniform_random(S, A, seed)
    elif env == "riverswim":
        mdp = river_swim(S)
    elif env == "frozenlake":
        mdp = gymnasium_table("frozenlake4", "absorbing")
    elif file:
        mdp = load_npz(file)
    else:
        raise ValueError("env = 'npz' needs `file`, the path of an .npz file with arrays P and R")
    check_problem(mdp)
    return mdp


def check_horizon(mdp: MDP, H: int) -> None:
    """`ParameterError` if no reward can be reached in H steps: then all regret is 0."""
    follows, rewarding = mdp.dense().P.max(1) > 0, mdp.R.max(1) > 0
    reached = np.arange(mdp.n) == check_problem(mdp)
    needed = 1
    while not (reached & rewarding).any() and needed <= mdp.n:
        reached = reached | follows[reached].any(0)
        needed += 1
    if needed > mdp.n:
        raise ParameterError(
            f"{mdp.name or 'MDP'}: no reward can ever be reached from the start state"
        )
    if needed > H:
        usual = "; 20 is usual for FrozenLake" if "frozenlake" in mdp.name.lower() else ""
        raise ParameterError(
            f"H = {H} is too short for {mdp.name}: no policy reaches a reward, so V*_1 = 0 and so "
            f"is all regret; set H to {needed} or more{usual}"
        )


def chain() -> MDP:
    """3 states, 2 actions, no noise: in state 2 one collects 1, if one finds it."""
    successor = ((0, 1), (0, 2), (2, 0))
    P = np.zeros((3, 2, 3))
    for s, row in enumerate(successor):
        for a, y in enumerate(row):
            P[s, a, y] = 1
    return MDP(P, np.array([[0.1, 0.0], [0.0, 0.2], [1.0, 0.0]]), name="chain of 3 states")
