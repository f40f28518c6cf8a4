"""Streaming traces: one buffer of times and series."""

import numpy as np

from workbench.widgets.traces import Chart, Series, Traces

CHARTS = [
    Chart("Energy", "J", [Series("kinetic", "#000000"), Series("rest", "#111111")]),
    Chart("Share", "%", [Series("kinetic", "#000000")], low=0, high=100),
]


def table(traces):
    return np.frombuffer(traces.data).reshape(4, -1)


def test_values_are_kept_by_chart_and_series_and_missing_ones_are_gaps():
    traces = Traces(CHARTS)
    traces.note(0, {("Energy", "kinetic"): 1, ("Share", "kinetic"): 50})
    traces.note(2, {("Energy", "rest"): 7})
    expected = [[0, 2], [1, np.nan], [np.nan, 7], [50, np.nan]]
    np.testing.assert_array_equal(table(traces), expected)


def test_only_the_last_points_are_kept():
    traces = Traces(CHARTS, kept=3)
    for time in range(10):
        traces.note(time, {})
    assert table(traces)[0].tolist() == [7, 8, 9]


def test_a_clock_that_goes_back_starts_anew():
    traces = Traces(CHARTS)
    for time in (0, 5, 0):
        traces.note(time, {})
    assert table(traces)[0].tolist() == [0]


def test_the_same_time_replaces_the_last_point():
    traces = Traces(CHARTS)
    for value in (1, 2):
        traces.note(0, {("Energy", "kinetic"): value})
    assert table(traces)[:2].tolist() == [[0], [2]]
