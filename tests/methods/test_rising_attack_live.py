"""The live attack bench, its mixer and its polytope: without a browser, on real digits."""

import asyncio
import copy
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from workbench import theme
from workbench.methods.rising_attack import baselines, live, mixer, polytope, sqp, subspace, trials
from workbench.methods.rising_attack.attacks import TITLES
from workbench.methods.rising_attack.glyphs import CLASS_NAMES, glyph94, wide_network
from workbench.methods.rising_attack.jacobian import adversarial_jacobian
from workbench.methods.rising_attack.least_distance import boxed_least_distance
from workbench.methods.rising_attack.ranking import achieved, non_targets, row_classes
from workbench.methods.rising_attack.sqp import RisingOptions
from workbench.methods.rising_attack.study import Parameters
from workbench.reports import STILL
from workbench.steps import run

ORDER = [4, 5, 2]


@pytest.fixture(scope="module", autouse=True)
def charts():
    theme.set_defaults()


@pytest.fixture(scope="module")
def subject():
    return run(trials.subject_steps("digits"))


@pytest.fixture(scope="module")
def trial(subject):
    return run(trials.trial_steps(subject, 0, ORDER, "rising", {"iters": 20}))


def program_of(subject, trial, at, **options):
    delta = trial.snapshots[at].delta[0]
    return subspace.linearize(
        subject.model, trial.image, delta, trial.order, RisingOptions(**options)
    )


def settings(**more):
    return Parameters.preset("quick", **{"K": 3, "iters": 20, **more})


def on_page(play, **parameters):
    """Run `play(bench)` in an event loop, with the first attack of a new bench finished."""

    async def session():
        bench = live.live(settings(**parameters)).bench
        assert bench.subject is None and bench._task is None  # nothing before there is a page
        bench.ranking.hello = "page"
        await settle(bench)
        return await play(bench)

    return asyncio.run(session())


async def settle(bench):
    while bench._job or not bench._task.done():
        await asyncio.sleep(0.005)


def reaches(subject, trial):
    logits = subject.model(trial.image[None] + trial.result.delta)
    return bool(achieved(logits, torch.tensor([trial.order])))


# The bench ----------------------------------------------------------------------------------


def test_a_new_order_starts_an_attack_that_reaches_it(subject):
    async def play(bench):
        bench.ranking.value = ORDER
        start = time.perf_counter()
        await settle(bench)
        return bench, time.perf_counter() - start

    bench, seconds = on_page(play)
    assert bench.trial.order == tuple(ORDER) and bench.trial.label == int(subject.labels[0])
    assert reaches(subject, bench.trial) and bench.view.last.status == "found"
    assert "RisingAttacK reached the order" in bench.status.object
    assert seconds < 2.0  # a tenth of a second on an idle machine
    assert len(bench.traces.rows) == len(bench.trial.snapshots)
    assert bench.iteration.highs == [len(bench.trial.snapshots) - 1]


def test_the_step_slider_walks_back_to_the_clean_image():
    async def play(bench):
        best = bench.view.last.norms
        bench.iteration.move([0])
        return best, bench.view.last

    best, shown = on_page(play)
    assert best[1] > 0 and shown.norms == (0, 0, 0) and shown.iteration == 0
    assert shown.status == "not found"


def test_stop_ends_an_attack_within_a_second_and_keeps_its_best(subject):
    async def play(bench):
        bench.parameters.param.update(method="cw", cw_iters=10_000, coef=100.0, K=1)
        while bench.trial.method != "cw" or not bench.trial.snapshots[-1].found:
            await asyncio.sleep(0.005)
        assert not bench.stop_button.disabled
        bench.stop()
        start = time.perf_counter()
        await settle(bench)
        return bench, time.perf_counter() - start

    bench, seconds = on_page(play)
    assert seconds < 1 and bench.stop_button.disabled
    assert len(bench.trial.snapshots) < 10_000
    assert bench.status.object.startswith("Stopped.") and "CW^K reached" in bench.status.object
    assert reaches(subject, bench.trial) and bench.view.last.status == "found"


def test_the_latest_order_replaces_the_attack_that_runs():
    async def play(bench):
        bench.parameters.param.update(method="cw", cw_iters=10_000)
        for order in ([1], [2, 3], [8, 9]):
            bench.ranking.value = order
            await asyncio.sleep(0.02)
        bench.parameters.method = "rising"
        await settle(bench)
        return bench

    bench = on_page(play)
    assert bench.trial.order == (8, 9) and bench.trial.method == "rising"
    assert bench.trial.result.success[0]


