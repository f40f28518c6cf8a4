"""The live pictures as SVG text, each a pure function of results; see `widgets/svg.py`.

Pictures of the study, as HoloViews elements, are in `views.py`; both have the same styles. A
picture draws what is there: curves of planners that have not run yet are left out.
"""

from __future__ import annotations

import html

import numpy as np

from workbench.theme import FONT, INK, MUTED, OKABE_ITO, Html
from workbench.widgets import images
from workbench.widgets.svg import Band, Bars, Dots, Line, Mark, chart

from .experiments import Comparison, Solved
from .learning import Learning, coinciding
from .planning import gain_matrices

# Color and dashes of each planner and learner.
STYLES = {
    "VI": (INK, ""),
    "R1-VI": (OKABE_ITO["vermillion"], ""),
    "R1-VI (uniform d)": (OKABE_ITO["orange"], "7 3"),
    "midpoint": (OKABE_ITO["blue"], "6 3"),
    "NVI": (OKABE_ITO["green"], ""),
    "AVI-1": (OKABE_ITO["sky"], "2 2"),
    "AVI-5": (OKABE_ITO["sky"], ""),
    "anchored VI": (MUTED, "2 3"),
    "MPI-20": (OKABE_ITO["green"], "4 2 1 2"),
    "PI": (OKABE_ITO["purple"], "8 3 2 3"),
    "QL (harmonic)": (MUTED, "3 3"),
    "QL (rescaled)": (INK, ""),
    "SQL": (OKABE_ITO["green"], ""),
    "Zap": (OKABE_ITO["purple"], "8 3 2 3"),
    "R1-QL": (OKABE_ITO["vermillion"], ""),
    "R1-QL (uniform d)": (OKABE_ITO["orange"], "7 3"),
}
AXES = {
    "iterations": "iteration k", "operators": "Bellman evaluations", "seconds": "CPU time [ms]",
}  # fmt: skip
LARGEST_GAIN = 60  # states; more cannot be told apart
# Signs of actions 0, 1, ... in a grid.
ARROWS = {"FrozenLake": "←↓→↑", "CliffWalking": "↑→↓←"}


def against(plan, axis: str) -> np.ndarray:
    """What a plan's errors are drawn over: its iterations, Bellman evaluations or milliseconds."""
    if axis == "iterations":
        return np.arange(len(plan.errors))
    return plan.operators if axis == "operators" else 1e3 * plan.seconds


def errors(made: Comparison, axis: str = "iterations", at: int | None = None) -> Html:
    """Picture 1: distance from v* by planner, with the slopes gamma^k and (gamma |lambda_2|)^k."""
    parts, solved = [], made.solved
    plans = {name: plan for name, plan in made.plans.items() if len(plan.errors)}
    if not plans:
        return Html("")
    first = max(float(plan.errors[0]) for plan in plans.values()) or 1.0
    if axis == "iterations":
        # A log axis from 1 on shows 12 iterations and 1,800 at once.
        most = max(len(plan.errors) for plan in plans.values())
        k = np.unique(np.geomspace(1, max(most, 2), 120).round())
        for name, rate, dash in (
            ("γᵏ", solved.gamma, "1 3"), ("(γ|λ₂|)ᵏ", solved.rate, "1 3")
        ):  # fmt: skip
            slope = first * rate**k
            shown = slope > 1e-13
            color = MUTED if name == "γᵏ" else OKABE_ITO["vermillion"]
            parts.append(Line(name, k[shown], slope[shown], color, dash, 1.4))
    for name, plan in plans.items():
        color, dash = STYLES[name]
        x, y = against(plan, axis), np.maximum(plan.errors, 1e-16)  # 0: below the picture, no gap
        parts.append(Line(name, x, y, color, dash, 2.6 if name == "R1-VI" else 1.8))
    told = ", ".join(
        f"{name} {'needs' if plan.iterations is not None else 'has not arrived after'} "
        f"{len(plan.errors) - 1 if plan.iterations is None else plan.iterations} iterations"
        for name, plan in plans.items()
    )
    least = min(float(plan.errors.min()) for plan in plans.values())
    x_range = _from_one(parts, axis)
    parts += _now(at if axis == "iterations" and at else None)
    return chart(
        "Distance from v*", parts, AXES[axis], "max |v − v*|", log_y=True, log_x=True,
        y_range=(max(1e-13, 0.5 * least), 2 * first), x_range=x_range,
        words=f"Distance from v*: {told}.",
    )  # fmt: skip


