"""Branch and bound and its certificates: brute force, known optima, honest stops, forgeries."""

from dataclasses import replace

import numpy as np
import pytest
from sparse_glm_problems import small, synthetic, table

from workbench.methods.sparse_glm import baselines, datasets
from workbench.methods.sparse_glm.branch_and_bound import Search, solve
from workbench.methods.sparse_glm.certificate import Certificate, verify
from workbench.methods.sparse_glm.problem import make_problem
from workbench.methods.sparse_glm.supports import Refits, beam_search
from workbench.steps import Cancelled, run


@pytest.mark.parametrize("seed", range(24))
def test_it_equals_brute_force(seed):
    problem = small(seed)
    best = baselines.brute_force(problem)
    found = solve(problem, gap=0.0)
    assert found.upper == pytest.approx(best.value, rel=1e-9)
    assert found.lower <= best.value * (1 + 1e-12) and found.lower <= found.upper
    assert found.gap == 0 or (found.gap < 1e-6 and found.ending == "nothing left to branch")
    certificate = found.certificate()
    verified = verify(certificate, problem.X, problem.y)
    assert verified.valid, verified.reason
    assert verified.lower <= best.value * (1 + 1e-12)
    assert verified.upper >= best.value * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("max_nodes", [0, 1, 2, 3, 5, 9])
def test_stopped_anywhere_its_bounds_are_true_and_its_certificate_valid(seed, max_nodes):
    problem = small(seed)
    best = baselines.brute_force(problem).value
    found = solve(problem, gap=0.0, max_nodes=max_nodes)
    assert found.lower <= best * (1 + 1e-12) and found.upper >= best * (1 - 1e-9)
    verified = verify(found.certificate(), problem.X, problem.y)
    assert verified.valid, verified.reason
    # The dual vector of a parent proves more for its children than for itself.
    assert found.lower * (1 - 1e-9) <= verified.lower <= best * (1 + 1e-12)


ROWS = [
    ("diabetes", 3, 1.0, 2.0, 230.081033, (2, 3, 8)),
    ("diabetes", 5, 1.0, 2.0, 217.468542, (1, 2, 3, 6, 8)),
    ("breast_cancer", 3, 5.0, 1.0, 135.961295, (20, 22, 27)),
    ("breast_cancer", 3, 1.0, 2.0, 87.673507, (13, 20, 27)),
    ("breast_cancer", 5, 2.0, 1.0, 88.912614, (7, 20, 21, 23, 27)),
    ("breast_cancer", 10, 2.0, 1.0, 62.335165, None),
    ("digits", 5, 1.0, 1.0, 48.959528, (17, 23, 35, 36, 39)),
]


@pytest.mark.parametrize(("name", "k", "lambda2", "M", "optimum", "support"), ROWS)
def test_optima_of_the_tables(name, k, lambda2, M, optimum, support):
    """Stored numbers of an independent prototype, those up to k = 3 checked by brute force."""
    problem = table(name, k, lambda2, M)
    found = solve(problem)
    assert found.upper == pytest.approx(optimum, rel=1e-6)
    assert support is None or found.support == support
    assert found.certified and found.gap <= 1e-4 and found.ending == "certified"
    verified = verify(found.certificate(), problem.X, problem.y)
    assert verified.valid and verified.gap <= 1e-4 * (1 + 1e-6)


def test_an_active_box_is_reported():
    found = solve(table("breast_cancer", 3, 5.0, 1.0))
    assert found.box_active == (20, 22, 27)
    assert found.beta[list(found.support)].tolist() == [-1, -1, -1]
    assert solve(table("diabetes", 3, 1.0, 2.0)).box_active == ()


@pytest.mark.parametrize(("loss", "n", "p"), [("linear", 200, 200), ("logistic", 600, 100)])
def test_the_true_support_of_synthetic_data_is_certified(loss, n, p):
    made = datasets.synthetic(n, p, 5, loss)
    problem = make_problem(made.X, made.y, loss, 5, 1.0, 1.5)
    found = solve(problem)
    assert found.certified and found.support == tuple(np.flatnonzero(made.true_beta))


