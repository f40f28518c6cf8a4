"""The comparisons of the study, each a generator of steps that returns plain results.

All methods on the same images, against tuned baselines, and against foolbox at K = 1. They
measure; what the numbers mean for the claims is in `findings.py`, and how they look in
`views.py`. Independent attacks run on two threads, each on one core, so that results depend on no
number of cores; their `seconds` are processor seconds of their thread.
"""

from __future__ import annotations

import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from workbench.numerics.threads import one_thread
from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part, together

from . import baselines, digits, glyphs, peers
from .attacks import METHODS, TITLES, attack_steps
from .jacobian import forward
from .networks import accuracy, attackable
from .ranking import achieved, random_targets
from .records import AttackResult

NUMBERS = ("success", "l1", "l2", "linf")  # of an AttackResult, each (images,)
WORKERS = 2  # attacks at a time
STOP_S = 0.5  # how long work that is to stop may take to notice
DIGITS_IMAGES, DIGITS_ITERS, DIGITS_LR = 24, 20, 0.05
DIGITS_K, DIGITS_BASELINE_ITERS = (1, 3, 5, 9), 60
TUNED_K, FEW_RIVALS = (20, 30), 40
DIGITS_TUNED_K = (5, 9)  # shorter orders are within reach of all
MOST_ITERATIONS = 2000
# Grids of the pilot measurements. Official choice rule, and the official nine rounds of bisection
# once, at the best of the rest. CW^K gets more iterations, which it makes use of; AD was tried with
# 1,000 at each learning rate and weight, K = 20, network 0: no order in 8.
GRID = {"lrs": (0.003, 0.01, 0.03), "coefs": (5, 20), "iterations": (60, 200), "rounds": 9}
GRIDS = {"quad": GRID, "cw": {**GRID, "iterations": (60, 200, 1000)}, "ad": GRID}
DIGITS_GRID = {
    "lrs": (0.02, 0.05, 0.1), "coefs": (5, 20), "iterations": (60, 200), "margins": (0.2,),
    "rounds": 9,
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """Images (n, 1, H, W) that all `models` read correctly, their labels (n,), class names."""

    data: str
    models: list[nn.Module]
    accuracy: list[float]
    x: Tensor
    labels: Tensor
    names: tuple[str, ...]

    def targets(self, K: int, p: Parameters) -> Tensor:
        """The orders (n, K): the reader's own for all images, or random ones, nested in K."""
        if p.targets and self.data == p.data:
            return torch.tensor(p.targets[:K]).expand(len(self.x), -1).clone()
        return random_targets(self.labels, K, len(self.names), p.seed)


def problem_steps(p: Parameters, data: str, networks: int, images: int) -> Steps[Problem]:
    """Train (or load) networks from the seeds p.seed.. and choose the images to attack."""
    train = digits.digits_model_steps if data == "digits" else glyphs.glyph_model_steps
    models = []
    for number in range(networks):
        steps = train(p.seed + number)
        models.append(
            (yield from part(steps, number / networks, (number + 1) / networks, f"{data} network"))
        )
    x, labels = digits.held_out_digits() if data == "digits" else glyphs.held_out_glyphs()
    right = [accuracy(model, x, labels) for model in models]
    names = digits.CLASS_NAMES if data == "digits" else glyphs.CLASS_NAMES
    if p.targets and data == p.data:
        free = ~torch.isin(labels, torch.tensor(p.targets))
        x, labels = x[free], labels[free]
    chosen = attackable(models, x, labels, images, p.seed)
    return Problem(data, models, right, x[chosen], labels[chosen], names)


_jobs_lock, _jobs = threading.Lock(), 0
_jobs_limits = ExitStack()


@contextmanager
def job_limits() -> Iterator[None]:
    """What holds for the process while any attack job runs: from the first in to the last out.

    One thread for small linear algebra, as attacks share the cores among them; and no warning of a
    margin out of reach, which is no news where an ablation provokes it.
    """
    global _jobs
    with _jobs_lock:
        if _jobs == 0:
            _jobs_limits.enter_context(threadpool_limits(1, "blas"))
            _jobs_limits.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "margin = ")
        _jobs += 1
    try:
        yield
    finally:
        with _jobs_lock:
            _jobs -= 1
            if _jobs == 0:
                _jobs_limits.close()


def attack_job(
    key: Any, model: nn.Module, x: Tensor, targets: Tensor, method: str, **options: Any
) -> Steps[tuple[Any, AttackResult]]:
    """One attack on one core; returns (key, result) with processor seconds as its time.

    To be driven to the end, or closed, by a worker of `attacks_steps`, in whose thread it begins.
    """
    begin = time.thread_time()
    with one_thread(), job_limits():
        steps = attack_steps(model, x, targets, method, allow_label=True, **options)
        result = yield from part(steps, 0, 1)
    found = key, replace(result, seconds=time.thread_time() - begin)
    yield Step(1.0, "", found)
    return found


