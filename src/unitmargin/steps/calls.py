"""Verbs as functions of a folder's path, for programs and notebooks."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from unitmargin.exploring.page import SAMPLES
from unitmargin.foundation.choice import require_choice
from unitmargin.foundation.files import as_path, require_path
from unitmargin.foundation.numbers import require_whole, shown
from unitmargin.runs.findings import Findings
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.searching import DEFAULT_SOLVERS, BoxChoice
from unitmargin.steps.compare import PAGE, compare_runs
from unitmargin.steps.explore import explore_run
from unitmargin.steps.report import report_run
from unitmargin.steps.verify import verify_run


def verify(
    folder: str | Path,
    solvers: Sequence[str] = DEFAULT_SOLVERS,
    samples: int | None = None,
    box: BoxChoice = "auto",
    rounding_attack: bool = False,
    data: str | Path | None = None,
    normalised: bool = False,
) -> Findings:
    """Try to break the promises of a run folder, as ``unitmargin verify`` does.

    Args:
        folder: a certified run.
        solvers: of the minimal adversarial perturbation, by name, with options after a colon
            (``sphere_tracing:steps=300``).
        samples: how many test samples are attacked, spread evenly; default: the recipe's.
        box: ``auto`` searches without a box and, for data in [0, 1], within it; ``off`` only
            without, ``only`` only within.
        rounding_attack: also search the edge of each certified ball by units in the last place.
        data: file or folder of the data set, if it has moved since the training.
        normalised: also search behind an input normalisation that stretches channels unequally,
            where the paper measures.

    Returns:
        What stands in checks.json: ``passed``, ``checks`` with a value and a bound each, and
        ``solvers`` with the distances that were found. A broken promise is a result, no error.

    Raises:
        TypeError: an argument of another kind.
        ValueError: an unknown solver, option or box, fewer than one sample, a box that the data
            leave; no space behind a normalisation where one is asked for; a file of an earlier
            step that is missing, damaged, or of another model.

    Cost: at most 90 forward and backward passes a sample and box, of inputs of at most eight
    entries up to 17 times as many.

    Example:
        >>> verify("runs/nothing")
        Traceback (most recent call last):
        unitmargin.runs.folder.RunError: runs/nothing is no run folder; ...
    """
    run = RunFolder(as_path("folder", folder))
    several = isinstance(solvers, Sequence) and not isinstance(solvers, str)
    if not several or not all(isinstance(name, str) for name in solvers):
        rule = "solvers must be a tuple of names"
        raise TypeError(f'{rule}, got {shown(solvers)}; pass ("sphere_tracing",)')
    require_choice("box", box, get_args(BoxChoice))
    count = None if samples is None else require_whole("samples", samples, 1, "leave it out")
    moved = None if data is None else as_path("data", data)
    verify_run(run, solvers, count, box, rounding_attack, moved, normalised)
    return run.findings()


def report(folder: str | Path) -> Path:
    """Write report.html, report.md and report.json of a verified run folder; the path of the first.

    report.html is one file that needs no network; report.json holds every number it shows.

    Raises:
        TypeError: what is no path.
        ValueError: a file of an earlier step is missing or does not fit the others.

    Cost: seconds; it reads, and computes nothing.

    Example:
        >>> report("runs/nothing")
        Traceback (most recent call last):
        unitmargin.runs.folder.RunError: runs/nothing is no run folder; ...
    """
    run = RunFolder(as_path("folder", folder))
    report_run(run)
    return run.report_html


def compare(folders: Sequence[str | Path], out: str | Path = PAGE) -> Path:
    """Write a page of certified runs side by side, as ``unitmargin compare`` does; its path.

    The page is one file that needs no network: accuracy against radius of all runs on one axis,
    training curves, a table of results, cost and what differs in the recipes, and differences
    from the first run with their standard errors, paired where the test samples are the same.

    Args:
        folders: certified runs of one kind of data, each once.
        out: the page.

    Raises:
        TypeError: an argument of another kind.
        ValueError: no run, a run that is not certified yet, or runs whose radii or shares cannot
            be compared.

    Cost: seconds; it reads, and computes nothing.

    Example:
        >>> compare(["runs/nothing"])
        Traceback (most recent call last):
        unitmargin.runs.folder.RunError: runs/nothing is no run folder; ...
    """
    if not isinstance(folders, Sequence) or isinstance(folders, str):
        rule = "folders must be a list of run folders"
        raise TypeError(f'{rule}, got {shown(folders)}; pass ["runs/one", "runs/other"]')
    runs = [RunFolder(as_path(f"folder {place}", one)) for place, one in enumerate(folders, 1)]
    page = require_path("out", out)
    compare_runs(runs, page)
    return page


def explore(folder: str | Path, samples: int = SAMPLES, data: str | Path | None = None) -> Path:
    """Write explore.html of a frozen run folder, a page to play with; its path.

    The page is one file that needs no server and no network. The deployed network runs in it, in
    the doubles of JavaScript, and what it shows are certificates of the profile ``float64``
    (docs/explore.md).

    Args:
        folder: a frozen run.
        samples: how many test samples people may choose from, spread evenly; fewer of long ones.
        data: file or folder of the data set, if it has moved since the training.

    Raises:
        TypeError: an argument of another kind.
        ValueError: a run that is not frozen, other data than it was trained on, fewer than one
            sample, or a network of more stored numbers than a page can hold.

    Cost: the proof of the network's constants, and one evaluation of the samples.

    Example:
        >>> explore("runs/nothing")
        Traceback (most recent call last):
        unitmargin.runs.folder.RunError: runs/nothing is no run folder; ...
    """
    run = RunFolder(as_path("folder", folder))
    moved = None if data is None else as_path("data", data)
    explore_run(run, require_whole("samples", samples, 1, "leave it out"), moved)
    return run.explore_html
