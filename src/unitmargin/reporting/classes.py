"""Class by class: how many are right, what is taken for what, and which mistakes look sure."""

from typing import Any

from jaxtyping import Int64
from torch import Tensor

from unitmargin.certificates.epsilons import Epsilons
from unitmargin.reporting.statistics import median
from unitmargin.runs.certificates import Certificates

SHOWN_CLASSES = 30
"""Classes of the table; of more, those with the smallest share of right ones."""

MATRIX_CLASSES = 12
"""Classes up to which a confusion matrix can be read; of more, pairs are told."""

SHOWN_PAIRS = 15
"""Most confused pairs that are told."""

SHOWN_MISTAKES = 8
"""Wrong predictions with the largest radii that are told."""

MEANING = (
    "A certificate is about the prediction and not about the truth. A wrong prediction with a "
    "large radius is wrong all over its ball: no change of the input that is shorter than the "
    "radius makes it right, and no threshold below the radius rejects it. Look for a label that is "
    "wrong, an input that belongs to both classes or to none, or a kind of sample that the "
    "training lacked."
)


def class_rows(
    certificates: Certificates, classes: tuple[str, ...], epsilons: Epsilons
) -> list[dict[str, Any]]:
    """One row a class, in the order of the classes.

    Samples with the label, how many are right, how many of other labels are taken for it, how many
    are right and certified at the radius that is told first, and the median radius of right ones.
    """
    label, predicted, right = certificates.label, certificates.predicted, certificates.right
    certified = right & (certificates.radius > epsilons.headline)
    labelled, correct, sure = (
        _counts(label[mask], len(classes)) for mask in (certificates.labelled, right, certified)
    )
    wrong = certificates.labelled & ~right & (predicted >= 0)
    taken = _counts(predicted[wrong], len(classes))
    return [
        {
            "class": name,
            "samples": labelled[number],
            "right": correct[number],
            "accuracy": correct[number] / labelled[number] if labelled[number] else None,
            "taken": taken[number],
            "certified": sure[number] / labelled[number] if labelled[number] else None,
            "median_radius": median(certificates.radius[right & (label == number)]),
        }
        for number, name in enumerate(classes)
    ]


def shown_classes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a table: all, or of many classes those with the smallest shares of right ones."""
    if len(rows) <= SHOWN_CLASSES:
        return rows
    tested = [row for row in rows if row["samples"]]
    return sorted(tested, key=lambda row: row["accuracy"])[:SHOWN_CLASSES]


def confusion_matrix(certificates: Certificates, classes: int) -> list[list[int]] | None:
    """How many samples of each label (row) are predicted as each class (column); None of more
    classes than can be read."""
    if classes > MATRIX_CLASSES:
        return None
    known = certificates.labelled & (certificates.predicted >= 0)
    pairs = certificates.label[known] * classes + certificates.predicted[known]
    counts = pairs.bincount(minlength=classes**2).view(classes, classes)
    return [[int(count) for count in row] for row in counts]


def confused_pairs(certificates: Certificates, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """The pairs of a label and a wrong prediction that occur most, and their median radius."""
    wrong = (certificates.labelled & ~certificates.right & (certificates.predicted >= 0)).nonzero()
    chosen = certificates.at(wrong.flatten())
    pairs = chosen.label * len(classes) + chosen.predicted
    kinds, counts = pairs.unique(return_counts=True)
    order = counts.sort(descending=True, stable=True).indices[:SHOWN_PAIRS].tolist()
    labelled = _counts(certificates.label[certificates.labelled], len(classes))
    rows = []
    for place in order:
        label, predicted = divmod(int(kinds[place]), len(classes))
        rows.append(
            {
                "label": classes[label],
                "predicted": classes[predicted],
                "count": int(counts[place]),
                "share": int(counts[place]) / labelled[label],
                "median_radius": median(chosen.radius[pairs == kinds[place]]),
            }
        )
    return rows


def sure_mistakes(certificates: Certificates, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """The wrong predictions with the largest radii, and how many right ones have a shorter one."""
    wrong = certificates.labelled & ~certificates.right & (certificates.radius > 0)
    places = wrong.nonzero().flatten()
    longest = certificates.radius[places].sort(descending=True, stable=True).indices
    right = certificates.radius[certificates.right]
    rows = []
    for place in places[longest[:SHOWN_MISTAKES]].tolist():
        radius = float(certificates.radius[place])
        rows.append(
            {
                "index": place,
                "label": classes[int(certificates.label[place])],
                "predicted": classes[int(certificates.predicted[place])],
                "radius": radius,
                "shorter": float((right < radius).double().mean()) if len(right) else None,
            }
        )
    return rows


def _counts(numbers: Int64[Tensor, " samples"], classes: int) -> list[int]:
    return [int(count) for count in numbers.bincount(minlength=classes)]
