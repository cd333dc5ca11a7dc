"""The report step: three files that agree with the run folder and stand alone."""

import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tables import read_rows, write_rows

from unitmargin import __version__
from unitmargin.certificates.accuracy import EPSILONS
from unitmargin.certificates.epsilons import choose_epsilons
from unitmargin.foundation.files import file_sha256
from unitmargin.reporting import wording
from unitmargin.reporting.origin import written_on
from unitmargin.reporting.statistics import interval
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe, write_recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.report import report_run
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify_run
from unitmargin.training.options import TrainingOptions

REFERENCES = ("src", "href", "data", "action", "poster", "srcset")


class Page(HTMLParser):
    """What a page refers to, which elements and ids it has, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.alternatives: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = {name: value or "" for name, value in attrs}
        self.references += [named[name] for name in REFERENCES if name in named]
        self.ids += [named["id"]] if "id" in named else []
        self.alternatives += [named["alt"]] if tag == "img" else []
        self.alternatives += [named["aria-label"]] if tag == "svg" else []

    def handle_data(self, data: str) -> None:
        self.text += data


def finished_run(path: Path, recipe: Recipe) -> RunFolder:
    folder = RunFolder(path)
    train_run(recipe, folder)
    freeze_run(folder)
    certify_run(folder)
    verify_run(folder)
    report_run(folder)
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    recipe = Recipe(
        name="tiny digits",
        data=DataOptions(name="digits", limit=200),
        model=ModelOptions(name="dense_ugnn", options={"hidden": [32, 16]}),
        training=TrainingOptions(epochs=4, batch_size=50, learning_rate=1e-2),
        verify_samples=40,
    )
    return finished_run(tmp_path_factory.mktemp("digits"), recipe)


@pytest.fixture(scope="module")
def moons(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    recipe = Recipe(
        name="moons",
        data=DataOptions(name="moons", limit=100),
        model=ModelOptions(
            name="dense_ugnn",
            normalization="scalar",
            options={"hidden": [2, 2], "activation": "abs"},
        ),
        training=TrainingOptions(epochs=1, batch_size=50),
        verify_samples=20,
    )
    return finished_run(tmp_path_factory.mktemp("moons"), recipe)


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Lower bounds behind a normalisation, of images that are no pixels."""
    data = tmp_path_factory.mktemp("data") / "images.npz"
    random = np.random.default_rng(0)
    images, labels = random.uniform(-4.0, 60.0, (80, 1, 4, 4)), np.arange(80) % 2
    images[labels == 1, :, :2] += 32.0
    np.savez(data, x_train=images[:40], y_train=labels[:40], x_test=images[40:], y_test=labels[40:])
    recipe = Recipe(
        name="bounded",
        data=DataOptions(name="npz", path=str(data)),
        model=ModelOptions(
            name="dense_ugnn", normalization="scalar", options={"hidden": [8, 4], "head": "lln"}
        ),
        training=TrainingOptions(epochs=1, batch_size=20),
        verify_samples=10,
    )
    return finished_run(tmp_path_factory.mktemp("bounded"), recipe)


def contents(folder: RunFolder) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(folder.report_json.read_text())
    return content


def test_numbers_agree_with_the_certificates(digits: RunFolder) -> None:
    report, rows = contents(digits), read_rows(digits.certificates_file)
    right = [float(row["radius"]) for row in rows if row["label"] == row["predicted"]]
    assert report["samples"] == len(rows) == 200
    assert report["clean_accuracy"] == pytest.approx(len(right) / len(rows), abs=1e-15)
    assert list(report["certified_accuracy"]) == [str(epsilon) for epsilon in EPSILONS]
    assert report["certified_accuracy"]["0.25"] > 0.0
    for key, share in report["certified_accuracy"].items():
        above = sum(radius > float(key) for radius in right)
        assert share == pytest.approx(above / len(rows), abs=1e-15)
    assert report["mean_certified_radius"] == pytest.approx(sum(right) / len(right))
    middle = torch.tensor(right, dtype=torch.float64).quantile(0.5)
    assert report["median_certified_radius"] == pytest.approx(float(middle))


def test_numbers_agree_with_history_checks_and_model(digits: RunFolder) -> None:
    report = contents(digits)
    history, checks = digits.history(), json.loads(digits.checks_file.read_text())["checks"]
    values = {check["name"]: check["value"] for check in checks}
    assert report["unit_gradient_error"] == values["unit_gradient"]
    assert report["upd_error"] == values["upd"]
    assert report["orthogonality_error"] == values["orthogonality"]
    assert report["checks"] == checks
    assert report["passed"] == all(check["passed"] for check in checks)
    assert report["verified_samples"] == 40
    assert report["epochs"] == len(history) == 4
    assert report["seconds_total"] == pytest.approx(sum(record.seconds for record in history))
    assert report["seconds_per_epoch"] == pytest.approx(report["seconds_total"] / 4)
    assert report["parameters"] == sum(
        tensor.numel() for tensor in digits.frozen().state_dict().values()
    )
    assert report["torch"] == torch.__version__
    assert report["hardware"]
    assert (report["name"], report["model"], report["dataset"], report["classes"]) == (
        "tiny digits",
        "dense_ugnn",
        "digits",
        10,
    )