def test_parameters_act_on_the_next_attack_at_once():
    async def play(bench):
        before = bench.trial
        bench.parameters.margin = 0.5
        await settle(bench)
        assert bench.method.value == "rising"
        bench.method.value = "quad"
        await settle(bench)
        return before, bench

    before, bench = on_page(play)
    assert bench.trial is not before and bench.trial.order == before.order
    assert bench.parameters.method == "quad" == bench.trial.method
    demanded = bench.traces.rows[0][2]
    assert demanded == bench.parameters.quad_margin


@pytest.mark.parametrize("method", ["cw", "ad"])
def test_the_charts_of_an_attack_without_margin_end_at_zero_where_it_reaches_the_order(method):
    async def play(bench):
        bench.method.value = method
        await settle(bench)
        return bench

    bench = on_page(play, K=1, cw_iters=60, ad_iters=60)
    rows = dict(zip(bench.traces._keys, np.array(bench.traces.rows)[:, 1:].T, strict=True))
    reached = np.array([bool(s.success[0]) for s in bench.trial.snapshots])
    assert reached.any() and bench.trial.method == method
    assert not rows["Smallest margin of the order", "demanded"].any()
    assert not rows["Sum of violations", "violations"][reached].any()


def test_another_image_locks_its_label_and_keeps_the_rest_of_the_order(subject):
    label = int(subject.labels[1])
    others = [k for k in range(10) if k not in (label, int(subject.labels[0]))][:2]

    async def play(bench):
        bench.ranking.value = [label, *others]
        await settle(bench)
        bench.image.move([1])
        await settle(bench)
        return bench

    bench = on_page(play)
    assert bench.ranking.label == label and bench.ranking.value == others
    assert bench.trial.order == tuple(others) and bench.trial.label == label
    assert torch.equal(bench.trial.image, subject.images[1])


def test_random_orders_have_k_classes_without_the_label_and_nest():
    async def play(bench):
        first = bench.ranking.value
        bench.parameters.K = 6
        await settle(bench)
        longer = bench.ranking.value
        bench.draw()
        await settle(bench)
        return first, longer, bench.ranking.value, bench.ranking.label

    first, longer, other, label = on_page(play)
    assert len(first) == 3 and len(longer) == 6 and longer[:3] == first
    assert other != longer and label not in {*longer, *other}


def test_errors_are_shown_on_the_page_and_the_bench_goes_on():
    async def play(bench):
        bench.ranking.value = []
        await settle(bench)
        empty = bench.status.object
        bench.ranking.value = [3, 1]
        bench.parameters.rank = 1
        bench.tabs.active = live.TABS.index("Polytope")
        await settle(bench)
        return empty, bench

    empty, bench = on_page(play)
    assert 'role="alert"' in empty and "the order is empty" in empty
    assert "the program has 1 singular vector; a plane needs 2" in bench.status.object
    assert bench.trial.order == (3, 1)


def test_other_images_come_with_their_classes_and_orders(glyphs):
    async def play(bench):
        bench.data.value = "glyphs"
        await settle(bench)
        return bench

    bench = on_page(play, iters=2)
    assert bench.subject is glyphs and bench.ranking.class_names == list(CLASS_NAMES)
    assert bench.parameters.data == "glyphs" and bench.view.class_names == list(CLASS_NAMES)
    assert bench.ranking.max_length == 93 and len(bench.trial.order) == 3
    bench.parameters.check()


def test_a_network_is_fetched_with_progress_and_kept(monkeypatch):
    monkeypatch.setattr(trials, "_SUBJECTS", {})
    steps = list(trials.subject_steps("digits"))
    assert [s.done for s in steps] == sorted(s.done for s in steps)
    assert any("network that reads digits" in s.message for s in steps)
    assert list(trials.subject_steps("digits")) == []
    with pytest.raises(ValueError, match=r"data = 'digit'; .* did you mean 'digits'"):
        run(trials.subject_steps("digit"))


@pytest.fixture
def glyphs(monkeypatch):
    """Glyphs with a network that nobody trained: presets change to it without waiting."""
    with torch.random.fork_rng():
        model = wide_network().eval()
        images, _ = glyph94(1, seed=5)
    made = trials.Subject("glyphs", model, images[:3], model(images[:3]).argmax(1), CLASS_NAMES)
    monkeypatch.setitem(trials._SUBJECTS, ("glyphs", 0), made)
    return made


