"""The run folder: the path of each file, the step that writes it, and what it holds."""

import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from unitmargin.certificates.tightness import Search
from unitmargin.data import Dataset, Samples, Split
from unitmargin.foundation.files import (
    file_sha256,
    nameless_file,
    read_hashed,
    read_json,
    write_json,
    write_text,
)
from unitmargin.frozen import FrozenNetwork, load
from unitmargin.runs.certificates import Certificates, read_certificates
from unitmargin.runs.findings import Findings, read_findings
from unitmargin.runs.history import read_history
from unitmargin.runs.linked import frozen_of, require_hashes
from unitmargin.runs.lock import hold
from unitmargin.runs.measurements import Measurements, read_measurements
from unitmargin.runs.opening import open_dataset
from unitmargin.runs.ownership import first_difference, foreign_content
from unitmargin.runs.recipe import Recipe, read_recipe, write_recipe
from unitmargin.runs.searches import read_searches
from unitmargin.runs.weights import Origin, read_origin
from unitmargin.training.identity import LENGTHS, identify_data, require_classes
from unitmargin.training.logs import LOGS
from unitmargin.training.processes import joined_processes
from unitmargin.training.teacher import teacher_file
from unitmargin.training.train import EpochRecord

Content = TypeVar("Content")

TRAIN = "train RECIPE"

GRAPH = "model.onnx"
"""The file that `unitmargin export` writes beside a model file."""

HTML_SHA256, MD_SHA256 = "html_sha256", "md_sha256"
"""Entries of report.json: the hashes of the pages that were written with it."""


class RunError(RuntimeError):
    """A step that cannot run yet, with the command that must come first."""


