"""What certifies a batch: model files and exported ones, by the same few words."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from claims import EXAMPLES

from unitmargin.certificates.certify import certify
from unitmargin.data import InputBatch
from unitmargin.deployment import export_onnx
from unitmargin.foundation.files import file_sha256
from unitmargin.frozen import FrozenNetwork, load, save
from unitmargin.guard import Claims, Model
from unitmargin.runs import certifier as room
from unitmargin.runs.certifier import (
    FrozenCertifier,
    certify_files,
    is_run,
    judged_batches,
    open_certifier,
)


@pytest.fixture
def frozen() -> FrozenNetwork:
    return EXAMPLES["head alone"]().network


@pytest.fixture
def model(frozen: FrozenNetwork, tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save(frozen, path)
    return path


def test_a_model_file_states_what_it_certifies(frozen: FrozenNetwork, model: Path) -> None:
    certifier = open_certifier(model)
    assert isinstance(certifier, FrozenCertifier)
    assert isinstance(certifier, Model)
    assert (certifier.classes, certifier.in_shape) == (frozen.classes, frozen.in_shape)
    assert (certifier.domain, certifier.profile) == (None, "float64")
    assert certifier.model_sha256 == file_sha256(model)


@pytest.mark.parametrize("profile", ["float64", "float32"])
def test_a_model_file_claims_what_certify_does(
    frozen: FrozenNetwork, model: Path, profile: str
) -> None:
    x = np.random.default_rng(0).random((6, *frozen.in_shape), np.float32)
    claims, truth = open_certifier(model, profile).certify(x), certify(frozen, x, profile)
    for name in Claims._fields:
        assert np.array_equal(getattr(claims, name), getattr(truth, name).numpy())


def test_an_exported_file_states_the_model_file(
    frozen: FrozenNetwork, model: Path, tmp_path: Path
) -> None:
    file = tmp_path / "model.onnx"
    export_onnx(frozen, file)
    exported, stored = open_certifier(file), open_certifier(model)
    assert isinstance(exported, Model)
    for name in ("classes", "in_shape", "domain", "profile", "model_sha256", "images"):
        assert getattr(exported, name) == getattr(stored, name)
    x = torch.rand(6, *frozen.in_shape).numpy()
    mine, other = exported.certify(x), stored.certify(x)
    assert np.array_equal(mine.label, other.label)
    assert np.abs(mine.margin - other.margin).max() <= 1e-12
    assert np.abs(mine.radius - other.radius).max() <= 1e-9
    for options, message in (
        ({"profile": "float32"}, "profile must be float64 for .*model.onnx, an exported network"),
        ({"device": "cuda"}, "device must be cpu for .*model.onnx, an exported network, got cuda"),
    ):
        with pytest.raises(ValueError, match=message):
            open_certifier(file, **options)
    open_certifier(file, "float64", "cpu")


def test_a_model_file_that_is_replaced_while_it_is_read_is_refused(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replaced(file: Path) -> FrozenNetwork:
        frozen = load(file)
        file.write_bytes(b"another one")
        return frozen

    monkeypatch.setattr(room, "load", replaced)
    with pytest.raises(ValueError, match="must stay as it is while it is read"):
        open_certifier(model)


def test_a_folder_is_a_run_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "run.onnx").mkdir()
    names = {"run.onnx": True, "none": True, "m.onnx": False, "m.safetensors": False}
    assert {name: is_run(tmp_path / name) for name in names} == names


def test_options_are_judged_when_it_is_opened(model: Path) -> None:
    with pytest.raises(ValueError, match="profile must be one of float64, float32, got 'float16'"):
        open_certifier(model, "float16")
    with pytest.raises(ValueError, match="device must be one that torch can use here, got 'gpu'"):
        open_certifier(model, device="gpu")


class Counter:
    """Claims of every input that it is the first class, and how many it was asked for."""

    classes, in_shape, domain, profile, model_sha256 = ("a", "b"), (2,), (0.0, 1.0), "float64", ""
    dtype = np.dtype("float64")
    encoding = images = None
    asked = 0

    def certify(self, x: np.ndarray) -> Claims:
        self.asked += len(x)
        nothing = np.zeros(len(x))
        return Claims(nothing.astype(np.int64), nothing.astype(np.int64), nothing, nothing)


def test_batches_are_certified_as_they_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "new.npy", np.zeros((7, 2)))
    certifier = Counter()
    asked = []
    for batch, claims in certify_files(certifier, tmp_path / "new.npy", 3):
        assert len(batch.inputs) == len(claims.label) == len(batch.sources)
        asked.append(certifier.asked)
    assert asked == [3, 6, 7]


@pytest.mark.parametrize(("named", "where"), [(True, "c.png"), (False, "sample 5")])
def test_the_first_input_outside_of_the_domain_is_named(named: bool, where: str) -> None:
    def batches() -> Iterator[InputBatch]:
        for start in (0, 3):
            inputs = np.zeros((3, 2), np.float32)
            inputs[2, 1] = 1.5 * (start == 3)
            sources = ("a.png", "b.png", "c.png") if named else ()
            yield InputBatch(inputs, np.full(3, -1), sources)

    certifier = Counter()
    message = rf"must lie in \[0.0, 1.0\], .* from 0.0 to 1.5, the first outside in {where};"
    judged = judged_batches(certifier, batches())
    assert len(next(judged).inputs) == 3
    with pytest.raises(ValueError, match=message):
        next(judged)
    certifier.domain = None  # type: ignore[assignment]
    assert len(list(judged_batches(certifier, batches()))) == 2
