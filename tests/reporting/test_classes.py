"""Class by class: counts by hand, of few and of many classes."""

import torch

from unitmargin.certificates.epsilons import FIELD
from unitmargin.reporting.classes import (
    MATRIX_CLASSES,
    SHOWN_CLASSES,
    SHOWN_MISTAKES,
    SHOWN_PAIRS,
    class_rows,
    confused_pairs,
    confusion_matrix,
    shown_classes,
    sure_mistakes,
)
from unitmargin.runs.certificates import Certificates

NAMES = ("cat", "dog", "eel")


def certificates(*rows: tuple[int, int, float]) -> Certificates:
    """Label, prediction and radius of each sample."""
    label, predicted = (torch.tensor([row[place] for row in rows]) for place in (0, 1))
    radius = torch.tensor([row[2] for row in rows], dtype=torch.float64)
    return Certificates(label, predicted, label, radius, radius)


FOUND = certificates(
    (0, 0, 0.5), (0, 0, 0.125), (0, 1, 0.9), (1, 1, 0.3), (1, 0, 0.25), (1, 0, 0.5), (1, -1, 0.0),
)  # fmt: skip


def test_rows_by_hand() -> None:
    cat, dog, eel = class_rows(FOUND, NAMES, FIELD)
    assert cat == {
        "class": "cat", "samples": 3, "right": 2, "accuracy": 2 / 3, "taken": 2,
        "certified": 1 / 3, "median_radius": 0.3125,
    }  # fmt: skip
    assert (dog["samples"], dog["right"], dog["taken"]) == (4, 1, 1)
    assert (eel["samples"], eel["accuracy"], eel["median_radius"]) == (0, None, None)


def test_the_matrix_has_labels_in_rows() -> None:
    assert confusion_matrix(FOUND, 3) == [[2, 1, 0], [2, 1, 0], [0, 0, 0]]
    assert confusion_matrix(FOUND, MATRIX_CLASSES + 1) is None


def test_pairs_come_by_their_number() -> None:
    first, second = confused_pairs(FOUND, NAMES)
    assert (first["label"], first["predicted"], first["count"]) == ("dog", "cat", 2)
    assert (first["share"], first["median_radius"]) == (0.5, 0.375)
    assert (second["label"], second["predicted"], second["count"]) == ("cat", "dog", 1)


def test_mistakes_come_by_their_radius_and_without_one_are_left_out() -> None:
    rows = sure_mistakes(FOUND, NAMES)
    assert [(row["index"], row["radius"]) for row in rows] == [(2, 0.9), (5, 0.5), (4, 0.25)]
    assert [row["shorter"] for row in rows] == [1.0, 2 / 3, 1 / 3]
    assert (rows[0]["label"], rows[0]["predicted"]) == ("cat", "dog")


def test_of_many_classes_the_worst_are_shown() -> None:
    names = tuple(f"class {number}" for number in range(1000))
    wrong = [(number, number + 1, 1.0 + number) for number in range(40)]
    found = certificates(*((n, n, 0.5) for n in range(900)), *wrong)
    rows = class_rows(found, names, FIELD)
    assert len(rows) == 1000
    shown = shown_classes(rows)
    assert len(shown) == SHOWN_CLASSES
    assert {row["accuracy"] for row in shown} == {0.5}
    assert shown_classes(rows[:5]) == rows[:5]
    assert len(confused_pairs(found, names)) == SHOWN_PAIRS
    assert [row["label"] for row in sure_mistakes(found, names)][:2] == ["class 39", "class 38"]
    assert len(sure_mistakes(found, names)) == SHOWN_MISTAKES


def test_without_mistakes_there_is_nothing_to_tell() -> None:
    right = certificates((0, 0, 0.5), (1, 1, 0.5))
    assert confused_pairs(right, NAMES) == []
    assert sure_mistakes(right, NAMES) == []
    nothing_right = certificates((0, 1, 0.5))
    assert sure_mistakes(nothing_right, NAMES)[0]["shorter"] is None