def _now(at: int | None) -> list[Mark]:
    """The iteration that is looked at."""
    return [] if at is None else [Mark("", at, "x")]


def _from_one(parts: list[Line], axis: str) -> tuple[float, float]:
    most = max((float(np.max(part.x)) for part in parts if len(part.x)), default=1.0)
    return (1.0, max(most, 2.0)) if axis != "seconds" else (0.05, max(most, 0.1))


def bracket(made: Comparison, state: int = 0, at: int | None = None) -> Html:
    """Picture 2: MacQueen's bounds of one state as a band, and who reports what inside it."""
    low, high = made.low[:, state], made.high[:, state]
    k, optimum = np.arange(1, len(low) + 1), float(made.solved.optimum[state])
    # Until the band is thin; the outliers of the first steps would hide the rest.
    width = high - low
    shown = max(8, int((width > 1e-3 * max(width[0], 1e-12)).sum()) + 2)
    k, low, high = k[:shown], low[:shown], high[:shown]
    parts = [Band("MacQueen's bracket", k, low, high, OKABE_ITO["green"])]
    for name in ("VI", "midpoint", "R1-VI"):
        plan = made.plans.get(name)
        if plan is not None and plan.values is not None:
            values = plan.values[1 : shown + 1, state]
            color, dash = STYLES[name]
            parts.append(Line(name, np.arange(1, len(values) + 1), values, color, dash))
    parts.append(Line("v*", [1, k[-1]], [optimum, optimum], MUTED, "2 3", 1.4))
    below, above = (
        float(np.max(side[2:], initial=1e-9)) for side in (optimum - low, high - optimum)
    )
    least = 0.1 * max(below, above)
    last = f"{low[-1]:.4g} to {high[-1]:.4g}"
    return chart(
        f"Bracket of state {state}", [*parts, *_now(at)], "iteration k", "value",
        y_range=(optimum - 1.6 * max(below, least), optimum + 1.6 * max(above, least)),
        words=f"Bracket of state {state}: in iteration {k[-1]} from {last}, optimum {optimum:.4g}. "
        "R1-VI and the midpoint lie inside, value iteration below.",
    )  # fmt: skip


def spectrum(made: Comparison) -> Html:
    """Picture 3: eigenvalues of gamma P of the optimal policy, and those of R1-VI's error."""
    solved = made.solved
    chain = solved.gamma * solved.eigenvalues
    kept = solved.error_eigenvalues(last_d(made))
    turn = np.linspace(0, 2 * np.pi, 80)
    circle = Line("unit circle", np.cos(turn), np.sin(turn), MUTED, "2 3", 1.0)
    rate = Line(
        f"γ|λ₂| = {solved.rate:.4g}", solved.rate * np.cos(turn), solved.rate * np.sin(turn),
        OKABE_ITO["vermillion"], "6 3", 1.2,
    )  # fmt: skip
    jump = Line("", [solved.gamma, 0], [0, 0], OKABE_ITO["vermillion"], "1 3", 1.4)
    return chart(
        "Spectrum", [
            circle, rate, jump,
            Dots("γP: value iteration", chain.real, chain.imag, INK, "ring", 4.0),
            Dots(dots_of(solved), kept.real, kept.imag, OKABE_ITO["vermillion"], "disc", 2.2),
        ], "real part", "imaginary part", x_range=(-1.5, 1.5), y_range=(-1.08, 1.08), height=250,
        words=f"Eigenvalues in the complex plane: the one at {solved.gamma:.4g} of value iteration "
        f"moves to 0, the others stay; the largest that stays has modulus {solved.rate:.4g}.",
    )  # fmt: skip


def dots_of(solved: Solved) -> str:
    """What the dots of R1-VI in the spectrum are, for its legend."""
    return "M: R1-VI" if solved.computed else "M: R1-VI, by fact D"


