"""The price of one copy attempt, term by term, as compiled functions on flat arrays.

Labels carry a one-site halo, so that the eight neighbors of a site are eight constant offsets and
the torus needs no modulo. Optional terms are `None` when they are off: the compiler then drops
their code, so the plain model pays nothing for the motility models. No proposal, no acceptance and
no validation here: see `_kernels` and `ensemble`. The terms are those of the paper and its official
code (contact, volume, external field) and of the wider literature (perimeter, chemotaxis, Act,
directed motion).
"""

from typing import NamedTuple

import numpy as np

try:
    from numba import config, njit
except ImportError as error:
    raise ImportError(
        "the cellular Potts engine needs numba, there is no slower way without it: "
        "pip install numba"
    ) from error

N_THREADS = config.NUMBA_NUM_THREADS

# (row, column) steps to the eight neighbors, clockwise, so that direction d faces (d + 4) % 8
RING = np.array([(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)])
RING.setflags(write=False)


class Model(NamedTuple):
    """What all chains share: K kinds, N cells, S = (H + 2) * (W + 2) sites with halo."""

    shape: tuple  # (H, W)
    offset: np.ndarray  # (8,) flat steps to the neighbors in the order of RING
    kind: np.ndarray  # (N + 1,) int32
    contact: np.ndarray  # (K, K) contact_norm * J
    volume: np.ndarray  # (2, K) weight and target; weight 0 for medium
    perimeter: np.ndarray | None  # (2, K) weight and target
    motility: np.ndarray | None  # (5, K): act weight and maximum, chemotaxis and motion weights,
    # and whether motion is about the centers of the cells
    chemistry: np.ndarray | None  # (3 + K,): diffusion, decay, steps per MCS, secretion per kind
    connected: np.ndarray  # (K,) bool
    loose: np.ndarray  # (256,) bool: which rings of own sites may lose their center
    inverse_T: float


class State(NamedTuple):
    """What belongs to each of n chains: every array has an axis n, which `single` removes."""

    label: np.ndarray  # (n, S) int32
    volume: np.ndarray  # (n, N + 1) int64
    perimeter: np.ndarray | None  # (n, N + 1) int64
    activity: np.ndarray | None  # (n, S) int32
    concentration: np.ndarray | None  # (n, 2, S) float64: the field, and room for its next value
    direction: np.ndarray | None  # (n, N + 1, 2) float64, (row, column) vectors
    center: np.ndarray | None  # (n, N + 1, 2) float64, (row, column)
    fields: np.ndarray | None  # (1 or n, K, S) float64, zero for medium
    index: np.ndarray | None  # (n, 2, S or 8 S) int32: listed keys, and where each key is listed
    listed: np.ndarray  # (n,) int64 length of the list
    random: np.ndarray  # (n,) uint64
    clock: np.ndarray  # (n,) float64 MCS
    finished: np.ndarray  # (n,) int64 whole MCS whose closing events have happened
    counts: np.ndarray  # (n, 2) int64 accepted copies, unlike attempts


def ring_table() -> np.ndarray:
    """(256,) bool: True where the own sites in the ring form exactly one 8-connected piece."""
    touching = np.abs(RING[:, None] - RING[None]).max(axis=2) <= 1
    table = np.zeros(256, bool)
    for mask in range(1, 256):
        own = [d for d in range(8) if mask >> d & 1]
        reached = {own[0]}
        while grown := {d for d in own if d not in reached and touching[d, list(reached)].any()}:
            reached |= grown
        table[mask] = len(reached) == len(own)
    return table


# `_nrt=False` because reference counts of a dozen arrays per attempt cost three times the attempt
# itself; so nothing compiled here may allocate. Inlining all lets the terms share their loads.
compiled = njit(
    cache=True, nogil=True, fastmath=True, error_model="numpy", forceinline=True, _nrt=False
)


@compiled
def home(site, height, width):
    """The flat index of the inner site that a halo site mirrors."""
    row, column = divmod(site, width + 2)
    row = height if row == 0 else (1 if row == height + 1 else row)
    column = width if column == 0 else (1 if column == width + 1 else column)
    return row * (width + 2) + column


@compiled
def write(array, site, value, height, width):
    """Set an inner site and its mirrors in the halo."""
    array[site] = value
    row, column = divmod(site, width + 2)
    if row == 1 or row == height or column == 1 or column == width:
        far_row = height + 1 if row == 1 else (0 if row == height else row)
        far_column = width + 1 if column == 1 else (0 if column == width else column)
        array[far_row * (width + 2) + column] = value
        array[row * (width + 2) + far_column] = value
        array[far_row * (width + 2) + far_column] = value


@compiled
def look_around(label, model, target, old, new):
    """Contact energy change, and numbers of old and new neighbors."""
    kind_old, kind_new = model.kind[old], model.kind[new]
    energy = 0.0
    n_old, n_new = 0, 0
    for d in range(8):
        other = label[target + model.offset[d]]
        kind = model.kind[other]
        energy += model.contact[kind_new, kind] - model.contact[kind_old, kind]
        n_old += other == old
        n_new += other == new
    energy += n_old * model.contact[kind_old, kind_old] - n_new * model.contact[kind_new, kind_new]
    return energy, n_old, n_new


