"""Parts of the page without a browser: what they say of radii, and where they move inputs."""

import json
import math
import random
from typing import Any

import pytest
from javascript import evaluate, find_node

pytestmark = pytest.mark.skipif(find_node() is None, reason="node is not installed")

WORDS = "page/words.js"

MAP = """((picture) => {
  globalThis.document = { createElement: () => ({ style: { setProperty() {} } }) };
  const drawn = {
    createImageData: (width, height) => ({ data: new Uint8ClampedArray(4 * width * height) }),
    putImageData: ({ data }) => (picture = data),
  };
  globalThis.OffscreenCanvas = class { getContext() { return drawn; } };
  const canvas = { addEventListener() {} };
  const plane = new Plane({ area: [-1, 1, -1, 1], classes: ["a", "b"] }, canvas, { append() {} });
  plane.setField(%s);
  const row = picture.subarray(4 * 900 * 300, 4 * 900 * 301);
  return Array.from({ length: 900 }, (_, at) => Array.from(row.subarray(4 * at, 4 * at + 4)));
})()"""
"""Red, green, blue and strength along one line of the map that is drawn of a field."""

ELEMENTS = """(() => {
  const said = {};
  const part = (name) => ({
    setAttribute: (key, value) => (said[`${name} ${key}`] = value),
    classList: { toggle() {} },
    set textContent(text) { said[name] = text; },
  });
  const element = { ...part("sketch"), querySelector: (name) => part(name.slice(1)) };
  new Sketch({ classes: ["a", "b"] }, element).show(%s, 0.5);
  return said;
})()"""
"""What a sketch says and draws in elements that are none of a browser."""


def numbers() -> list[float]:
    """Of every magnitude, some of few digits, and the ends of the doubles."""
    generator = random.Random(0)
    drawn = [generator.random() * 10.0 ** generator.randint(-320, 305) for _ in range(4000)]
    short = [float(f"{number:.{generator.randint(1, 5)}g}") for number in drawn[:1000]]
    ends = [5e-324, 2.0**-1022, 1.7e308, 0.99996, 999.99999]
    return [number for number in drawn + short + ends if number > 0.0]


def test_radii_are_rounded_down_and_distances_up_at_every_magnitude() -> None:
    given = numbers()
    below, above = evaluate(
        WORDS, f"[roundedDown, roundedUp].map((rounded) => {json.dumps(given)}.map(rounded))"
    )
    for number, low, high in zip(given, below, above, strict=True):
        assert float(low) <= number <= float(high)
        if number > 1e-300:
            assert float(high) - float(low) <= 1.001e-3 * number


@pytest.mark.parametrize(
    ("number", "below", "above"),
    [
        ("1.2346e-10", "1.234e-10", "1.235e-10"),
        ("1.2346e16", "1.234e+16", "1.235e+16"),
        ("0.5699999999999", "0.5699", "0.5700"),
        ("0.57", "0.5700", "0.5700"),
        ("1.08262", "1.082", "1.083"),
        ("0", "0", "0"),
        ("NaN", "NaN", "NaN"),
    ],
)
def test_four_digits_are_shown(number: str, below: str, above: str) -> None:
    assert evaluate(WORDS, f"[roundedDown({number}), roundedUp({number})]") == [below, above]


def test_shares_are_rounded_down() -> None:
    given = [0.4996, 0.57, 0.29, 0.0999, 0.0123, 0.00999, 1e-7, 1e-320, 0.99999, 1.0, 12.5, 0.0]
    found = evaluate(WORDS, f"{json.dumps(given)}.map(percent)")
    assert [word.removesuffix("\u00a0%") for word in found] == [
        "49", "57", "29", "9.9", "1.2", "0.99", "0.000010", "0.000000000", "99", "100", "1250", "0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("radius", "words"),
    [
        (0.4996, "one pixel alone by up to 49\u00a0% of the way from black to white, or all 64"),
        (0.4996, "pixels at once by 6.2\u00a0% each"),
        (1.9999, "any 3 pixels all the way"),
    ],
)
def test_changes_of_pixels_are_not_said_to_be_larger_than_the_radius(
    radius: float, words: str
) -> None:
    subject = {"kind": "image", "inShape": [1, 8, 8], "size": 64, "low": 0, "high": 1}
    call = f"new Verdict({json.dumps(subject)}, {{}}).sentence('a', {radius})"
    assert words in evaluate("page/verdict.js", call)


