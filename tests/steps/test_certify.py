"""Certifying a run: one row a sample, and the accuracies that follow from them."""

import errno
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claims import EXAMPLES
from data.tiny import png, tar_bytes, write_folder
from exact import affine
from safetensors.torch import load_file
from tables import read_rows

from unitmargin.arguments import Evaluation
from unitmargin.certificates.certify import certify
from unitmargin.cli import main
from unitmargin.data import Samples
from unitmargin.deployment import export_onnx
from unitmargin.foundation.files import file_sha256
from unitmargin.frozen import save
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.certifier import CERTIFY_BATCH, FrozenCertifier
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.steps import certify as step
from unitmargin.steps.certify import certify_inputs, certify_model, certify_run
from unitmargin.steps.check import check_files
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.train import train_run
from unitmargin.training.options import TrainingOptions


def test_batches_make_no_difference() -> None:
    truth = affine(torch.float32)
    inputs = truth.inputs.repeat(CERTIFY_BATCH // len(truth.inputs) + 2, 1)
    samples = Samples(inputs, torch.zeros(len(inputs), dtype=torch.int64))
    assert len(samples) > CERTIFY_BATCH
    whole, parts = (
        certify(truth.network, inputs),
        certify_inputs(FrozenCertifier(truth.network), samples),
    )
    assert torch.equal(whole.label, parts.predicted)
    assert torch.equal(whole.runner_up, parts.runner_up)
    # Batches of another size sum in another order.
    for name in ("margin", "radius"):
        assert (getattr(whole, name) - getattr(parts, name)).abs().max() <= 1e-13


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    recipe = Recipe(
        name="tiny",
        data=DataOptions(name="digits", limit=60),
        model=ModelOptions(name="dense_ugnn", normalization="scalar", options={"hidden": [16]}),
        training=TrainingOptions(epochs=3, batch_size=16, learning_rate=1e-2),
    )
    run = RunFolder(tmp_path / "run")
    train_run(recipe, run)
    freeze_run(run)
    return run


def test_a_run_gets_one_row_a_sample(folder: RunFolder) -> None:
    message = certify_run(folder)
    rows = read_rows(folder.certificates_file)
    samples, frozen = folder.dataset().test, folder.frozen()
    certificate = certify_inputs(FrozenCertifier(frozen), samples)
    assert list(rows[0]) == [
        "index", "label", "label_name", "predicted", "predicted_name", "runner_up",
        "runner_up_name", "margin", "radius",
    ]  # fmt: skip
    assert [int(row["index"]) for row in rows] == list(range(60))
    assert [int(row["label"]) for row in rows] == samples.labels.tolist()
    assert [int(row["predicted"]) for row in rows] == certificate.predicted.tolist()
    assert [int(row["runner_up"]) for row in rows] == certificate.runner_up.tolist()
    assert [float(row["margin"]) for row in rows] == certificate.margin.tolist()
    assert [float(row["radius"]) for row in rows] == certificate.radius.tolist()
    clean = sum(row["label"] == row["predicted"] for row in rows)
    assert f"60 samples, clean {clean / 60:.4f}" in message
    # Behind a scalar standard deviation the radius is the margin times it.
    std = float(folder.frozen().layers[0].std[0])
    assert std < 0.5
    ratio = certificate.radius / certificate.margin / std
    assert (ratio - 1).abs().max() <= 1e-5


def test_what_is_right_without_a_radius_is_clean(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def certify_nothing(*given: Any) -> Certificates:
        certificates = certify_all(*given)
        return replace(certificates, radius=0 * certificates.radius)

    certify_all = step.certify_inputs
    monkeypatch.setattr(step, "certify_inputs", certify_nothing)
    message = certify_run(folder)
    clean = folder.certificates().clean_accuracy
    assert clean > 0
    assert f"clean {clean:.4f}, " in message


def test_certifying_again_writes_the_same_file(folder: RunFolder) -> None:
    certify_run(folder)
    first = folder.certificates_file.read_bytes()
    certify_run(folder)
    assert folder.certificates_file.read_bytes() == first


def test_certificates_say_what_they_are_made_of(folder: RunFolder) -> None:
    certify_run(folder, inputs=True)
    facts = json.loads(folder.certificate_facts_file.read_text())
    inputs, _ = folder.dataset().test.batch(slice(0, 60))
    assert facts == {
        "format": "unitmargin-certificates-2",
        "profile": "float64",
        "samples": 60,
        "units": "l2 distance in the units of the inputs",
        "classes": [str(digit) for digit in range(10)],
        "model_sha256": file_sha256(folder.model_file),
        "inputs_sha256": file_sha256(folder.inputs_file),
        "numbers_sha256": hashlib.sha256(inputs.numpy().astype("<f4").tobytes()).hexdigest(),
    }
    assert torch.equal(load_file(folder.inputs_file)["inputs"], inputs)
    message, confirmed = check_files(folder.path)
    assert confirmed
    assert message.startswith("check: 60 certificates confirmed, 0 not")


def test_inputs_of_earlier_certificates_are_removed(folder: RunFolder) -> None:
    certify_run(folder, inputs=True)
    certify_run(folder)
    assert not folder.inputs_file.exists()
    assert json.loads(folder.certificate_facts_file.read_text())["inputs_sha256"] is None


def test_test_samples_in_other_units_than_the_training_are_refused(folder: RunFolder) -> None:
    frozen = folder.frozen()
    assert frozen.domain == (0.0, 1.0)
    far = torch.zeros(CERTIFY_BATCH + 3, 1, 8, 8)
    far[-1, 0, 3, 3] = 16.0
    samples = Samples(far, torch.zeros(len(far), dtype=torch.int64))
    where = f"got entries from 0.0 to 16.0, the first outside in sample {CERTIFY_BATCH + 2};"
    with pytest.raises(ValueError, match=where):
        certify_inputs(FrozenCertifier(frozen), samples)
    frozen.domain = (0.0, 0.5)  # the same for a run, whose verb ends with exit status 2
    save(frozen, folder.model_file)
    with pytest.raises(SystemExit) as stop:
        main(["certify", str(folder.path)])
    assert stop.value.code == 2


def test_test_data_of_other_classes_than_the_model_are_refused(folder: RunFolder) -> None:
    frozen = folder.frozen()
    frozen.classes = (*frozen.classes[:9], "ten")
    save(frozen, folder.model_file)
    with pytest.raises(
        ValueError, match="class names of the data must be those of .*, ten, got 0, .*, 9; rename"
    ):
        certify_run(folder)


def test_a_missing_model_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="run `unitmargin freeze .*` first"):
        certify_run(RunFolder(tmp_path))


# --- New inputs ----------------------------------------------------------------------------------

IMAGES = {
    "7/b.png": png(10, (8, 8), "L"), "7/a.png": png(250, (8, 8), "L"),
    "bird/ü.png": png(90, (8, 8), "L"),
}  # fmt: skip


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_inputs_that_are_kept_are_those_of_all_batches(folder: RunFolder, tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).random((70, 1, 8, 8), np.float32)
    np.save(tmp_path / "new.npy", numbers)
    out = tmp_path / "out"
    certify_model(folder.model_file, tmp_path / "new.npy", True, out, batch_size=16)
    assert torch.equal(load_file(out / "inputs.safetensors")["inputs"], torch.from_numpy(numbers))
    message, confirmed = check_files(out, folder.model_file)
    assert confirmed, message


def test_nothing_is_left_of_inputs_whose_last_batch_is_refused(
    folder: RunFolder, tmp_path: Path
) -> None:
    numbers = np.zeros((600, 1, 8, 8), np.float32)
    numbers[-1] = 9.0
    np.save(tmp_path / "new.npy", numbers)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="the first outside in x\\[599\\]"):
        certify_model(folder.model_file, tmp_path / "new.npy", True, tmp_path / "a/out")
    assert contents(tmp_path) == before
    assert not (tmp_path / "a").exists()


