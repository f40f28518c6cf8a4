"""The subspace in which a step of the attack is found: singular vectors to mix, a plane to look at.

`linearize` states and solves the small program of one SQP step on one image (reconstruction, as in
`sqp.py`). `Program.perturbation` mixes the right singular vectors with any coefficients;
`plane_steps` asks the network on a plane that two of them span. Arrays in float64; no widget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from workbench.numerics.checks import choice
from workbench.steps import Step, Steps

from ._checks import like_weights, number, whole
from .jacobian import forward
from .least_distance import BoxedSolution
from .sqp import RisingOptions, linear_programs

SLICES = ("solution", "image")
PLANE_ROWS = 8  # rows of the grid for one forward pass, between two looks at cancel


@dataclass(frozen=True)
class Program:
    """The linearized program of one image (C, H, W) with its solution; order (K,)."""

    image: np.ndarray
    order: tuple[int, ...]
    solution: BoxedSolution

    @property
    def rank(self) -> int:
        """Number of singular vectors."""
        return len(self.solution.coefficients)

    def direction(self, k: int) -> np.ndarray:
        """(D,) right singular vector k, largest singular value first; 0 on fixed pixels."""
        full = np.zeros(self.image.size)
        full[self.solution.free] = self.solution.right_vectors[:, k]
        return full

    def perturbation(self, z: ArrayLike, fixed: float = 1.0) -> np.ndarray:
        """(C, H, W): V z on the free pixels, `fixed` of the bound on the others, inside the box.

        z (r,). With z = solution.coefficients and fixed = 1 it is the solution of the program.
        """
        z = np.asarray(z, float)
        if z.shape != (self.rank,):
            raise ValueError(f"z has shape {z.shape}: there are {self.rank} coefficients")
        solution = self.solution
        delta = fixed * solution.delta
        delta[solution.free] = solution.right_vectors @ z
        clean = self.image.ravel()
        return (np.clip(clean + delta, 0, 1) - clean).reshape(self.image.shape)


def linearize(
    model: nn.Module, image: Tensor, delta: Tensor, order: Sequence[int], options: RisingOptions
) -> Program:
    """The program of the SQP step from `image` + `delta`, both (C, H, W), as the attack solves it.

    Raises ValueError when the logits do not depend on the image.
    """
    targets = torch.tensor([list(order)], device=image.device)
    x, start = image[None], delta[None]
    logits = forward(model, x + start)
    (solution,) = linear_programs(model, x, start, logits, targets, options)
    if not solution.G.any():
        raise ValueError("zero Jacobian: the model's logits do not depend on this image")
    return Program(image.double().cpu().numpy(), tuple(order), solution)


def places_right(logits: ArrayLike, order: Sequence[int]) -> np.ndarray:
    """(n,) how many first places of logits (n, C) agree with the order, 0 to K."""
    order = np.asarray(order)
    ranked = np.argsort(-np.asarray(logits, float), axis=1, kind="stable")[:, : len(order)]
    return np.cumprod(ranked == order, axis=1).sum(1)


@dataclass(frozen=True)
class Plane:
    """A plane of perturbations offset + a first + b second, and what the network says there.

    axes: numbers of the two singular vectors. a (n,), b (n,): the grid; places (n, n): first places
    in the wanted order at b[row], a[column]; K of them is the wanted cell. lines (m, 3): row i of
    the program holds where lines[i, 0] a + lines[i, 1] b >= lines[i, 2]; active (m,): with a
    positive multiplier. cell, box (p, 2): corners of the linearized cell and of the plane's part
    inside [0, 1], empty if there is none. iterates (k, 2): the attack's way, projected;
    solution (2,): the program's.
    """

    axes: tuple[int, int]
    through: str
    K: int
    a: np.ndarray
    b: np.ndarray
    places: np.ndarray
    lines: np.ndarray
    active: np.ndarray
    cell: np.ndarray
    box: np.ndarray
    iterates: np.ndarray
    solution: np.ndarray

    @property
    def window(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of the grid."""
        return self.a[0], self.b[0], self.a[-1], self.b[-1]


