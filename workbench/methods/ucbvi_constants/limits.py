"""How much work one run may be. Light, so that parameters are checked before numba is loaded."""

LARGEST_WORK = 5e10  # S^2 A H K
SECONDS_PER_WORK = 1.7e-8  # of BF on one core


def check_work(S: int, A: int, H: int, K: int) -> None:
    """ValueError, with the estimated minutes, above S^2 A H K = 5e10."""
    work = S**2 * A * H * K
    if work > LARGEST_WORK:
        raise ValueError(
            f"S^2 A H K = {work:.1e} would take one run about {work * SECONDS_PER_WORK / 60:.0f} "
            f"minutes: allowed are {LARGEST_WORK:.0e}, so with these sizes at most K = "
            f"{int(LARGEST_WORK // (S**2 * A * H))}"
        )
