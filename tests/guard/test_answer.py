"""What a guard says of one input."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitmargin.guard import OUTCOMES, Answer
from unitmargin.guard.answer import too_small

SIZES = st.floats(0.0, 1e6)


def test_an_answer_is_true_where_it_has_a_label_the_first_class_included() -> None:
    certified = Answer(0, "zero", 0.5, "certified", "certified", 0, 1, 0.5)
    rejected = certified._replace(label=None, name=None)
    assert (bool(certified), certified.certified) == (True, True)
    assert (bool(rejected), rejected.certified) == (False, False)


def test_the_vocabulary_of_outcomes_is_fixed() -> None:
    assert OUTCOMES == (
        "certified", "not_encoded", "not_finite", "outside_domain", "no_claim", "below_threshold",
    )  # fmt: skip


@given(SIZES, SIZES)
def test_the_sentence_of_a_small_radius_tells_it_from_the_threshold(a: float, b: float) -> None:
    radius, threshold = sorted((a, b))
    _, first, sign, second = too_small(radius, threshold).split(" ")
    assert sign == ("=" if a == b else "<")
    assert (first == second) == (a == b)
    assert (float(first) < float(second)) == (a != b)
    assert float(first) <= radius


@pytest.mark.parametrize(
    ("radius", "sentence"),
    [
        (0.05, "radius 0.05 < 0.14"),
        (0.0496, "radius 0.049 < 0.14"),
        (math.nextafter(36 / 255, 0), "radius 0.14117647058823526 < 0.14117647058823529"),
        (36 / 255, "radius 0.1411764705882353 = 0.1411764705882353"),
    ],
)
def test_a_sentence_has_as_many_digits_as_it_needs(radius: float, sentence: str) -> None:
    assert too_small(radius, 36 / 255) == sentence
