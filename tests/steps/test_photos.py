"""From a folder of photos to a certified report, and what later verbs make of a changed folder."""

import json
import shutil
from pathlib import Path

import pytest
from data.tiny import photo, png, write_folder, zip_bytes
from tables import read_rows

from unitmargin.foundation.files import file_sha256
from unitmargin.foundation.tensors import read_tensors, write_tensors
from unitmargin.frozen import load
from unitmargin.runs.certifier import open_certifier
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe, write_recipe
from unitmargin.steps.certify import certify_run
from unitmargin.steps.export import export
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.predict import predict
from unitmargin.steps.run import run_recipe
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify_run
from unitmargin.training.options import TrainingOptions

KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of photos, and a run of it from data to report."""
    base = tmp_path_factory.mktemp("photos")
    files = {
        f"{label}/{number}.{kind.lower()}": photo(shift + number, (20 + number, 30 - number), kind)
        for label, shift in (("cat", 0), ("dog", 40))
        for number in range(10)
        for kind in [KINDS[number % 5]]
    }
    write_folder(base / "photos", files)
    (base / "photos.zip").write_bytes(zip_bytes({f"top/{name}": b for name, b in files.items()}))
    recipe = Recipe(
        name="photos",
        data=DataOptions(name="images", path=str(base / "photos"), resize=8, test_share=0.3),
        model=ModelOptions(name="dense_ugnn", options={"hidden": [4]}),
        training=TrainingOptions(epochs=2, batch_size=8),
        verify_samples=6,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNITMARGIN_CACHE", str(base / "cache"))
        assert run_recipe(recipe, RunFolder(base / "run"))
    return base


@pytest.fixture
def base(walked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of both; the data set of the run lies in the copy."""
    shutil.copytree(walked, tmp_path, dirs_exist_ok=True)
    recipe = tmp_path / "run/recipe.toml"
    recipe.write_text(recipe.read_text().replace(str(walked), str(tmp_path)))
    monkeypatch.setenv("UNITMARGIN_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_run_keeps_the_split_of_its_photos(base: Path) -> None:
    split = json.loads((base / "run/split.json").read_text())
    assert [len(split[side]) for side in ("train", "test")] == [14, 6]
    for image in split["train"] + split["test"]:
        assert image["sha256"] == file_sha256(base / "photos" / image["label"] / image["file"])


def test_photos_that_were_added_are_left_out(base: Path) -> None:
    run = RunFolder(base / "run")
    before = run.certificates_file.read_bytes()
    write_folder(base / "photos", {"cat/new.png": photo(9, (33, 44)), "cow/1.png": png()})
    certify_run(run)
    assert run.certificates_file.read_bytes() == before
    assert verify_run(run)[1]
    assert train_run(run.recipe(), run).endswith("is already there")
    write_folder(base / "photos", {"cow/2.png": png(9)})
    train_run(run.recipe(), RunFolder(base / "other"))
    assert len(json.loads((base / "other/split.json").read_text())["classes"]) == 3


def test_a_photo_that_is_gone_is_named(base: Path) -> None:
    (base / "photos/dog/3.gif").unlink()
    with pytest.raises(ValueError, match=r"got no dog/3.gif with the content that it had; put it"):
        certify_run(RunFolder(base / "run"))


def test_the_data_set_is_known_in_another_place(base: Path) -> None:
    run = RunFolder(base / "run")
    before = run.certificates_file.read_bytes()
    for place in ("photos", "photos.zip"):
        run.certificates_file.unlink()
        certify_run(run, data=base / place)
        assert run.certificates_file.read_bytes() == before


def test_new_photos_are_resized_as_those_of_the_training(base: Path) -> None:
    split = json.loads((base / "run/split.json").read_text())
    files = [Path(image["label"], image["file"]) for image in split["test"]]
    for file in files:
        (base / "new" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(base / "photos" / file, base / "new" / file)
    certify_run(RunFolder(base / "run"), data=base / "new")
    new = read_rows(base / "run/certified-new/certificates.csv")
    own = read_rows(base / "run/certificates.csv")
    assert [row["source"] for row in new] == list(map(str, files))
    for column in ("label", "predicted", "radius"):
        assert [row[column] for row in new] == [row[column] for row in own]
    export(base / "run", base / "model.onnx")
    for place in ("run", "run/model.safetensors", "model.onnx"):
        lines = list(predict(open_certifier(base / place), base / "new", as_json=True))
        radii = [float(row["radius"]) for row in own]
        assert [json.loads(line)["radius"] for line in lines] == pytest.approx(radii, abs=1e-9)


@pytest.mark.parametrize("edited", [{"resize": 16}, {"resize": None}, {"channels": 1}])
def test_weights_are_frozen_with_the_images_that_they_were_trained_on(
    base: Path, edited: dict[str, int | None]
) -> None:
    run, before = RunFolder(base / "run"), (base / "run/model.safetensors").read_bytes()
    recipe = run.recipe()
    run.recipe_file.write_text(write_recipe(recipe.changed(data=edited)))
    with pytest.raises(ValueError, match="trained on images prepared with resize = 8, not "):
        freeze_run(run)
    run.recipe_file.write_text(write_recipe(recipe))
    freeze_run(run)
    assert run.model_file.read_bytes() == before


def test_weights_of_before_are_frozen_with_the_images_of_the_recipe(base: Path) -> None:
    run = RunFolder(base / "run")
    tensors, header = read_tensors(run.weights_file)
    origin = json.loads(header["origin"])
    assert origin.pop("images") == {"resize": 8}
    write_tensors(run.weights_file, tensors, header | {"origin": json.dumps(origin)})
    facts = load(run.model_file).facts
    freeze_run(run)
    found = load(run.model_file).facts
    assert found["images"] == {"resize": 8}
    assert found == facts | {"weights_sha256": file_sha256(run.weights_file)}


@pytest.mark.parametrize("content", ["", "[]", '{"classes": []}', "{" * 9])
def test_a_damaged_split_is_refused(base: Path, content: str) -> None:
    (base / "run/split.json").write_text(content)
    run = RunFolder(base / "run")
    before = run.certificates_file.read_bytes()
    with pytest.raises(RunError, match=r"split.json: .*; remove it, and the same images give"):
        certify_run(run)
    run.split_file.unlink()
    certify_run(run)
    assert run.certificates_file.read_bytes() == before
