"""Coverage against threshold: counts by hand, at ties, zeros, and with nobody left."""

import pytest
import torch

from unitmargin.certificates.epsilons import FIELD
from unitmargin.reporting.coverage import (
    CURVE_POINTS,
    coverage_curve,
    coverage_rows,
    threshold_choices,
)
from unitmargin.runs.certificates import Certificates


def certificates(radii: list[float], right: list[bool]) -> Certificates:
    radius = torch.tensor(radii, dtype=torch.float64)
    label = torch.zeros(len(radii), dtype=torch.int64)
    predicted = (~torch.tensor(right)).long()
    return Certificates(label, predicted, 1 - predicted, radius, radius)


def rows(radii: list[float], right: list[bool]) -> dict[float, tuple[int, float, int, object]]:
    return {
        row["threshold"]: (row["accepted"], row["coverage"], row["wrong"], row["accuracy"])
        for row in coverage_rows(certificates(radii, right), FIELD)
    }


def test_a_radius_at_the_threshold_is_rejected_and_ties_go_together() -> None:
    found = rows([0.25, 0.25, 0.3, 0.0], [True, False, True, True])
    assert found[0.0] == (3, 0.75, 1, pytest.approx(2 / 3))
    assert found[0.25] == (1, 0.25, 0, 1.0)
    assert found[0.5] == (0, 0.0, 0, None)


@pytest.mark.parametrize("right", [[True, False], [False, False]])
def test_no_claim_is_never_accepted(right: list[bool]) -> None:
    assert set(rows([0.0, 0.0], right).values()) == {(0, 0.0, 0, None)}
    curve = coverage_curve(certificates([0.0, 0.0], right), FIELD)
    assert set(curve["accepted"]) == {0}
    assert curve["threshold"][-1] > FIELD.positive[0]


def test_of_one_sample_all_or_nobody_is_left() -> None:
    assert rows([1e-300], [False])[0.0] == (1, 1.0, 1, 0.0)
    assert rows([1e-300], [True])[36 / 255] == (0, 0.0, 0, None)


def test_the_curve_goes_from_all_to_nobody() -> None:
    curve = coverage_curve(certificates([0.5, 2.0, 2.0], [True, True, False]), FIELD)
    assert curve["threshold"][0] == 0.0
    assert curve["threshold"][-1] == pytest.approx(2.08)
    assert (curve["accepted"][0], curve["wrong"][0]) == (3, 1)
    assert (curve["accepted"][-1], curve["wrong"][-1]) == (0, 0)
    assert {len(values) for values in curve.values()} == {CURVE_POINTS}
    assert curve["accepted"] == sorted(curve["accepted"], reverse=True)


def test_the_smallest_threshold_that_is_accurate_enough_is_chosen() -> None:
    radii = [0.1, 0.20004, 0.3, 0.4, 0.5, 0.6]
    found = {
        row["target"]: row
        for row in threshold_choices(certificates(radii, [False, False, *4 * [True]]))
    }
    assert list(found) == [0.9, 0.95, 0.99, 0.999, 1.0]
    for row in found.values():
        # Above the second wrong radius, which is rounded up to three digits: 0.2 would let it in.
        assert (row["threshold"], row["accepted"], row["wrong"]) == (0.201, 4, 0)
        assert (row["coverage"], row["accuracy"]) == (4 / 6, 1.0)
        low, high = row["interval"]
        assert 0.5 < low < high == 1.0


def test_accuracies_that_all_have_need_no_choice() -> None:
    right = [True] * 197 + [False] * 3
    found = threshold_choices(certificates([1.0] * 197 + [0.5, 0.7, 0.9], right))
    assert [(row["target"], row["threshold"]) for row in found] == [
        (0.99, 0.7), (0.999, 0.9), (1.0, 0.9),
    ]  # fmt: skip
    assert found[0]["wrong"] == 1
    assert threshold_choices(certificates([1.0, 0.0], [True, False])) == []


def test_where_no_threshold_is_accurate_enough_none_is_chosen() -> None:
    longest_is_wrong = certificates([0.5, 1.0], [True, False])
    assert {row["threshold"] for row in threshold_choices(longest_is_wrong)} == {None}
    nobody = certificates([0.0, 0.0], [True, True])
    assert {row["threshold"] for row in threshold_choices(nobody)} == {None}