class RunFolder:
    """A folder ``runs/NAME``; each property is the file that one step writes.

    Methods read files into typed objects; of a file that is missing, damaged, or of another model
    they raise a :class:`RunError` that names the command which writes it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.recipe_file = self.path / "recipe.toml"
        self.split_file = self.path / "split.json"
        self.checkpoint_file = self.path / "checkpoint.safetensors"
        self.teacher_file = teacher_file(self.checkpoint_file)
        self.weights_file = self.path / "weights.safetensors"
        self.history_file = self.path / "history.csv"
        self.model_file = self.path / "model.safetensors"
        self.certificates_file = self.path / "certificates.csv"
        self.certificate_facts_file = self.path / "certificates.json"
        self.inputs_file = self.path / "inputs.safetensors"
        self.checks_file = self.path / "checks.json"
        self.solvers_file = self.path / "solvers.csv"
        self.measurements_file = self.path / "measurements.safetensors"
        self.report_html = self.path / "report.html"
        self.report_md = self.path / "report.md"
        self.report_json = self.path / "report.json"
        self.explore_html = self.path / "explore.html"

    @property
    def exported(self) -> bool:
        """Whether export wrote the folder: its certificates are those that its card speaks of."""
        return (self.path / GRAPH).is_file() and not self._trained

    def require(self, file: Path, command: str) -> Path:
        """The file, or an error that names the step that writes it."""
        if not self.path.is_dir():
            raise RunError(
                f"{self.path} is no run folder; check the path, or begin with `unitmargin run "
                f"RECIPE --out {self.path}`"
            )
        if not file.is_file():
            raise RunError(f"{file} does not exist; {self._step(file, command, 'first')}")
        return file

    def hold(self, patience: float = 0.0) -> AbstractContextManager[None]:
        """Let no other process write into the folder; see :func:`unitmargin.runs.lock.hold`."""
        return hold(self.path, patience)

    def require_free(self) -> None:
        """Raise unless this process could write into the folder, before it works for long; of
        several the first one writes, and asks alone."""
        if not joined_processes().first:
            return
        if self.path.exists() and not self.path.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self.path))
        if self.path.is_dir():
            with self.hold():
                return
        with nameless_file(self.path):
            pass

    @property
    def begun(self) -> bool:
        """Whether an epoch was trained, be it of a teacher."""
        return self.recipe_file.is_file() and (self._trained or self.model_file.exists())

    @property
    def _trained(self) -> bool:
        """Whether files are there that a training leaves, and no export."""
        files = self.teacher_file, self.checkpoint_file, self.weights_file
        return any(file.exists() for file in files)

    def require_own(self, recipe: Recipe) -> None:
        """Raise if the folder belongs to another recipe.

        The place of the data is no part of it, which their content is; nor is the number of epochs,
        in which a training may be extended, or of samples that are attacked behind it. A folder in
        which no epoch was trained belongs to none; one that holds other things, a recipe that
        somebody wrote, or more than a split with neither a recipe nor a training is none of a run,
        and neither is one that export wrote.
        """
        files = {self.split_file}
        if self.recipe_file.is_file() or self._trained:
            files = {file for file in vars(self).values() if isinstance(file, Path)} - {self.path}
            files |= {self.path / log for log in LOGS}
        if self.exported:
            foreign = f"the {GRAPH} of an export"
        else:
            foreign = "" if self.begun else foreign_content(self.path, files, self.recipe_file)
        if foreign:
            raise RunError(
                f"{self.path} must be absent, empty or a run folder, got one with {foreign}; "
                "choose another --out"
            )
        if self.begun and (own := _comparable(self.recipe())) != (asked := _comparable(recipe)):
            raise RunError(
                f"{self.path} holds a run of another recipe: {first_difference(own, asked)}; "
                "choose another --out, or delete it"
            )

    def start(self, recipe: Recipe, split: Split | None = None) -> None:
        """Write the recipe and the split of its data, or refuse if the folder is of another one."""
        self.require_own(recipe)
        if split is None:
            self.split_file.unlink(missing_ok=True)
        else:
            write_json(self.split_file, split.model_dump())
        write_text(self.recipe_file, write_recipe(recipe))

    def recipe(self) -> Recipe:
        return read_recipe(self.require(self.recipe_file, TRAIN))

    def split(self) -> Split | None:
        """The split of a run that was begun, if its data came without one."""
        if not (self.begun and self.split_file.exists()):
            return None
        try:
            content = read_json(self.split_file)
            return Split(**content if isinstance(content, dict) else {})
        except (ValueError, OSError) as error:
            raise RunError(
                f"{self.split_file}: {error}; remove it, and the same images give the same split"
            ) from None

    def dataset(self, data: Path | None = None) -> Dataset:
        """The data set of the run, from its place or from another one; split as it was trained.

        Images that were added to a data set without a split since then are left out.

        Raises:
            ValueError: other data than the run was trained on.
        """
        dataset = open_dataset(self.recipe().overridden(data), self.split())
        if self.weights_file.is_file():
            found = identify_data(dataset.train, dataset.test, dataset.classes)
            self.origin().identity.data.require(found, self.weights_file)
        return dataset

    def test_samples(self, frozen: FrozenNetwork, data: Path | None = None) -> Samples:
        """The test samples of the run, whose classes have the names that the network knows."""
        dataset = self.dataset(data)
        require_classes(dataset.classes, frozen.classes, self.model_file)
        return dataset.test

    def history(self) -> tuple[EpochRecord, ...]:
        """The epochs behind the weights, or so far where there are none.

        Raises:
            RunError: weights of another length than the recipe asks for, as they are while a
                training is extended; the history is that of the longer one.
        """
        history = self._read(self.history_file, TRAIN, read_history)
        if self._extended():
            raise RunError(
                f"{self.weights_file} must have the length that {self.recipe_file.name} asks for, "
                f"got those before an extension; run `unitmargin {TRAIN}` to its end first"
            )
        return history

    def _extended(self) -> bool:
        """Whether the weights are of another length than the recipe asks for."""
        if not self.weights_file.is_file():
            return False
        changed = self.origin().identity.options.changes(self.recipe().training)
        return bool(changed & LENGTHS)

    def origin(self) -> Origin:
        """What the weights were trained as."""
        return self._read(self.weights_file, TRAIN, read_origin)

    def frozen(self) -> FrozenNetwork:
        return load(self.model())

    def hashed_frozen(self) -> tuple[FrozenNetwork, str]:
        """The frozen network and the SHA-256 of its file, both of one content."""
        return read_hashed(self.model_file, lambda _: load(self.model()))

    def certificates(self) -> Certificates:
        command = f"certify {self.path}"
        for file in (self.certificates_file, self.certificate_facts_file):
            self.require(file, command)
        files = self.model(), self.inputs_file
        return self._read(self.certificates_file, command, lambda f: read_certificates(f, *files))

    def searches(self) -> list[Search]:
        self.require(self.solvers_file, f"verify {self.path}")
        others = self.certificates(), self.findings().solvers
        return self._verified(self.solvers_file, lambda f: read_searches(f, *others))

    def findings(self) -> Findings:
        return self._verified(self.checks_file, lambda f: read_findings(f, self.model()))

    def measurements(self) -> Measurements:
        file = self.measurements_file
        return self._verified(file, lambda f: read_measurements(f, self.model()))

    def require_report(self) -> None:
        """Raise unless the report is of model and certificates, and as report.json says it was
        written; certificates and report.md may be missing."""
        command = f"report {self.path}"
        self.require(self.report_html, command)
        files = {
            "model_sha256": self.model(),
            "certificates_sha256": self.certificates_file,
            HTML_SHA256: self.report_html,
            MD_SHA256: self.report_md,
        }
        there = {key: file for key, file in files.items() if file.is_file()}
        self._read(self.report_json, command, lambda file: require_hashes(file, there))

    def model(self) -> Path:
        """The model file, of the weights beside it; one that is damaged says so when it is read."""
        file = self.require(self.model_file, f"freeze {self.path}")
        if self.weights_file.is_file() and frozen_of(file) not in (
            file_sha256(self.weights_file), None
        ):  # fmt: skip
            raise RunError(
                f"{file} is not of the weights in {self.weights_file}; run `unitmargin freeze "
                f"{self.path}` again"
            )
        return file

    def _verified(self, file: Path, read: Callable[[Path], Content]) -> Content:
        return self._read(file, f"verify {self.path}", read)

    def _read(self, file: Path, command: str, read: Callable[[Path], Content]) -> Content:
        self.require(file, command)
        try:
            return read(file)
        except (ValueError, OSError) as error:
            why = str(error).removeprefix(f"{file}: ").removeprefix(f"{file} ")
            raise RunError(f"{file}: {why}; {self._step(file, command, 'again')}") from None

    def _step(self, file: Path, command: str, when: str) -> str:
        """What makes a file that is missing or damaged."""
        if file == self.history_file and self.weights_file.is_file():
            return "put a copy back: only a training in another folder makes it again"
        if file == self.weights_file and command == TRAIN and self.recipe_file.is_file():
            command = f"train {self.recipe_file} --out {self.path}"
        remove = "remove it and " if command == TRAIN and when == "again" else ""
        return f"{remove}run `unitmargin {command}` {when}"


def _comparable(recipe: Recipe) -> Recipe:
    return recipe.placeless().changed(training={"epochs": 1}, verify_samples=1)
