"""Exported networks: ONNX Runtime's labels and radii are those of ``certify``."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import draws
import numpy as np
import onnx
import pytest
import torch
from onnx.numpy_helper import to_array
from peers import peer
from safetensors.torch import save_file

import unitmargin as um
from unitmargin.certificates.rounding_attack import near_boundary, rounding_attack
from unitmargin.deployment import export as deployment_export
from unitmargin.deployment import network
from unitmargin.deployment.export import DisagreementError
from unitmargin.deployment.network import onnx_model
from unitmargin.foundation.files import file_sha256
from unitmargin.foundation.tensors import read_tensors
from unitmargin.frozen import CircularConvolution, Dense, FrozenNetwork
from unitmargin.guard import OnnxModel
from unitmargin.guard.onnx_model import LEVELS, Claims
from unitmargin.layers.contract import ExactLayer
from unitmargin.layers.fourier import count_frequencies
from unitmargin.layers.rearrangement import Flatten
from unitmargin.steps.export import export

SIZES = [
    (1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (1, 7), (5, 4), (8, 8), (7, 9), (9, 10), (1, 67),
    (13, 11), (16, 16), (33, 31), (64, 64),
]  # fmt: skip
"""Below and above the 64 pixels of one table, odd, even, prime and not square."""

STATED = {
    "format": "unitmargin-onnx-1", "classes": [], "domain": None, "profile": "float64",
    "units": "1", "model_sha256": "",
}  # fmt: skip
"""Metadata of networks whose weights are too large for a file of the library."""

APART = 1e-9
"""What the radii of two engines may differ by."""


def exported(frozen: FrozenNetwork, folder: Path, level: str = "all") -> OnnxModel:
    um.export_onnx(frozen, folder / "model.onnx")
    return OnnxModel(folder / "model.onnx", level=level)


def require_agreement(frozen: FrozenNetwork, model: OnnxModel, x: torch.Tensor) -> int:
    """All claims are those of ``certify``; how many there are."""
    true = um.certify(frozen, x, "float64", domain="any")
    found = model.certify(x.numpy().astype(model.dtype))
    claimed = true.radius.numpy() > 0
    assert np.array_equal(found.label[claimed], true.label.numpy()[claimed])
    scale = np.maximum(true.radius.numpy(), 1.0)
    assert np.all(np.abs(found.radius - true.radius.numpy()) <= APART * scale)
    near = np.abs(found.margin - true.margin.numpy()) <= true.slack.numpy()
    assert np.all(near | ~claimed)
    return int(claimed.sum())


def convolution(size: tuple[int, int], channels: int = 2) -> FrozenNetwork:
    """A convolution of random orthogonal blocks, and a head of three classes."""
    generator = torch.Generator().manual_seed(size[0] * 100 + size[1])
    real, pairs = count_frequencies(size)

    def rows(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        return torch.linalg.qr(torch.randn(*shape, generator=generator, dtype=dtype)).Q

    blocks = rows(real, channels, channels)
    turned = rows(pairs, channels, channels, dtype=torch.complex128)
    bias = torch.linspace(-1.0, 2.0, channels, dtype=torch.float64)
    both = torch.stack((turned.real, turned.imag), dim=1)
    features = channels * size[0] * size[1]
    head = rows(features, min(3, features)).mT
    layers = [
        CircularConvolution(blocks, both, bias, size),
        Flatten(),
        Dense(head, torch.zeros(len(head), dtype=torch.float64)),
    ]
    return FrozenNetwork(layers, (channels, *size), facts={"head": "orthonormal"})


@pytest.mark.parametrize("size", SIZES)
def test_maps_of_every_size(size: tuple[int, int], tmp_path: Path) -> None:
    frozen = convolution(size)
    x = torch.rand(5, *frozen.in_shape)
    assert require_agreement(frozen, exported(frozen, tmp_path), x) == 5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_maps_beyond_one_table_are_stored_in_half_precision(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    """Which has no Fourier transform of every length."""
    frozen = convolution((7, 10)).to(dtype)
    assert require_agreement(frozen, exported(frozen, tmp_path), torch.rand(5, 2, 7, 10)) > 0


@pytest.mark.parametrize("name", ["large_convnet", "lip_convnet5", "resnet9"])
def test_the_compared_networks(name: str, tmp_path: Path) -> None:
    frozen = peer(name)
    x = torch.rand(4, *frozen.in_shape)
    assert require_agreement(frozen, exported(frozen, tmp_path), x) > 0


@pytest.mark.parametrize("activation", ["abs", "maxmin", "oplu", "groupsort4"])
def test_networks_of_the_paper(activation: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    frozen = um.freeze(um.UGNN(in_shape=(1, 16, 16), n_classes=5, activation=activation))
    assert require_agreement(frozen, exported(frozen, tmp_path), torch.rand(6, 1, 16, 16)) == 6


def test_networks_on_slices(tmp_path: Path) -> None:
    torch.manual_seed(2)
    plan = [
        "unshuffle 2", "window 2", "reflect window 2 1", "shift", "fold 2", "position",
        "reflect group 4", "pool 2",
    ]  # fmt: skip
    frozen = um.freeze(um.MixingUGNN(in_shape=(3, 16, 16), n_classes=10, plan=plan))
    assert require_agreement(frozen, exported(frozen, tmp_path), torch.rand(6, 3, 16, 16)) == 6


def test_dense_networks_of_two_classes_and_one_feature(tmp_path: Path) -> None:
    torch.manual_seed(3)
    frozen = um.freeze(um.DenseUGNN(in_shape=(2,), n_classes=2))
    assert require_agreement(frozen, exported(frozen, tmp_path), torch.rand(9, 2)) == 9
    line = FrozenNetwork([Dense(torch.tensor([[0.5], [-0.5]]), torch.zeros(2))], (1,))
    found = exported(line, tmp_path).certify(np.array([[3.0], [-0.25]], dtype=np.float32))
    assert found.label.tolist() == [0, 1]
    assert found.radius == pytest.approx([3.0, 0.25], rel=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("first", range(0, 120, 30))
def test_drawn_networks_of_all_layers(first: int, dtype: torch.dtype, tmp_path: Path) -> None:
    """Of any magnitude; where a radius is claimed here it is claimed there, and the same."""
    claims = 0
    for seed in range(first, first + 30):
        frozen = draws.network(seed, dtype)
        written = onnx_model(frozen, STATED | {"in_shape": list(frozen.in_shape)}, "float64")
        onnx.save(written, tmp_path / "model.onnx")
        model = OnnxModel(tmp_path / "model.onnx")
        x = draws.Draw(seed, torch.float32).inputs(4, frozen.in_shape)
        claims += require_agreement(frozen, model, x.double())
    assert claims > 10


@pytest.mark.parametrize("level", LEVELS)
def test_every_optimisation_of_the_engine(level: str, tmp_path: Path) -> None:
    for frozen in (convolution((9, 10)), convolution((4, 4)), peer("resnet9")):
        model = exported(frozen, tmp_path, level)
        assert require_agreement(frozen, model, torch.rand(3, *frozen.in_shape)) > 0


@pytest.mark.parametrize("name", ["model", "model.safetensors", "model.onnx.gz"])
def test_a_name_that_no_guard_opens_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="path must end in .onnx, got 'model.*'; name the file so"):
        um.export_onnx(um.freeze(um.DenseUGNN((2,), 2)), tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_any_batch_an_empty_one_too(tmp_path: Path) -> None:
    frozen = convolution((3, 4))
    model = exported(frozen, tmp_path)
    x = np.random.default_rng(0).random((300, 2, 3, 4), dtype=np.float32)
    whole = model.certify(x)
    for count in (0, 1, 2, 7):
        part = model.certify(x[:count])
        assert part.label.tolist() == whole.label[:count].tolist()
        assert np.all(np.abs(part.radius - whole.radius[:count]) <= APART)


def test_nothing_is_claimed_of_what_is_no_number(tmp_path: Path) -> None:
    frozen = convolution((3, 4))
    x = np.full((4, 2, 3, 4), 0.5, dtype=np.float32)
    x[0, 0, 0, 0], x[1, 1, 2, 3], x[2] = np.nan, np.inf, 3e38
    found = exported(frozen, tmp_path).certify(x)
    assert found.label[:2].tolist() == found.runner_up[:2].tolist() == [-1, -1]
    assert found.radius[:2].tolist() == found.margin[:2].tolist() == [0.0, 0.0]
    assert found.label[3] >= 0
    assert found.radius[3] > 0


def test_of_equal_logits_the_lower_class_is_named_and_nothing_claimed(tmp_path: Path) -> None:
    rows = torch.tensor([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, -1.0]])
    frozen = FrozenNetwork([Dense(rows, torch.zeros(4))], (2,), facts={"head": "orthonormal"})
    x = np.array([[1.0, 1.0], [0.0, 0.0]], dtype=np.float32)
    found = exported(frozen, tmp_path).certify(x)
    true = um.certify(frozen, x)
    assert found.label.tolist() == true.label.tolist() == [1, 0]
    assert found.runner_up.tolist() == true.runner_up.tolist() == [2, 1]
    assert found.radius.tolist() == [0.0, 0.0]


def test_the_file_states_what_it_is_of(tmp_path: Path) -> None:
    torch.manual_seed(4)
    layers = um.freeze(um.DenseUGNN(in_shape=(2,), n_classes=2)).layers
    frozen = FrozenNetwork(list(layers), (2,), ('"a"', "b, ü"), domain=(-1.0, 2.5))
    um.save(frozen, tmp_path / "model.safetensors")
    stated = exported(frozen, tmp_path)
    assert stated.classes == ('"a"', "b, ü")
    assert stated.in_shape == (2,)
    assert stated.domain == (-1.0, 2.5)
    assert stated.dtype == np.float32
    assert stated.profile == "float64"
    assert stated.model_sha256 == file_sha256(tmp_path / "model.safetensors")


def test_a_model_file_is_stated_if_it_holds_the_network(tmp_path: Path) -> None:
    file, graph = tmp_path / "model.safetensors", tmp_path / "model.onnx"
    frozen = convolution((3, 4))
    um.save(frozen, file)
    tensors, header = read_tensors(file)
    save_file(tensors, file, metadata=dict(reversed(header.items())))
    um.export_onnx(frozen, graph, model_file=file)
    assert OnnxModel(graph).model_sha256 == file_sha256(file)
    graph.unlink()
    changed = um.load(file)
    with torch.no_grad():
        changed.head.bias[0] += 1.0
    other_names = FrozenNetwork(list(frozen.layers), (2, 3, 4), ("a", "b", "c"), frozen.facts)
    for other in (changed, other_names):
        with pytest.raises(ValueError, match="model_file must hold the network .*; load"):
            um.export_onnx(other, graph, model_file=file)
    assert not graph.exists()


def test_the_size_of_a_file_is_that_of_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights of float32 take four bytes a number."""
    torch.manual_seed(6)
    frozen = um.freeze(um.DenseUGNN((64,), 4, hidden=[64]), dtype=torch.float32)
    written = exported(frozen, tmp_path)
    size = (tmp_path / "model.onnx").stat().st_size
    weights = sum(buffer.numel() for buffer in frozen.network.buffers())
    assert written.dtype == np.float32
    assert size < 8 * weights
    monkeypatch.setattr(network, "LARGEST_FILE", size)
    exported(frozen, tmp_path)
    monkeypatch.setattr(network, "LARGEST_FILE", 4 * weights)
    with pytest.raises(ValueError, match=f"at most {4 * weights} bytes, .*, got") as error:
        exported(frozen, tmp_path)
    assert 4 * weights < int(re.findall(r"got (\d+)", str(error.value))[0]) < size