def plane_steps(
    model: nn.Module,
    program: Program,
    deltas: Sequence[Tensor] = (),
    through: str = "solution",
    zoom: float = 1.0,
    n: int = 61,
) -> Steps[Plane]:
    """The plane of the two singular vectors with the largest coefficients; n x n forward passes.

    deltas: iterates (C, H, W) of an attack. through: "image" is the plane through the clean image;
    "solution" keeps the other coefficients and fixed pixels at the program's solution, so that the
    plane holds it. zoom: 1 shows the whole way, more the surroundings of the solution (of the clean
    image in its own plane). ValueError when fewer than two directions are left.
    """
    choice("through", through, SLICES)
    number("zoom", zoom, 1)
    whole("n", n, 3, 401)
    solution = program.solution
    if program.rank < 2:
        raise ValueError(
            f"the program has {program.rank} singular vector; a plane needs 2: let more classes "
            "take part (K, rivals) or raise rank"
        )
    axes = np.argsort(-np.abs(solution.coefficients), kind="stable")[:2]
    first, second = (program.direction(k) for k in axes)
    spanned = np.stack([first, second])
    at_solution = solution.coefficients[axes]
    offset = np.zeros(program.image.size)
    if through == "solution":
        offset = solution.delta - at_solution @ spanned
    iterates = np.array([spanned @ d.double().cpu().numpy().ravel() for d in deltas])
    iterates = iterates.reshape(-1, 2)
    shown = np.vstack([np.zeros((1, 2)), at_solution[None], iterates])
    low, high = shown.min(0), shown.max(0)
    half = 0.7 * max((high - low).max(), 1e-3)
    focus = at_solution if through == "solution" else np.zeros(2)
    # Moves from the middle of everything to the focus, which stays inside all the while.
    middle = focus + ((low + high) / 2 - focus) / zoom
    a, b = (np.linspace(m - half / zoom, m + half / zoom, n) for m in middle)

    lines = np.column_stack([solution.G @ spanned.T, solution.h - solution.G @ offset])
    clean = program.image.ravel() + offset
    walls = np.vstack(
        [np.column_stack([spanned.T, -clean]), np.column_stack([-spanned.T, clean - 1])]
    )
    window = np.array([[a[0], b[0]], [a[-1], b[0]], [a[-1], b[-1]], [a[0], b[-1]]])

    origin, basis = torch.as_tensor(clean), torch.as_tensor(spanned)
    places = np.zeros((n, n), int)
    for start in range(0, n, PLANE_ROWS):
        rows = slice(start, start + PLANE_ROWS)
        points = torch.cartesian_prod(torch.as_tensor(b[rows]), torch.as_tensor(a)).flip(1)
        x = like_weights(model, origin + points @ basis).view(-1, *program.image.shape)
        places[rows] = places_right(forward(model, x).cpu().numpy(), program.order).reshape(-1, n)
        yield Step(min(1.0, (start + PLANE_ROWS) / n), "asking the network on the plane")
    return Plane(
        tuple(int(k) for k in axes), through, len(program.order), a, b, places, lines,
        solution.active,
        clipped(window, lines), clipped(window, walls), iterates, at_solution,
    )  # fmt: skip


def clipped(polygon: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """The part of a convex polygon (p, 2) where every row of lines (m, 3) holds; (0, 2) if none.

    A row holds where row[0] a + row[1] b >= row[2] (Sutherland and Hodgman, 1974).
    """
    corners = np.asarray(polygon, float)
    for row in lines:
        value = corners @ row[:2] - row[2] + 1e-9  # corners on a line stay
        if (value >= 0).all():
            continue
        kept = []
        for k in range(len(corners)):
            here, there = value[k - 1], value[k]
            if (here >= 0) != (there >= 0):
                kept.append(corners[k - 1] + here / (here - there) * (corners[k] - corners[k - 1]))
            if there >= 0:
                kept.append(corners[k])
        corners = np.array(kept).reshape(-1, 2)
    return corners
