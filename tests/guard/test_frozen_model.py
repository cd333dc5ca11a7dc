"""A guard on a model file answers as `certify` does, sealed or not."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

import unitmargin as um
from unitmargin.foundation.files import file_sha256
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import ProfileError
from unitmargin.guard import Guard, frozen_model
from unitmargin.layers.normalize import Normalize

X = np.random.default_rng(0).random((12, 4), np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    file = tmp_path_factory.mktemp("frozen") / "model.safetensors"
    um.save(um.freeze(um.DenseUGNN((4,), 3), domain=(0, 1)), file)
    return file


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("profile", ["float64", "float32", None])
def test_answers_are_those_of_certify(path: Path, profile: str | None, sealed: bool) -> None:
    guard = Guard(path, profile=profile, sealed=sealed)
    certificate = um.certify(um.load(path), X, profile=profile)
    answers = guard(X)
    assert [answer.predicted for answer in answers] == certificate.label.tolist()
    assert [answer.runner_up for answer in answers] == certificate.runner_up.tolist()
    assert [answer.margin for answer in answers] == certificate.margin.tolist()
    assert [answer.radius for answer in answers] == certificate.radius.tolist()
    assert any(answer.certified for answer in answers)
    assert guard.model.profile == (profile or "float64")
    assert guard.model.model_sha256 == file_sha256(path)
    assert isinstance(guard.model, frozen_model.FrozenModel)
    assert guard.model.units == "l2 distance in the units of the inputs"


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("domain", [(0, 1), None])
@pytest.mark.parametrize("profile", ["float64", "float32"])
def test_no_value_of_an_input_raises(
    tmp_path: Path, profile: str, domain: tuple[int, int] | None, normalised: bool
) -> None:
    scale = Normalize(torch.tensor([0.5]), torch.tensor([1e-3])) if normalised else None
    model = um.UGNN((1, 2, 2), 3, normalize=scale)
    um.save(um.freeze(model, domain=domain), tmp_path / "model.safetensors")
    values = [np.nan, np.inf, 1.7e308, 1e300, 1e38, 5e-324, 1e-40, -0.0]
    guard = Guard(tmp_path / "model.safetensors", profile=profile)
    answers = guard(np.array([np.full((1, 2, 2), value) for value in values]))
    outcomes = [answer.outcome for answer in answers]
    finite = 2 if profile == "float64" else 4
    assert outcomes[:finite] == ["not_finite"] * finite
    assert set(outcomes[finite:5]) <= {"outside_domain" if domain else "no_claim", "certified"}
    assert set(outcomes[5:]) <= {"certified", "no_claim"}
    assert np.isfinite([answer.radius for answer in answers]).all()


def test_float64_inputs_are_certified_as_they_are_or_rounded(path: Path) -> None:
    wide = np.random.default_rng(1).random((12, 4))
    answers, certificate = Guard(path)(wide), um.certify(um.load(path), wide)
    assert [answer.radius for answer in answers] == certificate.radius.tolist()
    rounded = um.certify(um.load(path), wide.astype(np.float32), "float32")
    moved = np.linalg.norm(wide - wide.astype(np.float32), axis=1)
    for answer, radius, step in zip(
        Guard(path, profile="float32")(wide), rounded.radius.tolist(), moved, strict=True
    ):
        assert max(radius - 2 * step, 0.0) <= answer.radius <= max(radius - step, 0.0)


def test_a_read_only_array_is_taken(path: Path) -> None:
    x = X.copy()
    x.flags.writeable = False
    assert Guard(path)(x) == Guard(path)(X)


@pytest.mark.parametrize("profile", ["float64", "float32"])
@pytest.mark.parametrize("place", ["as stored", "as evaluated", "of the norms"])
def test_weights_that_change_in_memory_are_found_unless_sealed(
    path: Path, profile: str, place: str
) -> None:
    guard, sealed = Guard(path, profile=profile, sealed=False), Guard(path, profile=profile)
    before = guard(X)
    stored = {"as stored": 0, "as evaluated": 1, "of the norms": -1}[place]
    network = guard.model._stored[stored].network  # type: ignore[attr-defined]
    with torch.no_grad():
        network.head.weight.data[0, 0] *= 64.0
    with pytest.raises(RuntimeError, match="in memory must be those of .*; open it again"):
        guard(X)
    assert sealed(X) == before == Guard(path, profile=profile, sealed=False)(X)


@pytest.mark.parametrize("sealed", [True, False])
def test_the_environment_is_asked_at_every_call(path: Path, sealed: bool) -> None:
    guard = Guard(path, profile="float32", sealed=sealed)
    guard(X)
    precision = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        with pytest.raises(ProfileError, match="needs full float32 products"):
            guard(X)
    finally:
        torch.set_float32_matmul_precision(precision)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_hook_of_all_modules_is_refused_at_every_call(path: Path, sealed: bool) -> None:
    guard = Guard(path, sealed=sealed)
    guard(X)
    for register in (register_module_forward_hook, register_module_forward_pre_hook):
        handle = register(lambda module, x, *output: output[0] * -3 if output else None)
        try:
            with pytest.raises(TypeError, match=r"hooks of the forward pass .* got 1, .*; remove"):
                guard(X)
        finally:
            handle.remove()
    assert len(guard(X)) == len(X)


def test_threads_of_torch_are_those_of_the_process(path: Path) -> None:
    with pytest.raises(ValueError, match="threads must be left out .*, got 2; call torch"):
        Guard(path, threads=2)


def test_an_unknown_profile_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="profile must be one of float64, float32, got 'float16'"):
        Guard(path, profile="float16")


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int16"])
def test_bytes_are_no_inputs(path: Path, dtype: str) -> None:
    with pytest.raises(ValueError, match=f"x must hold floating point numbers, got {dtype}; scale"):
        Guard(path).model.certify(np.ones((1, 4), dtype))


def test_a_file_that_is_replaced_while_it_is_opened_is_refused(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(path.read_bytes())

    def replaced(given: Path) -> FrozenNetwork:
        frozen = um.load(given)
        um.save(um.freeze(um.DenseUGNN((4,), 3)), given)
        return frozen

    monkeypatch.setattr(frozen_model, "load", replaced)
    with pytest.raises(ValueError, match="must stay as it is while it is read, got another"):
        Guard(file)