def test_coverage_agrees_with_the_certificates(digits: RunFolder) -> None:
    report, rows = contents(digits), read_rows(digits.certificates_file)
    table, curve = report["coverage"], report["coverage_curve"]
    assert [row["threshold"] for row in table] == list(EPSILONS)
    assert 0 < table[0]["wrong"] < table[0]["accepted"]
    found = [(row["threshold"], row["accepted"], row["wrong"]) for row in table]
    found += zip(curve["threshold"], curve["accepted"], curve["wrong"], strict=True)
    for threshold, accepted, wrong in found:
        left = [row for row in rows if float(row["radius"]) > threshold]
        assert accepted == len(left)
        assert wrong == sum(row["label"] != row["predicted"] for row in left)
    page, markdown = Page(digits.report_html.read_text()).text, digits.report_md.read_text()
    for row in table:
        for text in (page, markdown):
            assert f"{row['wrong']} of {row['accepted']}" in text
            assert f"{row['coverage']:.2%}" in text


def test_thresholds_to_choose_are_counted_again(digits: RunFolder) -> None:
    report, rows = contents(digits), read_rows(digits.certificates_file)
    assert report["choices"]
    page, markdown = Page(digits.report_html.read_text()).text, digits.report_md.read_text()
    for choice in report["choices"]:
        if choice["threshold"] is None:
            continue
        left = [row for row in rows if float(row["radius"]) > choice["threshold"]]
        wrong = sum(row["label"] != row["predicted"] for row in left)
        assert (choice["accepted"], choice["wrong"]) == (len(left), wrong)
        assert 1.0 - wrong / len(left) >= choice["target"]
        for text in (page, markdown):
            assert f"{choice['threshold']:g}" in text
            assert interval(choice["interval"]) in text


def test_classes_agree_with_the_certificates(digits: RunFolder) -> None:
    report, rows = contents(digits), read_rows(digits.certificates_file)
    pairs = Counter((int(row["label"]), int(row["predicted"])) for row in rows)
    assert report["confusion"] == [[pairs[i, j] for j in range(10)] for i in range(10)]
    for number, row in enumerate(report["by_class"]):
        right = [float(one["radius"]) for one in rows
                 if one["label"] == one["predicted"] == str(number)]  # fmt: skip
        assert row["right"] == len(right) == pairs[number, number]
        assert row["certified"] * row["samples"] == pytest.approx(sum(r > 36 / 255 for r in right))
    wrong = [float(row["radius"]) for row in rows if row["label"] != row["predicted"]]
    mistakes = [row["radius"] for row in report["sure_mistakes"]]
    assert mistakes == sorted((length for length in wrong if length > 0), reverse=True)[:8]
    for text in (Page(digits.report_html.read_text()).text, digits.report_md.read_text()):
        assert "A wrong prediction with a large radius is wrong all over its ball" in text
        assert "Confusion matrix" in text


def test_the_report_says_where_it_comes_from(digits: RunFolder) -> None:
    origin, data = contents(digits)["provenance"], digits.origin().identity.data
    assert origin["model_sha256"] == file_sha256(digits.model_file)
    assert origin["certificates_sha256"] == file_sha256(digits.certificates_file)
    assert (origin["train_sha256"], origin["test_sha256"]) == (data.train_sha256, data.test_sha256)
    assert (origin["version"], origin["date"]) == (__version__, written_on())
    for text in (Page(digits.report_html.read_text()).text, digits.report_md.read_text()):
        for value in origin.values():
            assert value in text


def test_radii_of_other_units_are_round_and_not_the_fields(
    digits: RunFolder, moons: RunFolder
) -> None:
    found = choose_epsilons(moons.certificates().radius, pixels=False)
    report = contents(moons)
    assert list(report["certified_accuracy"]) == [str(epsilon) for epsilon in found.table]
    assert report["headline_epsilon"] == found.headline
    for text in (moons.report_html.read_text(), moons.report_md.read_text(), certify_run(moons)):
        assert "/255" not in text
    assert f"certified@{found.headline:g} " in certify_run(moons)
    assert "certified@36/255 " in certify_run(digits)