def test_presets_change_the_data_and_back_without_an_error(glyphs, subject):
    async def play():
        explorer = live.explorer(Parameters(iters=2))
        bench = explorer.__panel__().select(lambda part: hasattr(part, "bench"))[0].bench
        bench.ranking.hello = "page"
        await settle(bench)
        seen = []
        for preset in ("quick", "default", "quick"):
            explorer.apply_preset(preset)
            explorer.parameters.iters = 2
            await settle(bench)
            p = bench.parameters
            p.check()
            seen.append((p.data, bench.subject.data, bench.data.value, len(bench.trial.order)))
            assert 'role="alert"' not in bench.status.object
        return seen

    digits, glyphs = ("digits",) * 3 + (5,), ("glyphs",) * 3 + (5,)
    assert asyncio.run(play()) == [digits, glyphs, digits]


def own_model():
    """A linear model of 3 classes on 4 x 4 pixels, and 2 images."""
    generator = torch.Generator().manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3)).eval()
    with torch.no_grad():
        model[1].weight.copy_(torch.randn(3, 16, generator=generator))
    return model, 0.3 + 0.4 * torch.rand(2, 1, 4, 4, generator=generator)


def test_the_bench_takes_the_users_own_model_and_images():
    model, images = own_model()
    label = int(model(images[:1]).argmax())
    wanted = [(label + 1) % 3]

    async def play():
        explorer = live.bench(model, images, class_names=["cat", "dog", "owl"])
        bench = explorer.__panel__().select(lambda part: hasattr(part, "bench"))[0].bench
        bench.ranking.hello = "page"
        await settle(bench)
        explorer.apply_preset("quick")  # its data are not those of this bench
        bench.ranking.value = wanted
        await settle(bench)
        trial = bench.trial
        bench.compare()
        await settle(bench)
        return explorer, bench, trial

    explorer, bench, trial = asyncio.run(play())
    assert bench.ranking.class_names == ["cat", "dog", "owl"] and bench.data.disabled
    assert trial.order == tuple(wanted) and trial.label == label and trial.result.success[0]
    assert int(model(images[:1] + trial.result.delta).argmax()) == wanted[0]
    assert [t.method for t in bench.trials] == ["rising", "cw"]
    assert "QuadAttacK and AD need a model with `feats` and a linear" in bench.status.object
    assert {row["name"] for row in explorer.controls.rows} == set(live.LIVE)
    assert "✓ found" in live.still(explorer.parameters, bench.subject)


def test_a_linear_head_without_features_is_compared_by_the_attacks_that_need_none():
    class Raw(torch.nn.Module):  # like a vision transformer of timm
        def __init__(self, model):
            super().__init__()
            self.body, self.head = model[0], model[1]

        def forward(self, x):
            return self.head(self.body(x))

    sequence, images = own_model()
    model = Raw(sequence).eval()

    async def play():
        own = trials.own_subject(model, images)
        bench = live.live(settings(iters=3, cw_iters=3, K=1), own).bench
        bench.ranking.hello = "page"
        await settle(bench)
        bench.compare()
        await settle(bench)
        return bench

    bench = asyncio.run(play())
    assert not baselines.fits(model, "quad") and baselines.fits(bench.subject.model, "cw")
    assert [t.method for t in bench.trials] == ["rising", "cw"], bench.status.object
    assert "Compared. QuadAttacK and AD need a model" in bench.status.object
    assert "CW^K" in bench.table.object


def test_the_network_is_that_of_the_seed_and_another_seed_fetches_another(subject, monkeypatch):
    other = replace(subject, labels=subject.labels.clone())
    monkeypatch.setitem(trials._SUBJECTS, ("digits", 3), other)
    monkeypatch.setitem(trials._SUBJECTS, ("digits", 4), replace(other))

    async def play(bench):
        first = bench.subject
        bench.parameters.seed = 4
        await settle(bench)
        return first, bench

    first, bench = on_page(play, seed=3)
    assert first is other and bench.subject is trials._SUBJECTS["digits", 4]
    wanted = live.first_order(settings(seed=4), int(subject.labels[0]), 10)
    assert bench.trial.order == tuple(wanted) and bench.trial.result.success[0]


