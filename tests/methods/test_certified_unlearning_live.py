"""The live bench: closed forms follow sliders, the audit grows at rest, training is a job."""

import asyncio

import numpy as np
import pytest

from workbench.methods.certified_unlearning import benches, comparison, live, study, views


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Original models that are hardly trained; noisy steps without a rest."""
    monkeypatch.setattr(comparison, "TRAIN_STEPS", 40)
    _, *rest = comparison.original_steps.__defaults__
    monkeypatch.setattr(comparison.original_steps, "__defaults__", (40, *rest))
    monkeypatch.setattr(benches, "PACE_S", 0.0)
    monkeypatch.setattr(live, "REST_S", 0.0)


@pytest.fixture
def bench():
    made = live.Bench(study.Parameters(budget=[20, 24], audit_n=1000))
    made.panel()
    return made


def open_tab(bench, name):
    bench.tabs.active = live.TABS.index(name)


def test_the_first_tab_is_drawn_and_others_wait(bench):
    s = bench.pictures
    assert "1,000 outputs each" in s["clouds"].html and "no contradiction" in s["verdict"].html
    assert s["cascade"].html == "" and bench.map.html == "" and not bench.forget.grid.pictures
    open_tab(bench, "Cascade")
    assert "T = 3" in s["cascade"].html and bench.map.html == ""
    open_tab(bench, "Certificate")
    assert "automatic T" in bench.map.html and "0.2238" in s["words"].html


def test_the_released_accountant_is_refuted_by_the_attacker(bench):
    bench.parameters.audit_n = 50_000
    bench.accountant.value = "released"
    assert bench.parameters.accountant == "released"
    text = bench.pictures["verdict"].html
    assert "50,000 runs" in text and "6.559" in text and "is refuted" in text


def test_a_full_audit_follows_the_quick_one(bench, monkeypatch):
    monkeypatch.setattr(live, "AT_ONCE", 2000)
    monkeypatch.setattr(live, "BLOCK", 3000)
    bench.parameters.audit_n = 10_000
    assert "10,000 outputs each" in bench.pictures["clouds"].html


def test_an_audit_of_a_slider_that_has_moved_on_is_not_shown(bench):
    asked, shown = [], bench._show_audit
    bench.full.start = lambda make, take: asked.append(take)
    bench.parameters.audit_n = 30_000
    bench.parameters.epsilon = 2.0
    bench._show_audit = lambda *found: pytest.fail("an old answer was shown")
    asked[0]((np.ones(10), np.zeros(10)))
    bench._show_audit = shown
    asked[1]((np.arange(100.0), np.arange(100.0)))
    assert "100 outputs each" in bench.pictures["clouds"].html


def test_only_the_slider_that_moved_sets_its_parameter(bench):
    p = bench.parameters
    p.lam = 123.4
    assert bench.terms.values[4] == pytest.approx(np.log10(123.4))
    values = list(bench.terms.values)
    bench.terms.values = [0.3, *values[1:]]
    assert (p.epsilon, p.lam) == (2.0, 123.4)
    bench.terms.values = [0.3, *values[1:4], -1.0, 5]
    assert (p.lam, p.T) == (0.0, 5)


def test_the_line_on_the_map_sets_lambda(bench):
    open_tab(bench, "Certificate")
    bench.map.at = 1.0
    assert bench.parameters.lam == 990.0 and "λ = 990" in bench.map.words
    assert "ρ = 1 − γλ = 0.01" in bench.pictures["words"].html
    before = bench.map.html
    bench.map_mode.value = "epsilon"
    assert bench.map.html != before and "ε of noise σ" in bench.map.html
    bench.fixed.values = [9, bench.fixed.values[1]]
    assert bench.parameters.T == 9
    bench.fixed.values = [9, -3.0]
    assert "σ = 0.001" in bench.map.html


def test_model_clipping_follows_its_sliders(bench):
    open_tab(bench, "Cascade")
    bench.clipping.values = [np.log10(0.5), np.log10(0.5), 0.0, -5.0]
    p = bench.parameters
    assert (p.C2, p.sigma_mc, p.epsilon, p.delta) == (0.5, 0.5, 1.0, 1e-5)
    assert "T = 6" in bench.pictures["cascade"].html


def test_what_cannot_be_certified_is_one_line_on_the_page(bench):
    bench.parameters.param.update(gamma=0.01, lam=120.0)
    assert "gamma*lambda = 1.2 must be below 1" in bench.desk.status.object
    bench.parameters.param.update(lam=10.0, accountant="released", epsilon=1e-4)
    assert "the released accounting reports at least" in bench.desk.status.object
    bench.parameters.epsilon = 1.0
    assert bench.desk.status.object == ""


def test_methods_are_compared_and_twins_shown(bench):
    bench.accuracy.seeds.values = [2.0]
    bench.accuracy.run()
    text = bench.accuracy.pictures["curve"].html
    assert "model clipping" in text and "from 0" not in text
    bench.accuracy.twins.value = [True]
    assert "model clipping from 0" in bench.accuracy.pictures["curve"].html
    bench.accuracy.shown.value = ["gc"]
    assert "model clipping" not in bench.accuracy.pictures["curve"].html
    assert "of 2" in bench.accuracy.pictures["forest"].html
    assert "Within one run" in bench.accuracy.pictures["path"].html


def test_an_attack_shows_losses_and_one_user(bench, monkeypatch):
    monkeypatch.setattr(benches, "ATTACK_STEPS", 20)
    monkeypatch.setattr(benches.memory.membership_steps, "__defaults__",
                        (None, (20,), benches.memory.MIA_METHODS, 40))  # fmt: skip
    bench.attack.run()
    s = bench.attack.pictures
    assert s["losses"].html.count("<figure") == 5 and "Original: AUC" in s["losses"].html
    assert len(bench.attack.users.pictures) == benches.SHOWN
    before = s["user"].html
    bench.attack.users.chosen = [5]
    assert s["user"].html != before and "chosen" in s["losses"].html
    bench.attack.users.chosen = []
    assert s["user"].html == "" and "chosen" not in s["losses"].html


def test_survival_has_a_bound_at_once_and_measurements_on_request(bench, monkeypatch):
    open_tab(bench, "Survival")
    assert "d = 385" in bench.survival.picture.html
    bench.survival.size.values = [6.0]
    assert "d = 1,000,000" in bench.survival.picture.html
    monkeypatch.setattr(benches.memory.survival_steps, "__defaults__", (None, (1.0, 1e4), 40, 10))
    bench.survival.run()
    assert bench.survival.picture.html.count("<figure") == 2


# The forget button -------------------------------------------------------------------------------


def test_chosen_images_are_forgotten_and_a_second_request_starts_from_there(bench):
    open_tab(bench, "Forget")
    f = bench.forget
    f.forget()
    assert "Choose at least one image" in bench.desk.status.object
    f.grid.chosen = [0, 3]
    f.forget()
    assert "certified: epsilon = 1 " in f.state.html and "✓" in f.state.html
    assert f.forgotten == [0, 3] and f.grid.marks == [0, 3] and f.grid.chosen == []
    first = f.found.model.clone()
    f.turn()
    assert f.grid.marks == []
    f.grid.chosen = [1]
    f.method.value = "mc"
    f.forget()
    assert f.forgotten == [0, 3, benches.SHOWN + 1] and "model clipping" in f.state.html
    assert not np.allclose(first, f.found.model)
    f.restart()
    assert f.forgotten == [] and f.grid.marks == [] and f.pictures.html == ""


def test_the_released_accounting_certifies_nothing_on_the_page(bench):
    open_tab(bench, "Forget")
    bench.parameters.accountant = "released"
    f = bench.forget
    f.grid.chosen = [0]
    f.forget()
    assert "epsilon is 6.559" in f.state.html and "✗" in f.state.html
    assert f.forgotten == [] and f.requests == 1


def test_another_seed_is_another_model(bench):
    open_tab(bench, "Forget")
    f = bench.forget
    f.grid.chosen = [0]
    f.forget()
    pictures = list(f.grid.pictures)
    bench.parameters.seed = 1
    assert f.found is None and f.grid.pictures != pictures


def test_stopped_in_the_noisy_phase_the_model_is_uncertified(bench, monkeypatch):
    monkeypatch.setattr(benches, "PACE_S", 0.3)
    open_tab(bench, "Forget")
    f = bench.forget
    f.grid.chosen = [2]

    async def scenario():
        f.forget()
        for _ in range(200):
            await asyncio.sleep(0.05)
            if f.found is not None and len(f.found.epsilon) >= 2:
                break
        assert not bench.desk.stop_button.disabled
        bench.desk.stop()
        for _ in range(100):
            await asyncio.sleep(0.05)
            if not bench.desk.jobs.busy:
                break

    asyncio.run(scenario())
    made = len(f.found.epsilon)
    assert 2 <= made < 7 and f"uncertified: {made} of 7 noisy steps" in f.state.html
    assert "✗" in f.state.html and f.found.certified is None
    assert f.forgotten == [] and f.grid.chosen == [2], "nobody has been forgotten"
    f.forget()  # from the model as it is
    assert f.forgotten == [2] and "✓" in f.state.html


# Pages -------------------------------------------------------------------------------------------


def test_each_visitor_has_a_bench_of_their_own_and_a_still_for_reports():
    p = study.Parameters(audit_n=1000)
    one, two = live.live(p), live.live(study.Parameters(audit_n=1000))
    assert one.bench is not two.bench
    made = live.still(p)
    assert made.count("<figure") == 4 and "no contradiction" in made
    explorer = views.explorer(p)
    assert "Settings" in explorer.still_html()


def test_a_report_of_settings_without_automatic_steps_has_its_pictures():
    made = live.still(study.Parameters(C1=0.0, T=5, lam=0.0))
    assert made.count("<figure") == 4 and "automatic T" not in made
