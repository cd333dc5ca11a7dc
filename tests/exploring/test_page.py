"""The page in a headless browser: its numbers are those of ``certify``, and each control works."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import Browser, find_browser

import unitmargin as um
from unitmargin.data import ENCODING, Samples
from unitmargin.exploring.page import explore_page
from unitmargin.frozen import FrozenNetwork

pytestmark = pytest.mark.skipif(find_browser() is None, reason="no browser is installed")

APART = 1e-9

TABLE = {
    "label": "bought", "scale": "features", "columns": [
        {"name": "age <years>", "shift": 40.0, "unit": 10.0},
        {"name": "payment", "categories": ["card", "cash", "invoice"]},
        {"name": "income", "shift": 2000.0, "unit": 500.0},
    ],
}  # fmt: skip

VISIT = """(async () => {
  const find = (id) => document.getElementById(id);
  const found = [];
  for (const option of [...find("sample").options].slice(0, -1)) {
    find("sample").value = option.value;
    find("sample").dispatchEvent(new Event("change"));
    while (!find("radius").value) await new Promise((later) => setTimeout(later, 1));
    found.push([Number(option.value), find("label").textContent, Number(find("radius").value)]);
  }
  return found;
})()"""
"""Of every test sample in turn: its number, the label and the radius that are shown."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(str(find_browser())) as opened:
        yield opened


def digits() -> tuple[FrozenNetwork, Samples]:
    torch.manual_seed(0)
    dataset = um.load_dataset("digits")
    model = um.DenseUGNN((1, 8, 8), 10, hidden=[64, 32])
    return um.freeze(model, classes=dataset.classes, domain=(0, 1)), dataset.test


def moons() -> tuple[FrozenNetwork, Samples]:
    torch.manual_seed(1)
    dataset = um.load_dataset("moons")
    model = um.DenseUGNN((2,), 2, hidden=[2, 2, 2])
    return um.freeze(model, classes=dataset.classes, domain=(-4, 5)), dataset.test


def table() -> tuple[FrozenNetwork, Samples]:
    torch.manual_seed(2)
    frozen = um.freeze(um.DenseUGNN((5,), 2), classes=("<no>", "yes"), domain=(-4, 4))
    frozen.facts[ENCODING] = TABLE
    inputs = torch.zeros(6, 5)
    inputs[:, [0, 4]] = torch.randn(6, 2)
    inputs[range(6), [1, 2, 3, 1, 2, 3]] = 0.7071067
    return frozen, Samples(inputs, torch.arange(6) % 2)


def photos() -> tuple[FrozenNetwork, Samples]:
    torch.manual_seed(3)
    frozen = um.freeze(um.DenseUGNN((3, 4, 6), 3, hidden=[16]), domain=(0, 1))
    return frozen, Samples(torch.rand(5, 3, 4, 6), torch.arange(5) % 3)


def wide() -> tuple[FrozenNetwork, Samples]:
    """Neither pictures nor few enough numbers for sliders."""
    torch.manual_seed(4)
    frozen = um.freeze(um.DenseUGNN((5, 4, 5), 2, hidden=[16]))
    return frozen, Samples(torch.rand(4, 5, 4, 5), torch.arange(4) % 2)


MADE = {"digits": digits, "moons": moons, "table": table, "photos": photos, "wide": wide}


class Shown:
    """A page in the browser, and what it shows."""

    def __init__(self, browser: Browser, file: Path) -> None:
        self.browser, self.file = browser, file

    def open(self, fragment: str = "") -> "Shown":
        self.browser.errors.clear()
        self.browser.call("Page.navigate", url="about:blank")
        self.browser.open(self.file, fragment)
        return self.settle()

    def settle(self) -> "Shown":
        """Until the radius, the closest point and the answer to the noise are known."""
        self.browser.wait("document.getElementById('radius').value")
        self.browser.wait("!document.getElementById('broken').textContent.startsWith('searching')")
        self.browser.wait("!document.getElementById('noise').textContent.endsWith('…')")
        return self

    def text(self, name: str) -> str:
        return str(self.browser.value(f"document.getElementById({name!r}).textContent"))

    def get(self, expression: str) -> Any:
        return self.browser.value(expression)

    @property
    def fragment(self) -> str:
        self.browser.wait("document.body.dataset.address === 'written'")
        return str(self.browser.value("location.hash"))

    @property
    def radius(self) -> float:
        return float(self.browser.value("document.getElementById('radius').value"))

    def require_sound(self) -> None:
        """No error, and no failure that the page reports."""
        assert self.browser.errors == []
        assert self.get("document.getElementById('failure').hidden") is True


def changes_of(page: Shown) -> list[str]:
    """Changed entries as the address of the page tells them: place, colon, value."""
    return page.fragment.split("change=")[1].split("&")[0].split(",")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    files = {name: folder / f"{name}.html" for name in MADE}
    for name, make in MADE.items():
        files[name].write_text(explore_page(*make(), name, "0" * 64))
    return files