def attacks_steps(
    jobs: dict[Any, Callable[[], Steps]], names: Sequence[str], make: Callable[[dict], Any]
) -> Steps[Any]:
    """Run attack jobs side by side and return `make({key: result})`; data: that of those ready."""

    def ready(latest: list) -> Any:
        return make(dict(found for found in latest if found is not None))

    work = together(list(jobs.values()), WORKERS, names)
    found = yield from part(work, 0, 1, data=ready)
    return make(dict(found))


def joined(results: Sequence[AttackResult]) -> AttackResult:
    """Results of the same attack on several networks as one, without traces."""
    return AttackResult(
        torch.cat([r.delta for r in results]),
        *(np.concatenate([getattr(r, name) for r in results]) for name in NUMBERS),
        trace={},
        seconds=sum(r.seconds for r in results),
    )


@dataclass(frozen=True)
class Bench:
    """All methods on the same images: results[method, K] is a list with one result a network.

    K (m,): the lengths for which all methods are finished on all networks. settings[method, K]:
    of baselines that were tuned.
    """

    problem: Problem
    targets: dict[int, Tensor]
    results: dict[tuple[str, int], list[AttackResult]]
    settings: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    @property
    def K(self) -> list[int]:
        """Lengths of order for which every method is finished."""
        return [K for K in self.targets if all((m, K) in self.results for m in METHODS)]

    def all(self, method: str, K: int) -> AttackResult:
        """The results on all networks as one."""
        return joined(self.results[method, K])


def bench_steps(
    p: Parameters, problem: Problem, K_list: Sequence[int], options: dict[str, dict[str, Any]]
) -> Steps[Bench]:
    """Attack every network with every method for every K; options: keyword arguments a method."""
    targets = {K: problem.targets(K, p) for K in K_list}
    jobs, names = {}, []
    for K in K_list:
        for method in METHODS:
            for number, model in enumerate(problem.models):
                key = method, K, number
                jobs[key] = partial(
                    attack_job, key, model, problem.x, targets[K], method, **options[method]
                )
                names.append(f"{problem.data}, K = {K}, {TITLES[method]}")

    def make(found: dict) -> Bench:
        numbers = range(len(problem.models))
        results = {
            (m, K): [found[m, K, i] for i in numbers]
            for K in K_list
            for m in METHODS
            if all((m, K, i) in found for i in numbers)
        }
        return Bench(problem, targets, results)

    return (yield from attacks_steps(jobs, names, make))


def main_bench_steps(p: Parameters) -> Steps[Bench]:
    """The comparison that the parameters describe (94 glyphs, or 10 digits with data = digits)."""
    problem = yield from part(problem_steps(p, p.data, p.networks, p.images), 0, 0.1)
    options = {method: p.options(method) for method in METHODS}
    K_list = sorted(set(p.K_list))
    return (yield from part(bench_steps(p, problem, K_list, options), 0.1, 1, data=lambda b: b))


def digits_bench_steps(p: Parameters) -> Steps[Bench]:
    """Three networks and 24 real digits, with the iterations of the pilot measurements."""
    p = with_random_targets(p)
    problem = yield from part(problem_steps(p, "digits", 3, DIGITS_IMAGES), 0, 0.2)
    first_order = {**p.options("cw"), "iters": DIGITS_BASELINE_ITERS, "lr": DIGITS_LR}
    options = {method: first_order for method in METHODS}
    options["rising"] = {**p.options("rising"), "iters": DIGITS_ITERS}
    return (yield from part(bench_steps(p, problem, DIGITS_K, options), 0.2, 1, data=lambda b: b))


def tuned_digits_steps(p: Parameters, bench: Bench) -> Steps[Bench]:
    """Experiment 3 with tuned baselines: each gets its grid for each K, on network 0 of `bench`.

    All networks are attacked with the setting that was best on network 0. RisingAttacK is not
    tuned: its results are those of `bench`.
    """
    p = with_random_targets(p)
    problem = bench.problem
    targets = {K: bench.targets[K] for K in DIGITS_TUNED_K}
    jobs, names = {}, []
    for K in sorted(targets, reverse=True):
        for method in baselines.BASELINES:
            jobs[method, K] = partial(
                _tune_everywhere_job, (method, K), problem, targets[K], method, p.seed
            )
            names.append(f"digits, K = {K}, tuning")

    def make(found: dict) -> Bench:
        results = {key: results for key, (_, results) in found.items()}
        results |= {("rising", K): bench.results["rising", K] for K in targets}
        return Bench(problem, targets, results, {key: s for key, (s, _) in found.items()})

    return (yield from attacks_steps(jobs, names, make))


