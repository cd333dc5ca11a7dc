"""Certificates against found distances: the numbers and words of that section of a report."""

from collections.abc import Sequence
from typing import Any

from unitmargin.certificates.accuracy import EPSILONS
from unitmargin.certificates.tightness import Box, Search, box_name, closest_found, describe
from unitmargin.reporting.wording import count, epsilon_name, fixed, percent

NO_BREAK = "\N{NO-BREAK SPACE}"


def closest_by_box(searches: Sequence[Search]) -> list[Search]:
    """One search for each box: for every sample the closest point of all its solvers."""
    groups: dict[Box | None, list[Search]] = {}
    for search in searches:
        groups.setdefault(search.box, []).append(search)
    return [closest_found(group) for group in groups.values()]


def summarize_searches(searches: Sequence[Search]) -> dict[str, Any]:
    """The numbers of the section; values that are not finite are None."""
    return {
        "solvers": [describe(search) for search in searches],
        "false_positives": [
            {"box": box_name(search.box)} | false_positives(search, epsilon)
            for search in closest_by_box(searches)
            for epsilon in EPSILONS
            if epsilon > 0
        ],
    }


def false_positives(search: Search, epsilon: float) -> dict[str, Any]:
    r"""The paper's false-positive analysis at one radius, over the samples with a found point.

    .. math:: TP = \{MAP \le \epsilon, LB \le \epsilon\}, \;
        FP = \{MAP > \epsilon, LB \le \epsilon\}, \; r = \#TP / \#(TP \cup FP)

    "Positive" means that the certificate does not reach epsilon; r is the precision of that verdict
    (the paper calls it a recall), None where there is no positive.

    Source: the paper's appendix, section "Further MAP Estimations Analysis".
    """
    radius, distance = search.radius[search.found], search.distance[search.found]
    positive = radius <= epsilon
    true = int((positive & (distance <= epsilon)).sum())
    false = int(positive.sum()) - true
    precision = true / (true + false) if true + false else None
    return {
        "epsilon": epsilon,
        "true_positives": true,
        "false_positives": false,
        "precision": precision,
    }


def solver_rows(run: dict[str, Any]) -> list[dict[str, str]]:
    """The table of solvers, as text."""
    return [
        {
            "solver": row["solver"].replace("_", " "),
            "settings": row["settings"],
            "box": row["box"].replace(" ", NO_BREAK),
            "ratio": spread_words(row["mean"], row["spread"]),
            "smallest": fixed(row["smallest"]),
            "n": f"{count(row['n'])} of {count(row['right'])}",
            "radius": fixed(row["mean_radius"]),
            "distance": fixed(row["mean_distance"]),
            "calls": "none" if row["n_backward"] is None else f"{row['n_backward']:.4g}",
        }
        for row in run["solvers"]
    ]


def spread_words(mean: float | None, spread: float | None) -> str:
    """A mean with its standard deviation.

    >>> spread_words(0.9529, 0.0561)
    '0.953 ± 0.056'
    """
    return "none" if mean is None or spread is None else f"{mean:.3f} ± {spread:.3f}"


def false_positive_rows(run: dict[str, Any]) -> list[dict[str, str]]:
    """The false-positive analysis, as text."""
    return [
        {
            "box": row["box"],
            "epsilon": epsilon_name(row["epsilon"]),
            "true": count(row["true_positives"]),
            "false": count(row["false_positives"]),
            "precision": "none" if row["precision"] is None else percent(row["precision"]),
        }
        for row in run["false_positives"]
    ]