@compiled
def stays_whole(label, model, target, old):
    """Whether `old` may lose the target: always, unless its kind is kept connected."""
    whole = True
    if model.connected[model.kind[old]]:
        mask = 0
        for d in range(8):
            mask |= (label[target + model.offset[d]] == old) << d
        whole = model.loose[mask]
    return whole


@compiled
def volume_change(volume, model, old, new):
    """Change of sum lambda (V - V*)^2 when `new` gains a site of `old`."""
    kind_old, kind_new = model.kind[old], model.kind[new]
    return model.volume[0, kind_new] * (
        1.0 + 2.0 * (volume[new] - model.volume[1, kind_new])
    ) + model.volume[0, kind_old] * (1.0 - 2.0 * (volume[old] - model.volume[1, kind_old]))


@compiled
def perimeter_change(perimeter, model, old, new, n_old, n_new):
    """Change of sum lambda^P (P - P*)^2; the perimeters change by 8 - 2 n_new and 2 n_old - 8."""
    if perimeter is None:
        return 0.0
    kind_old, kind_new = model.kind[old], model.kind[new]
    gain, loss = 8.0 - 2.0 * n_new, 2.0 * n_old - 8.0
    excess_new = perimeter[new] - model.perimeter[1, kind_new]
    excess_old = perimeter[old] - model.perimeter[1, kind_old]
    return model.perimeter[0, kind_new] * gain * (gain + 2.0 * excess_new) + model.perimeter[
        0, kind_old
    ] * loss * (loss + 2.0 * excess_old)


@compiled
def field_change(fields, kind, target, old, new):
    """Change of the external field energy at the target."""
    if fields is None:
        return 0.0
    return fields[kind[new], target] - fields[kind[old], target]


@compiled
def local_activity(label, activity, site, offset):
    """Geometric mean of the activities of a site and its neighbors of the same cell (Act model)."""
    cell = label[site]
    if cell == 0:
        return 0.0
    product, n = np.float64(activity[site]), 1
    for d in range(8):
        other = site + offset[d]
        if label[other] == cell:
            product *= activity[other]
            n += 1
    return product ** (1.0 / n)


@compiled
def pull(state, model, target, cell):
    """How far the target lies from a cell's center along the cell's direction, on the torus."""
    height, width = model.shape
    row = target // (width + 2) - 1 - state.center[cell, 0]
    column = target % (width + 2) - 1 - state.center[cell, 1]
    row -= height * np.rint(row / height)
    column -= width * np.rint(column / width)
    return state.direction[cell, 0] * row + state.direction[cell, 1] * column


@compiled
def copy_prices(motility, state, model, target, d, old, new):
    """(chemotaxis, act, directed motion): prices of the copy that are no part of the energy."""
    if motility is None:
        return 0.0, 0.0, 0.0
    height, width = model.shape
    source = home(target + model.offset[d], height, width)
    kind_new = model.kind[new]
    chemotaxis, act, motion = 0.0, 0.0, 0.0
    ruling = kind_new if new != 0 else model.kind[old]
    if motility[0, ruling] != 0.0:
        act = (motility[0, ruling] / motility[1, ruling]) * (
            local_activity(state.label, state.activity, target, model.offset)
            - local_activity(state.label, state.activity, source, model.offset)
        )
    if motility[2, kind_new] != 0.0:
        rise = state.concentration[0, target] - state.concentration[0, source]
        chemotaxis = -motility[2, kind_new] * rise
    if motility[4, kind_new] != 0.0:
        gain = motility[3, kind_new] * pull(state, model, target, new)
        motion = motility[3, model.kind[old]] * pull(state, model, target, old) - gain
    elif motility[3, kind_new] != 0.0:
        along = state.direction[new, 0] * RING[d, 0] + state.direction[new, 1] * RING[d, 1]
        motion = motility[3, kind_new] * along  # the copy moves against d, hence no minus
    return chemotaxis, act, motion


@compiled
def total(terms):
    """Sum of the seven terms of `price`."""
    return terms[0] + terms[1] + terms[2] + terms[3] + terms[4] + terms[5] + terms[6]


@compiled
def price(state, model, target, d, new):
    """Seven terms of the price of copying `new` from neighbor d onto `target`."""
    old = state.label[target]
    contact, n_old, n_new = look_around(state.label, model, target, old, new)
    chemotaxis, act, motion = copy_prices(model.motility, state, model, target, d, old, new)
    return (
        contact,
        volume_change(state.volume, model, old, new),
        perimeter_change(state.perimeter, model, old, new, n_old, n_new),
        field_change(state.fields, model.kind, target, old, new),
        chemotaxis,
        act,
        motion,
    )
