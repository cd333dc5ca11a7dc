"""Recipes: one TOML file per experiment, read into frozen dataclasses; nothing is executed."""

import dataclasses
import json
import re
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unitmargin.training.options import TrainingOptions


@dataclass(frozen=True)
class DataOptions:
    """Which data.

    Attributes:
        name: a registered data set.
        path: file or folder, where the data set needs or takes one.
        limit: at most this many training and test samples each.
        upsample: each pixel is repeated this many times in each direction, which multiplies all
            distances by it; radii are in the space of the larger image.
    """

    name: str = "digits"
    path: str | None = None
    limit: int | None = None
    upsample: int = 1

    def __post_init__(self) -> None:
        if self.upsample < 1:
            raise ValueError(f"upsample must be at least 1, got {self.upsample}; 1 leaves images")


@dataclass(frozen=True)
class ModelOptions:
    """Which network.

    Attributes:
        name: a registered model.
        normalization: none, centre, scalar or channel, from the training inputs.
        options: the model's own keyword arguments (every other key of the table).
    """

    name: str = "ugnn"
    normalization: str = "none"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """A whole experiment: data, network, training, deployed dtype.

    Attributes:
        name: of the run folder, ``runs/NAME``.
        dtype: of the deployed network, float32 or float64.
        verify_samples: how many test samples ``verify`` attacks.
    """

    name: str
    data: DataOptions = DataOptions()
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()
    dtype: str = "float32"
    verify_samples: int = 256


class RecipeError(ValueError):
    """A recipe that is not valid TOML, or has a key or value that no option takes."""


def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe file.

    Raises:
        FileNotFoundError: no such file.
        RecipeError: not TOML, an unknown key, or a value of the wrong type.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no recipe at {path}; the embedded ones are listed by --help")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} is not valid TOML: {error}; mend that line") from None
    return parse_recipe(table, str(path))


def parse_recipe(table: dict[str, Any], where: str = "recipe") -> Recipe:
    """Build a recipe from nested tables; see :func:`read_recipe`."""
    table = dict(table)
    if isinstance(table.get("model"), dict):
        known = {item.name for item in dataclasses.fields(ModelOptions)} - {"options"}
        model = table["model"]
        own = {key: value for key, value in model.items() if key in known}
        table["model"] = own | {"options": {k: v for k, v in model.items() if k not in known}}
    recipe: Recipe = _build(Recipe, table, where)
    return recipe


def _build(kind: Any, table: dict[str, Any], where: str) -> Any:
    hints = typing.get_type_hints(kind)
    values = {}
    for key, value in table.items():
        if key not in hints:
            raise RecipeError(
                f"{where}: unknown key {key!r}, known: {', '.join(hints)}; remove or correct it"
            )
        values[key] = _convert(hints[key], value, f"{where}: {key}")
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"{where}: {error}") from None


def _convert(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise RecipeError(f"{where} must be a table, got {value!r}; write [section] above it")
        return _build(hint, value, where)
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for option in options:
        plain = typing.get_origin(option) or option
        if plain is float and type(value) in (int, float):
            return float(value)
        if type(value) is plain:
            return value
    expected = getattr(hint, "__name__", str(hint))
    raise RecipeError(f"{where} must be {expected}, got {value!r}; correct the value")


def write_recipe(recipe: Recipe) -> str:
    """The recipe as TOML text that :func:`read_recipe` reads back to an equal recipe."""
    table = dataclasses.asdict(recipe)
    table["model"] |= table["model"].pop("options")
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [*_lines(plain)]
    for section, content in table.items():
        if isinstance(content, dict):
            lines += ["", f"[{section}]", *_lines(content)]
    return "\n".join(lines) + "\n"


def _lines(table: dict[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_literal(value)}" for key, value in table.items() if value is not None]


def _key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else _literal(key)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON escapes what TOML does, but for the one control character above the printable ones.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return repr(value)


def embedded_recipe(name: str | Path) -> Path:
    """The path itself if it is a file, else the recipe of that name that ships with the package.

    Raises:
        FileNotFoundError: neither; the message lists the embedded names.
    """
    path = Path(name)
    if path.is_file():
        return path
    package = Path(__file__).parents[1]
    folders = [package / "recipes", package.parents[1] / "recipes"]
    for folder in folders:
        candidate = folder / path.parent / f"{path.name}.toml"
        if not path.is_absolute() and ".." not in path.parts and candidate.is_file():
            return candidate
    known = sorted({file.stem for folder in folders for file in folder.glob("*.toml")})
    raise FileNotFoundError(
        f"no recipe {name}; pass a file, or one of {', '.join(known)}, or a row of the paper's "
        "tables such as paper/ugnn-maxmin-updu-raw"
    )