def test_new_inputs_get_a_folder_of_their_own(folder: RunFolder, tmp_path: Path) -> None:
    certify_run(folder, inputs=True)
    before = contents(folder.path)
    images = write_folder(tmp_path / "photos", IMAGES)
    message = certify_run(folder, True, images)
    own = RunFolder(folder.path / "certified-photos")
    assert message.startswith("certify: 3 new inputs, 3 with a radius, 2 labelled, clean ")
    assert message.endswith(f"-> {own.certificates_file}")
    rows = read_rows(own.certificates_file)
    assert [row["source"] for row in rows] == sorted(IMAGES)
    assert [(row["label"], row["label_name"]) for row in rows] == [("7", "7"), ("7", "7"), ("", "")]
    pixels = torch.tensor([250, 10, 90])[:, None, None, None].expand(3, 1, 8, 8) / 255
    truth = certify(folder.frozen(), pixels)
    assert [int(row["predicted"]) for row in rows] == truth.label.tolist()
    assert [float(row["radius"]) for row in rows] == truth.radius.tolist()
    assert torch.equal(load_file(own.inputs_file)["inputs"], pixels)
    assert {file: content for file, content in contents(folder.path).items()
            if file in before} == before  # fmt: skip
    message, confirmed = check_files(own.path)
    assert confirmed
    assert message.startswith("check: 3 certificates confirmed, 0 not")