def test_another_seed_draws_another_order_for_a_network_of_ones_own():
    model, images = own_model()

    async def play():
        bench = live.live(settings(iters=3, K=2), trials.own_subject(model, images)).bench
        bench.ranking.hello = "page"
        await settle(bench)
        before, kept = bench.trial, bench.subject
        bench.parameters.seed = 1
        await settle(bench)
        return before, kept, bench

    before, kept, bench = asyncio.run(play())
    assert bench.subject is kept and bench.trial is not before


class Accelerator(TorchFunctionMode):
    """Stand-in for an accelerator on a machine without: its tensors are marked.

    They may not meet unmarked ones (numbers aside) nor become arrays before `cpu()`.
    """

    device = torch.device("cuda")

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = dict(kwargs or {}), getattr(function, "__name__", "")
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        marked = [t for t in tensors if self.holds(t)]
        if getattr(function, "__self__", None) is torch.Tensor.device:
            return self.device if marked else function(*args)
        wanted = [kwargs.pop("device", None), *(a for a in args if isinstance(a, torch.device))]
        args = tuple(a for a in args if not isinstance(a, torch.device))
        here = any(wanted) or name == "cpu"
        stays = bool(marked) and not here
        if name == "to" and tensors[1:]:
            stays = self.holds(tensors[1])
        elif name == "to" and not args[1:] and not kwargs:
            function = torch.clone
        elif name != "cpu":
            apart = [t for t in tensors if not self.holds(t) and t.ndim]
            assert not (marked and apart), f"{name}: tensors on two devices"
            assert not (marked and name in ("numpy", "__array__")), "an array of the accelerator"
        found = function(*args, **kwargs)
        for tensor in tree_leaves(found):
            if isinstance(tensor, torch.Tensor):
                self.mark(tensor, stays or self.device in wanted)
        return found

    @staticmethod
    def holds(tensor):
        return getattr(tensor, "accelerated", False)

    @staticmethod
    def mark(tensor, accelerated=True):
        tensor.accelerated = accelerated
        return tensor


def test_a_model_on_an_accelerator_is_attacked_drawn_and_looked_into(monkeypatch):
    model, images = own_model()
    for tensor in (images, *model.parameters()):
        Accelerator.mark(tensor)
    model.register_forward_pre_hook(
        lambda _, args: None if Accelerator.holds(args[0]) else pytest.fail("images left behind")
    )

    def jacobian(model, *args):  # torch.func would lose the marks
        assert all(map(Accelerator.holds, args[:3]))
        with torch._C.DisableTorchFunction():
            unmarked = copy.deepcopy(model)
            unmarked._forward_pre_hooks.clear()
            return Accelerator.mark(adversarial_jacobian(unmarked, *args))

    monkeypatch.setattr(sqp, "adversarial_jacobian", jacobian)
    with Accelerator():
        own = trials.own_subject(model, images)
        bench = live.live(settings(iters=5, cw_iters=5, K=2), own).bench  # no loop: here and now
        bench.ranking.hello = "page"
        assert bench.trial and bench.trial.result.success[0], bench.status.object
        assert Accelerator.holds(bench.trial.snapshots[-1].delta)
        for tab in ("Singular vectors", "Polytope"):
            bench.tabs.active = live.TABS.index(tab)
            assert 'role="alert"' not in bench.status.object, bench.status.object
        bench.mixer.to_zero()
        assert bench.view.last.norms == (0, 0, 0) and bench.polytope.planes is not None
        bench.compare()
    assert [t.method for t in bench.trials] == ["rising", "cw"], bench.status.object


def test_own_models_that_do_not_fit_are_named():
    model, images = own_model()
    with pytest.raises(ValueError, match="class_names has 2 names; the model has 3 classes"):
        live.bench(model, images, class_names=["a", "b"])
    with pytest.raises(ValueError, match="label = 7"):
        live.bench(model, images, labels=[0, 7])
    with pytest.raises(ValueError, match=r"images has shape \(2, 16\)"):
        live.bench(model, images.flatten(1))
    with pytest.raises(ValueError, match=r"call model.eval\(\) first"):
        live.bench(model.train(), images)


