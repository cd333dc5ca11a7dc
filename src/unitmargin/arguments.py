"""Arguments that several verbs of the command line share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from unitmargin.runs.folder import RunFolder
    from unitmargin.runs.recipe import Recipe

FolderPath = Annotated[Path, tyro.conf.Positional]


@dataclass(frozen=True)
class Chosen:
    """A recipe and what the command line changes in it.

    Attributes:
        recipe: a TOML file, or the name of an embedded recipe (digits, cifar10-fast, ...).
        out: run folder; default runs/NAME.
        data: file or folder of the data set.
        epochs: instead of the recipe's; more than a run has extend it, as its schedule allows.
        minutes: instead of epochs: as many steps as take about that long here; evaluations and a
            teacher come on top.
        limit: at most this many training and test samples.
        seed: instead of the recipe's.
        device: cpu, cuda, cuda:1, ...
        log: tensorboard, wandb or trackio, which is told of each epoch.
        settings: another value of any key, as training.learning_rate=0.01; may be repeated.
    """

    recipe: tyro.conf.Positional[Path]
    out: Path | None = None
    data: Path | None = None
    epochs: int | None = None
    minutes: float | None = None
    limit: int | None = None
    seed: int | None = None
    device: str = "cpu"
    log: str | None = None
    settings: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]],
        tyro.conf.arg(name="set", metavar="KEY=VALUE"),
    ] = ()

    def open(self) -> "tuple[Recipe, RunFolder]":
        """The changed recipe and its run folder.

        Raises:
            ValueError: minutes and epochs; see :func:`unitmargin.runs.recipe.read_recipe` as well.
        """
        from unitmargin.foundation.choice import require_either
        from unitmargin.runs.folder import RunFolder
        from unitmargin.runs.recipe import read_recipe
        from unitmargin.runs.shipped import embedded_recipe

        require_either(minutes=self.minutes, epochs=self.epochs)
        recipe = read_recipe(embedded_recipe(self.recipe), self.settings)
        changed = recipe.overridden(self.data, self.limit, self.epochs, self.seed)
        return changed, RunFolder(self.out or Path("runs") / changed.name)


RecipeOptions = Annotated[Chosen, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class Evaluation:
    """How a network is evaluated.

    Attributes:
        profile: float64 or float32; default: the model's own.
        device: cpu, cuda, cuda:1, ...
        batch_size: inputs a forward pass.
    """

    profile: str | None = None
    device: str = "cpu"
    batch_size: int = 512


EvaluationOptions = Annotated[Evaluation, tyro.conf.arg(name="")]

EVALUATION = Evaluation()
"""The default of a verb."""