def _tune_everywhere_job(
    key: Any, problem: Problem, targets: Tensor, method: str, seed: int
) -> Steps[tuple]:
    """Tune on network 0 and attack the others with its settings: (key, (settings, results))."""
    first, *others = problem.models
    tune = _tune_job(key, first, problem.x, targets, method, seed=seed, **DIGITS_GRID)
    _, tuned = yield from part(tune, 0, 0.9)
    results = [tuned.result]
    for number, model in enumerate(others):
        job = attack_job(key, model, problem.x, targets, method, **tuned.settings)
        begin, size = 0.9 + 0.1 * number / len(others), 0.1 / len(others)
        _, result = yield from part(job, begin, begin + size)
        results.append(result)
    found = key, (tuned.settings, results)
    yield Step(1.0, "", found)
    return found


@dataclass(frozen=True)
class TunedBench:
    """Against baselines tuned on these very images: tuned[method, K], rising[name, K].

    problem: the network, which is its first, and the images.
    """

    K: list[int]
    tuned: dict[tuple[str, int], baselines.Tuned]
    rising: dict[tuple[str, int], AttackResult]
    problem: Problem | None = None


def tuned_steps(
    p: Parameters, K_list: Sequence[int] = TUNED_K, images: int = 8
) -> Steps[TunedBench]:
    """Experiment 2: each of `GRIDS` gets its best setting, on glyphs, network 0."""
    p = with_random_targets(p)
    problem = yield from part(problem_steps(p, "glyphs", 1, images), 0, 0.02)
    model, x = problem.models[0], problem.x
    own = p.options("rising")
    jobs, names = {}, []
    for K in sorted(K_list, reverse=True):  # the longest first: two threads end together
        targets = problem.targets(K, p)
        for name, changes in (("rising", {}), (f"rising {FEW_RIVALS}", {"rivals": FEW_RIVALS})):
            jobs[name, K] = partial(
                attack_job, (name, K), model, x, targets, "rising", **{**own, **changes}
            )
            names.append(f"tuned, K = {K}, {name}")
        for method, grid in GRIDS.items():
            jobs[method, K] = partial(
                _tune_job, (method, K), model, x, targets, method, seed=p.seed, **grid
            )
            names.append(f"tuned, K = {K}")

    def make(found: dict) -> TunedBench:
        tuned = {key: r for key, r in found.items() if key[0] in GRIDS}
        rising = {key: r for key, r in found.items() if key not in tuned}
        return TunedBench(list(K_list), tuned, rising, problem)

    return (yield from part(attacks_steps(jobs, names, make), 0.02, 1, data=lambda t: t))


def _tune_job(key: Any, model: nn.Module, *args: Any, **options: Any) -> Steps[tuple]:
    with one_thread(), job_limits():
        tuned = yield from part(baselines.tune_steps(model, *args, **options), 0, 1)
    yield Step(1.0, "", (key, tuned))
    return key, tuned