def test_traces_show_the_step_from_inside_for_rising_alone():
    async def play(bench):
        inside = [k for k, key in enumerate(bench.traces._keys) if key[0] == "Inside RisingAttacK"]
        rising = np.array(bench.traces.rows)[1:, 1:][:, inside]
        last = bench.trial.snapshots[-1]
        bench.method.value = "cw"
        await settle(bench)
        return rising, last, np.array(bench.traces.rows)[:, 1:][:, inside]

    rising, last, cw = on_page(play, cw_iters=5)
    assert (rising[:, 0] > 0).all() and (rising <= 1).all() and np.isnan(cw).all()
    assert rising[-1, 1] == float(last.free_pixels) / 64
    assert rising[-1, 2] == float(last.active_rows) / last.violation.shape[1]


@pytest.mark.parametrize("method", ["rising", "quad", "cw", "ad"])
def test_violations_are_those_of_the_margin_that_is_drawn(subject, method):
    trial = trials.run_trial(subject, 0, [4], method, **settings().options(method))
    reached = [s for s in trial.snapshots if s.success[0]]
    assert reached
    for margin in (0.0, 0.2):
        for s in reached:
            shown = live.traced(s, [4], margin)
            slack = shown["Smallest margin of the order", "margin"] - margin
            assert (shown["Sum of violations", "violations"] == 0) == (slack >= 0)
    # CW^K and AD demand no margin: the order alone ends their violations.
    assert live.traced(reached[0], [4], 0.0)["Sum of violations", "violations"] == 0


def test_comparing_runs_all_four_attacks_on_the_same_image_and_order(subject):
    async def play(bench):
        bench.compare()
        await settle(bench)
        return bench

    bench = on_page(play, K=2, iters=10, quad_iters=40, cw_iters=40, ad_iters=40)
    assert [t.method for t in bench.trials] == ["rising", "quad", "cw", "ad"]
    assert len({(t.order, t.label) for t in bench.trials}) == 1
    page = bench.table.object
    for name in TITLES.values():
        assert f">{name}<" in page
    for t in bench.trials:
        assert reaches(subject, t) == bool(t.result.success[0])
        if t.result.success[0]:
            assert f"{t.result.linf[0]:.3g}" in page and f"{t.result.l1[0]:.3g}" in page


def test_a_stopped_comparison_shows_what_was_finished():
    async def play(bench):
        bench.parameters.param.update(quad_iters=10_000)
        await settle(bench)
        bench.compare()
        while len(bench.trials) < 2:
            await asyncio.sleep(0.005)
        bench.stop()
        await settle(bench)
        return bench

    bench = on_page(play)
    assert "Stopped" in bench.status.object and len(bench.trials) == 2
    assert "RisingAttacK" in bench.table.object


# The mixer ----------------------------------------------------------------------------------


def test_the_program_of_an_iterate_leads_to_the_next_one(subject, trial):
    whole = [k for k in range(len(trial.snapshots) - 1) if float(trial.snapshots[k + 1].alpha) == 1]
    assert whole
    for at in whole:
        program = program_of(subject, trial, at)
        following = trial.snapshots[at + 1].delta[0].double().numpy()
        assert np.abs(program.solution.delta - following.ravel()).max() < 1e-4


def test_the_mixers_qp_solution_is_that_of_the_boxed_program(subject, trial):
    at = trial.best
    shown = []
    faders = live.Mixer(shown.append)
    faders.load(program_of(subject, trial, at), at)
    targets, delta = torch.tensor([ORDER]), trial.snapshots[at].delta
    x = trial.image[None] + delta
    rows = row_classes(targets, non_targets(targets, 10))
    G = adversarial_jacobian(subject.model, x, *rows)[0].double().numpy()
    logits = subject.model(x)[0].detach().double().numpy()
    h = 0.05 - (logits[rows[0][0]] - logits[rows[1][0]]) + G @ delta.double().numpy().ravel()
    clean = trial.image.double().numpy().ravel()
    expected = boxed_least_distance(G, h, -clean, 1 - clean).delta

    assert np.abs(shown[-1].ravel() - expected).max() < 1e-5  # images are float32
    faders.to_zero()
    assert not shown[-1].any()
    faders.to_solution()
    assert np.abs(shown[-1].ravel() - expected).max() < 1e-5


