"""Compiled halves of the parallel approximate kernel: propose copies, then accept them.

Between the two, the network prices all proposals of all chains at once. Both work on the chains of
`_kernels` (labels with a halo, border sites listed), so every analytic term is priced by the same
code as in the serial engine.
"""

from __future__ import annotations

import numpy as np

from ._kernels import (
    BORDER_SOURCE,
    change_perimeters,
    count_unlike,
    draw,
    mark_active,
    relist,
    single,
    unit,
)
from ._prices import compiled, home, price, stays_whole, total, write


@compiled
def bring_forward(index, position, other):
    """Exchange two entries of a list of border sites."""
    key, moved = index[0, position], index[0, other]
    index[0, position], index[0, other] = moved, key
    index[1, moved], index[1, key] = position, other


@compiled
def propose(state, model, first, last, target, label, delta):
    """Fill target, label (n, P) and the analytic price delta (n, P) for chains first..last - 1.

    P border sites without replacement are sources; each picks one unlike neighbor uniformly. target
    counts sites without halo. Unused places, and copies that a hard rule forbids, get label -1.
    """
    height, width = model.shape
    stride = width + 2
    for chain in range(first, last):
        own = single(state, chain)
        random, listed = own.random[0], own.listed[0]
        for k in range(target.shape[1]):
            target[chain, k], label[chain, k], delta[chain, k] = 0, -1, 0.0
            if k >= listed:
                continue
            random, value = draw(random)
            bring_forward(own.index, k, k + int(unit(value) * (listed - k)))
            source = own.index[0, k]
            random, value = draw(random)
            remaining = int(unit(value) * count_unlike(own.label, source, model.offset))
            d = 0
            for step in range(8):
                if own.label[source + model.offset[step]] != own.label[source]:
                    if remaining == 0:
                        d = step
                    remaining -= 1
            site = home(source + model.offset[d], height, width)
            target[chain, k] = (site // stride - 1) * width + site % stride - 1
            old, new = own.label[site], own.label[source]
            if own.volume[old] > 1 and stays_whole(own.label, model, site, old):
                label[chain, k] = new
                delta[chain, k] = total(price(own, model, site, (d + 4) % 8, new))
        own.random[0] = random


@compiled
def accept(state, model, first, last, target, label, delta):
    """Metropolis tests of all proposals against the same state, then the accepted copies in order.

    delta (n, P): total price. The last copy onto a target wins; a copy that would take the last
    site of a label, because copies before it in the same step took the others, is left out.
    """
    height, width = model.shape
    for chain in range(first, last):
        own = single(state, chain)
        random = own.random[0]
        for k in range(target.shape[1]):
            new = label[chain, k]
            if new < 0:
                continue
            own.counts[1] += 1
            random, value = draw(random)
            if unit(value) >= np.exp(-max(0.0, delta[chain, k] * model.inverse_T)):
                continue
            site = (target[chain, k] // width + 1) * (width + 2) + target[chain, k] % width + 1
            old = own.label[site]
            if old == new or own.volume[old] <= 1:
                continue
            change_perimeters(own.perimeter, own.label, site, old, new, model.offset)
            write(own.label, site, new, height, width)
            own.volume[old] -= 1
            own.volume[new] += 1
            mark_active(own.activity, model, site, new)
            relist(own.index, own.listed, own.label, model, BORDER_SOURCE, site)
            own.counts[0] += 1
        own.random[0] = random
