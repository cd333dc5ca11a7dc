"""Front matter: what was written is what is read, whatever stands in it."""

import json

import pytest
from cards import read_card
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.reporting.front_matter import front_matter, quoted

SCALARS = st.text(max_size=8) | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.none()
KEYS = st.from_regex(r"[a-z]{1,3}(-[a-z]{1,3})?", fullmatch=True)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(table=st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_a_table_comes_back(table: dict[str, object]) -> None:
    text = front_matter(table)
    assert all(line.isprintable() for line in text.split("\n"))
    if "\\U" not in text:  # which JSON lacks
        assert read_card(text + "\nbody") == (table, "body")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---", '"---"'), ('a "b"', r'"a \"b\""'), ("a: b # c", '"a: b # c"'), ("yes", '"yes"'),
        ("a\nb", r'"a\nb"'), ("\x85\u2028", r'"\u0085\u2028"'), ("\U000e0001", r'"\U000e0001"'),
        ("\x7f\ufeff", r'"\u007f\ufeff"'), ("ä😀", '"ä😀"'), ("\\", r'"\\"'), ("", '""'),
    ],
)  # fmt: skip
def test_texts_are_quoted_and_hold_no_line_end(text: str, expected: str) -> None:
    assert quoted(text) == expected


def test_small_shares_are_numbers_to_readers_of_yaml_1_1() -> None:
    text = front_matter({"value": 5e-05, "large": 1e22, "one": 1.0})
    assert text.split("\n")[1:-1] == ["value: 5.0e-05", "large: 1.0e+22", "one: 1.0"]
    assert json.loads("5.0e-05") == 5e-05