def test_the_optimum_falls_with_k_and_with_the_box():
    problem = small(6)
    for name, grown in (("k", [1, 2, 3, 4]), ("M", [0.3, 0.8, 2.0])):
        values = [solve(problem.with_numbers(**{name: x}), gap=0.0).upper for x in grown]
        assert (np.diff(values) <= 1e-9).all()


def test_all_features_allowed_is_one_refit():
    problem = small(1)
    found = solve(problem.with_numbers(k=problem.p))
    assert found.certified and found.nodes == 1
    assert found.upper == pytest.approx(Refits(problem)(range(problem.p)).value)


# Stopping and going on


def test_limits_end_it_with_the_reason_and_an_honest_gap():
    problem = table("breast_cancer", 5, 1.0, 2.0)
    limited = solve(problem, max_nodes=20)
    assert limited.ending == "limit of 20 nodes" and not limited.certified
    assert 0 < limited.gap < 1 and limited.nodes == 20
    timed = solve(problem, time_limit=0.0)
    assert timed.ending == "time limit of 0 s" and timed.nodes == 0 and timed.lower == 0
    filled = solve(problem, memory_mb=0.05)
    assert filled.ending == "memory limit of 0.05 MB" and filled.nodes < 300


@pytest.mark.parametrize(
    ("options", "words"),
    [({"width": 0}, "width = 0 is not allowed: a whole number of at least 1"),
     ({"child": 1.5}, "child = 1.5 is not allowed"), ({"gap": -0.1}, "gap = -0.1 is not allowed"),
     ({"gap": float("nan")}, "gap = nan is not allowed: a number of at least 0"),
     ({"time_limit": "1"}, "time_limit = '1' is not allowed"),
     ({"node_max_iter": 0}, "node_max_iter = 0 is not allowed")],
)  # fmt: skip
def test_bad_options_are_refused_in_one_line(options, words):
    with pytest.raises(ValueError, match=words):
        solve(small(0), **options)


@pytest.mark.filterwarnings("error")
def test_any_gap_can_be_asked_for():
    for gap in (0.0, 0.3, 1.0, 5.0):
        found = solve(small(2), gap=gap)
        assert found.gap <= max(gap, 1e-6)


def test_it_stops_when_asked_goes_on_and_ends_as_without_a_stop():
    problem = table("breast_cancer", 5, 2.0, 1.0)
    whole = solve(problem)
    search = Search(problem)
    stops = 0
    while not search.done:
        asked = iter([False, False, True, True, True])
        try:
            run(search.steps(), cancelled=lambda asked=asked: next(asked))
        except Cancelled as stopped:
            stops += 1
            assert stopped.data is search and search.ending == "stopped"
            assert search.lower <= whole.upper <= search.upper * (1 + 1e-12)
            assert verify(search.certificate(), problem.X, problem.y).valid
        assert stops < 1000
    assert stops > 0
    assert search.upper == whole.upper and search.solved == whole.nodes


def test_bounds_only_tighten_and_the_history_says_when():
    search = Search(table("breast_cancer", 3, 1.0, 2.0))
    result = run(search.steps())
    seconds, upper, lower, open_nodes = np.array(search.history).T
    assert (np.diff(seconds) >= 0).all() and (np.diff(upper) <= 0).all()
    assert (np.diff(lower) >= -1e-9).all()
    assert open_nodes[-1] >= 0 and result.seconds == pytest.approx(search.seconds)


def test_without_restart_or_momentum_it_proves_the_same_with_more_iterations():
    problem = table("breast_cancer", 3, 5.0, 1.0)
    work, optima = [], []
    for rules in ({}, {"restart": False}, {"restart": False, "momentum": False}):
        search = Search(problem, node_max_iter=3000, **rules)
        optima.append(run(search.steps()).upper)
        work.append(search.nodes[0].iterations)
    assert optima == [optima[0]] * 3 and work[0] < work[1] < work[2]


def test_progress_tells_nodes_gap_and_speed():
    said = []
    run(Search(table("breast_cancer", 3, 1.0, 2.0)).steps(), lambda step: said.append(step))
    assert any("nodes a second" in step.message and "gap" in step.message for step in said)
    assert all(0 <= step.done <= 1 for step in said)


