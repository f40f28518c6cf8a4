"""How fluent the live pictures of neural_cpm are in a browser: frames a second, time of a click.

What a visitor of the Panel page sees is measured: from the engine or network in Python to pixels
in headless Chromium, with all charts beside the picture. Best of three tries, because a browser
shares two cores with the server.
"""

import time

import numpy as np
import pytest
from browser import conftest as fixtures

from workbench.methods.neural_cpm import landscape

pytestmark = pytest.mark.benchmark
browser, page, serve = fixtures.browser, fixtures.page, fixtures.serve

TRIES, WATCH_S, MCS_A_FRAME, EXCHANGES = 3, 4.0, 20, 10
TISSUE = """
import panel as pn
from workbench import theme
from workbench.methods.neural_cpm import live, study
theme.set_defaults()
size = int(pn.state.session_args["size"][0])
tissue = live.LiveTissue(study.Parameters(size=size, n_cells=size**2 // 250))
tissue.view.speed = {speed}
tissue.panel().servable()
"""
LANDSCAPE = """
from workbench import theme
from workbench.methods.neural_cpm import study, views
theme.set_defaults()
views.energy_landscape(study.Parameters()).__panel__().servable()
"""
# Notes how long after a press on the canvas the table and the number of frames have both changed.
STOPWATCH = """() => {
  const all = function* (root) { for (const node of root.querySelectorAll('*')) {
    yield node; if (node.shadowRoot) yield* all(node.shadowRoot); } };
  const find = (what) => { for (const node of all(document)) if (node.matches(what)) return node; };
  const view = find('.lv'), around = find('table').getRootNode(); // a search takes milliseconds
  const now = () => [around.querySelector('table')?.textContent, view.dataset.frames];
  let last = 0; // a first click changes no table: the next press ends its watch
  window.waits = [];
  find('canvas[role=img]').addEventListener('pointerdown', () => {
    const start = performance.now(), before = now(), press = ++last;
    const look = () => {
      if (press !== last) return;
      if (now().some((value, k) => value === before[k])) requestAnimationFrame(look);
      else window.waits.push(performance.now() - start);
    };
    look();
  });
}"""


@pytest.fixture(scope="module")
def address(serve, tmp_path_factory):
    """`address(name, script)`: where a Panel page of this script is."""

    def address(name, script):
        path = tmp_path_factory.mktemp("pages") / f"{name}.py"
        path.write_text(script)
        return serve(path)

    return address


@pytest.fixture(scope="module")
def tissue_url(address):
    return address("tissue", TISSUE.format(speed=MCS_A_FRAME))


@pytest.fixture(scope="module")
def clicks():
    """(H, W) and two sites of the aggregate at the start, in cells of different kinds."""
    cell = landscape.EnergyLandscape(seed=0).aggregate.cell
    sites = [np.argwhere(cell == identity) for identity in (1, 12)]
    return cell.shape, [found[len(found) // 2].tolist() for found in sites]


def test_two_clicks_exchange_two_cells_within_a_tenth_of_a_second_in_python(clicks):
    """The second click: the energies before and after, and the new frame, packed to be sent.

    First in this file: while Playwright runs, a view without a page does not act at once.
    """
    explorer = landscape.EnergyLandscape(seed=0)
    view, aggregate = explorer.view, explorer.aggregate

    def exchange():
        view.selected = clicks[1][0]
        before, start = aggregate.cell, time.perf_counter()
        view.selected = clicks[1][1]
        duration = time.perf_counter() - start
        assert (aggregate.cell != before).any() and "before" in explorer.table.object
        return duration

    exchange()
    waits = [1e3 * exchange() for _ in range(EXCHANGES)]
    print(f"\nexchange of two cells, in Python: median {np.median(waits):.0f} ms")
    assert np.median(waits) < 100


# The target is for 200 x 200 (27 on an idle machine). The larger one (23 there) is to be seen, with
# room for a machine with other work.
@pytest.mark.parametrize(("size", "least"), [(200, 20), (256, 10)])
def test_a_large_tissue_is_drawn_often_enough(page, tissue_url, size, least):
    page.goto(f"{tissue_url}?size={size}")
    view = page.locator(".lv[data-live=true]")
    view.wait_for(timeout=180_000)
    view.get_by_text(f"{MCS_A_FRAME} MCS/frame").wait_for()
    page.get_by_role("button", name="Play", exact=True).click()
    time.sleep(3)  # the first frames compile and settle

    def frames():
        return int(view.get_attribute("data-frames"))

    rates = []
    for _ in range(TRIES):
        before, start = frames(), time.perf_counter()
        time.sleep(WATCH_S)
        rates.append((frames() - before) / (time.perf_counter() - start))
    tries = ", ".join(f"{rate:.1f}" for rate in rates)
    print(f"\n{size} x {size} sites, {MCS_A_FRAME} MCS a frame: {tries} frames/s")
    assert max(rates) >= least


def test_two_clicks_exchange_two_cells_within_a_quarter_of_a_second_on_the_page(
    page, address, clicks
):
    """From the press of the second click to table and frame in the browser.

    The tenth of a second is asked of Python, above. Panel, the socket and a browser that paints
    without a graphics card come on top: 60 ms on an idle machine, 150 on one with other work.
    """
    page.goto(address("landscape", LANDSCAPE))
    view = page.locator(".lv[data-live=true]")
    view.wait_for(timeout=180_000)
    (height, width), sites = clicks

    def click(site):
        """Whether the click was drawn: under load Panel may keep a message until the next one."""
        before, end = view.get_attribute("data-frames"), time.perf_counter() + 5
        box = view.locator("canvas").bounding_box()
        page.mouse.click(
            box["x"] + (site[1] + 0.5) / width * box["width"],
            box["y"] + (site[0] + 0.5) / height * box["height"],
        )
        while (drawn := view.get_attribute("data-frames")) == before and time.perf_counter() < end:
            time.sleep(0.01)
        time.sleep(0.2)  # the page is at rest again
        return drawn != before

    page.evaluate(STOPWATCH)
    drawn = [click(sites[number % 2]) for number in range(2 * EXCHANGES)]
    waits = page.evaluate("waits")
    print(
        f"\nclick to table and frame on the page: median {np.median(waits):.0f} ms; "
        f"{drawn.count(False)} of {len(drawn)} clicks were not drawn at once"
    )
    assert np.median(waits) < 250
