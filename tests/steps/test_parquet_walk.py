"""Images in Parquet files, from the hub's shards to answers about new rows."""

import json
import tomllib
from pathlib import Path

import pytest
from data.hub import hub_file
from data.tiny import photo
from tables import read_rows

from unitmargin.runs.certifier import open_certifier
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import parse_recipe
from unitmargin.runs.settings import read_settings
from unitmargin.steps.certify import certify_run
from unitmargin.steps.check import check_files
from unitmargin.steps.export import export
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.init import init_recipe
from unitmargin.steps.predict import predict
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify_run

NAMES = ("dog", "cat")

SHORT = ("training.epochs=1", "verify_samples=4", "model.hidden=[4]")


def walk(data: Path, place: Path) -> None:
    """The recipe that init proposes, with a shorter training of a smaller network."""
    recipe = parse_recipe(read_settings(SHORT, tomllib.loads(init_recipe(data, "animal"))))
    assert (recipe.data.name, recipe.data.label, recipe.data.resize) == ("images", "animal", 8)
    train_run(recipe, RunFolder(place))
    freeze_run(RunFolder(place))
    certify_run(RunFolder(place))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two data sets of the same photos, of several sizes: three shards, and one file."""
    base = tmp_path_factory.mktemp("hub")
    photos = [photo(n, (20 + n, 30 - n)) for n in range(12)]
    labels = [n % 2 for n in range(12)]
    for name, rows in (("train-00000-of-00002", slice(4)), ("train-00001-of-00002", slice(4, 8)),
                       ("validation-00000-of-00001", slice(8, 12))):  # fmt: skip
        given = photos[rows], labels[rows], NAMES
        hub_file(base / f"pets/data/{name}.parquet", *given, label="animal")
    hub_file(base / "pets.parquet", photos, labels, NAMES, label="animal")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNITMARGIN_CACHE", str(base / "cache"))
        patch.setattr("unitmargin.steps.init.RESIZED", 8)
        walk(base / "pets", base / "sharded")
        walk(base / "pets.parquet", base / "single")
    return base


@pytest.fixture(autouse=True)
def cache(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNITMARGIN_CACHE", str(base / "cache"))


def test_shards_give_train_and_test_samples_and_one_file_is_split(base: Path) -> None:
    for run, train, test, split in (("sharded", 8, 4, False), ("single", 10, 2, True)):
        dataset = RunFolder(base / run).dataset()
        assert (len(dataset.train), len(dataset.test)) == (train, test)
        assert dataset.classes == NAMES
        assert (base / run / "split.json").is_file() == split
        rows = read_rows(base / run / "certificates.csv")
        assert {row["label_name"] for row in rows} == set(NAMES)
    assert verify_run(RunFolder(base / "sharded"))[1]


def test_new_rows_are_answered_by_run_model_file_and_exported_file(
    base: Path, tmp_path: Path
) -> None:
    run = RunFolder(base / "sharded")
    certify_run(run, inputs=True, data=base / "pets.parquet", out=tmp_path)
    rows = read_rows(tmp_path / "certificates.csv")
    assert [row["source"] for row in rows] == [f"row {number}" for number in range(1, 13)]
    assert [row["label_name"] for row in rows] == [NAMES[number % 2] for number in range(12)]
    for own, row in zip(read_rows(run.certificates_file), rows[8:], strict=True):
        assert (own["label"], own["radius"]) == (row["label"], row["radius"])
    message, confirmed = check_files(tmp_path, run.model_file)
    assert confirmed, message
    for place in (run.path, run.model_file):
        lines = [*predict(open_certifier(place), base / "pets.parquet", as_json=True)]
        assert [json.loads(line)["radius"] for line in lines] == [
            float(row["radius"]) for row in rows
        ]
    export(run.path, tmp_path / "model.onnx")
    small = hub_file(tmp_path / "small.parquet", [photo(1, (8, 8))], image="scan")
    for place in (run.model_file, tmp_path / "model.onnx"):
        _, line = predict(open_certifier(place), small)
        assert line.startswith("row 1 ")


@pytest.mark.parametrize(("run", "data"), [("sharded", "pets"), ("single", "pets.parquet")])
def test_the_data_set_in_its_place_is_no_new_inputs(base: Path, run: str, data: str) -> None:
    folder = RunFolder(base / run)
    before = folder.certificates_file.read_bytes()
    count = len(before.splitlines()) - 1
    assert certify_run(folder, data=base / data).startswith(f"certify: {count} samples, ")
    assert folder.certificates_file.read_bytes() == before
