"""Names in Markdown: no name makes markup, a cell or a link."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.reporting.markdown import plain_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat", "cat"), ("a|b", r"a\|b"), ("a\nb", "a b"), ("<script>", r"\<script\>"),
        ("[a](b)", r"\[a\](b)"), ("`x`", r"\`x\`"), ("https://a.b", r"https\://a.b"),
        ("a\\|b", r"a\\\|b"), ("---", "---"), ("\x1b[1m", r"\\x1b\[1m"), ("&amp;", r"\&amp;"),
    ],
)  # fmt: skip
def test_signs_of_markup_stand_for_themselves(text: str, expected: str) -> None:
    assert plain_text(text) == expected


@given(st.text(max_size=30))
def test_a_name_is_one_printable_line_without_bare_markup(text: str) -> None:
    plain = plain_text(text)
    assert plain.isprintable()
    bare = "".join(part for part in plain.replace("\\\\", "").split("\\"))
    begun = {plain[place + 1] for place, sign in enumerate(plain[:-1]) if sign == "\\"}
    assert set(bare) & set("|<`*[") <= begun
