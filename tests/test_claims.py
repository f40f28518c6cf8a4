"""Claims: mean, interval and verdict; nothing is edited to pass."""

import json

import numpy as np
import pytest

from workbench import claims


def test_a_claim_holds_when_mean_and_every_value_are_within_their_limits():
    values = [0.3, 0.5, 0.7]
    assert claims.judge("a", "s", values, at_most=0.6).verdict == "holds"
    assert claims.judge("a", "s", values, at_most=0.4).verdict == "fails"
    assert claims.judge("a", "s", values, at_most=0.6, each_at_most=0.65).verdict == "fails"
    assert claims.judge("a", "s", values, at_least=0.4, each_at_least=0.3).verdict == "holds"
    assert claims.judge("a", "s", values, at_least=0.6).verdict == "fails"


def test_what_was_not_measured_is_not_tested():
    claim = claims.judge("a", "s", None, at_most=1)
    assert (claim.verdict, claim.measured, claim.low, claim.high) == (
        "not tested",
        None,
        None,
        None,
    )


def test_one_value_has_no_interval_and_several_have_one_around_their_mean():
    assert claims.interval([1.0]) == (None, None)
    assert claims.interval([2.0, 2.0]) == (2.0, 2.0)
    rng = np.random.default_rng(0)
    values = rng.normal(5, 1, 200)
    low, high = claims.interval(values)
    half = 1.96 * values.std() / np.sqrt(200)
    assert low == pytest.approx(values.mean() - half, abs=0.03)
    assert high == pytest.approx(values.mean() + half, abs=0.03)


def test_values_that_are_not_finite_and_missing_thresholds_are_errors():
    with pytest.raises(ValueError, match="finite"):
        claims.judge("a", "s", [1.0, np.nan], at_most=1)
    with pytest.raises(ValueError, match="finite"):
        claims.judge("a", "s", [], at_most=1)
    with pytest.raises(ValueError, match="no threshold"):
        claims.judge("a", "s", [1.0])


def test_claims_survive_json_and_show_themselves_escaped():
    claim = claims.judge("a", "x < y & z", [1.0, 2.0], at_most=3, unit="sites")
    assert claims.Claim(**json.loads(json.dumps(claim.to_json()))) == claim
    table = claims.Claims([claim, claims.judge("b", "t", None, at_most=1)])
    html = table._repr_html_()
    assert "x &lt; y &amp; z" in html
    assert "unknown" in html and "✓ holds" in html and "– not tested" in html
    assert table.held() == "1 of 1 hold (1 not tested)"
    assert "mean ≤ 3" in repr(table)