def test_a_fader_adds_its_own_singular_vector(subject, trial):
    program = program_of(subject, trial, 1)
    shown = []
    faders = live.Mixer(shown.append)
    faders.load(program, 1)
    faders.to_zero()
    values = list(faders.faders.values)
    values[2] = 1e-3
    faders.faders.move(values)
    moved = np.clip(program.image.ravel() + 1e-3 * program.direction(2), 0, 1)
    assert np.allclose(shown[-1].ravel(), moved - program.image.ravel(), atol=1e-15)
    with pytest.raises(ValueError, match="there are 9 coefficients"):
        program.perturbation([1.0, 2.0])


def test_moving_a_fader_changes_picture_and_ranking_within_50_ms():
    async def play(bench):
        bench.tabs.active = live.TABS.index("Singular vectors")
        await settle(bench)
        assert bench.view.last.status == "found"
        times = []
        for share in np.linspace(0, 1, 11):
            start = time.perf_counter()
            bench.mixer.faders.move(share * np.array(bench.mixer._at_solution()))
            times.append(time.perf_counter() - start)
            if share == 0:
                assert bench.view.last.norms == (0, 0, 0)
                assert bench.view.last.places[bench.trial.label] == 0
        assert bench.view.last.status == "found"
        return float(np.median(times))

    assert on_page(play) < 0.05


def test_directions_are_orthonormal_and_zero_on_fixed_pixels(subject, trial):
    program = program_of(subject, trial, trial.best)
    V = np.stack([program.direction(k) for k in range(program.rank)])
    assert np.abs(V @ V.T - np.eye(program.rank)).max() < 1e-8
    assert (~program.solution.free).any() and not V[:, ~program.solution.free].any()
    assert mixer.vector_png(program, 0).startswith(b"\x89PNG")


# The polytope -------------------------------------------------------------------------------


def test_places_right_counts_from_the_first():
    logits = np.array([[0, 3, 2, 1], [3, 0, 2, 1], [0, 1, 2, 3], [0, 3, 1, 2]])
    assert subspace.places_right(logits, [1, 2, 3]).tolist() == [3, 0, 0, 1]


def test_the_cell_is_right_at_the_image_and_at_the_qp_solution(subject, trial):
    program = program_of(subject, trial, trial.best)

    def at(through):
        plane = run(subspace.plane_steps(subject.model, program, (), through, zoom=1e9, n=3))
        return set(plane.places.ravel().tolist())

    def truth(delta):
        x = trial.image[None] + torch.as_tensor(delta).float().view(1, 1, 8, 8)
        return {int(subspace.places_right(subject.model(x).detach(), ORDER)[0])}

    assert at("image") == truth(np.zeros(64)) == {0}
    assert at("solution") == truth(program.solution.delta) == {3}


def test_every_grid_point_is_what_the_network_says_there(subject, trial):
    program = program_of(subject, trial, trial.best)
    solution = program.solution
    plane = run(subspace.plane_steps(subject.model, program, (), "solution", n=21))
    i, j = plane.axes
    assert abs(solution.coefficients[[i, j]]).min() >= np.sort(abs(solution.coefficients))[-2]
    for row, column in ((0, 0), (3, 17), (20, 4)):
        z = solution.coefficients.copy()
        z[[i, j]] = plane.a[column], plane.b[row]
        delta = solution.delta.copy()
        delta[solution.free] = solution.right_vectors @ z
        x = trial.image + torch.as_tensor(delta).float().view(1, 8, 8)
        logits = subject.model(x[None]).detach()
        assert plane.places[row, column] == subspace.places_right(logits, ORDER)[0]


def test_half_planes_are_the_programs_and_active_ones_meet_at_the_solution(subject, trial):
    program = program_of(subject, trial, trial.best)
    deltas = [snapshot.delta[0] for snapshot in trial.snapshots]
    plane = run(subspace.plane_steps(subject.model, program, deltas, "solution", n=5))
    slack = plane.lines[:, :2] @ plane.solution - plane.lines[:, 2]
    wanted = program.solution.G @ program.solution.delta - program.solution.h
    assert np.allclose(slack, wanted, atol=1e-9)
    assert plane.active.any() and np.abs(slack[plane.active]).max() < 1e-6
    assert plane.iterates.shape == (len(deltas), 2) and not plane.iterates[0].any()
    left, bottom, right, top = plane.window
    for a, b in (plane.solution, *plane.iterates):
        assert left <= a <= right and bottom <= b <= top


