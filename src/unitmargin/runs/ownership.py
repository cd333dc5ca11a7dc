"""What lies in a folder that no run has: nobody's files are written over."""

from collections.abc import Collection
from pathlib import Path

from unitmargin.runs.lock import given_names
from unitmargin.runs.recipe import read_recipe, write_recipe


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


def _is_written_by_a_run(recipe: Path) -> bool:
    try:
        text, lines = recipe.read_text(encoding="utf-8"), write_recipe(read_recipe(recipe))
    except (ValueError, OSError):
        return False
    written = iter(lines.splitlines())
    return all(line in written for line in text.splitlines() if line.strip())
