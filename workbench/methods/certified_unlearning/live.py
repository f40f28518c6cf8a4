"""The live part: certificates to drag and to attack, networks that forget while one watches.

`Bench` holds the tabs in closed form, which answer a slider at once: two clouds, the landscape of
certificates, the cascade. Tabs that train networks are in `benches.py`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import panel as pn

from workbench.desk import Desk, narrow, tab
from workbench.explorer import Explorer
from workbench.jobs import Latest
from workbench.steps import Step, Steps
from workbench.widgets.brush import Brush
from workbench.widgets.drawing import Drawing
from workbench.widgets.faders import Sliders

from . import accounting, audit, drawings, study
from .benches import AccuracyBench, AttackBench, ForgetBench, SurvivalBench
from .certificates import GradientClipping

# What acts on the live pictures, in the order of the form.
LIVE = (
    "epsilon", "delta", "accountant", "C0", "C1", "gamma", "lam", "T", "C2", "sigma_mc", "C0_op",
    "hidden", "lr_ft", "batch", "forget_frac", "audit_n", "seed",
)  # fmt: skip
TABS = ("Two clouds", "Certificate", "Cascade", "Accuracy", "Attack", "Survival", "Forget")
AT_ONCE = 20_000  # runs of the scalar adversary behind a slider
NORMALS = 3_000_000  # at most so many random numbers behind a slider
REST_S = 0.35  # a slider that rests for this long counts as released
BLOCK = 20_000
LEAST_LAM = 0.1  # the left end of its slider, where it counts as 0
TERMS = ("epsilon", "C0", "C1", "gamma", "lam", "T")  # on the sliders of the first tab


class Bench:
    """The tabs and what they show; `panel()` is the layout."""

    def __init__(self, parameters: study.Parameters):
        self.parameters = parameters
        self.desk = Desk(lambda: bool(self.terms._models))
        self.full = Latest(self._audited)  # the full audit, when a slider has come to rest
        self._quiet = False
        self._asked: tuple = ()
        self.tabs: pn.Tabs | None = None
        self._build()
        self._stale = {"Certificate", "Cascade", "Survival"}
        self.draw_clouds()
        parameters.param.watch(self._on_parameters, list(LIVE))

    # The page --------------------------------------------------------------------------------

    def _build(self) -> None:
        p = self.parameters
        self.pictures = {name: Drawing() for name in (
            "verdict", "clouds", "tradeoff", "accountants", "words", "shifts", "cascade")
        }  # fmt: skip
        self.accountant = pn.widgets.RadioButtonGroup(
            label="Accountant", value=p.accountant, sizing_mode="fixed", width=260,
            margin=(0, 0, 8, 0),
            options={"exact": "exact", "Renyi": "rdp", "zCDP": "zcdp", "released": "released"},
        )  # fmt: skip
        self.accountant.param.watch(lambda e: p.param.update(accountant=e.new), "value")
        self.terms = Sliders("Certificate", self._on_term, *self._term_rows())
        self.map_mode = pn.widgets.RadioButtonGroup(
            label="What the map shows",
            sizing_mode="fixed",
            width=240,
            margin=(0, 0, 8, 0),
            value="noise",
            options={"noise at this ε": "noise", "ε at this σ": "epsilon"},
        )
        self.map_mode.param.watch(lambda event: self.draw_certificate(), "value")
        self.map = Brush(drawings.WIDE, 330, kind="line", at=0.5,
                         caption="Regularization λ on the map of certificates")  # fmt: skip
        self.map.param.watch(lambda event: self._on_map(), "at")
        self.fixed = Sliders(
            "Steps and noise", self._on_fixed, ("T, 0 is automatic", p.T, 0, 1000, 1),
            ("log10 σ, for the map of ε", np.log10(self._sigma_now()), -4, 2, 0.01),
        )  # fmt: skip
        self.clipping = Sliders("Model clipping", self._on_clipping, *self._clipping_rows())
        self.accuracy = AccuracyBench(p, self.desk)
        self.attack = AttackBench(p, self.desk)
        self.survival = SurvivalBench(p, self.desk)
        self.forget = ForgetBench(p, self.desk)

    def panel(self) -> pn.viewable.Viewable:
        """Stop, status and the tabs."""
        s = self.pictures
        contents = {
            "Two clouds": tab(
                narrow(self.accountant, self.terms), s["verdict"], narrow(s["clouds"]),
                narrow(s["tradeoff"]), narrow(s["accountants"]),
            ),
            "Certificate": tab(self.map_mode, narrow(self.fixed, self.map), s["words"],
                               narrow(s["shifts"])),
            "Cascade": tab(narrow(self.clipping, s["cascade"])),
            "Accuracy": self.accuracy.panel(), "Attack": self.attack.panel(),
            "Survival": self.survival.panel(), "Forget": self.forget.panel(),
        }  # fmt: skip
        # All tabs are on the page from the start, so that each drawing can be sent to.
        self.tabs = pn.Tabs(*contents.items(), sizing_mode="stretch_width", margin=(6, 0))
        self.tabs.param.watch(lambda event: self._draw_stale(), "active")
        top = pn.Row(self.desk.stop_button, self.desk.status, margin=0,
                     sizing_mode="stretch_width")  # fmt: skip
        return pn.Column(top, self.tabs, sizing_mode="stretch_width", margin=0)

    # What is heard ---------------------------------------------------------------------------

    def _term_rows(self) -> list[tuple]:
        p = self.parameters
        return [
            ("log10 ε", np.log10(p.epsilon), -1, 3, 0.02),
            ("log10 C0", np.log10(p.C0), -3, 2, 0.02),
            ("log10 C1", np.log10(max(p.C1, 0.01)), -2, 2, 0.02),
            ("log10 γ", np.log10(p.gamma), -5, 0, 0.02),
            ("log10 λ, left end 0", np.log10(max(p.lam, LEAST_LAM)), -1, 4, 0.02),
            ("T, 0 is automatic", p.T, 0, 100, 1),
        ]

    def _clipping_rows(self) -> list[tuple]:
        p = self.parameters
        return [
            ("log10 C2", np.log10(p.C2), -3, 1, 0.02),
            ("log10 σ", np.log10(p.sigma_mc), -3, 1, 0.02),
            ("log10 ε", np.log10(p.epsilon), -1, 3, 0.02),
            ("log10 δ", np.log10(p.delta), -9, -1, 0.1),
        ]

    def _on_term(self, place: int, value: float) -> None:
        name = TERMS[place]
        new = int(value) if name == "T" else float(f"{10**value:.3g}")
        self.parameters.param.update(**{name: 0.0 if name == "lam" and value <= -1 else new})

    def _on_clipping(self, place: int, value: float) -> None:
        name = ("C2", "sigma_mc", "epsilon", "delta")[place]
        self.parameters.param.update(**{name: float(f"{10**value:.3g}")})

    def _on_map(self) -> None:
        if not self._quiet:
            p = self.parameters
            p.param.update(lam=drawings.lam_at(self.map.at, p.gamma))

    def _on_fixed(self, place: int, value: float) -> None:
        if place == 0:
            self.parameters.T = int(value)
        else:
            self.draw_certificate()

    def _on_parameters(self, *events: Any) -> None:
        p = self.parameters
        self.terms.follow([row[1] for row in self._term_rows()])
        self.clipping.follow([row[1] for row in self._clipping_rows()])
        self.fixed.follow([p.T, self.fixed.values[1]])
        self.accountant.value = p.accountant
        self._stale = {"Two clouds", "Certificate", "Cascade", "Survival"}
        self._draw_stale()
        self.forget.on_parameters({event.name for event in events})

    def _draw_stale(self) -> None:
        """Draw the tab that is seen, the others when they are."""
        seen = TABS[0] if self.tabs is None else TABS[self.tabs.active]
        if seen in self._stale:
            self._stale.discard(seen)
            {"Two clouds": self.draw_clouds, "Certificate": self.draw_certificate,
             "Cascade": self.draw_cascade, "Survival": self.survival.draw}[seen]()  # fmt: skip
        if seen == "Forget":
            self.forget.open()

    # Pictures in closed form -------------------------------------------------------------------

    def _certificate(self) -> tuple[GradientClipping, int]:
        p = self.parameters
        made = GradientClipping(p.C0, p.C1, p.gamma, p.lam)
        return made, p.T or made.steps()

    def _sigma_now(self) -> float:
        p = self.parameters
        made, T = self._certificate()
        return float(made.sigma(accounting.mu_of(p.epsilon, p.delta), T))

    def draw_clouds(self) -> None:
        """The two outputs and the attacker's errors now; the full audit when the slider rests."""
        p = self.parameters
        try:
            made, T = self._certificate()
            mu = float(accounting.mu_of(p.epsilon, p.delta, p.accountant))
        except ValueError as error:  # gamma * lam >= 1, or an epsilon that is not to be had
            self.desk.say(error)
            return
        self.desk.say("")
        sigma = float(made.sigma(mu, T))
        n = max(1000, min(AT_ONCE, NORMALS // T, p.audit_n))
        rng = np.random.default_rng(p.seed)
        self._show_audit(mu, *audit.scalar_adversary(made, sigma, T, n, rng))
        self.pictures["accountants"].html = str(drawings.accountants(mu * mu / 2, p.delta))
        self.full.stop()
        self._asked = asked = (mu, p.epsilon, p.delta)

        def take(found: tuple[np.ndarray, np.ndarray]) -> None:
            if self._asked == asked:  # else the slider has moved on
                self._show_audit(mu, *found)

        if p.audit_n > n:
            self.full.start(lambda: full_audit_steps(made, sigma, T, p.audit_n, p.seed), take)

    def _show_audit(self, mu: float, plus: np.ndarray, minus: np.ndarray) -> None:
        p = self.parameters
        points = audit.operating_points(plus, minus)
        bound, threshold = audit.bound_with_threshold(plus, minus, p.delta)
        exact = float(accounting.epsilon_of(mu, p.delta))
        s = self.pictures
        s["clouds"].html = str(drawings.clouds(plus, minus, threshold))
        s["tradeoff"].html = str(drawings.tradeoff(p.epsilon, p.delta, mu, points))
        s["verdict"].html = str(drawings.verdict(p.epsilon, exact, bound, p.accountant, len(plus)))

    def _audited(self, what: Step | str | Exception) -> None:
        if isinstance(what, Exception):
            self.desk.say(what)

    def draw_certificate(self) -> None:
        """The landscape over lambda and T, its numbers, and the shifts of the proof."""
        p = self.parameters
        try:
            made, T = self._certificate()
        except ValueError as error:
            self.desk.say(error)
            return
        self.desk.say("")
        mu = float(accounting.mu_of(p.epsilon, p.delta))
        sigma = 10.0 ** self.fixed.values[1] if self.map_mode.value == "epsilon" else None
        picture = drawings.landscape(p.C0, p.C1, p.gamma, p.lam, T, mu=mu, delta=p.delta,
                                     op=p.C0_op, sigma=sigma)  # fmt: skip
        self._quiet = True
        try:
            self.map.param.update(
                html=str(picture), at=drawings.share_of(p.lam, p.gamma), words=f"λ = {p.lam:.3g}"
            )
        finally:
            self._quiet = False
        self.pictures["words"].html = str(drawings.certificate_words(made, T, mu, p.C0_op))
        self.pictures["shifts"].html = str(drawings.shift_chart(made, T))

    def draw_cascade(self) -> None:
        """delta_t of model clipping."""
        p = self.parameters
        self.pictures["cascade"].html = str(drawings.cascade(p.C2, p.sigma_mc, p.epsilon, p.delta))

    def stop(self) -> None:
        """Stop everything that runs; what is finished is kept."""
        self.desk.stop()
        self.full.stop()


def full_audit_steps(
    certificate: GradientClipping, sigma: float, T: int, n: int, seed: int
) -> Steps[tuple[np.ndarray, np.ndarray]]:
    """After a rest, n runs of the scalar adversary on both sides, in blocks."""
    waited = time.monotonic() + REST_S
    while time.monotonic() < waited:
        yield Step(0.0, "resting")
        time.sleep(0.02)
    rng = np.random.default_rng([seed, 1])
    block = max(1, min(BLOCK, NORMALS // T))
    made: list[tuple[np.ndarray, np.ndarray]] = []
    for start in range(0, n, block):
        made.append(audit.scalar_adversary(certificate, sigma, T, min(block, n - start), rng))
        yield Step(start / n, "auditing")
    plus, minus = (np.concatenate(side) for side in zip(*made, strict=True))
    return plus, minus


def live(parameters: study.Parameters) -> pn.viewable.Viewable:
    """The live picture for an `Explorer`: a new bench that follows `parameters`."""
    made = Bench(parameters)
    layout = made.panel()
    layout.bench = made  # keeps it alive as long as its page, and lets tests reach it
    return layout


def still(parameters: study.Parameters) -> str:
    """For reports: the audit of this certificate, the landscape, and the cascade, as HTML."""
    p = parameters
    made = GradientClipping(p.C0, p.C1, p.gamma, p.lam)
    T = p.T or made.steps()
    mu = float(accounting.mu_of(p.epsilon, p.delta, p.accountant))
    n = max(1000, min(AT_ONCE, NORMALS // T))
    plus, minus = audit.scalar_adversary(
        made, float(made.sigma(mu, T)), T, n, np.random.default_rng(p.seed)
    )
    bound, threshold = audit.bound_with_threshold(plus, minus, p.delta)
    exact = float(accounting.epsilon_of(mu, p.delta))
    return "".join(map(str, (
        drawings.verdict(p.epsilon, exact, bound, p.accountant, n),
        drawings.clouds(plus, minus, threshold),
        drawings.tradeoff(p.epsilon, p.delta, mu, audit.operating_points(plus, minus)),
        drawings.landscape(p.C0, p.C1, p.gamma, p.lam, T, mu=exact_mu(p), delta=p.delta,
                           op=p.C0_op),
        drawings.cascade(p.C2, p.sigma_mc, p.epsilon, p.delta),
    )))  # fmt: skip


def exact_mu(p: study.Parameters) -> float:
    """mu of the asked epsilon and delta by the exact accountant."""
    return float(accounting.mu_of(p.epsilon, p.delta))


def explorer(parameters: study.Parameters | None = None, **pieces: Any) -> Explorer:
    """The explorer of certified unlearning; `pieces` are further arguments of `Explorer`."""
    parameters = parameters or study.Parameters()
    rest = [name for name in parameters.names() if name not in LIVE]
    return Explorer(parameters, live=live, still=still, only=[*LIVE, *rest], **pieces)