@pytest.mark.parametrize("domain", [(-1e308, 1e308), (-3.5e38, 3.5e38), (1e300, 1e301)])
def test_a_domain_beyond_float32_is_exported(domain: tuple[float, float], tmp_path: Path) -> None:
    layers = um.freeze(um.DenseUGNN(in_shape=(2,), n_classes=2)).layers
    assert exported(FrozenNetwork(list(layers), (2,), domain=domain), tmp_path).domain == domain


def test_a_file_states_how_inputs_are_made_of_images(tmp_path: Path) -> None:
    frozen = convolution((3, 4))
    assert exported(frozen, tmp_path).images is None
    frozen.facts["images"] = {"resize": 4, "channels": 1}
    assert exported(frozen, tmp_path).images == {"resize": 4, "channels": 1}


def test_the_graph_has_standard_operators_of_real_numbers_alone() -> None:
    known = {"Abs", "Add", "And", "ArgMax", "Cast", "Concat", "Div", "Equal", "Gather"}
    known |= {"GreaterOrEqual", "Identity", "Less", "LessOrEqual", "MatMul", "Max", "Min", "Mul"}
    known |= {"Pad", "ReduceMax", "ReduceMin", "ReduceSum", "Reshape", "Split", "Sqrt", "Squeeze"}
    known |= {"Sub", "TopK", "Transpose", "Unsqueeze", "Where"}
    for frozen in (convolution((9, 10)), peer("resnet9"), draws.network(3, torch.float32)):
        model = onnx_model(frozen, {})
        onnx.checker.check_model(model, full_check=True)
        assert {node.op_type for node in model.graph.node} <= known
        assert all(node.domain == "" for node in model.graph.node)


