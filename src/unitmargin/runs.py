"""The run folder: what each step writes and reads, in one place."""

import csv
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from unitmargin.data import Dataset, load_dataset
from unitmargin.fixed import normalize_from
from unitmargin.frozen import FrozenNetwork, load
from unitmargin.models import Classifier, build_model
from unitmargin.recipe import Recipe, read_recipe, write_recipe

EPSILONS = (0.0, 36 / 255, 0.25, 72 / 255, 108 / 255, 0.5, 1.0)
"""Radii of the certified-accuracy tables: the field's k/255 and round numbers."""

HEADLINE_EPSILON = 36 / 255
"""The radius that the field quotes first."""

STATISTICS_SAMPLES = 10_000
"""Training samples from which the input normalisation is computed."""


class RunError(RuntimeError):
    """A step that cannot run yet, with the command that must come first."""


RADIUS_AGREEMENT = 1e-10
"""Radii written earlier may have been computed with another batch size or thread count, which
moves float64 logits by a few ulp; a larger difference means another model or other data."""


class RunFolder:
    """A folder ``runs/NAME``; each property is the file that one step writes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.recipe_file = self.path / "recipe.toml"
        self.checkpoint_file = self.path / "checkpoint.safetensors"
        self.weights_file = self.path / "weights.safetensors"
        self.history_file = self.path / "history.csv"
        self.model_file = self.path / "model.safetensors"
        self.certificates_file = self.path / "certificates.csv"
        self.certificate_facts_file = self.path / "certificates.json"
        self.inputs_file = self.path / "inputs.safetensors"
        self.checks_file = self.path / "checks.json"
        self.solvers_file = self.path / "solvers.csv"
        self.report_html = self.path / "report.html"
        self.report_md = self.path / "report.md"
        self.report_json = self.path / "report.json"

    def require(self, file: Path, command: str) -> Path:
        """The file, or an error that names the step that writes it."""
        if not file.is_file():
            raise RunError(f"{file} does not exist; run `unitmargin {command}` first")
        return file

    def recipe(self) -> Recipe:
        return read_recipe(self.require(self.recipe_file, "train RECIPE"))

    def start(self, recipe: Recipe) -> None:
        """Write the recipe, or refuse if the folder belongs to another one."""
        if self.recipe_file.is_file() and self.recipe() != recipe:
            raise RunError(
                f"{self.path} holds a run of another recipe; choose another --out, or delete it"
            )
        write_text(self.recipe_file, write_recipe(recipe))

    def dataset(self) -> Dataset:
        return open_dataset(self.recipe())

    def frozen(self) -> FrozenNetwork:
        return load(self.require(self.model_file, f"freeze {self.path}"))

    def history(self) -> list[dict[str, float]]:
        return [
            {key: float(value) for key, value in row.items()}
            for row in read_csv(self.require(self.history_file, "train RECIPE"))
        ]


def open_dataset(recipe: Recipe) -> Dataset:
    """The recipe's data set, limited and up-sampled as it says."""
    dataset = load_dataset(recipe.data.name, recipe.data.path, recipe.data.limit)
    return dataset.upsampled(recipe.data.upsample)


def open_model(recipe: Recipe, dataset: Dataset) -> Classifier:
    """The recipe's untrained network, its weights drawn from the recipe's seed."""
    inputs, _ = dataset.train.batch(slice(0, STATISTICS_SAMPLES))
    normalize = normalize_from(inputs, recipe.model.normalization)
    torch.manual_seed(recipe.training.seed)
    return build_model(
        recipe.model.name,
        in_shape=dataset.in_shape,
        n_classes=dataset.n_classes,
        normalize=normalize,
        **recipe.model.options,
    )


@contextmanager
def write_aside(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to be written, which takes its place when all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".partial")
    yield aside
    os.replace(aside, path)


def write_text(path: Path, text: str) -> None:
    """Write a text file that appears whole or not at all."""
    with write_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any) -> None:
    """Write JSON with sorted sections kept in the given order; see :func:`write_text`."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a comma-separated table; floats keep all their digits."""
    lines = [",".join(header)]
    lines += [
        ",".join(repr(value) if isinstance(value, float) else str(value) for value in row)
        for row in rows
    ]
    write_text(path, "\n".join(lines) + "\n")


def file_sha256(path: Path) -> str:
    """Hash of a whole file, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a table written by :func:`write_csv`."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def hardware() -> str:
    """Processor, threads and accelerator, in a few words."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    threads = torch.get_num_threads()
    words = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
    return f"{words}, {torch.cuda.get_device_name()}" if torch.cuda.is_available() else words


def commit() -> str:
    """Short hash of the source tree's commit; empty if the package is not in a repository."""
    file = Path(__file__)
    git = ["git", "-C", str(file.parent)]
    # An installed package may lie inside somebody else's repository without belonging to it.
    commands = (["ls-files", "--error-unmatch", file.name], ["rev-parse", "--short", "HEAD"])
    try:
        for command in commands:
            done = subprocess.run([*git, *command], capture_output=True, text=True, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def provenance() -> dict[str, str]:
    """Where and with what a network was trained; kept with its weights."""
    return {"hardware": hardware(), "torch": str(torch.__version__), "commit": commit()}
