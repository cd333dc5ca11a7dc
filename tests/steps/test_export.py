"""Export: one file or a whole folder, and a card that says what the files say."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cards import read_card
from safetensors.torch import save_file
from tables import read_rows

from unitmargin.foundation.files import file_sha256
from unitmargin.foundation.tensors import read_tensors
from unitmargin.frozen import FrozenNetwork
from unitmargin.guard import OnnxModel
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe, read_recipe, write_recipe
from unitmargin.steps.certify import certify_model, certify_run
from unitmargin.steps.check import check_files
from unitmargin.steps.export import export
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.report import report_run
from unitmargin.steps.train import train_run
from unitmargin.steps.verify import verify_run
from unitmargin.training.options import TrainingOptions

ALWAYS = {"model.onnx", "model.safetensors", "README.md"}
WHOLE = ALWAYS | {
    "certificates.csv", "certificates.json", "report.html", "report.json", "recipe.toml",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    recipe = Recipe(
        name="tiny digits",
        data=DataOptions(name="digits", limit=60),
        model=ModelOptions(name="dense_ugnn", options={"hidden": [16]}),
        training=TrainingOptions(epochs=1, batch_size=32),
        verify_samples=20,
    )
    folder = RunFolder(tmp_path_factory.mktemp("digits") / "run")
    train_run(recipe, folder)
    freeze_run(folder)
    certify_run(folder, inputs=True)
    verify_run(folder)
    report_run(folder)
    return folder


@pytest.fixture
def run(finished: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy of the run that may be spoilt."""
    return RunFolder(shutil.copytree(finished.path, tmp_path / "run"))


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("name", ["model.onnx", "a.ONNX"])
@pytest.mark.parametrize("source", ["", "model.safetensors"])
def test_a_name_in_onnx_is_that_one_file(
    finished: RunFolder, tmp_path: Path, name: str, source: str
) -> None:
    out = tmp_path / "deep" / name
    message = export(finished.path / source, out)
    (written,) = contents(out.parent).values()
    assert message == f"export: {name}, SHA-256 {hashlib.sha256(written).hexdigest()} -> {out}"
    assert OnnxModel(out).model_sha256 == file_sha256(finished.model_file)


def test_the_graph_is_of_the_very_model_file_whatever_order_its_header_has(
    run: RunFolder, tmp_path: Path
) -> None:
    tensors, header = read_tensors(run.model_file)
    save_file(tensors, run.model_file, metadata=dict(reversed(header.items())))
    for out, graph in (("up", "up/model.onnx"), ("alone.onnx", "alone.onnx")):
        export(run.model_file, tmp_path / out)
        assert OnnxModel(tmp_path / graph).model_sha256 == file_sha256(run.model_file)


