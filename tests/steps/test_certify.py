"""Certifying a run: one row a sample, and the accuracies that follow from them."""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from exact import affine
from safetensors.torch import load_file
from tables import read_rows

from unitmargin.certificates.certify import certify
from unitmargin.cli import main
from unitmargin.data import Samples
from unitmargin.foundation.files import file_sha256
from unitmargin.frozen import save
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.steps.certify import (
    CERTIFY_BATCH,
    certify_run,
    certify_samples,
)
from unitmargin.steps.check import check_files
from unitmargin.steps.freeze import freeze_run
from unitmargin.steps.train import train_run
from unitmargin.training.options import TrainingOptions


def test_batches_make_no_difference() -> None:
    truth = affine(torch.float32)
    inputs = truth.inputs.repeat(CERTIFY_BATCH // len(truth.inputs) + 2, 1)
    samples = Samples(inputs, torch.zeros(len(inputs), dtype=torch.int64))
    assert len(samples) > CERTIFY_BATCH
    whole, parts = certify(truth.network, inputs), certify_samples(truth.network, samples)
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
    certificate = certify_samples(frozen, samples)
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
    clean = sum(row["label"] == row["predicted"] and float(row["radius"]) > 0 for row in rows)
    assert f"60 samples, clean {clean / 60:.4f}" in message
    # Behind a scalar standard deviation the radius is the margin times it.
    std = float(folder.frozen().layers[0].std[0])
    assert std < 0.5
    ratio = certificate.radius / certificate.margin / std
    assert (ratio - 1).abs().max() <= 1e-5


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
        certify_samples(frozen, samples)
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
