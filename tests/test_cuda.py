"""T9: certificates of one device hold on the other. Skipped without a CUDA device."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from unitmargin import UGNN, certify, freeze
from unitmargin.certificates.rounding_attack import near_boundary, rounding_attack
from unitmargin.deployment.export import export_onnx
from unitmargin.frozen import FrozenNetwork, save
from unitmargin.frozen.profiles import PROFILES, ProfileError

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

SAMPLES = 200


@pytest.fixture
def tf32() -> Iterator[None]:
    torch.backends.cuda.matmul.allow_tf32 = True
    yield
    torch.backends.cuda.matmul.allow_tf32 = False


def network(device: str) -> FrozenNetwork:
    torch.manual_seed(0)
    return freeze(UGNN((1, 8, 8), 4, hidden=(60, 30))).to(device)


def inputs(distance: float = 0.02) -> Tensor:
    x = torch.rand(SAMPLES, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    return near_boundary(network("cpu"), x, distance)


@pytest.mark.parametrize("benchmark", [False, True])
@pytest.mark.parametrize("first", ["cpu", "cuda"])
@pytest.mark.parametrize("name", PROFILES)
def test_certificates_of_one_device_hold_on_the_other(
    name: str, first: str, benchmark: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", benchmark)
    second = "cuda" if first == "cpu" else "cpu"
    x, profile = inputs(), PROFILES[name]
    found = certify(network(first), x.to(first), name)
    certified, label = found.radius.cpu() > 0, found.label.cpu()
    assert certified.sum() > 0.75 * SAMPLES
    aim = near_boundary(network("cpu"), x.double(), 0.0) - x.double()
    aim = aim / aim.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    edge = x.double() + 0.999999 * found.radius.cpu().view(-1, 1, 1, 1) * aim
    other = network(second).deployed(name)
    for points in (x, edge):
        labels = other(points.to(second, profile.dtype)).argmax(1).cpu()
        assert torch.equal(labels[certified], label[certified])


@pytest.mark.parametrize("name", PROFILES)
def test_the_attack_breaks_no_sound_certificate_on_cuda(name: str) -> None:
    found = rounding_attack(network("cuda"), inputs().cuda(), name, 500)
    assert found.broken["sound"] == 0
    assert found.issued["sound"] > 0.75 * SAMPLES


@pytest.mark.usefixtures("tf32")
def test_tf32_refuses_the_float32_profile_alone() -> None:
    frozen, x = network("cuda"), inputs().cuda()
    with pytest.raises(ProfileError, match="full float32 products"):
        certify(frozen, x, "float32")
    here = certify(network("cpu"), inputs())
    assert (certify(frozen, x).radius.cpu() - here.radius).abs().max() <= 1e-12


@pytest.mark.parametrize("columns", [1, 7, 64, 4096])
def test_split_sums_keep_to_their_bound(columns: int) -> None:
    """Long sums of few outputs, which CUDA libraries split over many blocks."""
    left = torch.randn(4, 50_000, device="cuda")
    right = torch.randn(columns, 50_000, device="cuda")
    error = (left @ right.mT).double() - left.double() @ right.double().mT
    bound = 50_000 * 2.0**-24 / (1 - 50_000 * 2.0**-24) + 1e-9
    assert bool((error.abs() <= bound * (left.abs().double() @ right.abs().double().mT)).all())


def test_a_network_on_cuda_is_saved_and_exported(tmp_path: Path) -> None:
    files = []
    for device in ("cpu", "cuda"):
        files.append(tmp_path / f"{device}.safetensors")
        save(network(device), files[-1])
        export_onnx(network(device), files[-1].with_suffix(".onnx"))
    assert files[0].read_bytes() == files[1].read_bytes()