def test_a_polygon_is_cut_by_half_planes():
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    half = subspace.clipped(square, [[1, 0, 0.25]])
    assert half[:, 0].min() == pytest.approx(0.25) and half[:, 0].max() == 1 and len(half) == 4
    corner = subspace.clipped(square, [[1, 1, 1.5]])
    assert len(corner) == 3 and corner.sum(1).min() == pytest.approx(1.5)
    assert subspace.clipped(square, [[1, 0, 2.0], [0, 1, 0.5]]).shape == (0, 2)


def test_planes_that_cannot_be_are_refused(subject, trial):
    program = program_of(subject, trial, 0)
    with pytest.raises(ValueError, match=r"through = 'images'; .* did you mean 'image'"):
        next(subspace.plane_steps(subject.model, program, through="images"))
    with pytest.raises(ValueError, match=r"zoom = 0\.5; allowed is >= 1"):
        next(subspace.plane_steps(subject.model, program, zoom=0.5))
    with pytest.raises(ValueError, match="a plane needs 2"):
        next(subspace.plane_steps(subject.model, program_of(subject, trial, 0, rank=1)))


def test_the_chart_draws_with_labels_units_and_a_color_for_each_place(subject, trial):
    import holoviews as hv

    program = program_of(subject, trial, trial.best)
    deltas = [snapshot.delta[0] for snapshot in trial.snapshots]
    for through in subspace.SLICES:
        plane = run(subspace.plane_steps(subject.model, program, deltas, through, n=11))
        figure = hv.render(polytope.polytope_chart(plane, "Title"))
        assert figure.title.text == "Title" and "[l2]" in figure.xaxis[0].axis_label
        assert f"vector {plane.axes[0] + 1}" in figure.xaxis[0].axis_label
        words = polytope.plane_words(plane, plane)
        assert "wanted order holds" in words and "projected" in words
    assert len(set(polytope.place_colors(5))) == 6
    assert "2 of 3 first places right" in polytope.legend_html(3)


def test_strokes_along_the_window_are_not_drawn():
    window = (0.0, 0.0, 1.0, 1.0)
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    assert len(polytope._around(square, window)) == 0
    triangle = np.array([[0, 0], [1, 0], [0.5, 0.5]])
    assert len(polytope._around(triangle, window)) == 2


def test_the_polytope_tab_shows_the_whole_way_and_a_close_up():
    async def play(bench):
        bench.tabs.active = live.TABS.index("Polytope")
        await settle(bench)
        first = bench.polytope.planes
        bench.polytope.slice.value = "image"
        await settle(bench)
        return first, bench.polytope.planes

    (whole, close), (image, _) = on_page(play, K=2, iters=10)
    assert whole.through == "solution" and image.through == "image"
    width = [plane.a[-1] - plane.a[0] for plane in (whole, close)]
    assert width[0] / width[1] == pytest.approx(2**polytope.CLOSE_UP)
    assert (close.places == close.K).any()


# Reports and the explorer -------------------------------------------------------------------


def test_the_still_shows_an_attack_on_a_digit_in_a_second(subject):
    parameters = settings()
    start = time.perf_counter()
    page = live.still(parameters)
    assert time.perf_counter() - start < 1.0
    assert page == live.still(parameters)
    assert "✓ found" in page and page.count("data:image/png") == 3
    assert "RisingAttacK on digits" in page


def test_the_still_obeys_data_method_and_targets(glyphs, subject, monkeypatch):
    fetched = []

    def fetch(data, seed):
        fetched.append((data, seed))
        return trials.subject_steps(data)

    monkeypatch.setattr(live, "subject_steps", fetch)
    page = live.still(settings(method="cw", targets=[7, 8, 9], K_list=[1], cw_iters=100))
    label = int(subject.labels[0])
    # A still of digits asks for them.
    assert fetched == [("digits", 0)] and "CW^K on digits" in page
    assert "Wanted: " + ", ".join(str(k) for k in (7, 8, 9) if k != label) in page
    page = live.still(Parameters(iters=2, seed=4))
    assert fetched[1:] == [("glyphs", 4)] and "RisingAttacK on glyphs" in page


def test_the_explorer_offers_all_parameters_and_is_a_still_in_a_report(monkeypatch, subject):
    explorer = live.explorer(settings())
    explorer.__panel__()
    offered = {row["name"] for row in explorer.controls.rows}
    assert offered == set(explorer.parameters.names()) - {"data"}
    monkeypatch.setenv(STILL, "1")
    page = explorer._repr_mimebundle_()["text/html"]
    assert "✓ found" in page and "margin" in page
