"""Values as the page shows them: with the digits that tell rows and points apart."""

import json

import pytest
from javascript import evaluate, find_node

pytestmark = pytest.mark.skipif(find_node() is None, reason="node is not installed")


@pytest.mark.parametrize(
    ("shift", "unit", "low", "high", "value", "text"),
    [
        (0.0, 1.0, 1e5, 4e6, 1234567, "1234567"),
        (1.7e9, 100.0, 1.7e9 - 300, 1.7e9 + 300, 1700000123, "1700000123"),
        (1e6, 1.0, 1e6, 1e6 + 10, 1000005.3, "1000005.3"),
        (40.0, 10.0, 20.0, 90.0, 52.3, "52.3"),
        (0.0, 1.0, 0.0, 1.0, 1 / 3, "0.333333"),
        (0.0, 1.0, 0.0, 0.0, 0.0, "0"),
    ],
)
def test_a_slider_shows_the_value_of_the_row(
    shift: float, unit: float, low: float, high: float, value: float, text: str
) -> None:
    column = {"name": "a", "place": 0, "shift": shift, "unit": unit, "low": low, "high": high}
    call = """((column, parts) => {
      const part = (name) => (parts[name] ??= { style: {}, addEventListener() {} });
      globalThis.document = { createElement: () => ({ querySelector: part }) };
      new Columns([column], { append() {} }).show([columnEntry(column, %r)], 0.5);
      return [parts.output.textContent, parts.input.ariaValueText];
    })(%s, {})"""
    assert evaluate("page/columns.js", call % (value, json.dumps(column))) == [text, text]


@pytest.mark.parametrize(
    ("columns", "start", "end", "texts"),
    [
        ([], 1.2345678, 1.2345679, ["1.2345678", "1.2345679"]),
        ([], 0.25, 0.5, ["0.25", "0.5"]),
        ([0.0, 10.0], 1.2345678, 1.2345679, ["1.2345678", "1.2345679"]),
        ([1e5, 4e6], 1234567, 1334567.25, ["1234567", "1334567"]),
        ([1e5, 4e6], 1234567, 1234567.25, ["1234567", "1234567.3"]),
    ],
)
def test_a_value_that_changes_is_told_with_the_digits_that_change(
    columns: list[float], start: float, end: float, texts: list[str]
) -> None:
    ends = dict(zip(("low", "high"), columns, strict=False))
    given = [{"name": "a", "place": 0, "shift": 0, "unit": 1, **ends}] if columns else []
    call = """((table) => {
      globalThis.document = { createElement: () => ({}) };
      listChanges(table, %s, [%r], [%r]);
      return [...table.innerHTML.matchAll(/<td class="number">([^<]*)</g)].map(([, text]) => text);
    })({})"""
    assert evaluate("page/changes.js", call % (json.dumps(given), start, end)) == texts


@pytest.mark.parametrize(
    ("start", "side", "found"),
    [
        (1e6, 10.0, [1000005.3, 1000001.23457]),
        (1.7e9, 100.0, [1700000053.0, 1700000012.3457]),
        (0.0, 1e-4, [0.000053, 0.0000123457]),
        (-5.0, 1e7, [5299995.0, 1234563.0]),
    ],
)
def test_a_point_is_moved_to_where_it_is_dragged(
    start: float, side: float, found: list[float]
) -> None:
    end = start + side
    given = [start + 0.53 * side, start + 0.123456789 * side]
    area = f"left: {start}, right: {end}, bottom: {start}, top: {end}"
    plane = f"{{subject: {{low: -1e12, high: 1e12}}, {area}, move: (...at) => moved.push(...at)}}"
    call = f"((moved) => (Plane.prototype.to.call({plane}, ...{given}), moved))([])"
    assert evaluate("page/plane.js", call) == found