def test_the_tree_is_a_tree():
    search = Search(table("breast_cancer", 3, 1.0, 2.0))
    run(search.steps())
    for visited in search.nodes[1:]:
        parent = search.nodes[visited.parent]
        assert parent.status == "branched" and visited.depth == parent.depth + 1
        assert visited.lower >= parent.lower
        side = visited.node.inside if visited.included else visited.node.outside
        assert side[-1] == visited.feature
    leaves = [v for v in search.nodes if v.status != "branched"]
    assert len(leaves) == (len(search.nodes) + 1) / 2 and all(v.w is not None for v in leaves)


def test_bounds_read_by_another_thread_at_any_moment_are_true():
    """The page reads while the search runs: a node between heap and work must not be missed."""
    import threading

    problem = table("breast_cancer", 3, 1.0, 2.0)
    optimum = solve(problem).upper
    search, seen, over = Search(problem), [], threading.Event()

    def read():
        while not over.is_set():
            seen.append((search.lower, search.upper))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        run(search.steps())
    finally:
        over.set()
        reader.join()
    lower, upper = np.array(seen).T
    assert len(seen) > 100 and (lower <= optimum).all() and (upper >= optimum).all()
    # Bounds of closed nodes are kept, so a missed node would show as a bound that falls again.
    assert (np.diff(lower) >= -1e-12 * optimum).all()


# Upper bounds


def test_a_wider_beam_is_never_worse_here_and_greedy_is_not_always_right():
    worse = 0
    for seed in range(20):
        problem = small(seed)
        best = baselines.brute_force(problem).value
        refits = Refits(problem)
        narrow, wide = (beam_search(refits, *size).value for size in ((1, 1), (20, 20)))
        assert best <= wide * (1 + 1e-12) and wide <= narrow * (1 + 1e-12)
        worse += narrow > best * (1 + 1e-9)
    assert worse > 0


@pytest.mark.parametrize("name", list(baselines.HEURISTICS))
def test_heuristics_are_feasible_and_never_below_the_optimum(name):
    for seed in range(4):
        problem = small(seed)
        fit = baselines.HEURISTICS[name](problem)
        if fit is None:
            pytest.skip("not installed")
        assert len(fit.support) <= problem.k and np.abs(fit.b).max() <= problem.M
        assert fit.value >= baselines.brute_force(problem).value * (1 - 1e-9)


def test_brute_force_knows_its_limit():
    with pytest.raises(ValueError, match=r"75,287,520 supports.*stops at 20,000"):
        baselines.brute_force(synthetic("linear", 100, k=5))


# Certificates


@pytest.fixture(scope="module")
def proven():
    problem = table("breast_cancer", 3, 1.0, 2.0)
    return problem, solve(problem).certificate()


def test_a_certificate_survives_its_file(proven, tmp_path):
    problem, certificate = proven
    certificate.save(tmp_path / "proof.npz")
    loaded = Certificate.load(tmp_path / "proof.npz")
    assert loaded.leaves == certificate.leaves and (loaded.w == certificate.w).all()
    assert verify(loaded, problem.X, problem.y).valid
    assert certificate.nbytes < 1e6
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(ValueError, match="is no certificate"):
        Certificate.load(tmp_path / "other.npz")
    whole = (tmp_path / "proof.npz").read_bytes()
    (tmp_path / "broken.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npz").write_text("no proof")
    for name in ("broken.npz", "text.npz"):
        with pytest.raises(ValueError, match="is no certificate"):
            Certificate.load(tmp_path / name)
    with pytest.raises(ValueError, match="there is no file"):
        Certificate.load(tmp_path / "absent.npz")


def test_labels_zero_and_one_are_as_good(proven):
    problem, certificate = proven
    assert verify(certificate, problem.X, (problem.y > 0).astype(int)).valid