def test_noise_below_the_radius_is_not_said_to_be_all_of_it() -> None:
    call = "[0.9996, 0.95].map((share) => noiseSentence(['a'], {label: 0, radius: 0.3}, %s))"
    found = evaluate("page/noise.js", call % "share * 0.3, 0")
    assert "99\u00a0% of the radius" in found[0]
    assert "95\u00a0% of the radius" in found[1]


@pytest.mark.parametrize("strength", [1.0, 0.5, 1e-4])
def test_a_map_has_steps_of_the_radius_and_one_line_where_the_answer_changes(
    strength: float,
) -> None:
    """Of a boundary at 0, with radii that are a share of the distance from it."""
    across = [-1.0, -1 / 3, 1 / 3, 1.0]
    field = {
        "labels": [int(x > 0) for x in across] * 4,
        "radii": [strength * abs(x) for x in across] * 4,
        "side": 4,
    }
    found = evaluate("page/plane.js", MAP % json.dumps(field))
    grey = [at for at, (*colour, _) in enumerate(found) if colour == [90, 100, 110]]
    assert grey == [448, 449, 450, 451]
    for at, (*colour, drawn) in enumerate(found):
        steps = 10 * strength * abs(2 * at / 899 - 1)
        if at not in grey:
            if 0.01 < steps % 1 < 0.99 or steps < 0.5:
                assert drawn == 40 + 18 * math.floor(steps)
            assert colour == ([0x3B, 0x7D, 0xD8] if at < 450 else [0xE0, 0x7B, 0x39])


@pytest.mark.parametrize(("low", "high"), [(-3.0, 0.1), (0.0, 0.123456789), (0.1, 0.7)])
def test_points_and_pixels_stay_in_the_domain(low: float, high: float) -> None:
    """A link says entries of the domain alone."""
    plane = f"{{subject: {{low: {low}, high: {high}}}, left: -9, right: 9, bottom: -9, top: 9,"
    moved = "move: (...at) => moved.push(...at)}"
    call = f"((moved) => (Plane.prototype.to.call({plane} {moved}, -8, 8), moved))([])"
    assert evaluate("page/plane.js", call) == [low, high]
    drawn = (
        f"{{subject: {{inShape: [3, 1, 1], low: {low}, high: {high}}}, width: 1, height: 1,"
        f"ink: () => [0, 1, 0.5], entry: () => {low}, draw: (place, value) => drawn.push(value)}}"
    )
    found = evaluate(
        "page/drawing.js", f"((drawn) => (Drawing.prototype.mix.call({drawn}, 0, 0, 1), drawn))([])"
    )
    assert found[0] == low
    assert low < found[2] < found[1] <= high
    assert math.isclose(found[1], high)


@pytest.mark.parametrize(("sample", "stored"), [(7, 0.25), ("blank", 0.0)])
def test_what_is_erased_within_one_stroke_is_as_it_was(sample: object, stored: float) -> None:
    """The next dab of a stroke mixes with what the one before it left."""
    call = f"""(() => {{
      const subject = {{ size: 2, inputs: [9, 9, 0.5, 0.25], indices: [3, 7], low: 0 }};
      const state = {{ sample: {json.dumps(sample)}, changes: new Map() }};
      const entries = [entryOf(state, subject, 1)];
      for (const value of [1, entries[0]]) {{
        changeEntry(state, subject, 1, value);
        entries.push(entryOf(state, subject, 1));
      }}
      return [entries, state.changes.size];
    }})()"""
    assert evaluate("page/state.js", call) == [[stored, 1, stored], 0]


def sketch(radius: float, label: int) -> dict[str, Any]:
    found: dict[str, Any] = evaluate(
        "page/sketch.js",
        ELEMENTS
        % f"{{claims: {{label: {label}, radius: {radius}}}, closest: {{label: 1, distance: 0.6}}}}",
    )
    return found