@pytest.fixture
def show(browser: Browser, pages: dict[str, Path]) -> Iterator[Any]:
    shown: list[Shown] = []

    def opened(name: str, fragment: str = "") -> Shown:
        shown.append(Shown(browser, pages[name]).open(fragment))
        return shown[-1]

    yield opened
    for page in shown:
        page.require_sound()


def test_labels_and_radii_of_200_digits_are_those_of_certify(show: Any) -> None:
    frozen, samples = digits()
    page = show("digits")
    found = page.get(VISIT)
    index = torch.tensor([row[0] for row in found])
    true = um.certify(frozen, samples.batch(index)[0], "float64")
    radius = torch.tensor([row[2] for row in found], dtype=torch.float64)
    assert len(set(index.tolist())) == 200
    assert [row[1] for row in found] == [frozen.classes[label] for label in true.label.tolist()]
    assert float((radius - true.radius).abs().max()) <= APART
    assert "of 200 test samples" in page.text("agreement")


def test_a_sample_is_chosen_in_every_way(show: Any) -> None:
    page = show("digits")
    first = page.fragment
    for control in ("#next", "#surprise", "#strip label:nth-child(7)"):
        before = page.fragment
        page.browser.click(control)
        assert page.settle().fragment != before
    page.browser.click("#previous")
    chosen = page.get("document.getElementById('strip').children[5].firstChild.value")
    assert page.settle().fragment.startswith(f"#sample={chosen}&")
    assert page.get("document.querySelector('#strip input:checked').value") == chosen
    page.get(f"void (location.hash = {first!r})")
    page.browser.wait(f"document.getElementById('sample').value === '{first[8:].split('&')[0]}'")


def test_people_draw_with_the_mouse_and_with_keys(show: Any) -> None:
    page = show("digits")
    page.browser.click("#strip label:nth-child(1)")
    start = page.settle().radius
    page.browser.click("#blank")
    page.settle()
    assert page.fragment.startswith("#sample=blank&noise")
    assert page.text("truth") == "not a test sample"
    assert page.get("document.getElementById('sample').value") == "blank"
    page.browser.drag("#drawing", (0.2, 0.2), (0.5, 0.5), (0.8, 0.2))
    page.settle()
    assert page.fragment.count(":1") > 4
    drawn = page.fragment
    page.browser.click("#erase")
    page.browser.drag("#drawing", (0.5, 0.5))
    assert page.settle().fragment != drawn
    page.browser.click("#paint")
    page.get("document.getElementById('drawing').focus()")
    for key in ("ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown", "ArrowDown", " "):
        page.browser.press(key)
    assert page.text("pixel") == "Row 6, column 5: 1"
    assert "44:1" in page.settle().fragment
    page.browser.click(".restore")
    assert page.settle().fragment.startswith("#sample=blank&noise")
    page.browser.click("#strip label:nth-child(1)")
    assert page.settle().radius == start


def test_noise_below_the_radius_keeps_the_answer_and_far_noise_towards_the_closest_does_not(
    show: Any,
) -> None:
    page = show("digits")
    assert "it cannot be another one" in page.text("noise")
    seed = page.fragment
    page.browser.click("#another")
    assert page.settle().fragment == seed.replace("seed=1", "seed=2")
    page.browser.click("#closest")
    assert page.settle().fragment.endswith("towards=closest")
    assert "it cannot be another one" in page.text("noise")
    page.get("document.getElementById('norm').focus()")
    for _ in range(60):
        page.browser.press("ArrowRight")
    page.get(
        "(slider => { slider.value = 1000; slider.dispatchEvent(new Event('input')); })"
        "(document.getElementById('norm'))"
    )
    page.browser.wait("document.getElementById('noise').textContent.includes('it may change')")
    page.browser.click("#random")
    page.browser.wait("document.getElementById('noise').textContent.includes('size')")
    assert "seed=2" in page.fragment


def test_the_page_attacks_by_itself_and_when_it_is_told_to(show: Any) -> None:
    page = show("digits")
    page.browser.wait("document.getElementById('searched-aloud').textContent")
    said = page.text("searched-aloud")
    assert "1,000 random points and 1,000 gradient steps: none has another answer" in said
    page.browser.click("#search")
    page.browser.wait("document.getElementById('searched').textContent.includes('so far')")
    page.get("void (location.hash = location.hash.replace(/noise=[^&]*/, 'noise=4'))")
    page.browser.wait("document.getElementById('searched').textContent.includes('is read as')")
    assert page.text("broken").startswith("from ")


def test_nothing_is_asked_of_an_input_before_its_answer_is_known(show: Any) -> None:
    """Noise and searches in the moment after another input was chosen are not judged by its
    predecessor's radius."""
    page = show("digits")
    page.get(
        """(async () => {
          const find = (id) => document.getElementById(id);
          for (const option of [...find("sample").options].slice(0, 40)) {
            find("sample").value = option.value;
            find("sample").dispatchEvent(new Event("change"));
            find("search").click();
            find("norm").dispatchEvent(new Event("input"));
            find("another").click();
            if (option.index % 4 === 0) await new Promise((later) => setTimeout(later, 20));
          }
        })()"""
    )
    assert page.settle().radius > 0


