"""The paper's numbers: all rows, and the same row has the same numbers in both tables."""

import pytest

from unitmargin.paper.printed import printed_rows


def key(row: dict[str, object]) -> tuple[object, ...]:
    return row["model"], row["input"], row["box"]


@pytest.mark.parametrize(("label", "boxed", "free"), [
    ("tab:dist-table", 7, 7),
    ("tab:further-map", 18, 18),
])  # fmt: skip
def test_number_of_rows(label: str, boxed: int, free: int) -> None:
    rows = printed_rows(label)
    assert [row["box"] for row in rows] == [True] * boxed + [False] * free
    assert len({key(row) for row in rows}) == len(rows)
    for row in rows:
        assert set(row) == {"model", "input", "box", "mean", "spread", "samples"}
        assert 0 < row["spread"] < row["mean"] < 1
        assert 0 < row["samples"] <= 10_000


def test_the_short_table_is_part_of_the_long_one() -> None:
    long = {key(row): row for row in printed_rows("tab:further-map")}
    for row in printed_rows("tab:dist-table"):
        assert long[key(row)] == row


def test_rows_printed_in_the_text() -> None:
    """Two rows copied by hand from the paper."""
    rows = {key(row): row for row in printed_rows("tab:further-map")}
    best = rows["UGNN+MaxMin+updB", "norm", False]
    assert (best["mean"], best["spread"], best["samples"]) == (0.96, 0.044, 7327)
    boxed = rows["UGNN+MaxMin+updU", "raw", True]
    assert (boxed["mean"], boxed["spread"], boxed["samples"]) == (0.71, 0.088, 7118)


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(ValueError, match="label must be one of tab:accuracy"):
        printed_rows("tab:none")


@pytest.mark.parametrize(
    ("label", "sides"), [("tab:accuracy", [32] * 24), ("tab:accuracy-input-size", [64, 128, 256])]
)
def test_accuracy_rows(label: str, sides: list[int]) -> None:
    rows = printed_rows(label)
    assert sorted({row["side"] for row in rows}) == sorted(set(sides))
    assert len({(row["model"], row["input"], row["side"]) for row in rows}) == len(rows)
    assert sum(row["input"] == "raw" for row in rows) == len(rows) / 2
    assert all(0 < row["spread"] < 1 and 60 < row["mean"] < 80 for row in rows)


def test_accuracy_rows_printed_in_the_text() -> None:
    """Three rows copied by hand from the paper."""
    rows = {(row["model"], row["input"], row["side"]): row for row in printed_rows("tab:accuracy")}
    assert rows["LipConvNet5+Abs", "raw", 32]["mean"] == 65.5
    assert rows["UGNN+MaxMin+updU", "norm", 32]["spread"] == 0.38
    large = printed_rows("tab:accuracy-input-size")[-1]
    assert (large["model"], large["side"], large["mean"]) == ("UGNN+MaxMin+updU", 256, 78.5)
