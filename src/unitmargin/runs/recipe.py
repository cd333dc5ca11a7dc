"""Recipes: one TOML file per experiment, judged whole when it is read; nothing is executed."""

import inspect
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic
import tomli_w
from pydantic import AfterValidator, Field, PositiveInt, field_validator, model_validator

from unitmargin.data import DATASETS, ImageOptions, SplitOptions, TableOptions
from unitmargin.foundation.options import Options, among
from unitmargin.frozen.profiles import PROFILES
from unitmargin.heads import HEADS
from unitmargin.layers.activations import require_activation
from unitmargin.layers.normalize import NORMALIZATIONS
from unitmargin.models import MODELS
from unitmargin.models.freezing import DTYPES
from unitmargin.models.plans import read_plan
from unitmargin.orthogonal import ORTHOGONAL_CONVS, ORTHOGONAL_LINEARS
from unitmargin.runs.settings import read_settings
from unitmargin.training.options import TrainingOptions


def _require_folder_name(name: str) -> str:
    blank = not name or name.strip() != name
    if blank or not name.isprintable() or name[0] == "." or set(name) & set("/\\"):
        raise ValueError(
            f"name must name a folder: printable, no separator, no dot or blank in front, got "
            f"{name!r}; choose another"
        )
    return name


def _require_plan(plan: Sequence[str] | None) -> Sequence[str] | None:
    read_plan(plan or ())
    return plan


NAMES = {
    "activation": AfterValidator(require_activation),
    "conv": among("conv", ORTHOGONAL_CONVS),
    "linear": among("linear", ORTHOGONAL_LINEARS),
    "head": among("head", HEADS),
    "plan": AfterValidator(_require_plan),
}
"""What the options of a model that name something may be."""

GIVEN = ("in_shape", "n_classes", "normalize")
"""Keyword arguments of a model that are no options: they follow from the data."""


TABLE = "table"

NAMED_BY = {".csv": TABLE, ".parquet": TABLE, ".npz": "npz"}
"""Data sets that the end of a path names."""


TEST = "test"

IMAGES, SHARDS = "images", "shards"

OF_TABLES = [
    key for key in TableOptions.model_fields if key not in ImageOptions.model_fields and key != TEST
]
"""Options of tables alone: a split is drawn of images, too, and they may have a label column."""

PREPARED = ["resize", "channels"]
"""Options of images that also shards have."""

OF_IMAGES = [
    key
    for key in ImageOptions.model_fields
    if key not in TableOptions.model_fields and key not in PREPARED
]
"""Options of images alone."""

OF_BOTH = [key for key in ImageOptions.model_fields if key in TableOptions.model_fields]


class DataOptions(ImageOptions, TableOptions):
    """Which data; of images and of tables also how they are read.

    Attributes:
        name: a registered data set; default: the one that a path of a table or of arrays names.
        path: file or folder, where the data set needs or takes one.
        limit: at most this many training and test samples each.
        upsample: each pixel is repeated this many times in each direction, which multiplies all
            distances by it; radii are in the space of the larger image.
    """

    name: Annotated[str, among("name", DATASETS)] = "digits"
    path: str | None = None
    limit: PositiveInt | None = None
    upsample: PositiveInt = 1

    @model_validator(mode="before")
    @classmethod
    def _resolve(cls, given: Any) -> Any:
        """State what follows from the path: the data set, and that rows are split."""
        if not isinstance(given, dict):
            return given
        kind = NAMED_BY.get(Path(str(given.get("path"))).suffix.lower())
        resolved: dict[str, Any] = {"name": kind} | given if kind else dict(given)
        splits = resolved.get("name") == TABLE and resolved.get("path") and not resolved.get("test")
        for key, value in zip(SplitOptions.model_fields, SplitOptions().choice(), strict=True):
            if splits and resolved.get(key) is None:
                resolved[key] = value
        return resolved

    @model_validator(mode="after")
    def _judge(self) -> "DataOptions":
        """Raise for an option that the data set has no use for."""
        left_out = DataOptions.model_construct()
        for keys, owners in (
            (OF_TABLES, [TABLE]),
            (PREPARED, [IMAGES, SHARDS]),
            (OF_IMAGES, [IMAGES]),
            (OF_BOTH, [IMAGES, TABLE]),
            ([TEST], [TABLE, SHARDS]),
        ):
            foreign = [key for key in keys if getattr(self, key) != getattr(left_out, key)]
            if foreign and self.name not in owners:
                raise ValueError(
                    f"{foreign[0]} must be left out for data set {self.name!r}, got "
                    f"{getattr(self, foreign[0])!r}; it is an option of the data set "
                    f"{' or '.join(map(repr, owners))}"
                )
        return self

    def table(self) -> TableOptions:
        """How a table is read."""
        return TableOptions(**{key: getattr(self, key) for key in TableOptions.model_fields})


