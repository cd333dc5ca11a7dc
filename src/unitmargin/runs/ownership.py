"""Whose a folder is: what lies in one that no run has, and in which key two runs differ."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from unitmargin.foundation.numbers import shown
from unitmargin.runs.lock import given_names
from unitmargin.runs.recipe import Recipe, read_recipe, write_recipe


def foreign_content(folder: Path, own: Collection[Path], recipe: Path) -> str:
    """What a folder holds besides the files of a run, in words; nothing if that is nothing.

    A recipe is a run's if its lines are those that a run writes, in their order, be it without some
    that another version has: comments and another order are somebody's work.
    """
    if not folder.is_dir():
        return ""
    if recipe.is_file() and not _is_written_by_a_run(recipe):
        return f"a {recipe.name} that somebody wrote"
    names = {name for name in given_names(folder) if not name.startswith(".")}
    return min(names - {file.name for file in own}, default="")


def first_difference(own: Recipe, other: Recipe) -> str:
    """The first key in which two recipes differ, with both values; nothing if they are equal."""
    stated, asked = (_flat(recipe.model_dump(mode="json")) for recipe in (own, other))
    for key in stated | asked:
        values = stated.get(key), asked.get(key)
        if values[0] != values[1]:
            return f"{key} is {shown(values[0])}, not {shown(values[1])}"
    return ""


def _flat(table: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    """The entries of nested tables by their keys, as `--set` names them; options of a model stand
    in its section."""
    entries: dict[str, Any] = {}
    for key, value in table.items():
        name = start if key == "options" else f"{start}{key}"
        dot = "" if key == "options" else "."
        entries |= _flat(value, f"{name}{dot}") if isinstance(value, Mapping) else {name: value}
    return entries


def _is_written_by_a_run(recipe: Path) -> bool:
    try:
        text, lines = recipe.read_text(encoding="utf-8"), write_recipe(read_recipe(recipe))
    except (ValueError, OSError):
        return False
    written = iter(lines.splitlines())
    return all(line in written for line in text.splitlines() if line.strip())