def test_inputs_that_are_kept_elsewhere_are_checked_by_their_numbers(
    folder: RunFolder, tmp_path: Path
) -> None:
    numbers = np.random.default_rng(0).random((4, 1, 8, 8))
    np.save(tmp_path / "new.npy", numbers)
    certify_run(folder, data=tmp_path / "new.npy", out=tmp_path / "out", batch_size=3)
    facts = json.loads((tmp_path / "out/certificates.json").read_text())
    assert facts["inputs_sha256"] is None
    assert facts["numbers_sha256"] == hashlib.sha256(numbers.astype("<f4").tobytes()).hexdigest()
    files = tmp_path / "out", folder.model_file, tmp_path / "new.npy"
    assert check_files(*files)[1]
    np.save(tmp_path / "new.npy", numbers[::-1].copy())
    with pytest.raises(ValueError, match="new.npy holds other numbers than .* names; pass those"):
        check_files(*files)


def test_an_archive_an_array_and_a_table_of_one_content_are_certified_alike(
    folder: RunFolder, tmp_path: Path
) -> None:
    values = np.array([10, 250, 90], np.uint8)
    pixels = np.broadcast_to(values[:, None, None, None], (3, 1, 8, 8))
    archive, arrays, table = (tmp_path / f"new.{kind}" for kind in ("tar", "npz", "csv"))
    archive.write_bytes(tar_bytes(IMAGES))
    np.savez(arrays, x=pixels)
    np.savetxt(table, (pixels.reshape(3, 64) / np.float32(255)).astype(np.float64), delimiter=",")
    radii = []
    for path in (archive, arrays, table):
        certify_run(folder, data=path, out=tmp_path / "out")
        radii.append([row["radius"] for row in read_rows(tmp_path / "out/certificates.csv")])
    assert radii[0] == radii[1] == radii[2]


@pytest.mark.parametrize("profile", ["float64", "float32"])
def test_a_model_file_certifies_new_inputs_alone(
    folder: RunFolder, tmp_path: Path, profile: str
) -> None:
    model = tmp_path / "m.safetensors"
    model.write_bytes(folder.model_file.read_bytes())
    with pytest.raises(
        ValueError, match=r"data must be given for .*m.safetensors, which is no run"
    ):
        certify_model(model)
    np.save(tmp_path / "new.npy", np.zeros((1, 1, 8, 8), np.uint8))
    message = certify_model(model, tmp_path / "new.npy", True, profile=profile)
    out = tmp_path / "certified-new.npy"
    assert message.endswith(f"-> {out / 'certificates.csv'}")
    assert json.loads((out / "certificates.json").read_text())["profile"] == profile
    assert check_files(out, model)[1]


