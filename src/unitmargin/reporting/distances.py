"""Certificates against found distances: the numbers of that section of a report."""

from collections.abc import Sequence
from typing import Any

from unitmargin.certificates.epsilons import Epsilons
from unitmargin.certificates.joined import closest_found
from unitmargin.certificates.spaces import Box
from unitmargin.certificates.tightness import Search, box_name, describe


def closest_by_box(searches: Sequence[Search]) -> list[Search]:
    """One search for each box: for every sample the closest point of all its solvers."""
    groups: dict[Box | None, list[Search]] = {}
    for search in searches:
        groups.setdefault(search.box, []).append(search)
    return [closest_found(group) for group in groups.values()]


def summarize_searches(searches: Sequence[Search], epsilons: Epsilons) -> dict[str, Any]:
    """The numbers of the section; values that are not finite are None."""
    return {
        "solvers": [describe(search) for search in searches],
        "closest": [_closest(search) for search in closest_by_box(searches)],
        "false_positives": [
            {"box": box_name(search.box)} | false_positives(search, epsilon)
            for search in closest_by_box(searches)
            for epsilon in epsilons.positive
        ],
    }


def _closest(search: Search) -> dict[str, Any]:
    """Certificates against the closest point of all solvers, as the figures show them."""
    figures = describe(search)
    return {name: figures[name] for name in ("box", "n", "mean")}


def false_positives(search: Search, epsilon: float) -> dict[str, Any]:
    r"""The paper's false-positive analysis at one radius, over the samples with a found point.

    .. math:: TP = \{MAP \le \epsilon, LB \le \epsilon\}, \;
        FP = \{MAP > \epsilon, LB \le \epsilon\}, \; r = \#TP / \#(TP \cup FP)

    "Positive" means that the certificate does not reach epsilon; r is the precision of that
    verdict, the share of positives that are true ones, None where there is no positive.

    Source: the paper's appendix, section "Further MAP Estimations Analysis".
    """
    radius, distance = search.radius[search.found], search.distance[search.found]
    positive = radius <= epsilon
    true = int((positive & (distance <= epsilon)).sum())
    false = int(positive.sum()) - true
    return {
        "epsilon": epsilon,
        "true_positives": true,
        "false_positives": false,
        "precision": true / (true + false) if true + false else None,
    }
