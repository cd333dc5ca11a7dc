"""Titles of pictures: each says in one line what is seen in it.

``run`` is the table made by :func:`unitmargin.reporting.summary.summarize`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from unitmargin.certificates.epsilons import Epsilons, epsilon_name
from unitmargin.reporting.comparison import Against, Compared, certified_share
from unitmargin.reporting.wording import SOLVERS, bound, epochs, fixed

MOST_NAMES = 2
"""Runs that a title names; more are counted."""


def titles(run: dict[str, Any]) -> dict[str, str]:
    """The title of each figure, by its name."""
    return {
        "certified": _certified(run),
        "coverage": _coverage(run),
        "margins": _margins(run),
        "gradients": _gradients(run),
        "loss": _loss(run),
        "accuracy": _accuracy(run),
        "scatter": _scatter(run),
        "ratios": _ratios(run),
        "false_positives": _false_positives(run),
        "plane": f"{_share(run['clean_accuracy'])} of the points lie in the region of their class",
    }


def _share(share: float) -> str:
    return f"{share:.1%}"


def _certified(run: dict[str, Any]) -> str:
    epsilon = run["headline_epsilon"]
    share = run["certified_accuracy"][str(epsilon)]
    clean = _share(run["clean_accuracy"])
    return f"{clean} are right, and {_share(share)} certified at {epsilon_name(epsilon)} as well"


def _coverage(run: dict[str, Any]) -> str:
    reached = [row for row in run["choices"] if row["threshold"] is not None]
    if not reached:
        first = run["coverage"][0]
        if not first["accepted"]:
            return "No prediction has a radius, so none is accepted"
        return f"At threshold 0, {_share(first['accuracy'])} of the accepted are right"
    row = reached[0]
    return (
        f"Rejecting up to {row['threshold']:g} leaves {_share(row['coverage'])}, "
        f"of which {_share(row['accuracy'])} are right"
    )


def _margins(run: dict[str, Any]) -> str:
    right, wrong = run["median_margin_right"], run["median_margin_wrong"]
    if wrong is None or right is None:
        return "Every prediction is " + ("right" if wrong is None else "wrong")
    if right > wrong:
        return f"Wrong predictions have smaller margins: {fixed(wrong)} to {fixed(right)}, medians"
    return f"Wrong predictions have margins as large as right ones, median {fixed(wrong)}"


def _gradients(run: dict[str, Any]) -> str:
    if run["signed_distance"]:
        return f"Every gradient has norm 1, up to {bound(run['unit_gradient_error'])}"
    return "Gradients have at most the constant of their pair: certificates are lower bounds"


def _loss(run: dict[str, Any]) -> str:
    first, last = (run["history"][place]["loss"] for place in (0, -1))
    if len(run["history"]) == 1:
        return f"The loss of the one epoch is {last:.3g}"
    return f"The loss went from {first:.3g} to {last:.3g} in {epochs(run['epochs'])}"


def _accuracy(run: dict[str, Any]) -> str:
    known = [row for row in run["history"] if row["clean_accuracy"] is not None]
    last, best = known[-1]["clean_accuracy"], max(row["clean_accuracy"] for row in known)
    end = f"{_share(last)} clean after {epochs(int(known[-1]['epoch']))}"
    return f"{end}, the best of all" if last == best else f"{end}; the best was {_share(best)}"


def _scatter(run: dict[str, Any]) -> str:
    if not any(row["n"] for row in run["solvers"]):
        return "No solver found a point"
    broken = any(row["name"] == SOLVERS and not row["passed"] for row in run["checks"])
    if broken:
        return "A point lies inside a certificate, which is broken"
    return "No point was found inside a certificate"


def _ratios(run: dict[str, Any]) -> str:
    means = [row["mean"] for row in run["closest"] if row["mean"] is not None]
    if not means:
        return "No solver found a point"
    ends = dict.fromkeys(map(_share, (min(means), max(means))))
    return f"Certificates reach {' to '.join(ends)} of the distance found"


def _false_positives(run: dict[str, Any]) -> str:
    rows = [row for row in run["false_positives"] if row["precision"] is not None]
    if not rows:
        found = any(row["n"] for row in run["solvers"])
        every = (
            "Every right prediction with a point found is certified at every radius of the table"
        )
        return every if found else "No right prediction was searched with success"
    least = min(rows, key=lambda row: row["precision"])
    name = epsilon_name(least["epsilon"])
    share = _share(math.floor(1000.0 * least["precision"]) / 1000.0)
    return f"“Not certified” is true for {share} or more (least at {name})"


def comparison_titles(
    runs: Sequence[Compared], epsilons: Epsilons, against: Sequence[Against]
) -> dict[str, str]:
    """The titles of a page that compares runs."""
    return {
        "accuracy": _leaders(runs, epsilons),
        "clean": _ahead(runs, "clean_accuracy", "clean accuracy"),
        "certified": _ahead(runs, "certified_accuracy", "certified accuracy"),
        "differences": _clear(against),
    }


def _leaders(runs: Sequence[Compared], epsilons: Epsilons) -> str:
    """Who has the most at each radius."""
    at = epsilon_name(epsilons.headline)
    if len(runs) == 1:
        return f"{_share(certified_share(runs[0], epsilons.headline))} are certified at {at}"
    told = {
        epsilon: _highest({run.name: certified_share(run, epsilon) for run in runs})
        for epsilon in epsilons.table
    }
    always = [run.name for run in runs if all(run.name in names for names in told.values())]
    if always:
        return f"{_listed(always)} {_has(always)} most at every radius"
    clean, certified = told[0.0], told[epsilons.headline]
    if clean == certified:
        return f"{_listed(clean)} {_has(clean)} most clean and at {at}, not at every radius"
    return f"{_listed(clean)} {_has(clean)} most clean, {_listed(certified)} at {at}"


def _ahead(runs: Sequence[Compared], quantity: str, words: str) -> str:
    """Who ends highest."""
    ends: dict[str, float] = {}
    for run in runs:
        known = [getattr(row, quantity) for row in run.history or ()]
        for share in known:
            if share is not None:
                ends[run.name] = share
    if not ends:
        return ""
    best = _highest(ends)
    verb = "ends" if len(best) == 1 else "end"
    most = ", the most" if len(best) < len(ends) else ""
    return f"{_listed(best)} {verb} at {_share(ends[best[0]])} {words}{most}"


def _highest(shares: Mapping[str, float]) -> list[str]:
    """The names of the largest share, several at a tie."""
    return [name for name, share in shares.items() if share == max(shares.values())]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} runs"


def _has(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _clear(against: Sequence[Against]) -> str:
    found = [difference for row in against for difference in row.accuracy.values()]
    clear = sum(difference.clear for difference in found)
    return f"{clear} of {len(found)} differences are clear of the choice of the test samples"