@dataclass(frozen=True)
class EqualTime:
    """Attacks on network 0 that were given the same processor time.

    K (m,): the lengths for which all are finished. results[method, K]: RisingAttacK, and baselines
    stopped after its seconds, or after `MOST_ITERATIONS`. settings[method, K]: of baselines.
    tuned: whether those are what `tuned_steps` found, on its images; else those of the parameters.
    """

    K: list[int]
    results: dict[tuple[str, int], AttackResult]
    settings: dict[tuple[str, int], dict[str, Any]]
    tuned: bool

    @property
    def iterations(self) -> dict[tuple[str, int], int]:
        """Iterations that each attack has taken."""
        return {key: self._iterations(key) for key in self.results}

    def _iterations(self, key: tuple[str, int]) -> int:
        states, settings = len(self.results[key].trace["norm"]), self.settings.get(key, {})
        rounds = 1
        if settings.get("search_steps", 1) > 1:  # every round of bisection has a start of its own
            rounds = -(-states // (settings["iters"] + 1))
        return states - rounds


def equal_time_steps(
    p: Parameters, bench: Bench, tuned: TunedBench | None = None
) -> Steps[EqualTime]:
    """Experiment 2, equal time: at `TUNED_K`, on network 0, the images and settings of `tuned`.

    Without `tuned`: those of the main comparison (its longest K if it has none of `TUNED_K`). As
    times differ from run to run, so do the numbers of iterations, and with them the results: a
    little.
    """
    if tuned:
        problem, K_list = tuned.problem, tuned.K
        own = {K: tuned.rising["rising", K] for K in K_list}
        targets = {K: problem.targets(K, with_random_targets(p)) for K in K_list}
    else:
        problem, K_list = bench.problem, [K for K in bench.K if K in TUNED_K] or bench.K[-1:]
        own = {K: bench.results["rising", K][0] for K in K_list}
        targets = bench.targets
    settings = {
        (m, K): tuned.tuned[m, K].settings if tuned else p.options(m)
        for K in K_list
        for m in baselines.BASELINES
    }
    jobs = {
        (m, K): partial(
            _timed_job, (m, K), problem.models[0], problem.x, targets[K], m, own[K].seconds, options
        )
        for (m, K), options in settings.items()
    }
    names = [f"equal time, K = {K}, {TITLES[m]}" for m, K in jobs]

    def make(found: dict) -> EqualTime:
        done = [K for K in K_list if all((m, K) in found for m in baselines.BASELINES)]
        results = {("rising", K): own[K] for K in K_list} | found
        return EqualTime(done, results, settings, tuned is not None)

    return (yield from attacks_steps(jobs, names, make))


def _timed_job(
    key: Any, model: nn.Module, x: Tensor, targets: Tensor, method: str, seconds: float,
    options: dict[str, Any],
) -> Steps[tuple[Any, AttackResult]]:  # fmt: skip
    """An attack that is stopped after `seconds` of its processor: (key, result).

    An iteration does not depend on how many will follow: without rounds of bisection, whose length
    is a setting, it may take as many as there is time for.
    """
    if options["search_steps"] == 1:
        options = {**options, "iters": MOST_ITERATIONS}
    numbers, begin = [], time.thread_time()
    with one_thread(), job_limits():
        steps = attack_steps(model, x, targets, method, allow_label=True, **options)
        for step in steps:
            latest, spent = step.data, time.thread_time() - begin
            numbers.append(latest.numbers())
            yield Step(min(1.0, spent / seconds), step.message)
            if spent >= seconds:
                break
        steps.close()
        success = latest.found & achieved(forward(model, x + latest.best_delta), targets)
    found = key, AttackResult.of(latest.best_delta, success, numbers, spent)
    yield Step(1.0, "", found)
    return found


@dataclass(frozen=True)
class Anchor:
    """K = 1 on digits: results by title; missing: why foolbox's are not there, or empty."""

    results: dict[str, AttackResult]
    missing: str = ""


def anchor_steps(p: Parameters, images: int = DIGITS_IMAGES) -> Steps[Anchor]:
    """Experiment 4: the same images and targets for foolbox's attacks, if it is installed."""
    p = with_random_targets(p)
    problem = yield from part(problem_steps(p, "digits", 1, images), 0, 0.05)
    model, x, targets = problem.models[0], problem.x, problem.targets(1, p)
    job = partial(
        attack_job, 0, model, x, targets, "rising",
        **{**p.options("rising"), "iters": DIGITS_ITERS},
    )  # fmt: skip
    found = yield from part(attacks_steps({0: job}, ["K = 1, RisingAttacK"], dict), 0.05, 0.1)
    results = {TITLES["rising"]: found[0]}
    if not peers.available():
        return Anchor(results, "foolbox is not installed: pip install workbench[peers]")
    for number, method in enumerate(peers.PEERS):
        yield Step(
            0.1 + 0.9 * number / len(peers.PEERS), peers.TITLES[method], Anchor(dict(results))
        )
        results[peers.TITLES[method]] = yield from part(
            waiting_steps(partial(_peer, model, x, targets, method, p.seed)),
            0.1 + 0.9 * number / len(peers.PEERS), 0.1 + 0.9 * (number + 1) / len(peers.PEERS),
            peers.TITLES[method],
        )  # fmt: skip
    return Anchor(results)


def _peer(
    model: nn.Module, x: Tensor, targets: Tensor, method: str, seed: int,
    stopped: Callable[[], bool],
) -> AttackResult:  # fmt: skip
    begin = time.thread_time()
    with one_thread():
        result = peers.peer(model, x, targets, method, seed, stopped)
    return replace(result, seconds=time.thread_time() - begin)


def with_random_targets(p: Parameters) -> Parameters:
    """The parameters with random targets."""
    return type(p)(**{**p.to_papermill(), "targets": []})


def waiting_steps(function: Callable[[Callable[[], bool]], Any]) -> Steps[Any]:
    """Call what cannot report in a thread of its own.

    function: gets a question, whether to stop, which is answered with True once these steps are
    closed. They wait for it no longer than `STOP_S`, then go on without it.
    """
    outcome: queue.SimpleQueue = queue.SimpleQueue()
    stopping = threading.Event()

    def work() -> None:
        try:
            outcome.put((function(stopping.is_set), None))
        except BaseException as error:
            outcome.put((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            try:
                result, error = outcome.get(timeout=0.2)
            except queue.Empty:
                yield Step(0.5)
                continue
            if error is not None:
                raise error
            return result
    finally:
        stopping.set()
        thread.join(STOP_S)
