"""The accuracy tables: clean and certified accuracy of the paper's rows, over the seeds at hand."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, stdev

from unitmargin.certificates.accuracy import HEADLINE_EPSILON
from unitmargin.certificates.joined import closest_found
from unitmargin.certificates.spaces import INPUT, NORMALISED
from unitmargin.certificates.tightness import tightness
from unitmargin.paper.conditions import (
    CHANGED,
    NOT_RUN,
    NOTHING,
    budget,
    changes,
    core_hours,
    hours,
    over_seeds,
    run_table,
    trained_with,
)
from unitmargin.paper.groups import same_trainings, seeds
from unitmargin.paper.layout import Row, Table
from unitmargin.paper.networks import paper_input, paper_name, paper_side, row_recipe
from unitmargin.paper.printed import printed_rows
from unitmargin.paper.target import Output, Target
from unitmargin.runs.folder import RunFolder

CAPTIONS = {
    "tab:accuracy": "Accuracy of the 1-Lipschitz networks and the UGNNs on the test images, in "
    "percent.",
    "tab:accuracy-input-size": "Accuracy of the UGNN with MaxMin on larger inputs, in percent.",
}

SEEDS = (
    " Mean ± standard deviation over seeds (the paper: four). Certified: right with a certified "
    "radius above 36/255 in the units of the raw pixels that the network is given."
)

SPACES = (
    " Inputs are up-sampled by repeating pixels, which multiplies distances by side/32; the second "
    "column of certified accuracy divides radii by it, back to the original 32 x 32 pixels."
)

RATIO = (
    " LB/MAP: certified radius / closest adversarial point without box that any solver of the run "
    "found, over the right samples that were searched, in pixels and, for norm rows, behind the "
    "normalisation, where the paper measures; a run that was not attacked has none. "
)

NAMES = ("Model", "Side", "Input")
FIGURES = ("Paper accuracy", "Our accuracy", "Certified 36/255")
ORIGINAL = "Certified 36/255, original pixels"
RATIOS = ("LB/MAP, pixels", "LB/MAP, normalised")
CONDITIONS = (*RATIOS, "Seeds", "Budget", "Hours", "Core-hours", "Changed", "Hardware")
HEADERS = {
    "tab:accuracy": (*NAMES, *FIGURES, *CONDITIONS),
    "tab:accuracy-input-size": (*NAMES, *FIGURES, ORIGINAL, *CONDITIONS),
}

PaperRow = tuple[str, str, int]
"""Model, input and side of the images."""


def accuracy_tables(label: str, runs: Sequence[RunFolder]) -> list[Table]:
    """One of the accuracy tables, and the conditions of its runs; rows without a run say so.

    Args:
        runs: those that its target takes.

    Raises:
        RunError: a run folder was not certified.
    """
    groups: dict[PaperRow, list[list[RunFolder]]] = defaultdict(list)
    printed = printed_rows(label)
    for members in same_trainings(runs):
        groups[paper_row(members[0])].append(members)
    header = HEADERS[label]
    blocks: dict[str, list[Row]] = defaultdict(list)
    for row in printed:
        name = (row["model"], str(row["side"]), row["input"])
        paper = f"{row['mean']:.1f} ± {row['spread']:.2f}"
        found = groups.get(_key(row), [])
        blank = ("",) * (len(header) - 5)
        block = f"{row['input']} {row['model'].startswith('UGNN')}"
        for members in found:
            blocks[block].append((*name, paper, *cells(members, ORIGINAL in header)))
        if not found:
            blocks[block].append((*name, paper, NOT_RUN, *blank))
    caption = CAPTIONS[label] + SEEDS + (SPACES if ORIGINAL in header else "") + RATIO + CHANGED
    numeric = ("Side", *FIGURES, ORIGINAL, *RATIOS, "Hours", "Core-hours")
    table = Table(label, caption, header, list(blocks.values()), numeric)
    return [table, *run_table(runs)]


def paper_row(run: RunFolder) -> PaperRow:
    """Model, input and side of a run as the paper names them; an empty model is none of its."""
    recipe = run.recipe()
    return paper_name(recipe) or "", paper_input(recipe), paper_side(recipe)


def cells(runs: Sequence[RunFolder], original: bool) -> Row:
    """Our figures of one row: runs that differ in their seed alone."""
    certificates, upsample = [run.certificates() for run in runs], runs[0].recipe().data.upsample
    shares = [percent([each.clean_accuracy for each in certificates])]
    for scale in (1, upsample) if original else (1,):
        epsilon = HEADLINE_EPSILON * scale
        shares.append(percent([each.certified_accuracy(epsilon) for each in certificates]))
    ratios = [_ratios(runs, space) for space in (INPUT, NORMALISED)]
    machines = dict.fromkeys(trained_with(run).get("hardware", NOTHING) for run in runs)
    made = (seeds(runs), budget(runs), hours(runs), core_hours(runs))
    return (*shares, *ratios, *made, changes(runs[0]), "; ".join(machines))


def _ratios(runs: Sequence[RunFolder], space: str) -> str:
    """LB/MAP over the seeds, and of how many where not all were attacked."""
    found = [ratio for run in runs if (ratio := mean_ratio(run, space)) is not None]
    words = over_seeds(found)
    return f"{words} ({len(found)} of {len(runs)})" if 0 < len(found) < len(runs) else words


def mean_ratio(run: RunFolder, space: str) -> float | None:
    """LB/MAP without box over all solvers of a run; None if no point was searched or found."""
    searches = run.searches() if run.checks_file.is_file() else []
    free = [search for search in searches if search.box is None and search.space == space]
    figures = tightness(closest_found(free)) if free else None
    return figures.mean if figures and figures.n else None


def percent(shares: Sequence[float]) -> str:
    """Mean and standard deviation of shares, in percent; of one share its value alone.

    >>> percent([0.7, 0.72]), percent([0.5])
    ('71.0 ± 1.41', '50.0')
    """
    mean = f"{100.0 * fmean(shares):.1f}"
    return f"{mean} ± {100.0 * stdev(shares):.2f}" if len(shares) > 1 else mean


def _key(row: dict[str, str | int]) -> PaperRow:
    return str(row["model"]), str(row["input"]), int(row["side"])


def _takes(label: str, run: RunFolder) -> bool:
    return paper_row(run) in map(_key, printed_rows(label))


def _target(label: str, searches: bool) -> Target:
    return Target(
        recipes=tuple(row_recipe(*_key(row)) for row in printed_rows(label)),
        searches=searches,
        write=lambda runs: Output(accuracy_tables(label, runs)),
        takes=lambda run: _takes(label, run),
    )


ACCURACY = _target("tab:accuracy", searches=True)
INPUT_SIZE = _target("tab:accuracy-input-size", searches=False)
