"""The recipes that ship with the package."""

from collections.abc import Iterator
from pathlib import Path


def embedded_recipe(name: str | Path) -> Path:
    """The path itself if it is a file, else the recipe of that name that ships with the package.

    Raises:
        FileNotFoundError: neither; the message lists the embedded names.
    """
    path = Path(name)
    if path.is_file():
        return path
    for folder in _folders():
        candidate = folder / path.parent / f"{path.name}.toml"
        if not path.is_absolute() and ".." not in path.parts and candidate.is_file():
            return candidate
    known = sorted({file.stem for folder in _folders() for file in folder.glob("*.toml")})
    raise FileNotFoundError(
        f"no recipe {name}; pass a file, or one of {', '.join(known)}, or a row of the paper's "
        "tables such as paper/ugnn-maxmin-updu-raw"
    )


def list_recipes() -> Iterator[str]:
    """The name of each recipe and what its first line says, those of the paper's rows last."""
    found = {
        file.relative_to(folder).with_suffix("").as_posix(): file
        for folder in _folders()
        for file in folder.glob("**/*.toml")
    }
    names = sorted(found, key=lambda name: ("/" in name, name))
    width = max(map(len, names), default=0)
    for name in names:
        first, _, _ = found[name].read_text(encoding="utf-8").partition("\n")
        about = first.removeprefix("#").strip() if first.startswith("#") else ""
        yield f"{name:<{width}}  {about}".rstrip()


def _folders() -> tuple[Path, Path]:
    """In an installed package, and in its sources."""
    package = Path(__file__).parents[1]
    return package / "recipes", package.parents[1] / "recipes"
