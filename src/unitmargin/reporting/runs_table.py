"""The table of runs side by side: results, cost, and what differs in their recipes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from unitmargin.certificates.epsilons import Epsilons, epsilon_name
from unitmargin.certificates.tightness import Search, describe, place_name
from unitmargin.reporting.comparison import Compared, certified_share
from unitmargin.reporting.statistics import median
from unitmargin.reporting.wording import NO_NUMBER, count, epochs, fixed, percent, seconds, spread
from unitmargin.runs.recipe import Recipe, own_options

ABSENT = "–"
"""Stands for an option that a model does not have."""

SHORT = 12
"""Digits of a hash that tell files apart."""


class Row(NamedTuple):
    """A name, and one text a run."""

    name: str
    cells: list[str]


def result_rows(runs: Sequence[Compared], epsilons: Epsilons) -> list[Row]:
    """Accuracies at common radii, median radius, tightness and checks."""
    rows = [
        Row(
            f"Certified at {epsilon_name(epsilon)}" if epsilon else "Clean accuracy",
            [percent(certified_share(run, epsilon)) for run in runs],
        )
        for epsilon in epsilons.table
    ]
    rows.append(Row("Median certified radius", [_median_radius(run) for run in runs]))
    found = [_searches(run) for run in runs]
    for name in dict.fromkeys(name for each in found for name in each):
        cells = [each.get(name, "not searched") for each in found]
        rows.append(Row(f"Radius / distance, {name}", cells))
    return [*rows, Row("Checks", [_checks(run) for run in runs])]


def cost_rows(runs: Sequence[Compared]) -> list[Row]:
    """Size, time and machine."""
    return [
        Row("Stored numbers", [count(run.parameters) for run in runs]),
        Row("Training", [_training(run) for run in runs]),
        Row("Trained on", [run.facts["hardware"] or "not stated" for run in runs]),
        Row("Test samples", [count(len(run.certificates)) for run in runs]),
    ]


def origin_rows(runs: Sequence[Compared]) -> list[Row]:
    """Which model, data and program."""
    data = [run.data for run in runs]
    return [
        Row("Profile", [run.certificates.profile for run in runs]),
        Row("torch", [run.facts["torch"] or "not stated" for run in runs]),
        Row("Commit", [run.facts["commit"] or "not stated" for run in runs]),
        Row("Model, SHA-256", [run.model_sha256[:SHORT] for run in runs]),
        Row(
            "Training samples, SHA-256",
            [_short("" if each is None else each.train_sha256) for each in data],
        ),
        Row(
            "Test samples, SHA-256",
            [_short("" if each is None else each.test_sha256) for each in data],
        ),
    ]


def recipe_rows(runs: Sequence[Compared]) -> list[Row]:
    """The options of the recipes that differ, with their defaults where they are not given."""
    tables = [dict(_options(run.recipe)) for run in runs]
    names = dict.fromkeys(name for table in tables for name in table)
    rows = [Row(name, [table.get(name, ABSENT) for table in tables]) for name in names]
    return [row for row in rows if len(set(row.cells)) > 1]


def _options(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Every option of a recipe but its name and the place of its data, by its dotted key."""
    table: dict[str, Any] = recipe.placeless().model_dump(mode="json", exclude={"name"})
    given = table["model"].pop("options")
    table["model"] |= own_options(recipe.model.name)(**given).model_dump(mode="json")
    for section, content in table.items():
        inner = content.items() if isinstance(content, dict) else [("", content)]
        for key, value in inner:
            yield f"{section}.{key}".rstrip("."), _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or NO_NUMBER
    return str(value).lower() if isinstance(value, bool) else str(value)


def _median_radius(run: Compared) -> str:
    radius = run.certificates.radius[run.certificates.right]
    return fixed(median(radius))


def _searches(run: Compared) -> dict[str, str]:
    """What each solver found in each box, as a text, by solver, box and changed settings."""
    return {_search_name(search): _search_cell(search) for search in run.searches}


def _search_name(search: Search) -> str:
    changed = " ".join(["", "with", *search.changed()]) if search.changed() else ""
    return f"{search.solver.replace('_', ' ')} {place_name(search.box)}{changed}"


def _search_cell(search: Search) -> str:
    row = describe(search)
    return f"{spread(row['mean'], row['spread'])} ({count(row['n'])} of {count(row['right'])})"


def _checks(run: Compared) -> str:
    if run.findings is None:
        return "not verified"
    tried = [row for row in run.findings.checks if not row.not_run]
    failed = [row.name.replace("_", " ") for row in tried if row.failed]
    if failed:
        return f"{len(failed)} of {len(tried)} failed: {', '.join(failed)}"
    return f"{len(tried)} of {len(tried)} passed"


def _training(run: Compared) -> str:
    if not run.history:
        return "no history"
    total = sum(record.seconds for record in run.history)
    return f"{seconds(total)}, {epochs(len(run.history))}"


def _short(sha256: str) -> str:
    return sha256[:SHORT] if sha256 else "not stated"
