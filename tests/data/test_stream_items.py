"""What words stand for which classes."""

import pytest

from unitmargin.data.stream_items import UNKNOWN, Wanted, find_label


def words(*classes: str) -> dict[str, int]:
    return Wanted((1,), classes).by_word()


def test_classes_go_by_name_and_by_number() -> None:
    assert words("cat", "dog") == {"cat": 0, "dog": 1, "0": 0, "1": 1}
    assert words("0", "1") == {"0": 0, "1": 1}


def test_names_that_are_numbers_of_other_classes_leave_names_alone() -> None:
    assert words("1", "2", "3") == {"1": 0, "2": 1, "3": 2}


def test_a_name_of_two_classes_is_none() -> None:
    assert words("cat", "cat", "dog") == {"dog": 2, "0": 0, "1": 1, "2": 2}


def test_other_words_are_refused() -> None:
    assert find_label("", words("a", "b"), "label") == UNKNOWN
    with pytest.raises(ValueError, match="label in line 3 must be a class .* got '2'; correct"):
        find_label("2", words("a", "b"), "label in line 3")