def test_what_an_exported_file_issues_is_confirmed_for_the_model_file(tmp_path: Path) -> None:
    frozen = EXAMPLES["head alone"]().network
    model, exported, data = (tmp_path / name for name in ("m.safetensors", "m.onnx", "new.npy"))
    save(frozen, model)
    export_onnx(frozen, exported)
    np.save(data, np.random.default_rng(0).random((9, 5)))
    certify_model(exported, data, True, tmp_path / "out", batch_size=4)
    assert json.loads((tmp_path / "out/certificates.json").read_text())["model_sha256"] == (
        file_sha256(model)
    )
    message, confirmed = check_files(tmp_path / "out", model)
    assert confirmed
    assert message.startswith("check: 9 certificates confirmed, 0 not")


def test_the_own_data_of_a_run_go_elsewhere_with_out_alone(
    folder: RunFolder, tmp_path: Path
) -> None:
    certify_run(folder)
    before = folder.certificates_file.read_bytes()
    with pytest.raises(ValueError, match="profile must be float64, the run's own, .* by --out"):
        certify_run(folder, profile="float32")
    assert "60 samples" in certify_run(folder, True, out=tmp_path / "out", profile="float32")
    assert folder.certificates_file.read_bytes() == before
    assert check_files(tmp_path / "out", folder.model_file)[1]


def test_no_run_loses_its_certificates_to_new_inputs(folder: RunFolder, tmp_path: Path) -> None:
    np.save(tmp_path / "new.npy", np.zeros((1, 1, 8, 8), np.uint8))
    for model in (folder.path, folder.model_file):
        with pytest.raises(ValueError, match="out must be a folder of its own, got the run folder"):
            certify_model(model, tmp_path / "new.npy", out=folder.path)


def test_a_folder_that_a_writer_was_killed_in_is_written_to_again(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = tmp_path / "new.npy", folder.path / "certified-new.npy"
    np.save(data, np.zeros((1, 1, 8, 8), np.uint8))

    def full(*given: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("unitmargin.steps.certify.write_certificates", full)
        with pytest.raises(OSError, match="No space left"):
            certify_run(folder, data=data)
    assert (out / ".lock").exists()
    for name in (".holder", f".{'0' * 32}-certificates.csv"):
        (out / name).touch()
    assert certify_run(folder, data=data).endswith(f"-> {out / 'certificates.csv'}")
    for file in out.glob("cert*"):
        file.unlink()
    (out / ".git").touch()
    with pytest.raises(ValueError, match="or a folder of certificates, got .* with .git; name"):
        certify_run(folder, data=data)


def test_certificates_of_other_inputs_are_not_replaced_in_silence(
    folder: RunFolder, tmp_path: Path
) -> None:
    words = "in place of certificates of other inputs ->"
    for place, value in (("a", 0), ("b", 1)):
        (tmp_path / place).mkdir()
        np.save(tmp_path / place / "new.npy", np.full((1, 1, 8, 8), value, np.uint8))
    assert words not in certify_run(folder, data=tmp_path / "a/new.npy")
    assert words not in certify_run(folder, data=tmp_path / "a/new.npy")
    assert words in certify_run(folder, data=tmp_path / "b/new.npy")
    out = folder.path / "certified-new.npy"
    assert words in certify_run(folder, out=out)
    (out / "certificates.json").write_text("{")
    assert words not in certify_run(folder, out=out)


def test_what_is_wrong_in_the_last_batch_leaves_nothing(folder: RunFolder, tmp_path: Path) -> None:
    numbers = np.zeros((5, 1, 8, 8))
    numbers[4, 0, 3, 3] = 1.5
    np.save(tmp_path / "new.npy", numbers)
    with pytest.raises(ValueError, match=r"from 0.0 to 1.5, the first outside in x\[4\]; scale"):
        certify_run(folder, True, tmp_path / "new.npy", batch_size=2)
    assert not (folder.path / "certified-new.npy").exists()


def test_certificates_that_were_interrupted_are_not_read(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    certify_run(folder)

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("unitmargin.runs.certificates.write_json", interrupt)
    with pytest.raises(KeyboardInterrupt):
        certify_run(folder)
    with pytest.raises(RunError, match="json does not exist; run `unitmargin certify"):
        folder.certificates()


def test_the_command_line_has_the_same_batch() -> None:
    assert Evaluation().batch_size == CERTIFY_BATCH