def test_the_same_network_is_the_same_file(tmp_path: Path) -> None:
    for name in ("one.onnx", "two.onnx"):
        um.export_onnx(convolution((3, 4)), tmp_path / name)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_the_file_states_the_hash_of_its_content(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    um.export_onnx(convolution((3, 4)), file)
    stated = {entry.key: entry.value for entry in onnx.load(file).metadata_props}["content_sha256"]
    content = file.read_bytes()
    assert content.count(stated.encode()) == 1
    blank = content.replace(stated.encode(), b"0" * 64)
    assert hashlib.sha256(blank).hexdigest() == stated


def test_a_damaged_file_is_refused_and_so_is_one_that_another_program_wrote(tmp_path: Path) -> None:
    torch.manual_seed(0)
    file, frozen = tmp_path / "model.onnx", um.freeze(um.DenseUGNN((4,), 3))
    um.export_onnx(frozen, file)
    content = file.read_bytes()
    (stored,) = (
        one for one in map(to_array, onnx.load(file).graph.initializer)
        if one.shape == (3, 4) and np.array_equal(one, frozen.head.weight.numpy())
    )  # fmt: skip
    place = content.index(stored.tobytes()) + stored.itemsize - 1
    assert content.count(stored.tobytes()) == 1
    edited = onnx.load(file)
    edited.doc_string = "edited"
    digest = content.index(b"content_sha256") + len("content_sha256") + 10
    text = content.index(b"unitmargin-onnx-1") + 3
    for damaged in (
        flipped(content, place), flipped(content, digest), edited.SerializeToString(),
        flipped(content, text, 0x80),
    ):  # fmt: skip
        file.write_bytes(damaged)
        words = r"model.onnx must have the content whose content_sha256 it states, got .*; write it"
        with pytest.raises(ValueError, match=words) as error:
            um.Guard(file)
        assert "\n" not in str(error.value)


def test_metadata_that_are_no_text_are_refused_by_the_name_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    um.export_onnx(convolution((3, 4)), file)
    content = file.read_bytes()
    file.write_bytes(flipped(content, content.index(b"content_sha256"), 0x80))
    with pytest.raises(ValueError, match="model.onnx must "):
        um.Guard(file)


def flipped(content: bytes, place: int, bit: int = 1) -> bytes:
    """With one other bit: by default, of a float64, one of its exponent."""
    return content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]