def forged(certificate, X, y):
    """(what was changed, certificate, X, y)."""
    leaves, w = certificate.leaves, certificate.w
    lowest = int(np.argmax(np.abs(w).sum(1)))
    zeroed = w.copy()
    zeroed[lowest] = 0
    nothing = w.copy()
    nothing[0, 0] = np.nan
    moved = (certificate.support[0], certificate.support[1], 0)
    twice = ((*leaves[0][0], *leaves[0][1][:1]), leaves[0][1])
    yield "a leaf left out", replace(certificate, leaves=leaves[1:], w=w[1:]), X, y
    yield "the last leaf left out", replace(certificate, leaves=leaves[:-1], w=w[:-1]), X, y
    yield "a dual vector of zeros", replace(certificate, w=zeroed), X, y
    yield "a dual vector that is no number", replace(certificate, w=nothing), X, y
    yield "a lower value", replace(certificate, upper=certificate.upper * 0.999), X, y
    yield "a higher bound", replace(certificate, lower=certificate.lower * 1.0001), X, y
    yield "another point", replace(certificate, support=moved), X, y
    yield "outside the box", replace(certificate, coefficients=1.5 * certificate.coefficients), X, y
    yield "a feature decided twice", replace(certificate, leaves=(twice, *leaves[1:])), X, y
    yield "a leaf repeated", replace(certificate, leaves=(leaves[1], *leaves[1:])), X, y
    yield "a larger box", replace(certificate, M=certificate.M * 1.5), X, y
    yield "a smaller penalty", replace(certificate, lambda2=certificate.lambda2 / 2), X, y
    yield "more features", replace(certificate, k=certificate.k + 1), X, y
    yield "another loss", replace(certificate, loss="hinge"), X, y
    yield "other labels", certificate, X, -y
    yield "other data", certificate, X[:, ::-1], y
    yield "fewer rows", certificate, X[1:], y[1:]
    yield "no such feature", replace(certificate, support=(0, 1, 99)), X, y


def extreme(seed):
    """Columns of very different size, equal and empty ones, tiny and huge penalties and boxes."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(4, 40)), int(rng.integers(2, 10))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-4, 4, p if seed % 2 else 1)
    if seed % 3 == 0:
        X[:, 0] = X[:, -1]
    if seed % 5 == 0:
        X[:, 0] = 0
    y = X @ rng.standard_normal(p) + rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3)
    loss = ("linear", "logistic")[seed // 2 % 2]
    y = y - y.mean() if loss == "linear" else np.where(y > np.median(y), 1.0, -1.0)
    k, lambda2 = int(rng.integers(1, min(4, p) + 1)), 10.0 ** rng.uniform(-6, 4)
    return make_problem(X, y, loss, k, lambda2, 10.0 ** rng.uniform(-3, 3))


@pytest.mark.filterwarnings("ignore:X has")
@pytest.mark.parametrize("part", range(4))
def test_bounds_and_certificates_are_true_on_extreme_data_too(part):
    for seed in range(60 * part, 60 * part + 60):
        problem = extreme(seed)
        best = baselines.brute_force(problem).value
        found = solve(problem, gap=(0.0, 1e-3)[seed % 2], max_nodes=(4, 200)[seed // 3 % 2])
        verified = verify(found.certificate(), problem.X, problem.y)
        assert verified.valid, (seed, verified.reason)
        for lower, upper in ((found.lower, found.upper), (verified.lower, verified.upper)):
            assert lower <= best * (1 + 1e-11) and upper >= best * (1 - 1e-9), seed


def test_forgeries_are_rejected_with_a_reason(proven):
    problem, certificate = proven
    assert verify(certificate, problem.X, problem.y).valid
    for what, changed, X, y in forged(certificate, problem.X, problem.y):
        found = verify(changed, X, y)
        assert not found.valid and found.reason != "proven", what


def test_the_checker_shares_no_code_with_the_solver():
    import ast
    import inspect

    from workbench.methods.sparse_glm import certificate

    tree = ast.parse(inspect.getsource(certificate))
    relative = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    assert relative == []


@pytest.mark.slow
def test_subtrees_as_dask_tasks_make_one_certificate():
    from distributed import Client, LocalCluster

    from workbench.methods.sparse_glm.subtrees import solve_parted

    problem = table("breast_cancer", 5, 2.0, 1.0)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1",
                     dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        parted = solve_parted(problem, client, depth=2)
    assert parted.tasks == 4 and parted.gap <= 1e-4
    assert parted.certificate.upper == pytest.approx(88.912614, rel=1e-6)
    assert verify(parted.certificate, problem.X, problem.y).valid
