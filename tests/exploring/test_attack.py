"""The page's attack without a browser: when it searches, and what it says of noise."""

import pytest
from javascript import evaluate, find_node

pytestmark = pytest.mark.skipif(find_node() is None, reason="node is not installed")

ATTACK = """((told, timers, hearers) => {
  globalThis.document = { createElement: () => ({}) };
  globalThis.setTimeout = (call) => timers.push(call);
  globalThis.clearTimeout = (number) => delete timers[number - 1];
  const explorer = {
    current: { x: Float64Array.of(0, 0), claims: { label: 0, radius: %s } },
    state: { share: 0.5, towards: "%s", seed: 1 },
    subject: { classes: ["a", "b"] },
    find: () => ({ replaceChildren() {} }),
    fail: (message) => told.push(message),
    asker: {
      ask(kind, { x, wanted }, hear) {
        hearers[kind] = hear;
        if (kind !== "closest") told.push([kind, wanted ?? Array.from(x)]);
      },
      drop: (kind) => told.push(["drop", kind]),
    },
  };
  const breaking = Object.create(Breaking.prototype);
  Object.assign(breaking, { explorer, views: { show() {} }, showNoise() {} });
  breaking.start();
  breaking.search({ wanted: 20000, seconds: 300 });
  told.length = 0;
  %s;
  timers.forEach((call) => call());
  return told;
})([], [], {})"""
"""What is asked after people told the page to try more, and something was heard or done."""

OTHER = "{ point: Float64Array.of(0, 4), distance: 4, label: 1 }"

FOUND = f"{{ random: 1, gradient: 0, found: {OTHER}, done: true }}"


@pytest.mark.parametrize(
    ("towards", "closest", "lost"),
    [("closest", "null", True), ("closest", OTHER, False), ("random", "null", False)],
)
def test_noise_that_has_nowhere_to_lead_is_said_to_be_random(
    towards: str, closest: str, lost: bool
) -> None:
    call = f"""((said) => {{
      globalThis.document = {{ createElement: () => ({{}}) }};
      const text = (part) => part.textContent ?? part;
      const element = {{ replaceChildren: (...parts) => said.push(parts.map(text).join("")) }};
      const current = {{ claims: {{ label: 0, radius: 0.3 }}, found: 0, closest: {closest} }};
      sayNoise(element, {{ classes: ["a"] }}, current, 0.15, "{towards}");
      return said[0];
    }})([])"""
    way = ", in a random direction as no other answer is known" if lost else ""
    assert evaluate("page/noise.js", call) == (
        f"Noise of size 0.1500, 50\u00a0% of the radius{way}: "
        "the answer is still a, and it cannot be another one."
    )


@pytest.mark.parametrize(
    ("radius", "towards", "heard", "asked"),
    [
        (2.0, "random", f"hearers.closest({OTHER})", []),
        (2.0, "random", "hearers.closest(null)", []),
        (2.0, "closest", f"hearers.closest({OTHER})", [["label", [0, 1]]]),
        (
            2.0, "closest", f"hearers.closest(null), told.length = 0, hearers.tries({FOUND})",
            [["label", [0, 1]]],
        ),
        (
            0.0, "closest", f"hearers.closest({OTHER})",
            [["label", [0, 2]], ["drop", "tries"], ["tries", 2000]],
        ),
    ],
)  # fmt: skip
def test_a_search_goes_on_where_its_norm_does_not_change(
    radius: float, towards: str, heard: str, asked: list[object]
) -> None:
    """Noise is half of the radius, or of the distance 4 of the point that was found."""
    assert evaluate("page/breaking.js", ATTACK % (radius, towards, heard)) == asked