def test_a_folder_holds_the_run_and_a_card_of_it(finished: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "up"
    message = export(finished.path, out)
    written = contents(out)
    assert set(written) == WHOLE
    for name in WHOLE - {"model.onnx", "README.md", "recipe.toml"}:
        assert written[name] == (finished.path / name).read_bytes()
        assert name in message
    assert file_sha256(finished.model_file) in message
    assert message.endswith(f"-> {out}")
    table, text = read_card(written["README.md"].decode())
    for name in WHOLE - {"README.md"}:
        assert f"| {name} | `{hashlib.sha256(written[name]).hexdigest()}` |" in text
    assert table["pipeline_tag"] == "image-classification"
    assert "pixels in [0, 1]" in text
    (entry,) = table["model-index"]
    rows = read_rows(finished.certificates_file)
    for metric in entry["results"][0]["metrics"]:
        beyond = metric.get("args", {}).get("epsilon", -1.0)
        right = [row for row in rows if row["label"] == row["predicted"]]
        assert metric["value"] == sum(float(row["radius"]) > beyond for row in right) / len(rows)
    identity = finished.origin().identity
    solvers = json.loads(finished.checks_file.read_text())["solvers"]
    for words in (
        identity.data.train_sha256, identity.data.test_sha256, "Test samples: 60.", "seed 0",
        f"{solvers[0]['mean']:.3f} ± {solvers[0]['spread']:.3f}", "no promise was broken",
        "at most 60 training and test samples",
    ):  # fmt: skip
        assert words in text
    assert not [file for file in tmp_path.iterdir() if file != out]


def test_what_was_exported_is_checked_where_it_lies(finished: RunFolder, tmp_path: Path) -> None:
    export(finished.path, tmp_path / "up")
    with pytest.raises(FileNotFoundError, match="pass --inputs with those of the run"):
        check_files(tmp_path / "up")
    message, confirmed = check_files(tmp_path / "up", inputs=finished.inputs_file)
    assert confirmed, message
    export(finished.path, tmp_path / "up")
    assert not (tmp_path / "up" / "checked.csv").exists()


def test_a_recipe_does_not_say_where_the_data_lay(run: RunFolder, tmp_path: Path) -> None:
    recipe = run.recipe().changed(data={"path": "/home/somebody/data"})
    run.recipe_file.write_text(write_recipe(recipe))
    export(run.path, tmp_path / "up")
    for content in contents(tmp_path / "up").values():
        assert b"somebody" not in content
    assert read_recipe(tmp_path / "up/recipe.toml") == recipe.placeless()
    assert "unitmargin run recipe.toml --data DATA" in (tmp_path / "up/README.md").read_text()


def test_of_a_model_file_its_numbers_are_not_measured(finished: RunFolder, tmp_path: Path) -> None:
    export(finished.model_file, tmp_path / "up")
    assert set(contents(tmp_path / "up")) == ALWAYS
    table, text = read_card((tmp_path / "up/README.md").read_text())
    assert "model-index" not in table
    assert "# up\n" in text
    assert "were not measured" in text


@pytest.mark.parametrize(
    ("gone", "left_out"),
    [
        (["report.html", "report.json"], {"report.html", "report.json"}),
        (["recipe.toml", "report.html", "report.json"], {"recipe.toml", "report.html"}),
        (["checks.json", "report.html", "report.json"], {"report.html"}),
        (["certificates.csv", "certificates.json"], {"certificates.csv", "certificates.json"}),
        (["weights.safetensors"], set()),
    ],
)
def test_what_a_run_has_not_is_left_out(
    run: RunFolder, tmp_path: Path, gone: list[str], left_out: set[str]
) -> None:
    for name in gone:
        (run.path / name).unlink()
    export(run.path, tmp_path / "up")
    assert not left_out & set(contents(tmp_path / "up"))


def test_a_former_export_is_replaced_whole(finished: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "up"
    out.mkdir()
    export(finished.path, out)
    before = contents(out)
    export(out, out)
    again = contents(out)
    assert {k: v for k, v in again.items() if k != "README.md"} == {
        k: v for k, v in before.items() if k != "README.md"
    }
    export(finished.model_file, out)
    assert set(contents(out)) == ALWAYS
    assert list(tmp_path.iterdir()) == [out]


def test_a_folder_that_was_held_is_exported_to_again(finished: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "up"
    export(finished.path, out)
    (out / ".holder").write_text("process 1")
    with RunFolder(out).hold():
        pass
    assert (out / ".lock").exists()
    export(finished.path, out)
    assert set(contents(out)) == WHOLE


@pytest.mark.parametrize("path", ["", "model.safetensors"])
def test_new_inputs_of_an_exported_folder_replace_nothing_that_was_shipped(
    finished: RunFolder, tmp_path: Path, path: str
) -> None:
    out, data = tmp_path / "up", tmp_path / "new.npy"
    export(finished.path / path, out)
    before = contents(out)
    np.save(data, np.zeros((3, 1, 8, 8), np.uint8))
    for place in (out, out / "model.onnx"):
        assert "3 new inputs" in certify_model(place, data, out=tmp_path / "issued")
        with pytest.raises(ValueError, match=r"out must be a folder of its own, .* or exported"):
            certify_model(place, data, out=out)
    if not path:
        with pytest.raises(ValueError, match=r"out must be given for .*, an exported folder"):
            certify_model(out)
    assert contents(out) == before


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("LICENSE", "with LICENSE; name another"), (".git", r"with .git; name another"),
        ("README.md", "with a README.md that is edited; name another"),
    ],
)  # fmt: skip
def test_what_somebody_else_wrote_is_kept(
    finished: RunFolder, tmp_path: Path, file: str, words: str
) -> None:
    out = tmp_path / "up"
    export(finished.path, out)
    with (out / file).open("a") as opened:
        opened.write("license: mit")
    before = contents(out)
    with pytest.raises(ValueError, match=f"out must be absent, empty or .* {words}"):
        export(finished.path, out)
    (out / "README.md").unlink()
    with pytest.raises(ValueError, match="out must be absent, empty or"):
        export(finished.path, out)
    assert contents(out) == {k: v for k, v in before.items() if k != "README.md"}


@pytest.mark.parametrize("former", [False, True])
@pytest.mark.parametrize("name", ["up", "up.onnx"])
def test_without_the_exporter_all_is_as_it_was(
    finished: RunFolder,
    tmp_path: Path,
    name: str,
    former: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / name
    if former:
        export(finished.path, out)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}

    def lack(frozen: FrozenNetwork, path: str | Path, **options: object) -> None:
        raise ImportError("onnx must be installed; run `pip install unitmargin[deploy]`")

    monkeypatch.setattr("unitmargin.deployment.export.export_onnx", lack)
    with pytest.raises(ImportError, match="deploy"):
        export(finished.path, out)
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_a_run_that_changes_meanwhile_is_not_exported(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = RunFolder.require_report

    def change(folder: RunFolder) -> None:
        judge(folder)
        run.certificates_file.write_text("others")

    monkeypatch.setattr(RunFolder, "require_report", change)
    with pytest.raises(ValueError, match=r"certificates.csv must stay as it is .* export again"):
        export(run.path, tmp_path / "up")
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_a_report_of_another_model_is_refused(run: RunFolder, tmp_path: Path) -> None:
    content = json.loads(run.report_json.read_text())
    for stated in ("0" * 64, None):
        run.report_json.write_text(json.dumps(content | {"model_sha256": stated}))
        with pytest.raises(RunError, match=r"report.json: model_sha256 must be .* report .* again"):
            export(run.path, tmp_path / "up")


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_report_that_was_replaced_is_refused(run: RunFolder, tmp_path: Path, name: str) -> None:
    with (run.path / name).open("a") as page:
        page.write("<p>100 % certified</p>")
    words = rf"_sha256 must be .* that of {name}, got .*; run `unitmargin report .*run` again"
    with pytest.raises(RunError, match=words):
        export(run.path, tmp_path / "up")
    report_run(run)
    export(run.path, tmp_path / "up")


@pytest.mark.parametrize("key", ["html_sha256", "md_sha256", "provenance"])
def test_a_report_that_states_no_hash_is_refused(run: RunFolder, tmp_path: Path, key: str) -> None:
    content = json.loads(run.report_json.read_text())
    del content[key]
    run.report_json.write_text(json.dumps(content))
    with pytest.raises(RunError, match=r"sha256 must be .* got None; run `unitmargin report .*run"):
        export(run.path, tmp_path / "up")


def test_a_report_of_other_certificates_is_refused(run: RunFolder, tmp_path: Path) -> None:
    text = run.certificates_file.read_text()
    run.certificates_file.write_text(text.rpartition(",")[0] + ",9.9\n")
    with pytest.raises(RunError, match=r"certificates_sha256 must be .*; run `unitmargin report"):
        export(run.path, tmp_path / "up")


def test_broken_promises_are_told(run: RunFolder, tmp_path: Path) -> None:
    content = json.loads(run.checks_file.read_text())
    content["checks"][-1] |= {"passed": False, "value": None, "detail": "broken"}
    content["passed"] = False
    run.checks_file.write_text(json.dumps(content))
    assert "verify found BROKEN" in export(run.path, tmp_path / "up")
    text = (tmp_path / "up/README.md").read_text()
    assert f"**promises were broken: {content['checks'][-1]['name']}**" in text
    assert "no promise was broken" not in text


def test_the_folder_one_works_in_is_not_replaced(
    finished: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for out in (Path("."), tmp_path, tmp_path.parent):
        with pytest.raises(ValueError, match="out must not be the folder one works in"):
            export(finished.path, out)
    export(finished.path, Path("up"))
    assert set(contents(tmp_path / "up")) == WHOLE
