"""Compiled embedding of lattices of identities, and first-order prices read at single sites.

Both are what `fast.FastHamiltonian` does once per parallel step; as one compiled call each, they
leave the interpreter lock to other trainings. Weights come as tables: own (places, C), kinds
(K, places, C); patch and place give each site its map site and its place there. `together` says
whether every cell sees all kinds (interactions) or only its own.
"""

from ._prices import compiled


@compiled
def embed_labels(frames, kind, patch, place, own, kinds, bias, together, shared, x):
    """Fill x (batch, cells, C, map sites) from frames (batch, sites); shared: (C, map sites)."""
    batch, n_cells, n_channels, n_patches = x.shape
    for b in range(batch):
        for c in range(n_channels):
            for p in range(n_patches):
                shared[c, p] = bias[c]
        if together:
            for site in range(frames.shape[1]):
                k, p, s = kind[frames[b, site]], patch[site], place[site]
                for c in range(n_channels):
                    shared[c, p] += kinds[k, s, c]
        for n in range(n_cells):
            for c in range(n_channels):
                for p in range(n_patches):
                    x[b, n, c, p] = shared[c, p]
        for site in range(frames.shape[1]):
            label, p, s = frames[b, site], patch[site], place[site]
            for c in range(n_channels):
                x[b, label, c, p] += own[s, c]
            if not together:
                for c in range(n_channels):
                    x[b, label, c, p] += kinds[kind[label], s, c]


@compiled
def price_copies(
    slope, total, frames, kind, patch, place, own, kinds, together, target, label, change
):
    """Fill change (batch, P): slope (batch, cells, C, map sites) times the change of the maps.

    total (batch, C, map sites): slope summed over cells.
    """
    for b in range(target.shape[0]):
        for k in range(target.shape[1]):
            site, new = target[b, k], label[b, k]
            old = frames[b, site]
            p, s = patch[site], place[site]
            gained, lost = kind[new], kind[old]
            price = 0.0
            for c in range(own.shape[1]):
                into, out = slope[b, new, c, p], slope[b, old, c, p]
                price += (into - out) * own[s, c]
                if together:
                    price += total[b, c, p] * (kinds[gained, s, c] - kinds[lost, s, c])
                else:
                    price += into * kinds[gained, s, c] - out * kinds[lost, s, c]
            change[b, k] = price
