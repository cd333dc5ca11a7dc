"""Tables as text: every cell arrives, and LaTeX reads none of them as a command."""

import doctest

import pytest

from unitmargin.paper import layout
from unitmargin.paper.layout import Table, escape, to_latex, to_markdown

TABLE = Table(
    "tab:one",
    "Share in % of all.",
    ("Name", "#N"),
    ((("a_b", "1 ± 2"),), (), (("c|d", "3"),)),
    ("#N",),
)


def test_examples() -> None:
    assert doctest.testmod(layout).failed == 0


def test_markdown() -> None:
    assert to_markdown(TABLE).splitlines() == [
        "## tab:one",
        "",
        "Share in % of all.",
        "",
        "| Name | #N |",
        "| --- | ---: |",
        "| a_b | 1 ± 2 |",
        "|  |  |",
        "| c\\|d | 3 |",
    ]


def test_latex() -> None:
    text = to_latex(TABLE)
    assert r"\begin{tabular}{lr}" in text
    assert r"\textbf{Name} & \textbf{\#N} \\" in text
    assert r"a\_b & 1 $\pm$ 2 \\" in text
    assert text.count(r"\midrule") == 2
    assert r"\caption{Share in \% of all.}" in text
    assert r"\label{tab:one}" in text
    for rule in ("toprule", "bottomrule"):
        assert text.count(rf"\{rule}") == 1


def test_every_special_character_is_escaped() -> None:
    assert escape("\\ & % # _ $ { } ~ ^ | < >") == (
        r"\textbackslash{} \& \% \# \_ \$ \{ \} \textasciitilde{} \textasciicircum{} "
        r"\textbar{} \textless{} \textgreater{}"
    )


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="rows of tab:one must have 2 cells"):
        Table("tab:one", "", ("a", "b"), ((("1",),),))


def test_symbols_that_latex_fonts_lack_are_written_as_mathematics() -> None:
    assert escape("∇f > ε") == r"$\nabla$f \textgreater{} $\epsilon$"