def test_tables_that_scroll_have_a_name_and_the_keyboard(digits: RunFolder) -> None:
    html = digits.report_html.read_text()
    scrolling = re.findall(r'<div class="card scroll[^"]*"([^>]*)>', html)
    assert len(scrolling) == html.count("card scroll") > 5
    for attributes in scrolling:
        assert 'tabindex="0" role="region" aria-label="' in attributes
    names = re.findall(r'role="region" aria-label="([^"]*)"', html)
    assert len(set(names)) == len(names)


def test_every_picture_has_a_title(digits: RunFolder, moons: RunFolder) -> None:
    for folder in (digits, moons):
        html = re.sub(r"\s+", " ", folder.report_html.read_text())
        pictures = html.count('role="img"')
        assert len(re.findall(r"<h3>[^<]+(?:<sup>[^<]*</sup>)?[^<]*</h3> ?<svg", html)) == pictures


def test_the_report_says_of_which_model_it_is_and_not_where_its_data_lie(
    digits: RunFolder, tmp_path: Path
) -> None:
    folder = copied(digits, tmp_path)
    assert contents(folder)["model_sha256"] == file_sha256(folder.model_file)
    recipe = folder.recipe().changed(data={"path": "/home/somebody/secret"})
    folder.recipe_file.write_text(write_recipe(recipe))
    report_run(folder)
    for file in (folder.report_html, folder.report_md, folder.report_json):
        assert "somebody" not in file.read_text()


def test_input_space_is_named(digits: RunFolder, moons: RunFolder) -> None:
    for folder, space in ((digits, "pixels in [0, 1]"), (moons, "the data's own units")):
        assert contents(folder)["input_space"] == space
        assert space in Page(folder.report_html.read_text()).text
        assert space in folder.report_md.read_text()


def test_attack_lands_outside_the_radius_and_close(digits: RunFolder) -> None:
    report = contents(digits)
    assert report["attacked_samples"] == 128
    assert report["flipped_share"] > 0.9
    assert 1.0 - 1e-9 < report["median_distance_ratio"] < 1.5


def test_distances_agree_with_the_solvers(digits: RunFolder) -> None:
    report, rows = contents(digits), read_rows(digits.solvers_file)
    assert [row["box"] for row in report["solvers"]] == ["none", "[0, 1]"]
    page, markdown = Page(digits.report_html.read_text()).text, digits.report_md.read_text()
    for row in report["solvers"]:
        mine = [other for other in rows if other["box"] == row["box"]]
        ratios = [
            float(other["radius"]) / float(other["distance"])
            for other in mine
            if other["status"] == "found"
        ]
        assert (row["solver"], row["samples"], row["n"]) == ("sphere_tracing", 40, len(ratios))
        assert row["mean"] == pytest.approx(sum(ratios) / len(ratios))
        assert row["smallest"] == pytest.approx(min(ratios))
        for text in (page, markdown):
            assert f"{row['mean']:.3f} ± {row['spread']:.3f}" in text
            assert f"{row['n']} of {row['right']}" in text
    for text in (page, markdown):
        assert "which is the precision of the verdict “not certified”" in text
        assert "recall" not in text
    assert len(report["false_positives"]) == 2 * (len(EPSILONS) - 1)


def test_gallery_shows_right_and_wrong_with_points_outside_the_radius(digits: RunFolder) -> None:
    gallery, rows = contents(digits)["gallery"], read_rows(digits.certificates_file)
    assert len(gallery) == 8
    assert [row["why"] for row in gallery].count("wrong") == 1
    assert len({row["index"] for row in gallery}) == 8
    for row in gallery:
        stored = rows[row["index"]]
        assert (row["label"], row["predicted"]) == (stored["label"], stored["predicted"])
        assert row["radius"] == float(stored["radius"])
        assert row["adversarial"] != row["predicted"]
        assert row["distance"] is None or row["distance"] >= row["radius"] * (1.0 - 1e-9)
    right = [row["radius"] for row in gallery if row["why"] != "wrong"]
    assert right == sorted(right, reverse=True)


