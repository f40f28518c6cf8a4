"""The cellular Potts engine against plain recounts: energies, copies, lists, edits, bad input."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from scipy import ndimage

from workbench.methods.neural_cpm._prices import RING, ring_table
from workbench.methods.neural_cpm.energy import border, contact_counts, energy_terms
from workbench.methods.neural_cpm.lattice import CPM, Ensemble, permute_identities
from workbench.methods.neural_cpm.measures import fragmented

RULES = ["uniform", "edges", "border_target", "border_source"]
REFERENCE = Path(__file__).parents[3] / "shared" / "data" / "neural-cpm" / "cellular_mnist_sim1.npz"
KIND = np.array([0, 1, 1, 2, 2, 2])


def blobs(height=12, width=11, n_cells=5, seed=0):
    """Cells grown from random sites over two thirds of the torus; some cross its edges."""
    rng = np.random.default_rng(seed)
    cell = np.zeros((height, width), int)
    sites = rng.choice(height * width, n_cells, replace=False)
    cell.flat[sites] = np.arange(1, n_cells + 1)
    while (cell > 0).mean() < 0.66:
        row, column, d = rng.integers(height), rng.integers(width), rng.integers(8)
        source = cell[(row + RING[d, 0]) % height, (column + RING[d, 1]) % width]
        if cell[row, column] == 0 and source > 0:
            cell[row, column] = source
    return cell


def energy_by_definition(cell, kind, J, lam, V_target, c, lam_P, P_target, fields):
    """H, written as plainly as possible: ordered pairs counted twice and halved."""
    kinds = kind[cell]
    contact = perimeter_pairs = 0.0
    perimeters = np.zeros(len(kind))
    for row, column in RING:
        other = np.roll(cell, (-row, -column), (0, 1))
        unlike = other != cell
        contact += (J[kinds, kind[other]] * unlike).sum() / 2
        perimeters += np.bincount(cell[unlike], minlength=len(kind))
        perimeter_pairs += unlike.sum()
    volumes = np.bincount(cell.ravel(), minlength=len(kind))
    k = kind[1:]
    return (
        c * contact
        + (lam[k] * (volumes[1:] - V_target[k]) ** 2).sum()
        + (lam_P[k] * (perimeters[1:] - P_target[k]) ** 2).sum()
        + sum(fields[kinds[i], i[0], i[1]] for i in np.ndindex(cell.shape) if kinds[i] > 0)
    )


def random_model(seed, shape):
    rng = np.random.default_rng(seed)
    J = rng.uniform(-3, 9, (3, 3))
    J = J + J.T
    J[0, 0] = 0
    lam, V_target = np.append(0, rng.uniform(0, 2, 2)), np.append(0, rng.uniform(1, 40, 2))
    lam_P, P_target = np.append(0, rng.uniform(0, 0.5, 2)), np.append(0, rng.uniform(0, 90, 2))
    fields = rng.normal(size=(3, *shape))
    return J, lam, V_target, rng.choice([0.25, 1.0]), lam_P, P_target, fields


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), height=st.integers(4, 9), width=st.integers(4, 9))
def test_every_delta_is_the_difference_of_recomputed_energies(seed, height, width):
    cell = blobs(height, width, seed=seed)
    J, lam, V, c, lam_P, P, fields = random_model(seed, cell.shape)
    cpm = CPM(cell, KIND, J, lam, V, contact_norm=c, lam_P=lam_P, P_target=P, kind_fields=fields)
    before = energy_by_definition(cell, KIND, J, lam, V, c, lam_P, P, fields)
    assert cpm.energy() == pytest.approx(before, abs=1e-9)
    assert sum(cpm.energy(terms=True).values()) == pytest.approx(before, abs=1e-9)
    for row, column in np.argwhere(border(cell)):
        for step in RING:
            source = ((row + step[0]) % height, (column + step[1]) % width)
            after = cell.copy()
            after[row, column] = cell[source]
            difference = energy_by_definition(after, KIND, J, lam, V, c, lam_P, P, fields) - before
            assert cpm.delta((row, column), source) == pytest.approx(difference, abs=1e-9)


def test_lowest_delta_is_the_minimum_over_the_neighbors():
    cell = blobs()
    J, lam, V, c, *_ = random_model(3, cell.shape)
    cpm = CPM(cell, KIND, J, lam, V, contact_norm=c)
    lowest = cpm.lowest_delta()
    assert np.array_equal(np.isfinite(lowest), border(cell))
    for row, column in np.argwhere(border(cell)):
        sources = [((row + r) % 12, (column + s) % 11) for r, s in RING]
        prices = [cpm.delta((row, column), s) for s in sources if cell[s] != cell[row, column]]
        assert lowest[row, column] == pytest.approx(min(prices), abs=1e-12)


EXTRAS = {
    "plain": {},
    "field": {"kind_fields": np.random.default_rng(1).normal(size=(3, 24, 24))},
    "all terms": {
        "lam_P": 0.1, "P_target": 60, "lam_act": 4, "lam_ch": [0, 1, 2], "mu": 0.3, "diffusion": 1,
        "direction": np.random.default_rng(2).normal(size=(6, 2)), "secretion": 1, "decay": 0.2,
    },
}  # fmt: skip


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("proposal", RULES)
def test_books_agree_with_a_recount_after_a_hundred_thousand_accepted_copies(proposal, extra):
    J = [[0, 1, 2], [1, 1, 3], [2, 3, 1]]
    cpm = CPM(blobs(24, 24), KIND, J, 0.3, 70, T=8, proposal=proposal, seed=4, **EXTRAS[extra])
    accepted = 0
    while accepted < 100_000:
        cpm.step(100.5)
        accepted += int(cpm._counts[0, 0])
    cell = cpm.cell
    assert np.array_equal(cpm.volumes(), np.bincount(cell.ravel(), minlength=6))
    assert np.array_equal(cpm._label.reshape(26, 26), np.pad(cell, 1, mode="wrap"))
    state = cpm._state
    if state.perimeter is not None:
        assert np.array_equal(state.perimeter[0], cpm.perimeters())
    if state.index is None:
        return
    listed, where = state.index[0, 0, : state.listed[0]], state.index[0, 1]
    stride = 26
    inner = np.arange(24)[:, None] * stride + np.arange(24) + stride + 1
    if proposal == "edges":
        unlike = [cell != np.roll(cell, (-r, -s), (0, 1)) for r, s in RING]
        expected = np.concatenate([8 * inner[u] + d for d, u in enumerate(unlike)])
    else:
        expected = inner[border(cell)]
        assert len(listed) == cpm.border_count()
    assert np.array_equal(np.sort(listed), np.sort(expected))
    assert np.array_equal(where[listed], np.arange(len(listed)))
    assert (where >= 0).sum() == len(listed)


def reference(**options):
    if not REFERENCE.exists():
        pytest.skip("the reference lattice is not here")
    cell = np.load(REFERENCE)["data"][-1, 0]
    return CPM(cell, np.repeat([0, 1, 2], [1, 25, 25]), **options)


ATTEMPTS = [((52, 27), (53, 26)), ((26, 20), (26, 21)), ((78, 24), (78, 23)), ((42, 49), (41, 50))]


def test_reference_lattice_has_the_official_energies():
    """Numbers: official code on its published simulation (experiment 1, contact_norm 1/4)."""
    cpm = reference(J=[[0, 6, 6], [6, 3, 8], [6, 8, 3]], lam=0.5, V_target=100)
    assert cpm.border_count() == 2709
    assert cpm.energy(terms=True)["contact"] == 4228.5
    assert ((cpm.volumes()[1:] - 100) ** 2).sum() == 914
    assert cpm.energy() == 4685.5
    assert [cpm.delta(*attempt) for attempt in ATTEMPTS] == [-0.75, 6.5, 14.75, -4.0]


def test_reference_lattice_with_perimeters_has_the_official_increments():
    """Numbers: official code with contact_norm 1 and the perimeter term."""
    cpm = reference(
        J=[[0, 12, 16], [12, 6, 11], [16, 11, 2]], contact_norm=1, lam=[0, 2, 1],
        V_target=[0, 100, 95], lam_P=[0, 0.5, 0.25], P_target=[0, 120, 110],
    )  # fmt: skip
    assert cpm.perimeters()[[1, 26]].tolist() == [126, 118]
    assert [cpm.delta(*attempt) for attempt in ATTEMPTS] == [0, 50, 119, 5]
    terms = cpm.delta(*ATTEMPTS[2], terms=True)
    assert [terms[name] for name in ("contact", "volume", "perimeter")] == [50, 3, 66]


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_contact_counts_are_upper_triangular_and_give_the_contact_energy(seed):
    frames = np.stack([blobs(seed=seed), blobs(seed=seed + 1)])
    J = random_model(seed, (12, 11))[0]
    counts = contact_counts(frames, KIND)
    assert counts.shape == (2, 3, 3) and not np.tril(counts, -1).any()
    contact = energy_terms(frames, KIND, J, 0, 1)["contact"]
    assert 0.25 * (counts * J).sum((1, 2)) == pytest.approx(contact)
    for frame, count in zip(frames, counts, strict=True):
        plain = energy_by_definition(
            frame, KIND, J, np.zeros(3), np.ones(3), 0.25, np.zeros(3), np.zeros(3),
            np.zeros((3, 12, 11)),
        )  # fmt: skip
        assert 0.25 * (count * J).sum() == pytest.approx(plain)


def test_ring_table_allows_exactly_the_rings_in_one_piece():
    table = ring_table()
    for mask in range(256):
        patch = np.zeros((3, 3), bool)
        for d in range(8):
            patch[tuple(RING[d] + 1)] = mask >> d & 1
        assert table[mask] == (ndimage.label(patch, np.ones((3, 3)))[1] == 1)


def test_connected_cells_stay_in_one_piece_and_free_ones_do_not():
    J, options = [[0, 1, 1], [1, 1, 1], [1, 1, 1]], {"T": 50, "seed": 2}
    tied = CPM(blobs(24, 24), KIND, J, 1, 60, connected=True, **options)
    free = CPM(blobs(24, 24), KIND, J, 1, 60, **options)
    for cpm in (tied, free):
        cpm.step(200)
    assert fragmented(tied.cell, order=0) == 0
    assert fragmented(free.cell, order=0) >= 3
    half = CPM(blobs(24, 24), KIND, J, 1, 60, connected=[0, 1, 0], **options)
    half.step(200)
    assert fragmented(np.where(half.cell <= 2, half.cell, 0), order=0) == 0
    assert fragmented(half.cell, order=0) > 0


@pytest.mark.parametrize("proposal", RULES)
def test_last_site_of_every_label_is_never_overwritten(proposal):
    cell = np.ones((5, 5), int)
    cell[0, 0], cell[2, 2] = 0, 2
    cpm = CPM(cell, [0, 1, 1], [[0, 0], [0, 0]], 0, 1, T=1, proposal=proposal)
    for _ in range(50):
        cpm.step(20)
        assert cpm.volumes().min() >= 1


def test_without_temperature_the_distance_to_the_target_volume_never_grows():
    one = CPM(blobs(24, 24, 1), [0, 1], np.zeros((2, 2)), 1, 300, T=0, seed=1)
    many = CPM(blobs(24, 24), KIND, np.zeros((3, 3)), 1, 40, T=0, seed=1)
    gap, energy = abs(one.volumes()[1] - 300), many.energy()
    for _ in range(40):
        one.step(1)
        many.step(1)
        assert abs(one.volumes()[1] - 300) <= gap and many.energy() <= energy
        gap, energy = abs(one.volumes()[1] - 300), many.energy()
    assert gap == 0 and energy < 200


@pytest.mark.parametrize("proposal", RULES)
def test_at_infinite_temperature_every_unlike_attempt_is_accepted(proposal):
    J = [[0, 9, 9], [9, 9, 9], [9, 9, 9]]
    cpm = CPM(blobs(24, 24), KIND, J, 5, 40, T=np.inf, proposal=proposal)
    cpm.step(0.05)  # too short for a cell to shrink to its last site
    assert cpm.acceptance == 1


def test_a_copy_of_the_same_label_costs_nothing():
    cell = np.ones((5, 5), int)
    cell[0, 0] = 0
    cpm = CPM(cell, [0, 1], [[0, 3], [3, 2]], 2, 9)
    assert cpm.delta((2, 2), (2, 3)) == 0
    assert set(cpm.delta((2, 2), (2, 3), terms=True).values()) == {0}


def test_a_field_common_to_all_kinds_changes_no_copy_between_cells():
    cell = blobs()
    fields = np.tile(np.random.default_rng(0).normal(size=(1, 12, 11)), (3, 1, 1))
    J, lam, V, *_ = random_model(0, cell.shape)
    plain, shifted = CPM(cell, KIND, J, lam, V), CPM(cell, KIND, J, lam, V, kind_fields=fields)
    for row, column in np.argwhere(cell > 0):
        source = (row, (column + 1) % 11)
        if cell[source] > 0:
            difference = shifted.delta((row, column), source) - plain.delta((row, column), source)
            assert difference == pytest.approx(0, abs=1e-9)


def test_field_with_coupling_is_the_same_as_fields_per_kind():
    field, coupling = np.random.default_rng(5).normal(size=(12, 11)), np.array([7.0, 2.0, -1.0])
    by_kind = np.array([0, 2.0, -1.0])[:, None, None] * field
    args = blobs(), KIND, np.zeros((3, 3)), 1, 20
    one, two = CPM(*args, field=field, coupling=coupling), CPM(*args, kind_fields=by_kind)
    assert one.energy() == pytest.approx(two.energy())
    one.field_strength = 3.0
    assert one.energy(terms=True)["field"] == pytest.approx(3 * two.energy(terms=True)["field"])
    assert one.delta((0, 0), (0, 1), terms=True)["field"] == pytest.approx(
        3 * two.delta((0, 0), (0, 1), terms=True)["field"]
    )


def test_prices_of_a_copy_follow_their_definitions():
    cell, rng = blobs(), np.random.default_rng(8)
    concentration, direction = rng.uniform(size=(12, 11)), rng.normal(size=(6, 2))
    lam_ch, mu, lam_act, max_act = [0, 2.0, 5.0], [0, 0.5, 0.7], [0, 3.0, 6.0], [0, 10, 20]
    cpm = CPM(
        cell, KIND, np.zeros((3, 3)), 0, 1, lam_ch=lam_ch, concentration=concentration, mu=mu,
        direction=direction, lam_act=lam_act, max_act=max_act,
    )  # fmt: skip
    cpm.step(3)
    cell, activity = cpm.cell, cpm._activity.reshape(14, 13)[1:-1, 1:-1].astype(float)
    assert activity.max() > 0

    def local(site):
        own = [activity[site]] + [
            activity[other]
            for r, s in RING
            if cell[other := ((site[0] + r) % 12, (site[1] + s) % 11)] == cell[site]
        ]
        return np.prod(own) ** (1 / len(own)) if cell[site] else 0.0

    checked = 0
    for row, column in np.argwhere(border(cell)):
        target = (row, column)
        for r, s in RING:
            source = ((row + r) % 12, (column + s) % 11)
            new, old = cell[source], cell[target]
            if new == old:
                continue
            terms, kind = cpm.delta(target, source, terms=True), KIND[new]
            ruling = kind if new else KIND[old]
            rise = concentration[target] - concentration[source]
            chemotaxis = -lam_ch[kind] * rise
            motion = -mu[kind] * (direction[new] @ (-r, -s)) if new else 0.0
            act = lam_act[ruling] / max_act[ruling] * (local(target) - local(source))
            assert terms["chemotaxis"] == pytest.approx(chemotaxis)
            assert terms["motion"] == pytest.approx(motion)
            assert terms["act"] == pytest.approx(act)
            checked += act != 0
    assert checked > 10


def test_activity_is_full_where_a_copy_landed_and_fades_by_one_each_mcs():
    cpm = CPM(blobs(), KIND, np.zeros((3, 3)), 0.1, 20, lam_act=1, max_act=[0, 5, 9], T=5)
    before = cpm.cell
    cpm.step(0.5)
    after, activity = cpm.cell, cpm._activity.reshape(14, 13)[1:-1, 1:-1]
    moved = (before != after) & (after > 0)
    assert np.array_equal(activity[moved], np.array([0, 5, 9])[KIND[after[moved]]])
    cpm.T, kept = 0, activity.copy()
    cpm.connected, cpm.lam_act, cpm.lam = True, 1000, 1000  # nothing can move any more
    cpm.V_target = 1e6
    cpm.step(0.5)
    still = cpm.cell == after
    assert np.array_equal(
        cpm._activity.reshape(14, 13)[1:-1, 1:-1][still], np.maximum(kept - 1, 0)[still]
    )


def test_diffusion_keeps_the_mass_and_decay_and_secretion_change_it_as_stated():
    rng = np.random.default_rng(0)
    start = rng.uniform(size=(12, 11))
    args = blobs(), KIND, np.zeros((3, 3)), 1, 20
    cpm = CPM(*args, concentration=start, diffusion=1.3, T=0)
    cpm.step(7)
    assert cpm.concentration.sum() == pytest.approx(start.sum())
    assert cpm.concentration.std() < 0.2 * start.std()
    lossy = CPM(*args, concentration=start, decay=0.1)
    lossy.step(5)
    assert lossy.concentration[0] == pytest.approx(start * 0.9**5)
    fed = CPM(*args, secretion=[0, 0.5, 0], T=0)
    fed.step(1)
    assert fed.concentration.sum() == pytest.approx(0.5 * (KIND[fed.cell] == 1).sum())


def test_motion_moves_a_cell_along_its_direction():
    cell = np.zeros((40, 40), int)
    cell[16:24, 10:18] = 1
    start = np.argwhere(cell).mean(0)
    cpm = CPM(cell, [0, 1], [[0, 2], [2, 0]], 1, 64, T=2, mu=2, direction=[[0, 0], [0, 1]], seed=1)
    cpm.step(60)
    moved = np.argwhere(cpm.cell).mean(0) - start
    assert moved[1] > 3 and abs(moved[0]) < 3


def test_motion_about_centers_prices_the_gain_and_the_loss_of_a_site():
    cell, rng = blobs(), np.random.default_rng(4)
    center, direction = rng.uniform(0, 11, (6, 2)), rng.normal(size=(6, 2))
    mu = np.array([0, 0.5, 0.7])
    cpm = CPM(cell, KIND, np.zeros((3, 3)), 0, 1, mu=mu, direction=direction, center=center)

    def pull(site, identity):
        away = (np.array(site) - center[identity] + (6, 5.5)) % (12, 11) - (6, 5.5)
        return mu[KIND[identity]] * direction[identity] @ away

    for row, column in np.argwhere(border(cell)):
        source = ((row + 1) % 12, column)
        new, old = cell[source], cell[row, column]
        expected = pull((row, column), old) - pull((row, column), new) if new != old else 0
        assert cpm.delta((row, column), source) == pytest.approx(expected, abs=1e-9)


def test_parameters_act_on_the_running_simulation():
    cpm = CPM(blobs(24, 24), KIND, [[0, 2, 2], [2, 1, 3], [2, 3, 1]], 0.3, 70, T=5)
    cpm.step(5)
    assert cpm.acceptance > 0.2
    cpm.T, cpm.lam = 0, 1e6
    cpm.step(30)
    cpm.step(5)
    assert cpm.acceptance < 0.05
    cpm.J = np.zeros((3, 3))
    assert cpm.energy(terms=True)["contact"] == 0
    for proposal in RULES[::-1]:
        cpm.proposal, cpm.T, cpm.lam = proposal, 5, 0.3
        cpm.step(3)
        assert np.array_equal(cpm.volumes(), np.bincount(cpm.cell.ravel(), minlength=6))
    cpm.lam_act = 5
    cpm.step(3)
    cpm.lam_act = 0
    cpm.step(3)
    assert cpm.time == pytest.approx(58)


def test_same_seed_gives_the_same_result_for_any_number_of_threads(monkeypatch):
    frames = np.stack([blobs(seed=i) for i in range(5)])
    args = frames, KIND, [[0, 2, 2], [2, 1, 3], [2, 3, 1]], 0.3, 18

    def final(threads, seed=7):
        monkeypatch.setattr(config, "NUMBA_NUM_THREADS", threads)
        ensemble = Ensemble(*args, T=3, seed=seed)
        ensemble.step(20)
        return ensemble.frames

    assert np.array_equal(final(1), final(2))
    assert not np.array_equal(final(1), final(1, seed=8))
    assert len({frame.tobytes() for frame in final(2)}) == 5


def test_a_step_in_parts_is_the_whole_step():
    args = blobs(), KIND, [[0, 2, 2], [2, 1, 3], [2, 3, 1]], 0.3, 18
    whole, parts = CPM(*args, T=3, seed=1), CPM(*args, T=3, seed=1)
    whole.step(10)
    for _ in range(40):
        parts.step(0.25)
    assert np.array_equal(whole.cell, parts.cell)


def test_a_copy_goes_its_own_way_with_the_same_numbers():
    cpm = CPM(blobs(), KIND, [[0, 2, 2], [2, 1, 3], [2, 3, 1]], 0.3, 18, T=3, lam_act=2)
    cpm.step(3)
    twin = cpm.copy()
    kept = cpm.cell
    twin.step(5)
    assert np.array_equal(cpm.cell, kept)
    cpm.step(5)
    assert np.array_equal(cpm.cell, twin.cell)


@pytest.mark.parametrize("proposal", RULES)
def test_a_lattice_without_border_is_finished_and_not_an_endless_loop(proposal):
    cpm = CPM(np.ones((6, 6), int), [0, 1], [[0, 1], [1, 0]], 1, 36, proposal=proposal)
    cpm.step(50)
    assert cpm.time == 50 and cpm.border_count() == 0 and cpm.acceptance == 0


def test_painting_killing_and_adding_cells_keeps_the_books():
    cpm = CPM(blobs(), KIND, [[0, 2, 2], [2, 1, 3], [2, 3, 1]], 0.3, 18, T=2, proposal="edges")
    cpm.step(2)
    cpm.paint([0, -1, 12], [0, -1, 11], 3)
    assert cpm.cell[0, 0] == cpm.cell[11, 10] == 3
    cpm.kill(2)
    assert cpm.volumes()[2] == 0 and not (cpm.cell == 2).any()
    cpm.step(5)
    assert cpm.volumes()[2] == 0
    assert cpm.add_cell(2, [4, 4, 5], [4, 5, 4]) == 2 and cpm.kind[2] == 2
    assert cpm.add_cell(1, [8, 8], [8, 9]) == 6 and cpm.kind[6] == 1
    cpm.step(5)
    assert np.array_equal(cpm.volumes(), np.bincount(cpm.cell.ravel(), minlength=7))
    assert cpm.volumes().min() >= 1
    energy = energy_terms(cpm.cell, cpm.kind, cpm.J, 0.3, 18)
    assert cpm.energy() == pytest.approx(sum(energy.values()))


def test_permuting_kinds_keeps_the_shapes_and_the_number_of_cells_of_each_kind():
    cpm = CPM(blobs(), KIND, np.zeros((3, 3)), 0.3, 18)
    before = cpm.cell
    cpm.permute_kinds(np.random.default_rng(1))
    assert np.array_equal(before > 0, cpm.cell > 0)
    assert np.array_equal(border(before), border(cpm.cell))
    assert not np.array_equal(KIND[before], KIND[cpm.cell])
    assert sorted(cpm.volumes()[1:]) == sorted(np.bincount(before.ravel())[1:])


def test_permuted_identities_leave_dead_cells_dead():
    frames = np.array([[[0, 1, 1], [0, 3, 3], [0, 0, 5]]])
    dealt = permute_identities(frames, np.random.default_rng(0), 6)
    assert set(np.unique(dealt)) == {0, 1, 3, 5}


GOOD = {
    "cell": blobs(), "kind": KIND, "J": [[0, 2, 2], [2, 1, 3], [2, 3, 1]], "lam": 0.3,
    "V_target": 18,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cell": blobs() * 1.0}, "integer"),
        ({"cell": blobs() - 1}, "identity -1"),
        ({"cell": np.where(blobs() == 2, 0, blobs())}, "cell 2 in frame 0"),
        ({"cell": np.ones((2, 8), int)}, "3 x 3"),
        ({"kind": KIND[:-1]}, "too short"),
        ({"kind": [1, *KIND[1:]]}, "kind[0]"),
        ({"kind": [0, 1, 0, 2, 2, 2]}, "kind[2] = 0"),
        ({"kind": [0, 1, 1, 2, 2, 3]}, "kind[5] = 3 but J has kinds 0..2"),
        ({"J": [[0, 2, 2], [2, 1, 3], [2, 4, 1]]}, "J[1, 2] = 3 but J[2, 1] = 4"),
        ({"J": [[1, 2, 2], [2, 1, 3], [2, 3, 1]]}, "J[0, 0]"),
        ({"lam": -1}, "lam[1] = -1"),
        ({"lam": [1, 2]}, "3 entries"),
        ({"V_target": 0.5}, "V_target[1] = 0.5"),
        ({"T": -1}, "T = -1"),
        ({"T": np.nan}, "T = nan"),
        ({"contact_norm": 0}, "contact_norm = 0"),
        ({"proposal": "edgs"}, "did you mean 'edges'"),
        ({"kind_fields": np.zeros((2, 12, 11))}, "(3, 12, 11)"),
        ({"field": np.full((12, 11), np.inf)}, "field must be finite"),
        ({"direction": np.zeros((5, 2))}, "direction must have shape (6, 2)"),
    ],
)
def test_bad_input_is_refused_in_one_clear_line(change, message):
    with pytest.raises(ValueError) as error:
        CPM(**{**GOOD, **change})
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda cpm: setattr(cpm, "T", -2), "T = -2"),
        (lambda cpm: setattr(cpm, "temperatur", 2), "parameter = 'temperatur'"),
        (lambda cpm: setattr(cpm, "lam_p", 2), "did you mean 'lam_P'"),
        (lambda cpm: cpm.delta((0, 0), (2, 2)), "not one of the 8 neighbors"),
        (lambda cpm: cpm.delta((0, 99), (0, 0)), "(0, 99)"),
        (lambda cpm: cpm.paint([0], [0], 6), "allowed are 0..5"),
        (lambda cpm: cpm.kill(0), "allowed are 1..5"),
        (lambda cpm: cpm.add_cell(3, [0], [0]), "allowed are 1..2"),
        (lambda cpm: cpm.step(-1), "mcs = -1"),
        (lambda cpm: cpm.restart(np.zeros((1, 5, 5), int)), "(1, 12, 11)"),
    ],
)
def test_bad_requests_to_a_running_simulation_are_refused(act, message):
    with pytest.raises(ValueError) as error:
        act(CPM(**GOOD))
    assert message in str(error.value)