class ModelOptions(Options):
    """Which network.

    Attributes:
        name: a registered model.
        normalization: none, centre, scalar or channel, from all training inputs.
        options: the model's own keyword arguments (every other key of the table).
    """

    name: Annotated[str, among("name", MODELS)] = "ugnn"
    normalization: Annotated[str, among("normalization", NORMALIZATIONS)] = "none"
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _judge(cls, options: dict[str, Any], fields: Any) -> dict[str, Any]:
        if "name" not in fields.data:
            return options  # the name is the mistake
        judged = own_options(fields.data["name"])(**options)
        return judged.model_dump(mode="json", exclude_unset=True)


def own_options(model: str) -> type[Options]:
    """The keyword arguments of a registered model that a recipe may set, as options.

    Example:
        >>> own_options("dense_ugnn")(hidden=[4, 4]).hidden
        [4, 4]
    """
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(MODELS[model]).parameters.items():
        if name not in GIVEN:
            kind = parameter.annotation
            named = Annotated[kind, NAMES[name]] if name in NAMES else kind
            fields[name] = (named, parameter.default)
    return pydantic.create_model(model, __base__=Options, **fields)


class Recipe(Options):
    """A whole experiment: data, network, training, deployed dtype.

    Attributes:
        name: of the run folder, ``runs/NAME``.
        dtype: of the deployed network's numbers, float32 or float64.
        profile: under which the deployed network is evaluated and certified.
        verify_samples: how many test samples ``verify`` attacks.
    """

    name: Annotated[str, AfterValidator(_require_folder_name)]
    data: DataOptions = DataOptions()
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()
    dtype: Annotated[str, among("dtype", DTYPES)] = "float32"
    profile: Annotated[str, among("profile", PROFILES)] = "float64"
    verify_samples: PositiveInt = 256

    def overridden(
        self,
        data: Path | None = None,
        limit: int | None = None,
        epochs: int | None = None,
        seed: int | None = None,
    ) -> "Recipe":
        """The recipe with what a command line says instead; None leaves what the recipe says.

        Raises:
            ValueError: a value that the recipe may not have, or epochs of one that has steps.
        """
        self.training.require_epochs(epochs)
        path = None if data is None else str(data.resolve())
        return self.changed(
            data=_said(path=path, limit=limit),
            training=_said(epochs=epochs, seed=seed),
        )

    def placeless(self) -> "Recipe":
        """The recipe without the place of its data: what it says on another machine."""
        return self.changed(data={"path": None, "test": None})


def _said(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


class RecipeError(ValueError):
    """A recipe that is not valid TOML, or has a key or value that no option takes."""


def read_recipe(path: str | Path, settings: Sequence[str] = ()) -> Recipe:
    """Read a recipe file, and judge all of it.

    ``settings`` replace keys of it, as in ``training.learning_rate=0.01``; see
    :func:`read_settings`.

    Raises:
        FileNotFoundError: no such file.
        RecipeError: not TOML, an unknown key or name, a value of the wrong type or out of range.
        ValueError: a setting that is none, or one of epochs where there are steps.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no recipe at {path}; `unitmargin recipes` lists those that ship")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path} is not in UTF-8: {error}; save it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{path} is not valid TOML: {error}; mend that line") from None
    where = f"{path} with --set" if settings else str(path)
    recipe = parse_recipe(read_settings(settings, table), where)
    if read_settings(settings, {"training": {}})["training"].get("epochs"):
        recipe.training.require_epochs(recipe.training.epochs)
    return recipe


def parse_recipe(table: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Build a recipe from nested tables; see :func:`read_recipe`."""
    sections = dict(table)
    if isinstance(sections.get("model"), dict):
        options = dict(sections["model"])
        known = {key: options.pop(key) for key in ("name", "normalization") if key in options}
        sections["model"] = known | {"options": options}
    try:
        return Recipe(**sections)
    except ValueError as error:
        raise RecipeError(f"{where}: {error}") from None


def write_recipe(recipe: Recipe) -> str:
    """The recipe as TOML text that :func:`read_recipe` reads back to an equal recipe."""
    table = recipe.model_dump(exclude_none=True)
    table["model"] |= table["model"].pop("options")
    read = {key: table["data"].pop(key, None) for key in OF_TABLES}
    if recipe.data.name == TABLE:
        table["data"] |= {key: value for key, value in read.items() if value not in (None, [], {})}
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    return tomli_w.dumps(plain | table)
