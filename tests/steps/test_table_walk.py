"""A table from recipe to shipped network: radii in units that are said wherever they are shown."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from unitmargin.data import Samples
from unitmargin.frozen import load
from unitmargin.guard import Answer, Guard
from unitmargin.runs.certifier import open_certifier
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import parse_recipe
from unitmargin.steps.certify import certify_model, certify_run
from unitmargin.steps.check import check_files
from unitmargin.steps.export import export
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.predict import predict
from unitmargin.steps.run import run_recipe
from unitmargin.steps.train import train_run

UNITS = "standard deviations of the training rows"


def recipe(path: Path, **data: Any) -> Any:
    return parse_recipe(
        {
            "name": "table",
            "verify_samples": 60,
            "data": {"path": str(path), "scale": "features", **data},
            "model": {
                "name": "dense_ugnn",
                "activation": "abs",
                "linear": "manifold",
                "head": "manifold",
                "hidden": [30] * 4,
            },
            "training": {
                "epochs": 20,
                "batch_size": 32,
                "learning_rate": 5e-3,
                "offset": 0.5,
                "evaluate_every": 20,
            },
        }
    )


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """The breast-cancer table, with the names of its classes."""
    bunch = load_breast_cancer(as_frame=True)
    names = bunch.target.map(dict(enumerate(bunch.target_names)))
    return bunch.data.assign(diagnosis=names)


@pytest.fixture(scope="module")
def run(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFolder]:
    place = tmp_path_factory.mktemp("cancer")
    frame.to_csv(place / "cancer.csv", index=False)
    folder = RunFolder(place / "run")
    assert run_recipe(recipe(place / "cancer.csv", label="diagnosis"), folder)
    return folder


def test_the_breast_cancer_table_is_learnt_and_its_certificates_are_tight(run: RunFolder) -> None:
    assert run.certificates().certified_accuracy(0.0) >= 0.95
    (search,) = run.searches()
    assert int(search.found.sum()) >= 0.95 * len(search.found)
    ratios = (search.radius / search.distance)[search.found]
    assert float(ratios.mean()) >= 0.95


def test_every_place_that_shows_radii_says_their_units(run: RunFolder, tmp_path: Path) -> None:
    assert json.loads(run.certificate_facts_file.read_text())["units"] == f"l2 distance in {UNITS}"
    assert f"is an l2 distance in {UNITS}" in run.report_md.read_text()
    assert UNITS in run.report_html.read_text()
    assert json.loads(run.report_json.read_text())["input_space"] == UNITS
    assert f"radii in {UNITS}" in certify_run(run)
    export(run.path, tmp_path / "shipped")
    card = (tmp_path / "shipped/README.md").read_text()
    assert f"Radii are l2 distances in {UNITS};" in card
    assert "unitmargin predict model.safetensors --data new.csv" in card


def test_names_of_columns_are_text_wherever_units_are_said(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    names, place = ["<b>size", "*depth*", "diagnosis"], tmp_path / "marked.csv"
    frame.iloc[::5, [0, 1, -1]].set_axis(names, axis=1).to_csv(place, index=False)
    units = {"<b>size": 2.0, "*depth*": 4.0}
    given = recipe(place, label="diagnosis", scale="units", units=units)
    folder = RunFolder(tmp_path / "marked")
    flat = given.model.options | {"hidden": [2]}
    small = given.changed(verify_samples=8, model={"options": flat}, training={"epochs": 1})
    assert run_recipe(small, folder)
    export(folder.path, tmp_path / "shipped")
    text = r"unit lengths of the columns (\<b\>size = 2, \*depth\* = 4)"
    for page in (folder.report_md, tmp_path / "shipped/README.md"):
        assert f"l2 distance in {text}" in page.read_text().replace("distances", "distance")
    html = folder.report_html.read_text()
    assert "<b>size" not in html
    assert "&lt;b&gt;size = 2, *depth* = 4" in html


def test_new_tables_are_read_in_the_units_of_the_file(
    run: RunFolder, frame: pd.DataFrame, tmp_path: Path
) -> None:
    samples: Samples = run.dataset().test
    truth = run.certificates()
    raw, turned = frame.drop(columns="diagnosis"), frame[frame.columns[::-1]]
    turned.to_csv(tmp_path / "turned.csv", index=False)
    raw.to_parquet(tmp_path / "raw.parquet")
    export(run.path, tmp_path / "model.onnx")
    found = {}
    for model in (run.path, run.model_file, tmp_path / "model.onnx"):
        for file in ("turned.csv", "raw.parquet"):
            lines = [*predict(open_certifier(model), tmp_path / file, as_json=True)]
            rows = [json.loads(line) for line in lines]
            assert {row["units"] for row in rows} == {UNITS}
            found[model, file] = np.array([row["radius"] for row in rows])
    first = found[run.path, "turned.csv"]
    assert len(first) == len(frame)
    for radii in found.values():
        assert np.allclose(radii, first, rtol=0, atol=1e-9)
    # Those of the test rows are among them, to the last bit of the inputs.
    for radius in truth.radius.tolist():
        assert np.abs(first - radius).min() <= 1e-12
    assert len(samples) == len(truth)
    *_, last = predict(open_certifier(run.path), tmp_path / "turned.csv")
    assert last == f"radii in {UNITS}"


def test_a_row_of_the_table_as_it_is_in_the_csv_is_answered_by_the_guard(
    run: RunFolder, frame: pd.DataFrame, tmp_path: Path
) -> None:
    frame.to_csv(tmp_path / "new.csv", index=False)
    export(run.path, tmp_path / "model.onnx")
    with (tmp_path / "new.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    for model in (run.model_file, tmp_path / "model.onnx"):
        guard = Guard(model, reject_below=0.1)
        lines = predict(open_certifier(model), tmp_path / "new.csv", as_json=True)
        truth = [json.loads(line)["radius"] for line in lines]
        for given in (rows, frame, frame.drop(columns="diagnosis").to_dict("records")):
            answers = guard(given)
            assert isinstance(answers, list)
            assert np.abs(np.array([a.radius for a in answers]) - truth).max() <= 1e-12
        answer = guard(rows[0])
        assert isinstance(answer, Answer)
        assert answer.name == answers[0].name
        assert abs(answer.radius - answers[0].radius) <= 1e-12
        assert {a.outcome for a in answers} == {"certified", "below_threshold"}
        assert np.mean([a.name == row["diagnosis"] for a, row in zip(answers, rows, strict=True)
                        if a]) >= 0.95  # fmt: skip


def test_certificates_of_new_rows_are_confirmed_by_the_checker(
    run: RunFolder, frame: pd.DataFrame, tmp_path: Path
) -> None:
    frame.tail(9).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "issued"
    line = certify_model(run.path, tmp_path / "new.csv", inputs=True, out=out)
    assert "9 new inputs, 9 with a radius, 9 labelled" in line
    assert line.count(UNITS) == 1
    facts = json.loads((out / "certificates.json").read_text())
    assert facts["units"] == f"l2 distance in {UNITS}"
    message, confirmed = check_files(out, run.model_file)
    assert confirmed, message


def test_the_table_in_another_place_is_the_data_set_of_the_run(
    run: RunFolder, frame: pd.DataFrame, tmp_path: Path
) -> None:
    moved = tmp_path / "moved.csv"
    frame.to_csv(moved, index=False)
    count = len(run.certificates())
    assert f"certify: {count} samples, " in certify_run(run, data=moved)
    frame.head(20).to_csv(moved, index=False)
    assert "certify: 20 new inputs, " in certify_run(run, data=moved, out=tmp_path / "out")


def test_a_fault_of_the_test_rows_is_no_reason_to_take_the_training_rows_for_new_ones(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    frame.head(80).to_csv(train, index=False)
    frame.tail(40).to_csv(test, index=False)
    given = recipe(train, label="diagnosis", test=str(test))
    folder = RunFolder(tmp_path / "run")
    train_run(given.changed(training={"epochs": 1}), folder)
    freeze_run(folder)
    assert "certify: 40 samples, " in certify_run(folder, data=train)
    lines = test.read_text().splitlines()
    for spoilt, message in (
        ([*lines, lines[-1]], "is of other test samples"),
        ([*lines, "x" + lines[-1]], "got 'x"),
    ):
        test.write_text("\n".join(spoilt) + "\n")
        with pytest.raises(ValueError, match=message):
            certify_run(folder, data=train)
    assert [*folder.path.glob("certified-*")] == []
    frame.head(79).to_csv(train, index=False)
    assert "certify: 79 new inputs, " in certify_run(folder, data=train)


def test_of_an_exported_folder_every_table_is_new(
    run: RunFolder, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """No share of its rows is drawn, and no certificate that was shipped is replaced."""
    out, other = tmp_path / "up", tmp_path / "other.csv"
    export(run.path, out)
    frame.tail(40).to_csv(other, index=False)
    before = (out / "certificates.csv").read_bytes()
    assert "certify: 40 new inputs, " in certify_run(RunFolder(out), data=other)
    assert (out / "certificates.csv").read_bytes() == before
    assert (out / "certified-other.csv" / "certificates.csv").is_file()


def test_a_file_with_another_encoding_is_refused(run: RunFolder, tmp_path: Path) -> None:
    from unitmargin.frozen import save

    frozen = load(run.model_file)
    frozen.facts["encoding"]["columns"].pop()
    save(frozen, tmp_path / "model.safetensors")
    (tmp_path / "new.csv").write_text("a\n1\n")
    certifier = open_certifier(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"encoding must give \(30,\) entries"):
        next(predict(certifier, tmp_path / "new.csv"))
