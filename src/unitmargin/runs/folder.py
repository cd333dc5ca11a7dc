"""The run folder: the path of each file, and the step that writes it."""

from pathlib import Path

from unitmargin.data import Dataset
from unitmargin.foundation.files import write_text
from unitmargin.foundation.tables import read_csv
from unitmargin.frozen import FrozenNetwork, load
from unitmargin.runs.opening import open_dataset
from unitmargin.runs.recipe import Recipe, read_recipe, write_recipe


class RunError(RuntimeError):
    """A step that cannot run yet, with the command that must come first."""


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
