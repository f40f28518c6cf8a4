"""Pictures of trained networks as text (SVG): accuracy, differences, attacks, the forget button.

Pure functions of arrays, for the live part and while a study runs.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from workbench.theme import FONT, INK, MUTED, OKABE_ITO, Html
from workbench.widgets import images
from workbench.widgets.svg import Band, Dots, Line, Mark, Scale, chart

from .audit import auc_interval
from .comparison import differences, half_width
from .drawings import METHODS, NARROW, WIDE, note, row, steps_of
from .mechanisms import TWINS
from .memory import Membership

_C = OKABE_ITO


FROM_OLD = ("finetune", "clip", "op", "op_classical", "gc", "mc")  # start from the old model


def shown_methods(
    found: Mapping[str, object], twins: bool, only: Collection[str] | None = None
) -> list[str]:
    """Keys of what was measured, in the common order.

    twins: also those that start from 0. only: methods to show, each with its twin; None for all.
    """
    kept = None if only is None else {*only, *(TWINS[key] for key in only if key in TWINS)}
    return [
        key for key in METHODS
        if key in found and (twins or key not in TWINS.values()) and (kept is None or key in kept)
    ]  # fmt: skip


def accuracy_chart(
    budget: Sequence[float], test: Mapping[str, np.ndarray], noisy: int = 0, twins: bool = False,
    only: Collection[str] | None = None,
) -> Html:  # fmt: skip
    """Mean test accuracy (S, K) of each method against steps, with two standard errors.

    noisy: steps of the longest certified phase, shaded. twins, only: as in `shown_methods`.
    """
    x = np.asarray(budget, float)
    parts: list = []
    if noisy:
        parts.append(Band("noisy phase", [0, noisy], [0, 0], [1, 1], MUTED, 0.25))
    for key in shown_methods(test, twins, only):
        title, color, dash = METHODS[key]
        mean, error = mean_and_error(test[key])
        if np.isfinite(mean).any():
            parts.append(Line(title, x, mean, color, dash))
            if key not in TWINS.values():  # theirs would lie on those of their siblings
                parts.insert(0, Band("", x, mean - 2 * error, mean + 2 * error, color, 0.09))
    parts.append(Mark("chance", 0.1))
    return chart(
        "Test accuracy against steps, noisy ones included", parts, "steps of SGD", "accuracy",
        x_range=(0, float(x.max(initial=1)) * 1.03), y_range=(0, 1), width=WIDE, height=310,
    )  # fmt: skip


def path_chart(
    path: Mapping[str, tuple[np.ndarray, np.ndarray]], noisy: Mapping[str, int],
    twins: bool = False, only: Collection[str] | None = None, original: float = np.nan,
) -> Html:  # fmt: skip
    """Test accuracy within one run: steps (t,) and accuracy (S, t) of each method, seeds averaged.

    noisy: the certified steps of each; the longest phase is shaded. original: accuracy of the old
    model, where methods that start from it begin, before they clip it.
    """
    parts: list = []
    longest = max((T for key, T in noisy.items() if key in path), default=0)
    if longest:
        parts.append(Band("noisy phase", [0, longest], [0, 0], [1, 1], MUTED, 0.25))
    for key in shown_methods(path, twins, only):
        steps, values = path[key]
        title, color, dash = METHODS[key]
        if len(steps):
            mean = np.nanmean(np.atleast_2d(values), 0)
            if key in FROM_OLD and np.isfinite(original):
                steps, mean = np.append(0, steps), np.append(original, mean)
            parts.append(Line(title, steps, mean, color, dash, 1.8))
    parts.append(Mark("chance", 0.1))
    return chart("Within one run: the fall to chance, and the way back", parts, "step",
                 "test accuracy", y_range=(0, 1), width=WIDE, height=270)  # fmt: skip


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over seeds (S, K); nan where there is none."""
    values = np.atleast_2d(np.asarray(values, float))
    count = np.isfinite(values).sum(0)
    filled = np.where(np.isfinite(values), values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(0) / count
        spread = np.where(np.isfinite(values), values - mean, 0.0)
        error = np.sqrt((spread**2).sum(0) / (count - 1) / count)
    return mean, error


def paired(a: np.ndarray, b: np.ndarray) -> tuple[float, float, int, int]:
    """Mean difference of two methods (S,) on the same seeds, 1.96 standard errors, wins, seeds."""
    found = differences(a, b)
    mean = float(found.mean()) if len(found) else np.nan
    return mean, half_width(found), int((found > 0).sum()), len(found)


PAIRS = [
    (a, b)
    for a in ("gc", "mc")
    for b in ("retrain", "retrain_torch", "retrain_tuned", "op", f"{a}_noinfo", "finetune")
]


def forest(test: Mapping[str, np.ndarray], column: int, steps: int) -> Html:
    """Paired differences in accuracy at one budget: mean, 95 % interval, seeds won."""
    rows = [
        (f"{METHODS[a][0]} − {METHODS[b][0]}", *paired(test[a][:, column], test[b][:, column]))
        for a, b in PAIRS
        if a in test and b in test
    ]
    rows = [r for r in rows if r[4]]
    if not rows:
        return note("No pair of methods has been measured yet.")
    ends = [abs(m) + (h if np.isfinite(h) else 0) for _, m, h, _, _ in rows]
    reach = max(0.05, 1.1 * max(ends))
    left, right, step = 270, WIDE - 70, 22
    x = Scale(-reach, reach, left, right)
    height = step * len(rows) + 34
    parts = [
        f'<path d="M{float(x(0)):.1f} 4V{height - 26}" stroke="currentColor" '
        'stroke-dasharray="4 3"/>'
    ]
    for tick in x.ticks():
        parts.append(
            f'<text x="{float(x(tick)):.1f}" y="{height - 12}" text-anchor="middle">{tick:+.2g}'
            "</text>"
        )
    spoken = []
    for i, (name, mean, half, wins, n) in enumerate(rows):
        y = 14 + step * i
        apart = np.isfinite(half) and abs(mean) > half
        color = _C["vermillion"] if apart else MUTED
        if np.isfinite(half):
            ends = x([mean - half, mean + half])
            parts.append(
                f'<path d="M{ends[0]:.1f} {y}H{ends[1]:.1f}" stroke="{color}" stroke-width="2.4"/>'
            )
        shape = (
            f'<rect x="{float(x(mean)) - 4:.1f}" y="{y - 4}" width="8" height="8" fill="{color}"/>'
            if apart
            else f'<circle cx="{float(x(mean)):.1f}" cy="{y}" r="4" fill="white" '
            f'stroke="{color}" stroke-width="2"/>'
        )
        parts.append(
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{html.escape(name)}</text>{shape}'
            f'<text x="{right + 8}" y="{y + 4}">{wins} of {n}</text>'
        )
        spoken.append(f"{name} {mean:+.3f} ± {half:.3f}")
    title = f"Paired differences at {steps} steps: filled where the 95 % interval leaves out 0"
    return _figure(title, "; ".join(spoken), WIDE, height, "".join(parts),
                   "right: seeds in which the first is better")  # fmt: skip


def _figure(title: str, spoken: str, width: int, height: int, inside: str, below: str = "") -> Html:
    return Html(
        f'<figure style="margin:0 0 6px;width:{width}px;max-width:100%;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, {INK})"><figcaption style="font-weight:600">'
        f'{html.escape(title)}</figcaption><svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{html.escape(f"{title}: {spoken}")}" style="width:100%;height:auto;'
        f'display:block;font:11px {FONT};fill:currentColor">{inside}</svg><div>{below}</div>'
        "</figure>"
    )


# Attacks ----------------------------------------------------------------------------------------


def areas(found: Membership) -> dict[str, tuple[float, float, float]]:
    """AUC of the attack on the first seed, with interval, for each method whose losses it has."""
    shown = {}
    for key, (members, others) in found.losses.items():
        area = float(found.auc[key, 0 if key == "original" else found.shown][0])
        shown[key] = (area, *auc_interval(area, len(members), len(others)))
    return shown


def loss_histograms(
    losses: Mapping[str, tuple[np.ndarray, np.ndarray]],
    auc: Mapping[str, tuple[float, float, float]],
    chosen: int | None = None,
) -> Html:
    """Losses of deleted examples and of others, after each method; the attacker's AUC.

    losses: deleted (m,) and never seen (k,); auc: value and interval; chosen: one deleted example.
    """
    figures = []
    known = np.log10(
        np.maximum(np.concatenate([v for pair in losses.values() for v in pair]), 1e-6)
    )
    low, high = np.quantile(known[np.isfinite(known)], [0.005, 0.995])
    edges = np.linspace(low - 0.05, high + 0.05, 39)
    for key, (members, others) in losses.items():
        logs = [np.log10(np.maximum(v, 1e-6)) for v in (members, others)]
        parts: list = []
        for name, values, color, dash in (
            ("never seen", logs[1], _C["blue"], "6 3"),
            ("deleted", logs[0], _C["vermillion"], ""),
        ):
            x, y = steps_of(np.clip(values, edges[0], edges[-1] - 1e-9), edges)
            parts += [Band("", x, 0 * y, y, color, 0.18), Line(name, x, y, color, dash, 1.6)]
        if chosen is not None:
            parts.append(Mark("chosen", float(np.clip(logs[0][chosen], edges[0], edges[-1])), "x"))
        value, least, most = auc.get(key, (np.nan,) * 3)
        title = "original" if key == "original" else METHODS[key][0]
        figures.append(chart(
            f"{title[0].upper()}{title[1:]}: AUC {value:.3f}", parts,
            f"log10 of the loss (AUC in [{least:.3f}, {most:.3f}])", "density",
            x_range=(float(edges[0]), float(edges[-1])), width=NARROW, height=190,
        ))  # fmt: skip
    return row(*figures)


def user_chart(
    image: np.ndarray, label: int, given: int, path: Mapping[str, tuple[np.ndarray, np.ndarray]],
    user: int,
) -> Html:  # fmt: skip
    """One deleted example: its picture, and its loss along each method.

    path: steps (t,) and losses (t, m) of all deleted examples, of which `user` is one.
    """
    parts = []
    for key, (steps, values) in path.items():
        title, color, dash = METHODS.get(key, (key, INK, ""))
        parts.append(Line(title, steps, np.maximum(values[:, user], 1e-6), color, dash, 1.8))
    words = f"Loss of this example, trained with label {given}" + (
        f" (it is a {label})" if given != label else ""
    )
    figure = chart(words, parts, "step", "cross-entropy", log_y=True, width=WIDE - 120, height=230)
    picture = (
        f'<img alt="The digit, a {label}" src="{digit_url(image)}" width="96" height="96" '
        f'style="image-rendering:pixelated;border:1px solid {MUTED};border-radius:4px;'
        'margin-top:20px"/>'
    )
    return row(picture, figure)


def digit_url(image: np.ndarray) -> str:
    """An 8 x 8 digit in [0, 1], flat or not, dark on light, as the address of a picture."""
    pixels = (255 * (1 - np.clip(image, 0, 1))).astype(np.uint8).reshape(8, 8)
    return images.data_url(images.png(pixels, [f"#{v:02X}{v:02X}{v:02X}" for v in range(256)]))


# The forget button --------------------------------------------------------------------------------


def clock_chart(epsilon: Sequence[float], target: float, T: int) -> Html:
    """The certificate while it runs: epsilon (t,) after each noisy step, and what was asked."""
    spent = np.asarray(epsilon, float)
    t = np.arange(1, len(spent) + 1)
    known = spent[np.isfinite(spent)]
    top = max(float(known.max(initial=target)), target) * 2
    titles = [f"after step {k}: ε = {e:.4g}" for k, e in zip(t, spent, strict=True)]
    parts = [
        Line("", t, spent, _C["vermillion"]),
        Dots("ε if stopped here", t, spent, _C["vermillion"], "disc", 4, titles),
        Mark("", target),
    ]
    low = min(float(known.min(initial=target)), target) / 2
    return chart(
        f"Certificate clock: {len(spent)} of {T} steps, asked ε = {target:g}", parts,
        "noisy step", "ε",
        x_range=(0, T + 0.5), y_range=(low, top), log_y=True, width=NARROW + 20, height=240,
    )  # fmt: skip


def run_chart(steps: Sequence[float], accuracy: Sequence[float], T: int, budget: int) -> Html:
    """Test accuracy of the run behind the forget button, the noisy phase shaded."""
    parts = [
        Band("noisy phase", [0, T], [0, 0], [1, 1], MUTED, 0.25),
        Line("test accuracy", steps, accuracy, _C["blue"]),
        Mark("chance", 0.1),
    ]
    return chart("Accuracy while it forgets", parts, "step", "accuracy", x_range=(0, budget),
                 y_range=(0, 1), width=NARROW + 20, height=240)  # fmt: skip
