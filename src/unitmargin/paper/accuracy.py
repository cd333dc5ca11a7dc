"""The accuracy tables: clean and certified accuracy of the paper's rows, over the seeds at hand."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from unitmargin.certificates.accuracy import HEADLINE_EPSILON
from unitmargin.certificates.tightness import closest_found, tightness
from unitmargin.paper.conditions import NOT_RUN, NOTHING, budget, run_table
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
    " LB/MAP: certified radius / closest adversarial point without box, of the runs that were "
    "attacked."
)

NAMES = ("Model", "Side", "Input")
FIGURES = ("Paper accuracy", "Our accuracy", "Certified 36/255")
ORIGINAL = "Certified 36/255, original pixels"
CONDITIONS = ("LB/MAP", "Seeds", "Budget", "Hardware")
HEADERS = {
    "tab:accuracy": (*NAMES, *FIGURES, *CONDITIONS),
    "tab:accuracy-input-size": (*NAMES, *FIGURES, ORIGINAL, *CONDITIONS),
}

PaperRow = tuple[str, str, int]
"""Model, input and side of the images."""


@dataclass(frozen=True)
class Measurement:
    """Figures of one run; shares of the test samples, and the mean LB/MAP if it was attacked."""

    clean: float
    certified: float
    certified_original: float
    ratio: float | None


def accuracy_tables(label: str, runs: Sequence[RunFolder]) -> list[Table]:
    """One of the accuracy tables, and the conditions of its runs; rows without a run say so.

    Raises:
        RunError: a run folder was not certified.
    """
    groups: dict[PaperRow, dict[str, list[RunFolder]]] = defaultdict(lambda: defaultdict(list))
    printed = printed_rows(label)
    known = {_key(row) for row in printed}
    chosen = [run for run in runs if paper_row(run) in known]
    for run in chosen:
        groups[paper_row(run)][budget(run)].append(run)
    header = HEADERS[label]
    blocks: dict[str, list[Row]] = defaultdict(list)
    for row in printed:
        name = (row["model"], str(row["side"]), row["input"])
        paper = f"{row['mean']:.1f} ± {row['spread']:.2f}"
        found = groups.get(_key(row), {})
        blank = ("",) * (len(header) - 5)
        block = f"{row['input']} {row['model'].startswith('UGNN')}"
        for words, members in found.items():
            blocks[block].append((*name, paper, *cells(members, words, ORIGINAL in header)))
        if not found:
            blocks[block].append((*name, paper, NOT_RUN, *blank))
    caption = CAPTIONS[label] + SEEDS + (SPACES if ORIGINAL in header else "") + RATIO
    numeric = ("Side", *FIGURES, ORIGINAL, "LB/MAP")
    rows = tuple(tuple(block) for block in blocks.values())
    return [Table(label, caption, header, rows, numeric), *run_table(chosen)]


def paper_row(run: RunFolder) -> PaperRow:
    """Model, input and side of a run as the paper names them; an empty model is none of its."""
    recipe = run.recipe()
    return paper_name(recipe) or "", paper_input(recipe), paper_side(recipe)


def cells(runs: Sequence[RunFolder], words: str, original: bool) -> Row:
    """Our figures of one row: runs that differ in their seed alone."""
    figures = [measure(run) for run in runs]
    ratios = [figure.ratio for figure in figures if figure.ratio is not None]
    machines = dict.fromkeys(run.origin().get("hardware", NOTHING) for run in runs)
    seeds = ", ".join(str(run.recipe().training.seed) for run in runs)
    shares = [
        percent([figure.clean for figure in figures]),
        percent([figure.certified for figure in figures]),
    ]
    if original:
        shares.append(percent([figure.certified_original for figure in figures]))
    return (
        *shares,
        f"{fmean(ratios):.3f}" if ratios else NOTHING,
        seeds,
        words,
        "; ".join(machines),
    )


def measure(run: RunFolder) -> Measurement:
    """Accuracy from the certificates of a run, LB/MAP from its searches where it has any."""
    certificates, upsample = run.certificates(), run.recipe().data.upsample
    ratio = None
    if run.solvers_file.is_file():
        free = [search for search in run.searches() if search.box is None]
        figures = tightness(closest_found(free)) if free else None
        ratio = figures.mean if figures and figures.n else None
    return Measurement(
        float(certificates.right.double().mean()),
        certificates.certified_accuracy(HEADLINE_EPSILON),
        certificates.certified_accuracy(HEADLINE_EPSILON * upsample),
        ratio,
    )


def percent(shares: Sequence[float]) -> str:
    """Mean and standard deviation of shares, in percent; of one share its value alone.

    >>> percent([0.7, 0.72]), percent([0.5])
    ('71.0 ± 1.41', '50.0')
    """
    mean = f"{100.0 * fmean(shares):.1f}"
    return f"{mean} ± {100.0 * stdev(shares):.2f}" if len(shares) > 1 else mean


def _key(row: dict[str, str | int]) -> PaperRow:
    return str(row["model"]), str(row["input"]), int(row["side"])


def _target(label: str, searches: bool) -> Target:
    return Target(
        recipes=tuple(row_recipe(*_key(row)) for row in printed_rows(label)),
        searches=searches,
        write=lambda runs: Output(accuracy_tables(label, runs)),
    )


ACCURACY = _target("tab:accuracy", searches=True)
INPUT_SIZE = _target("tab:accuracy-input-size", searches=False)
