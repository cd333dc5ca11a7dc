"""Titles of pictures: each says in one line what is seen in it.

``run`` is the table made by :func:`unitmargin.reporting.summary.summarize`.
"""

from collections.abc import Sequence
from typing import Any

from unitmargin.certificates.epsilons import Epsilons, epsilon_name
from unitmargin.reporting.comparison import Against, Compared, certified_share
from unitmargin.reporting.wording import SOLVERS, epochs, fixed, scientific


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
        return f"Every gradient has norm 1, up to {scientific(run['unit_gradient_error'])}"
    return "Gradients have norm 1 or less: certificates are lower bounds"


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
    rows = [row for row in run["solvers"] if row["mean"] is not None]
    if not rows:
        return "No solver found a point"
    return f"Certificates reach {_share(max(row['mean'] for row in rows))} of the distance found"


def _false_positives(run: dict[str, Any]) -> str:
    rows = [row for row in run["false_positives"] if row["precision"] is not None]
    if not rows:
        return "Every right prediction is certified at every radius of the table"
    least = min(rows, key=lambda row: row["precision"])
    name = epsilon_name(least["epsilon"])
    return f"“Not certified” is true for {_share(least['precision'])} or more (least at {name})"


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
    if len(runs) == 1:
        share = certified_share(runs[0], epsilons.headline)
        return f"{_share(share)} are certified at {epsilon_name(epsilons.headline)}"
    shares = {
        epsilon: [certified_share(run, epsilon) for run in runs] for epsilon in epsilons.table
    }
    told = [epsilon for epsilon, each in shares.items() if max(each) > 0.0]
    always = [
        run.name
        for number, run in enumerate(runs)
        if all(shares[epsilon][number] == max(shares[epsilon]) for epsilon in told)
    ]
    if always:
        return f"{' and '.join(always)} {'has' if len(always) == 1 else 'have'} most at every radius"
    first, most = (
        runs[shares[epsilon].index(max(shares[epsilon]))].name
        for epsilon in (0.0, epsilons.headline)
    )
    at = epsilon_name(epsilons.headline)
    if first == most:
        return f"{first} has most clean and at {at}, and not at every radius"
    return f"{first} is most accurate, {most} is certified most at {at}"


def _ahead(runs: Sequence[Compared], quantity: str, words: str) -> str:
    """Who ends highest."""
    ends = {}
    for run in runs:
        known = [getattr(row, quantity) for row in run.history or ()]
        ends |= {run.name: share for share in known if share is not None}
    if not ends:
        return ""
    best = max(ends, key=lambda name: ends[name])
    return f"{best} ends at {_share(ends[best])} {words}" + (", the most" if len(ends) > 1 else "")


def _clear(against: Sequence[Against]) -> str:
    found = [difference for row in against for difference in row.accuracy.values()]
    clear = sum(difference.clear for difference in found)
    return f"{clear} of {len(found)} differences are more than two standard errors"