def test_a_link_shows_the_same_state(show: Any) -> None:
    page = show("digits", "#sample=5&change=9:0.25,10:1&noise=0.5&seed=77")
    assert page.fragment.endswith("noise=0.5&seed=77")
    assert "9:0.25" in page.fragment
    radius, noise = page.radius, page.text("noise")
    page.browser.click("#link")
    page.browser.wait("document.getElementById('linked').textContent")
    again = show("digits", page.fragment)
    assert (again.radius, again.text("noise")) == (radius, noise)
    assert again.get("document.querySelector('.restore').disabled") is False


@pytest.mark.parametrize(
    "fragment",
    [
        "#", "#sample=x", "#sample=-1&change=a:b,,9999:0,0:77,1&noise=-1&seed=0&towards=up",
        "#noise=NaN&change=0:NaN,0:Infinity&seed=1e99", "#%E0%A4%A",
    ],
)  # fmt: skip
def test_what_a_link_says_wrong_is_left_out(fragment: str, show: Any) -> None:
    page = show("digits", fragment)
    assert page.fragment.endswith("&noise=0.95&seed=1")
    assert "change" not in page.fragment


def test_a_point_is_dragged_and_moved_by_keys_and_sliders(show: Any) -> None:
    page = show("moons")
    page.browser.drag("#plane", (0.2, 0.2), (0.3, 0.4), (0.7, 0.6))
    page.settle()
    dragged = page.fragment
    x, y = (float(pair.split(":")[1]) for pair in changes_of(page))
    frozen, _ = moons()
    true = um.certify(frozen, torch.tensor([[x, y]], dtype=torch.float64), "float64")
    assert page.radius == pytest.approx(float(true.radius[0]), abs=APART)
    page.get("document.getElementById('plane').focus()")
    page.browser.press("ArrowRight")
    page.browser.press("ArrowUp", modifiers=8)
    assert page.settle().fragment != dragged
    moved = page.fragment
    page.get("document.querySelector('#columns input').focus()")
    page.browser.press("ArrowLeft")
    assert page.settle().fragment != moved
    page.browser.click(".restore")
    assert "change" not in page.settle().fragment


def test_columns_of_a_table_are_moved_in_their_own_units(show: Any) -> None:
    page = show("table")
    assert page.get("document.querySelector('.column .name').textContent") == "age <years>"
    page.get(
        "(slider => { slider.value = 50; slider.dispatchEvent(new Event('input')); })"
        "(document.querySelector('#columns input'))"
    )
    shown = page.settle().get("document.querySelector('#columns output').textContent")
    ((place, entry),) = (pair.split(":") for pair in changes_of(page))
    assert place == "0"
    assert 40.0 + 10.0 * float(entry) == pytest.approx(float(shown), abs=1e-3)
    page.get(
        "(choice => { choice.value = 2; choice.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#columns select'))"
    )
    assert "3:0.70710" in page.settle().fragment
    assert page.get("document.querySelector('#columns select').value") == "2"
    assert "payment is" in page.text("other")
    assert page.text("label") in ("<no>", "yes")


def test_colours_are_drawn(show: Any) -> None:
    page = show("photos")
    page.get("document.getElementById('ink').value = '#ff8000'")
    page.browser.drag("#drawing", (3.5 / 6, 2.5 / 4))
    values = dict(pair.split(":") for pair in changes_of(page.settle()))
    middle = 2 * 6 + 3
    assert float(values[str(middle)]) == 1.0
    assert float(values[str(24 + middle)]) == pytest.approx(0.5, abs=0.01)
    assert float(values[str(48 + middle)]) == 0.0


def test_inputs_of_other_shapes_are_chosen_and_their_changes_listed(show: Any) -> None:
    page = show("wide")
    assert page.get("document.querySelectorAll('#columns input').length") == 0
    assert "number " in page.text("noisy")
    assert "and 94 more, each of less" in page.text("other")
    before = page.fragment
    page.browser.click("#next")
    assert page.settle().fragment != before


@pytest.mark.parametrize("name", MADE)
def test_nothing_is_wider_than_a_telephone(name: str, show: Any) -> None:
    page = show(name)
    page.browser.resize(390, 844, dark=True)
    assert page.get("document.documentElement.scrollWidth") <= 390
    page.browser.resize(1280, 800)


def test_a_browser_that_finds_other_numbers_says_so(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    sound, wrong = "value: (a, b) => a + b, ", "value: (a, b) => a + b + 1e-6 * a, "
    text, broken = pages["digits"].read_text(), tmp_path / "broken.html"
    assert sound in text
    broken.write_text(text.replace(sound, wrong))
    page = Shown(browser, broken).open()
    assert "another radius" in page.text("failure")
    assert page.get("document.getElementById('failure').hidden") is False
