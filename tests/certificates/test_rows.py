"""Rows of a certificate: those that were asked for, and read as rounded down."""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from torch import Tensor

from unitmargin.certificates.certify import Certificate
from unitmargin.certificates.rows import SHOWN, positions

N = 7


def certificate(n: int = N, device: str = "cpu") -> Certificate:
    label = torch.arange(n, device=device)
    radius = torch.linspace(0.1, 0.7, n, dtype=torch.float64, device=device) / 3
    return Certificate(label, label + 1, 2 * radius, radius, 1e-9 * radius)


INDICES: list[tuple[Any, list[int]]] = [
    (2, [2]),
    (-1, [6]),
    (np.int64(3), [3]),
    (slice(1, 4), [1, 2, 3]),
    (slice(None, None, -3), [6, 3, 0]),
    (slice(50, 60), []),
    ([], []),
    ([4, -7, 4], [4, 0, 4]),
    (torch.tensor([5, 1]), [5, 1]),
    (torch.tensor(5), [5]),
    (np.array([1, 6], dtype=np.uint8), [1, 6]),
    (torch.arange(N) > 4, [5, 6]),
    ((np.arange(N) % 3) == 0, [0, 3, 6]),
    ([True] + [False] * (N - 1), [0]),
    (list(np.arange(N) % 3 == 1), [1, 4]),
    (torch.zeros(N, dtype=torch.bool), []),
    (pandas.Series([True] * 2 + [False] * (N - 2)), [0, 1]),
]


@pytest.mark.parametrize(("index", "chosen"), INDICES)
def test_an_index_chooses_whole_rows(index: Any, chosen: list[int]) -> None:
    given = certificate()
    found = given[index]
    assert len(found) == len(chosen)
    for name, values in vars(found).items():
        assert torch.equal(values, vars(given)[name][chosen]), name


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (N, "index must be at least -7 and below 7, got 7; there are 7 samples"),
        (-N - 1, "index must be at least -7 and below 7, got -8; there are 7 samples"),
        (10**30, f"index must be at least -7 and below 7, got {10**30}; there are 7 samples"),
        ([0, 9], "index must be at least -7 and below 7, got 9; there are 7 samples"),
        (torch.ones(3, dtype=torch.bool), "index must be a mask of 7 entries, got 3 entries; "),
        (torch.ones(N, 1, dtype=torch.int64), "must be one number or one entry a sample, got sha"),
    ],
)
def test_what_is_not_there_is_an_index_error(index: Any, said: str) -> None:
    with pytest.raises(IndexError) as caught:
        certificate()[index]
    assert said in str(caught.value)


@pytest.mark.parametrize("index", [True, None, "0", (0, 1), 1.0, [0.5], [True, 1], torch.ones(N)])
def test_what_is_no_index_is_a_type_error(index: Any) -> None:
    with pytest.raises(TypeError, match="^index must .*, got .*; "):
        certificate()[index]


def test_an_empty_certificate_has_rows_of_nothing() -> None:
    empty = certificate(0)
    assert (len(empty), len(empty[:]), len(empty[torch.zeros(0, dtype=torch.bool)])) == (0, 0, 0)
    assert repr(empty).startswith("Certificate of 0 samples on cpu\n")
    assert "more" not in repr(empty)
    assert positions([], 0).tolist() == []


def test_a_certificate_is_iterated_sample_by_sample() -> None:
    assert [int(one.label) for one in certificate()] == list(range(N))


def test_arrays_are_the_columns_of_a_data_frame() -> None:
    given = certificate()
    frame = pandas.DataFrame(given.numpy())
    assert list(frame) == ["label", "runner_up", "margin", "radius", "slack"]
    assert frame["radius"].tolist() == given.radius.tolist()
    assert given.cpu().radius.tolist() == given.radius.tolist()


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_it_reads_as_a_line_a_sample_and_never_claims_more() -> None:
    given = certificate()
    title, header, *rows, more = words(repr(given))
    assert (title, more) == (
        ["Certificate", "of", "7", "samples", "on", "cpu"],
        ["...", "2", "more"],
    )
    assert header == list(vars(given))
    assert len(rows) == SHOWN
    for place, (number, label, _, _, radius, slack) in enumerate(rows):
        assert (number, label) == (str(place), str(place))
        exact = Decimal(float(given.radius[place]))
        assert exact * (1 - Decimal("1e-5")) < Decimal(radius) <= exact
        bound = Decimal(float(given.slack[place]))
        assert bound <= Decimal(slack) < bound * (1 + Decimal("1e-5"))


def test_a_notebook_shows_the_same_numbers() -> None:
    given = certificate()
    html = given._repr_html_()
    cells = re.findall(r"<t[dh]>(.*?)</t[dh]>", html)
    _, header, *rows, _ = words(repr(given))
    assert cells == ["", *header, *(word for row in rows for word in row)]
    assert html.count("<tr>") == html.count("</tr>") == 1 + SHOWN
    assert html.endswith("<p>... 2 more</p>")
    assert "more" not in given[:SHOWN]._repr_html_()


def test_tensors_without_numbers_are_counted() -> None:
    assert repr(certificate(3, "meta")).startswith("Certificate of 3 samples on meta\n")


def test_an_exported_program_may_use_one() -> None:
    class Copied(torch.nn.Module):
        def forward(self, radius: Tensor) -> Tensor:
            label = torch.zeros_like(radius, dtype=torch.int64)
            given = Certificate(label, label, radius, radius, radius)
            return given.radius * len(given)

    program = torch.export.export(Copied(), (torch.ones(3, dtype=torch.float64),))
    assert program.module()(torch.ones(3, dtype=torch.float64)).tolist() == [3.0] * 3
