"""Compiled proposal rules of the cellular Potts engine: draw a copy, test it, keep the books.

Four rules share one Metropolis test: `uniform` draws sites, the others draw from lists kept by
swap-remove. Chains are independent; a caller spreads ranges of them over threads (the functions
release the interpreter lock). No validation and no seeding happens here; `lattice.CPM` does both.
The rules are those of the paper, its official code and Artistoo; the data layout is ours.
"""

import numpy as np

from ._prices import State, compiled, home, price, stays_whole, total, write

UNIFORM, EDGES, BORDER_TARGET, BORDER_SOURCE = range(4)
RULES = {
    "uniform": UNIFORM,
    "edges": EDGES,
    "border_target": BORDER_TARGET,
    "border_source": BORDER_SOURCE,
}


@compiled
def draw(state):
    """Next state and value of splitmix64: a short chain, so that attempts overlap in the CPU."""
    state = np.uint64(state + np.uint64(0x9E3779B97F4A7C15))
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, z ^ (z >> np.uint64(31))


@compiled
def unit(value):
    """Uniform float in [0, 1) from 64 random bits."""
    return np.float64(value >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def change_perimeters(perimeter, label, target, old, new, offset):
    """Keep the perimeters in step with a copy that has not been written yet."""
    if perimeter is not None:
        for d in range(8):
            other = label[target + offset[d]]
            perimeter[old] += 2 * (other == old) - 1
            perimeter[new] += 1 - 2 * (other == new)


@compiled
def mark_active(activity, model, target, new):
    """A site gets the largest activity of its kind when a copy lands on it (Act model)."""
    if activity is not None:
        top = 0 if new == 0 else int(model.motility[1, model.kind[new]])
        write(activity, target, top, model.shape[0], model.shape[1])


@compiled
def enlist(index, listed, key, wanted):
    """Put a key into the list, or swap-remove it."""
    at = index[1, key]
    if wanted and at < 0:
        index[0, listed[0]] = key
        index[1, key] = listed[0]
        listed[0] += 1
    elif at >= 0 and not wanted:
        listed[0] -= 1
        last = index[0, listed[0]]
        index[0, at] = last
        index[1, last] = at
        index[1, key] = -1


@compiled
def count_unlike(label, site, offset):
    """Number of neighbors with another label."""
    n = 0
    for d in range(8):
        n += label[site + offset[d]] != label[site]
    return n


@compiled
def relist(index, listed, label, model, rule, site):
    """List or delist what the label of one site decides: its border status, or its eight edges."""
    if index is not None:
        height, width = model.shape
        if rule == EDGES:
            for d in range(8):
                other = site + model.offset[d]
                unlike = label[other] != label[site]
                enlist(index, listed, 8 * site + d, unlike)
                enlist(index, listed, 8 * home(other, height, width) + (d + 4) % 8, unlike)
        else:
            enlist(index, listed, site, count_unlike(label, site, model.offset) > 0)
            for d in range(8):
                other = home(site + model.offset[d], height, width)
                enlist(index, listed, other, count_unlike(label, other, model.offset) > 0)


@compiled
def metropolis(cost, random):
    """(state of the generator, accepted) for a price in units of the temperature."""
    if cost <= 0.0:
        return random, True
    if cost > 40.0:  # exp(-40) is below the resolution of `unit`
        return random, False
    random, value = draw(random)
    chance = unit(value)
    if chance * (1.0 + cost * (1.0 + cost * (0.5 + cost / 6.0))) >= 1.0:  # above exp(-cost)
        return random, False
    return random, chance < np.exp(-cost)


@compiled
def commit(state, model, rule, target, old, new):
    """Write an accepted copy and keep everything derived from the labels in step."""
    change_perimeters(state.perimeter, state.label, target, old, new, model.offset)
    write(state.label, target, new, model.shape[0], model.shape[1])
    state.volume[old] -= 1
    state.volume[new] += 1
    state.counts[0] += 1
    mark_active(state.activity, model, target, new)
    relist(state.index, state.listed, state.label, model, rule, target)


@compiled
def attempt(state, model, rule, target, d, old, new, random):
    """One Metropolis test of an unlike pair; returns the state of the generator.

    One exit only: with several, reference counts of every array would be updated per attempt.
    """
    state.counts[1] += 1
    if state.volume[old] > 1 and stays_whole(state.label, model, target, old):
        cost = total(price(state, model, target, d, new)) * model.inverse_T
        random, accepted = metropolis(cost, random)
        if accepted:
            commit(state, model, rule, target, old, new)
    return random


@compiled
def run_uniform(index, state, model, until):
    """Copy attempts at uniform sites until the clock would pass `until` (no listed rules)."""
    if index is not None:
        return
    height, width = model.shape
    stride = width + 2
    label, random = state.label, state.random[0]
    low = np.uint64((1 << 30) - 1)
    attempts = int(np.floor((until - state.clock[0]) * (height * width) + 1e-6))
    for _ in range(attempts):
        random, value = draw(random)
        row = ((value >> np.uint64(34)) * np.uint64(height)) >> np.uint64(30)
        column = (((value >> np.uint64(4)) & low) * np.uint64(width)) >> np.uint64(30)
        d = np.intp(value & np.uint64(7))
        target = (np.intp(row) + 1) * stride + np.intp(column) + 1
        old, new = label[target], label[target + model.offset[d]]
        if old != new:
            random = attempt(state, model, UNIFORM, target, d, old, new, random)
    state.clock[0] += attempts / (height * width)
    state.random[0] = random


@compiled
def run_listed(index, state, model, rule, until):
    """Copy attempts drawn from the list of edges or border sites until the clock passes `until`."""
    if index is None:
        return
    height, width = model.shape
    label, listed, clock, random = state.label, state.listed, state.clock[0], state.random[0]
    while listed[0] > 0:
        if rule == EDGES:
            wait = 8.0 / listed[0]
        elif rule == BORDER_TARGET:
            wait = 1.0 / listed[0]
        else:
            wait = 1.0 / (height * width)
        if clock + wait > until + 1e-9:
            break
        clock += wait
        random, value = draw(random)
        key = index[0, int(unit(value) * listed[0])]
        d = np.intp(value & np.uint64(7))  # bits that `unit` does not read
        if rule == EDGES:
            target, d = key // 8, key % 8
        elif rule == BORDER_TARGET:
            target = key
        else:
            random, value = draw(random)
            remaining = int(unit(value) * count_unlike(label, key, model.offset))
            for step in range(8):
                if label[key + model.offset[step]] != label[key]:
                    if remaining == 0:
                        d = np.intp((step + 4) % 8)
                    remaining -= 1
            target = home(key + model.offset[(d + 4) % 8], height, width)
        old, new = label[target], label[target + model.offset[d]]
        if old != new:
            random = attempt(state, model, rule, target, d, old, new, random)
    state.clock[0] = until if listed[0] == 0 else clock
    state.random[0] = random


@compiled
def fade(activity, label):
    """Every site loses one unit of activity per MCS."""
    if activity is not None:
        for site in range(activity.size):
            activity[site] = max(0, activity[site] - 1)


@compiled
def diffuse(concentration, chemistry, label, model):
    """One MCS of diffusion, decay and secretion: explicit 5-point steps with D dt <= 1/4."""
    if chemistry is not None:
        height, width = model.shape
        stride = width + 2
        old, steps = concentration[1], int(chemistry[2])
        for _ in range(steps):
            for i in range(old.size):  # a slice would allocate
                old[i] = concentration[0, i]
            for row in range(1, height + 1):
                for i in range(row * stride + 1, row * stride + width + 1):
                    spread = old[i - 1] + old[i + 1] + old[i - stride] + old[i + stride]
                    flow = chemistry[0] * (spread - 4.0 * old[i]) - chemistry[1] * old[i]
                    gain = chemistry[3 + model.kind[label[i]]]
                    write(concentration[0], i, old[i] + (flow + gain) / steps, height, width)


@compiled
def pick(array, chain):
    """Row `chain` of an optional array; an array of length one serves every chain."""
    if array is None:
        return None
    return array[min(chain, array.shape[0] - 1)]


@compiled
def single(state, chain):
    """The state of one chain as views without the leading axis; scalars stay arrays of length 1."""
    return State(
        state.label[chain],
        state.volume[chain],
        pick(state.perimeter, chain),
        pick(state.activity, chain),
        pick(state.concentration, chain),
        pick(state.direction, chain),
        pick(state.center, chain),
        pick(state.fields, chain),
        pick(state.index, chain),
        state.listed[chain : chain + 1],
        state.random[chain : chain + 1],
        state.clock[chain : chain + 1],
        state.finished[chain : chain + 1],
        state.counts[chain],
    )


@compiled
def advance(state, model, rule, until, first, last):
    """Bring chains first..last - 1 to the time `until` (MCS), with what happens after each MCS."""
    for chain in range(first, last):
        own = single(state, chain)
        while True:
            closing = own.finished[0] + 1.0
            stop = min(until, closing)
            run_uniform(own.index, own, model, stop)
            run_listed(own.index, own, model, rule, stop)
            if until < closing:
                break
            fade(own.activity, own.label)
            diffuse(own.concentration, model.chemistry, own.label, model)
            own.finished[0] += 1


@compiled
def relist_all(state, model, rule):
    """Build the lists of every chain from the labels."""
    height, width = model.shape
    for chain in range(state.label.shape[0]):
        own = single(state, chain)
        for row in range(1, height + 1):
            for column in range(1, width + 1):
                relist(own.index, own.listed, own.label, model, rule, row * (width + 2) + column)


@compiled
def price_at(state, model, chain, target, d):
    """The seven terms of one attempt."""
    own = single(state, chain)
    new = own.label[target + model.offset[d]]
    return price(own, model, target, d, new)


@compiled
def lowest_price(state, model, chain, lowest):
    """Fill (H, W) with the least price of a copy onto each site; bulk sites keep their value."""
    height, width = model.shape
    own = single(state, chain)
    for row in range(height):
        for column in range(width):
            target = (row + 1) * (width + 2) + column + 1
            found = False
            for d in range(8):
                new = own.label[target + model.offset[d]]
                if new != own.label[target]:
                    cost = total(price(own, model, target, d, new))
                    if not found or cost < lowest[row, column]:
                        lowest[row, column] = cost
                        found = True