def gains(made: Comparison) -> Html:
    """Picture 4: gain matrices of VI, R1-VI and PI as heat maps with one scale."""
    solved, n = made.solved, made.solved.mdp.n
    title = '<figcaption style="font-weight:600">Gain matrices G</figcaption>'
    style = f"margin:0;width:380px;max-width:100%;font:12px/1.4 {FONT}"
    if n > LARGEST_GAIN:
        return Html(
            f'<figure style="{style}">{title}<p>Drawn for at most {LARGEST_GAIN} states; here are '
            f"{n}. Choose fewer, or a small family.</p></figure>"
        )
    d = last_d(made)
    matrices = gain_matrices(solved.chain, d, solved.gamma)
    top = float(max(matrix.max() for matrix in matrices.values()))
    scale = max(1, 110 // n)
    tiles = "".join(
        f'<div style="flex:1"><img alt="Gain matrix of {name}, from {matrix.min():.3g} to '
        f'{matrix.max():.3g}" style="width:100%;image-rendering:pixelated;border:1px solid {MUTED}"'
        f' src="{images.data_url(images.png(*images.field_image(matrix, 0, top, scale=scale)))}">'
        f"<div>{words}</div></div>"
        for (name, matrix), words in zip(
            matrices.items(), ("VI: I", "R1-VI: I + γ/(1−γ) 1dᵀ", "PI: (I − γP)⁻¹"), strict=True
        )
    )
    bar = _ramp("gain 0", f"{top:.3g}")
    return Html(
        f'<figure style="{style}">{title}<div style="display:flex;gap:8px;margin:4px 0">{tiles}'
        f"</div>{bar}</figure>"
    )


def _ramp(low: str, high: str) -> str:
    """The scale of a heat map, with the words at its ends."""
    colors = ",".join(images.colormap("cividis")[::17])
    return (
        '<div style="display:flex;gap:6px;align-items:center;font-size:11px;max-width:420px;'
        f'margin-top:6px"><span style="white-space:nowrap">{low}</span><div style="flex:1;'
        f'height:9px;background:linear-gradient(to right,{colors})"></div>{high}</div>'
    )


def last_d(made: Comparison) -> np.ndarray:
    """The latest d of R1-VI, the stationary distribution if it has not run."""
    plan = made.plans.get("R1-VI")
    known = plan is not None and plan.d is not None and np.isfinite(plan.d[-1]).all()
    return plan.d[-1] if known else made.solved.stationary


def policies(made: Comparison, at: int | None = None) -> Html:
    """Picture 5: states whose greedy action is wrong; VI and R1-VI coincide."""
    parts = []
    order = sorted(made.plans, key=lambda name: name != "VI")  # below R1-VI, which hides it
    for name in order:
        wrong = made.plans[name].wrong[:40]
        color, dash = STYLES[name]
        wide = 6.0 if name == "VI" else 2.0
        color = "#B8C0CA" if name == "VI" else color
        parts.append(Line(name, np.arange(len(wrong)), wrong, color, dash, wide))
    shown = max(
        [6, *(int(np.flatnonzero(p.wrong[:40])[-1]) + 3 for p in made.plans.values()
              if p.wrong[:40].any())]
    )  # fmt: skip
    return chart(
        "Wrong greedy actions", [*parts, *_now(at)], "iteration k", "states",
        x_range=(0, min(shown, 40)),
        words="States whose greedy action is not optimal, by iteration: value iteration, R1-VI and "
        "the midpoint coincide, but for ties.",
    )  # fmt: skip


def distribution(made: Comparison, at: int = 1) -> Html:
    """Picture 6: d_k of R1-VI against the stationary distribution, and their distance over k."""
    solved, plan = made.solved, made.plans.get("R1-VI")
    if plan is None or plan.d is None or len(plan.d) < 2:
        return Html("")
    far = distances(made)
    at = int(np.clip(at, 1, len(plan.d) - 1))
    order = np.argsort(-solved.stationary, kind="stable")[:60]
    x = np.arange(len(order))
    what = "states" if len(order) == solved.mdp.n else "60 most visited states"
    return chart(
        f"d of iteration {at}: distance {far[at - 1]:.3g} from stationary", [
            Bars("d", x, plan.d[at][order], OKABE_ITO["sky"]),
            Dots("stationary distribution", x, solved.stationary[order], INK, "cross", 2.4),
        ], f"{what}, sorted", "probability",
        y_range=(0, 1.15 * max(float(solved.stationary.max()), float(plan.d[at].max()), 1e-9)),
        words=f"The distribution d of iteration {at} and the stationary one: total variation "
        f"distance {far[at - 1]:.3g}.",
    )  # fmt: skip


def distances(made: Comparison) -> np.ndarray:
    """(k,) total-variation distances of R1-VI's d_1, d_2, ... from the stationary distribution."""
    return 0.5 * np.abs(made.plans["R1-VI"].d[1:] - made.solved.stationary).sum(1)


def tracking(made: Comparison, at: int | None = None) -> Html:
    """Picture 6, its lower half: total-variation distance of d_k from the stationary one."""
    plan = made.plans.get("R1-VI")
    if plan is None or plan.d is None or len(plan.d) < 2:
        return Html("")
    far = np.maximum(distances(made), 1e-16)
    color, _ = STYLES["R1-VI"]
    return chart(
        "Distance of d from stationary",
        [Line("", np.arange(1, len(far) + 1), far, color), *_now(at)],
        "iteration k", "total variation", log_y=True, y_range=(max(1e-16, far.min()), 1.0),
        height=150, words=f"Total variation distance from {far[0]:.2g} to {far[-1]:.2g}.",
    )  # fmt: skip


def grid(made: Comparison, at: int = 1) -> Html:
    """Picture 7: values and greedy arrows of VI and R1-VI over the cells of a grid world."""
    solved = made.solved
    if solved.mdp.grid is None:
        return Html("<p>Only FrozenLake and CliffWalking have cells to draw.</p>")
    optimum = solved.optimum
    low, high = float(min(optimum.min(), 0)), float(max(optimum.max(), 0))
    boards = []
    for name in ("VI", "R1-VI"):
        plan = made.plans.get(name)
        if plan is not None and plan.values is not None:
            k = min(at, len(plan.values) - 1)
            boards.append(_board(solved, f"{name}, iteration {k}", plan.values[k], low, high))
    boards.append(_board(solved, "optimum", optimum, low, high))
    bar = _ramp(f"value {low:.3g}", f"{high:.3g}")
    note = "Arrows: greedy actions. □ a terminal cell. Values beyond the scale have its end colors."
    return Html(
        f'<figure style="margin:0;font:12px/1.4 {FONT}"><div style="display:flex;flex-wrap:wrap;'
        f'gap:14px">{"".join(boards)}</div>{bar}<figcaption>{note}</figcaption></figure>'
    )


def _board(solved: Solved, title: str, value: np.ndarray, low: float, high: float) -> str:
    from workbench.numerics.mdp import bellman

    rows, columns = solved.mdp.grid
    _, policy = bellman(solved.mdp, value, solved.gamma)
    arrows = next(a for name, a in ARROWS.items() if solved.mdp.name.startswith(name))
    palette = images.colormap("cividis")
    codes = images.quantize(value.reshape(rows, columns), low, high)
    ends = solved.mdp.terminal
    cells = []
    for s in range(rows * columns):
        i, j = divmod(s, columns)
        shade = int(codes[i, j])
        sign = "□" if ends is not None and ends[s] else arrows[policy[s]]
        ink = "#FFFFFF" if shade < 140 else INK
        cells.append(
            f'<rect x="{24 * j}" y="{24 * i}" width="23" height="23" fill="{palette[shade]}"/>'
            f'<text x="{24 * j + 11.5}" y="{24 * i + 16}" text-anchor="middle" fill="{ink}">{sign}'
            "</text>"
        )
    wrong = int((~solved.best[np.arange(solved.mdp.n), policy]).sum())
    words = f"{title}: {wrong} wrong actions, error {np.abs(value - solved.optimum).max():.3g}"
    return (
        f'<div><b>{html.escape(title)}</b><svg role="img" aria-label="{html.escape(words)}" '
        f'viewBox="0 0 {24 * columns} {24 * rows}" style="display:block;'
        f'width:{24 * columns}px;max-width:100%;font:14px {FONT}">{"".join(cells)}</svg>'
        f"{wrong} wrong, error {np.abs(value - solved.optimum).max():.3g}</div>"
    )


def learning(found: dict[str, Learning] | None, subtract: bool = False) -> Html:
    """Picture 8: errors of the learners, median and 10-90 % over seeds, or up to a constant."""
    if not found:
        return Html("")
    parts = []
    for name, learned in found.items():
        rows = learned.spread if subtract else learned.errors
        band = np.quantile(rows, [0.1, 0.9], axis=0) if len(rows) > 2 else (None, None)
        wide = 5.0 if subtract and name == coinciding(found) else 2.0
        parts.append(Line(name, learned.steps, np.median(rows, axis=0), *STYLES[name], wide, *band))
    what = "half the span of q − q*" if subtract else "max |q − q*|"
    seeds = len(next(iter(found.values())).errors)
    ends = ", ".join(
        f"{name} {np.median(run.spread[:, -1] if subtract else run.errors[:, -1]):.3g}"
        for name, run in found.items()
    )
    return chart(
        f"Learning, median of {seeds} seeds", parts, "steps", what, log_x=True, log_y=True,
        width=620, height=340, words=f"Errors of the learners at the last step: {ends}.",
    )  # fmt: skip