def test_a_sketch_promises_nothing_without_a_radius() -> None:
    assert sketch(0.5, 0)["inside-word"] == "always a"
    assert "a ball of radius 0.5000" in sketch(0.5, 0)["sketch aria-label"]
    for label in (0, -1):
        said = sketch(0.0, label)
        assert (said["inside-word"], said["radius-word"], said["ball r"]) == ("", "no radius", 0)
        assert said["sketch aria-label"] == (
            "Sketch: the input, without a radius; near it can be b from 0.6000 on."
        )


@pytest.mark.parametrize(("classes", "more"), [(10, None), (300, "and 290 more, in the same")])
def test_a_key_says_that_colours_come_again(classes: int, more: str | None) -> None:
    call = """((made) => {
      globalThis.document = { createElement: () => ({ style: { setProperty() {} } }) };
      const canvas = { addEventListener() {} };
      const key = { append: (...entries) => made.push(...entries) };
      const classes = Array.from({ length: %d }, (_, number) => `class ${number}`);
      new Plane({ area: [0, 1, 0, 1], classes }, canvas, key);
      return made.map((entry) => entry.textContent);
    })([])"""
    found = evaluate("page/plane.js", call % classes)
    assert found[:10] == [f"class {number}" for number in range(10)]
    assert len(found) == (10 if more is None else 11)
    assert more is None or found[10].startswith(more)


@pytest.mark.parametrize(
    ("label", "radius", "agrees"),
    [(1, 2.0, True), (1, 2.0000005, True), (1, 2.000002, False), (0, 2.0, False), (1, None, False)],
)
def test_a_radius_may_differ_by_its_own_allowance(
    label: int, radius: float | None, agrees: bool
) -> None:
    claims = f"{{label: {label}, radius: {'NaN' if radius is None else radius}}}"
    subject = "{indices: [7], predicted: [1], radii: [2.0], apart: [1e-6]}"
    told = evaluate(
        "page/agreement.js",
        f"""(() => {{
          const [element, failures] = [{{}}, []];
          const failed = (message) => failures.push(message);
          new Agreement({subject}, element, failed).compare(7, {claims});
          return [failures.length, element.textContent ?? ""];
        }})()""",
    )
    assert told[0] == (0 if agrees else 1)
    assert told[1].startswith("Checked: answers and radii of 1 test samples") == agrees


def test_more_pixels_than_there_are_are_not_promised() -> None:
    subject = {"kind": "image", "size": 64, "low": 0, "high": 1, "inShape": [1, 8, 8]}
    words = evaluate("page/verdict.js", f"new Verdict({json.dumps(subject)}, {{}}).ofPixels(9.5)")
    assert "any 64 pixels all the way" in words


def test_numbers_behind_columns_of_words_are_no_columns() -> None:
    subject = {
        "kind": "table", "size": 5, "columns": [{}, {}, {}], "short": ", in units of the columns",
        "categories": "A change of category has the length 1.",
    }  # fmt: skip
    call = "new Verdict(%s, {}).ofEntries(0.5)"
    assert evaluate("page/verdict.js", call % json.dumps(subject)) == (
        "That is any one column alone by up to 0.5000, or all 5 numbers behind the columns at once "
        "by 0.2236 each, in units of the columns, or anything in between. "
        "A change of category has the length 1."
    )
    subject |= {"columns": [{}] * 5, "categories": ""}
    assert evaluate("page/verdict.js", call % json.dumps(subject)) == (
        "That is any one column alone by up to 0.5000, or all 5 at once by 0.2236 each, "
        "in units of the columns, or anything in between."
    )


def test_a_link_keeps_large_entries() -> None:
    subject = "{kind: 'table', size: 2, low: -1e30, high: 1e30, indices: [0], first: 0}"
    state = f"{{...firstState({subject}), changes: new Map([[0, 1e22], [1, -1.5e-7]])}}"
    back = evaluate("page/state.js", f"[...fromFragment(toFragment({state}), {subject}).changes]")
    assert back == [[0, 1e22], [1, -1.5e-7]]
