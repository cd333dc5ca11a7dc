"""The compare step: one page of several runs that stands alone and agrees with their reports."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from compared import made_run, verify_made

import unitmargin as um
from unitmargin.cli import main
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.compare import compare_runs
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.report import report_run
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify_run
from unitmargin.training.options import TrainingOptions


class Page(HTMLParser):
    """What a page refers to, which ids it has, its tables row by row, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = {name: value or "" for name, value in attrs}
        self.references += [named[name] for name in ("src", "href", "srcset") if name in named]
        self.ids += [named["id"]] if "id" in named else []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_cell:
            self.rows[-1][-1] += data.strip()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunFolder]:
    path = tmp_path_factory.mktemp("runs")
    folders = []
    for seed in (0, 1):
        recipe = Recipe(
            name=f"seed {seed}",
            data=DataOptions(name="digits", limit=100),
            model=ModelOptions(name="dense_ugnn", options={"hidden": [16]}),
            training=TrainingOptions(epochs=3, batch_size=50, learning_rate=1e-2, seed=seed),
            verify_samples=8,
        )
        folder = RunFolder(path / str(seed))
        train_run(recipe, folder)
        freeze_run(folder)
        certify_run(folder)
        verify_run(folder)
        report_run(folder)
        folders.append(folder)
    return folders


def test_numbers_agree_with_the_reports(runs: list[RunFolder], tmp_path: Path) -> None:
    out = tmp_path / "pages" / "compare.html"
    message = compare_runs(runs, out)
    assert message.startswith("compare: 2 runs, best certified@36/255 0.")
    assert message.endswith(f" -> {out}")
    page = Page(out.read_text())
    rows = {row[0]: row[1:] for row in page.rows if row}
    reports = [json.loads(run.report_json.read_text()) for run in runs]
    assert rows["Clean accuracy"] == [f"{one['clean_accuracy']:.2%}" for one in reports]
    for name, key in (("36/255", str(36 / 255)), ("0.5", "0.5")):
        shares = [f"{one['certified_accuracy'][key]:.2%}" for one in reports]
        assert rows[f"Certified at {name}"] == shares
    assert rows["Stored numbers"] == [f"{one['parameters']:,}" for one in reports]
    assert rows["training.seed"] == ["0", "1"]
    assert not [name for name in rows if name.startswith(("training.e", "data.", "model."))]
    ratios = [
        f"{one['solvers'][0]['mean']:.3f} ± {one['solvers'][0]['spread']:.3f}" for one in reports
    ]
    for cell, ratio in zip(
        rows["Radius / distance, sphere tracing without box"], ratios, strict=True
    ):
        assert cell.startswith(ratio)
    clean = reports[1]["clean_accuracy"] - reports[0]["clean_accuracy"]
    kind, first, *_ = rows["seed 1"]
    assert kind == "paired"
    assert first.replace("−", "-").startswith(f"{100 * clean:+.2f}" if clean else "0.00")
    assert page.tags.count("figure") == 3


def test_the_page_stands_alone(runs: list[RunFolder], tmp_path: Path) -> None:
    out = um.compare([run.path for run in runs], tmp_path / "compare.html")
    html = out.read_text()
    page = Page(html)
    assert [item for item in page.references if not item.startswith("#")] == []
    for words in ("http:", "https:", "@import", str(tmp_path), str(runs[0].path)):
        assert words not in html
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert len(page.ids) == len(set(page.ids))
    with pytest.raises(SystemExit) as status:
        main(["compare", *(str(run.path) for run in runs), "--out", str(out)])
    assert status.value.code == 0
    assert out.read_text() == html


def test_hostile_names_are_text(tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>".replace("/", "|"), "$a_b$ & \"c\" 'd'", "x" * 200]
    folders = [
        made_run(tmp_path / str(number), [0.5, 1.0, -0.5], name)
        for number, name in enumerate(names)
    ]
    page = Page(um.compare([one.path for one in folders], tmp_path / "page.html").read_text())
    assert "script" not in page.tags
    for name in names:
        assert name in page.text


def test_ten_runs_without_some_files_are_shown(tmp_path: Path) -> None:
    folders = [
        made_run(tmp_path / str(number), [0.1 * number, 1.0, 2.0, -0.5], epochs=number % 3)
        for number in range(10)
    ]
    verify_made(folders[4], [1.0, 1.5, 3.0, 0.0])
    page = Page(um.compare([one.path for one in folders], tmp_path / "page.html").read_text())
    rows = {row[0]: row[1:] for row in page.rows if row}
    assert len(rows["Checks"]) == 10
    assert rows["Checks"].count("not verified") == 9
    assert rows["Training"].count("no history") == 4
    assert "No history: made (" in page.text
    assert "nan" not in page.text.lower().split()


def test_one_run_is_shown_alone(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "only", [0.5, 0.25])
    page = Page(um.compare([folder.path], tmp_path / "page.html").read_text())
    assert "One run: nothing to compare it with." in page.text
    assert "Differences from" not in page.text


def test_what_is_refused_writes_nothing(tmp_path: Path) -> None:
    folders = [made_run(tmp_path / "a", [0.5]), made_run(tmp_path / "b", [0.5], width=3)]
    out = tmp_path / "page.html"
    with pytest.raises(ValueError, match="must have inputs of shape"):
        um.compare([one.path for one in folders], out)
    assert not out.exists()
    (folders[0].path / "recipe.toml").touch()
    with pytest.raises(ValueError, match="out must be no page of a run itself"):
        um.compare([folders[0].path], folders[0].path / "report.html")