def test_a_file_that_states_no_hash_is_opened(tmp_path: Path) -> None:
    file, frozen = tmp_path / "model.onnx", convolution((3, 4))
    um.export_onnx(frozen, file)
    model = onnx.load(file)
    (place,) = (i for i, entry in enumerate(model.metadata_props) if entry.key == "content_sha256")
    del model.metadata_props[place]
    onnx.save(model, file)
    assert require_agreement(frozen, OnnxModel(file), torch.rand(5, *frozen.in_shape)) == 5


class Same(ExactLayer):
    """A layer of which nothing is written."""

    kind = "same"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_an_unknown_layer_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    frozen = FrozenNetwork([Same(), Dense(torch.eye(2), torch.zeros(2))], (2,))
    with pytest.raises(ValueError, match="same"):
        um.export_onnx(frozen, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_its_name_is_in_the_error() -> None:
    code = """
import sys
from importlib import util
find = util.find_spec
util.find_spec = lambda name, *rest: None if name == "onnx" else find(name, *rest)
import torch, unitmargin as um
frozen = um.freeze(um.DenseUGNN(in_shape=(2,), n_classes=2))
try:
    um.export_onnx(frozen, "model.onnx")
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "onnx must be installed" in found.stdout, found.stderr
    assert "pip install unitmargin[deploy]" in found.stdout


def test_the_rounding_attack_breaks_naive_margins_of_the_engine_and_no_certificate(
    tmp_path: Path,
) -> None:
    torch.manual_seed(5)
    frozen = um.freeze(um.UGNN(in_shape=(1, 8, 8), n_classes=10))
    um.export_onnx(frozen, tmp_path / "model.onnx", inputs="float64")
    model = OnnxModel(tmp_path / "model.onnx")

    def evaluate(x: torch.Tensor) -> torch.Tensor:
        (logits,) = model.session.run(["logits"], {"x": x.numpy()})
        return torch.from_numpy(logits)

    x = near_boundary(frozen, torch.rand(12, 1, 8, 8, dtype=torch.float64), 1e-6)
    found = rounding_attack(frozen, x, evaluate=evaluate)
    assert found.has_power
    assert found.issued["sound"] == 12
    assert found.broken["sound"] == 0


def test_a_domain_far_from_zero_is_exported(tmp_path: Path) -> None:
    """The norm of an input is large beside what tells it from others: so is the slack."""
    for seed in range(4):
        torch.manual_seed(seed)
        frozen = um.freeze(um.DenseUGNN((8,), 3), torch.float64)
        layers = list(frozen.layers)
        place = next(i for i, layer in enumerate(layers) if isinstance(layer, Dense))
        weight, bias = layers[place].state_dict().values()
        centre = torch.full((8,), 1e7 + 5.0, dtype=torch.float64)
        layers[place] = Dense(weight, bias - weight @ centre)
        far = FrozenNetwork(layers, (8,), domain=(1e7, 1e7 + 10.0))
        assert exported(far, tmp_path).domain == (1e7, 1e7 + 10.0)


def test_the_file_aside_is_found_again_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name: that of the file, behind one mark."""
    names: list[str] = []

    def look(*_: Any) -> None:
        names.extend(path.name for path in tmp_path.iterdir())

    monkeypatch.setattr(deployment_export, "_require_agreement", look)
    um.save(convolution((3, 4)), tmp_path / "model.safetensors")
    export(tmp_path / "model.safetensors", tmp_path / "a.onnx")
    (aside,) = set(names) - {"model.safetensors"}
    assert re.fullmatch(r"\.[0-9a-f]{32}-a\.onnx", aside)


def test_two_classes_that_are_almost_one_excuse_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slack counts in units of the pair: rows 1e-13 apart make a large one of their pair."""
    rows = torch.eye(3, dtype=torch.float64)
    rows[2] = rows[1] * (1.0 + 1e-13)
    frozen = FrozenNetwork([Dense(rows, torch.zeros(3).double())], (3,))
    um.export_onnx(frozen, tmp_path / "right.onnx")
    real = OnnxModel.certify

    def moved(model: OnnxModel, x: Any) -> Claims:
        claims = real(model, x)
        return claims._replace(radius=claims.radius + 1e-4 * (claims.radius > 0.01))

    monkeypatch.setattr(OnnxModel, "certify", moved)
    with pytest.raises(DisagreementError, match="a difference of 1.00e-04"):
        um.export_onnx(frozen, tmp_path / "wrong.onnx")