@pytest.mark.parametrize("name", ["digits", "moons"])
def test_page_stands_alone(name: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(name).report_html.read_text()
    page = Page(html)
    outside = [item for item in page.references if not item.startswith(("#", "data:image/png;"))]
    assert outside == []
    assert "http:" not in html
    assert "https:" not in html
    assert "@import" not in html
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert len(page.ids) == len(set(page.ids))
    targets = {item[1:] for item in page.references if item.startswith("#")}
    assert targets <= set(page.ids)
    assert all(page.alternatives)


@pytest.mark.parametrize("name", ["digits", "moons"])
def test_no_file_holds_a_number_that_is_none(name: str, request: pytest.FixtureRequest) -> None:
    folder: RunFolder = request.getfixturevalue(name)
    for text in (folder.report_md.read_text(), Page(folder.report_html.read_text()).text):
        assert "nan" not in text.lower().split()
        assert "inf" not in text.lower().split()
    json.loads(folder.report_json.read_text(), parse_constant=pytest.fail)


def test_page_and_markdown_show_the_same_numbers(digits: RunFolder) -> None:
    report, page = contents(digits), Page(digits.report_html.read_text())
    markdown = digits.report_md.read_text()
    for text in (page.text, markdown):
        for share in report["certified_accuracy"].values():
            assert f"{share:.2%}" in text
        assert "36/255" in text
        assert 'name = "tiny digits"' in text
        for row in (*report["gallery"], *report["sure_mistakes"]):
            assert wording.radius(row["radius"]) in text
    for row in report["gallery"]:
        assert f"certified radius {wording.radius(row['radius'])}" in page.text
    assert page.tags.count("img") == 3 * 8
    assert page.tags.count("svg") == 9
    assert "All 6 checks passed" in page.text


def test_lower_bounds_are_no_distances_and_other_units_are_no_pixels(
    bounded: RunFolder, digits: RunFolder
) -> None:
    page = Page(bounded.report_html.read_text()).text
    assert "Gradients have at most the constant of their pair" in page
    assert "none exceeds the constant of its pair of classes" in page
    assert "a margin is a distance" not in page
    assert "What remains is the rounding" not in page
    assert "of the promised 1" not in bounded.report_html.read_text()
    low, high = bounded.measurements().input_range
    assert (low < 0.0, high > 80.0) == (True, True)
    assert f"Pixels are shown clipped to [{low:g}, {high:g}]" in page
    page = Page(digits.report_html.read_text()).text
    assert "Pixels are shown clipped to [0, 1]" in page
    assert "What remains is the rounding of the float32 weights" in page


def test_points_of_the_plane_get_regions_and_no_images(moons: RunFolder) -> None:
    page = Page(moons.report_html.read_text())
    assert page.tags.count("img") == 0
    assert page.tags.count("svg") == 10
    assert "Decision regions" in page.text
    assert any("Decision regions of 2 classes" in text for text in page.alternatives)
    assert contents(moons)["input_scale"] != 1.0


def copied(folder: RunFolder, path: Path) -> RunFolder:
    shutil.copytree(folder.path, path / "run")
    return RunFolder(path / "run")


def test_a_failed_check_is_shown_with_its_detail(digits: RunFolder, tmp_path: Path) -> None:
    folder = copied(digits, tmp_path)
    content = json.loads(folder.checks_file.read_text())
    broken = {"passed": False, "value": None, "detail": "sample <7> is broken"}
    content["checks"][-1] |= broken
    content["passed"] = False
    folder.checks_file.write_text(json.dumps(content))
    report_run(folder)
    html = folder.report_html.read_text()
    assert "1 of 6 checks failed" in html
    assert "sample &lt;7&gt; is broken" in html
    assert "FAILED" in folder.report_md.read_text()
    assert contents(folder)["passed"] is False
    assert contents(folder)["checks"][-1]["value"] is None


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("history.csv", "put a copy back: only a training in another folder"),
        ("model.safetensors", "unitmargin freeze"),
        ("certificates.csv", "unitmargin certify"),
        ("checks.json", "unitmargin verify"),
        ("solvers.csv", "unitmargin verify"),
        ("measurements.safetensors", "unitmargin verify"),
    ],
)
def test_missing_file_names_the_command(
    file: str, command: str, digits: RunFolder, tmp_path: Path
) -> None:
    folder = copied(digits, tmp_path)
    before = folder.report_html.read_bytes()
    (folder.path / file).unlink()
    with pytest.raises(RunError, match=command):
        report_run(folder)
    assert folder.report_html.read_bytes() == before


def test_certificates_of_other_data_are_refused(digits: RunFolder, tmp_path: Path) -> None:
    folder = copied(digits, tmp_path)
    lines = folder.certificates_file.read_text().splitlines()
    folder.certificates_file.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(RunError, match=r"certify .* again"):
        report_run(folder)


@pytest.mark.parametrize(("column", "text"), [("radius", "0.5"), ("label", "9"), ("index", "999")])
def test_searches_of_another_model_are_refused(
    column: str, text: str, digits: RunFolder, tmp_path: Path
) -> None:
    folder = copied(digits, tmp_path)
    rows = read_rows(folder.solvers_file)
    rows[0][column] = text
    write_rows(folder.solvers_file, rows)
    with pytest.raises(RunError, match=r"must hold labels and radii of .* verify .* again"):
        report_run(folder)


@pytest.mark.parametrize("text", ["{}", "not JSON", '{"checks": [], "samples": 1}'])
def test_damaged_checks_are_refused(text: str, digits: RunFolder, tmp_path: Path) -> None:
    folder = copied(digits, tmp_path)
    folder.checks_file.write_text(text)
    with pytest.raises(RunError, match=r"verify .* again"):
        report_run(folder)
