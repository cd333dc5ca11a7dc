"""The file of a frozen network: what is refused, and that nothing is half-written (T16)."""

import json
import math
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from model_files import header, rewrite
from safetensors.torch import load_file, save_file
from torch import Tensor

from unitmargin import UGNN, DenseUGNN, certify, freeze
from unitmargin.auditing.audit import audit
from unitmargin.frozen import ConvexCombination, Dense, FrozenNetwork, ModelFileError, load, save
from unitmargin.frozen.files import FORMAT, HEADER, LARGEST, fingerprint
from unitmargin.layers.contract import ExactLayer, FixedLayer


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("saved") / "model.safetensors"
    save(freeze(DenseUGNN((4,), 3), classes=("ant", "bee", "cat")), file)
    return file


@pytest.fixture(scope="module")
def convolutional(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("saved") / "model.safetensors"
    save(freeze(UGNN((2, 4, 8), 3, depth=1)), file)
    return file


@pytest.fixture
def path(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(saved, tmp_path))


def test_the_header_is_json_and_says_what_the_network_is(path: Path) -> None:
    content = header(path)
    assert set(content) == HEADER
    assert content["format"] == FORMAT
    kinds = [layer["kind"] for layer in json.loads(content["layers"])]
    assert kinds == ["normalize", "flatten", "dense", "maxmin", "dense", "maxmin", "dense"]
    assert json.loads(content["classes"]) == ["ant", "bee", "cat"]
    assert json.loads(content["in_shape"]) == [4]
    assert json.loads(content["facts"]) == load(path).facts
    assert json.loads(content["profile"]) == "float64"
    assert json.loads(content["profiles"]) == {
        "float64": {"dtype": "float64"},
        "float32": {"dtype": "float32"},
    }


def test_saving_overwrites_whole_files_and_leaves_nothing_aside(path: Path) -> None:
    frozen = load(path)
    path.write_bytes(b"something else")
    assert frozen.head.weight.norm() > 0  # loaded weights do not follow the file
    save(frozen, path)
    assert load(path).classes == ("ant", "bee", "cat")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("domain", [None, (0.0, 1.0), (-1.5, 1e-300)])
def test_the_domain_returns(path: Path, domain: tuple[float, float] | None) -> None:
    frozen = load(path)
    frozen.domain = domain
    save(frozen, path)
    assert json.loads(header(path)["domain"]) == (None if domain is None else list(domain))
    assert load(path).domain == domain


@pytest.mark.parametrize("domain", [(1.0, 0.0), (0.0, math.nan), (0.0, math.inf), "01", 3])
def test_a_domain_that_is_no_interval_is_not_saved(path: Path, domain: object) -> None:
    frozen, before = load(path), path.read_bytes()
    frozen.domain = domain  # type: ignore[assignment]
    with pytest.raises(ValueError, match="frozen must be what load takes"):
        save(frozen, path)
    assert path.read_bytes() == before


def test_a_folder_is_no_model_file(path: Path) -> None:
    for use in (load, lambda folder: save(load(path), folder)):
        with pytest.raises(ValueError, match=f"path must be a file, got the folder {path.parent};"):
            use(path.parent)


def test_saving_makes_the_folder(path: Path, tmp_path: Path) -> None:
    save(load(path), tmp_path / "new" / "folder" / "model.safetensors")
    assert load(tmp_path / "new" / "folder" / "model.safetensors").n_classes == 3


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_weights_of_any_type_return(path: Path, dtype: torch.dtype) -> None:
    frozen = load(path).to(dtype)
    save(frozen, path)
    again = load(path)
    assert again.dtype == dtype
    assert all(map(torch.equal, frozen.buffers(), again.buffers()))


def test_a_missing_file_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="run `unitmargin freeze` first"):
        load(tmp_path / "model.safetensors")


def test_an_exported_network_is_opened_by_others(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    with pytest.raises(ModelFileError, match="is an exported network, which unitmargin.Guard"):
        load(tmp_path / "model.onnx")


@pytest.mark.parametrize("source", ["saved", "convolutional"])
def test_a_file_truncated_anywhere_is_damaged(
    source: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    content = request.getfixturevalue(source).read_bytes()
    path = tmp_path / "model.safetensors"
    for length in {0, 1, 7, 8, 9, len(content) - 1, *range(10, len(content), len(content) // 50)}:
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"damaged or truncated .*; freeze it again"):
            load(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(ModelFileError, match="damaged or truncated"):
        load(path)


@pytest.mark.parametrize("source", ["saved", "convolutional"])
def test_a_flipped_bit_anywhere_is_found(
    source: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    content = request.getfixturevalue(source).read_bytes()
    path = tmp_path / "model.safetensors"
    size = 8 + int.from_bytes(content[:8], "little")
    steps = (*range(0, size, 41), *range(size, len(content), (len(content) - size) // 100))
    for step, position in enumerate(steps):
        flipped = bytearray(content)
        flipped[position] ^= 1 << step % 8
        path.write_bytes(flipped)
        with pytest.raises(ModelFileError, match="freeze"):
            load(path)


@pytest.mark.parametrize(
    "content", [bytes(range(256)) * 8, b"{}", pickle.dumps({"weight": [1.0]}), b"PK\x03\x04" * 9]
)
def test_noise_and_pickles_are_damaged(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged or truncated"):
        load(path)
    torch.save({"weight": torch.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="damaged or truncated"):
        load(path)


@pytest.mark.parametrize("name", ["unitmargin-frozen-1", "unitmargin-frozen-2"])
def test_another_format_is_refused(path: Path, name: str) -> None:
    rewrite(path, {"format": name}, drop="profiles")
    match = f"format {FORMAT}, got '{name}'; freeze the network again with this version"
    with pytest.raises(ModelFileError, match=match):
        load(path)


def test_any_other_safetensors_file_is_refused(path: Path) -> None:
    save_file({"weight": torch.zeros(2)}, path)
    with pytest.raises(ModelFileError, match="must have format .* got None"):
        load(path)


def edited(path: Path) -> list[tuple[dict[str, str], dict[str, torch.Tensor]]]:
    """Careless edits: plausible content, the old hash."""
    weight = load_file(path)["2.weight"]
    return [
        ({"layers": header(path)["layers"].replace("maxmin", "oplu")}, {}),
        ({"classes": '["ant", "cat", "bee"]'}, {}),
        ({"facts": header(path)["facts"].replace("e-", "e-1")}, {}),
        ({"profiles": header(path)["profiles"].replace("float32", "float64")}, {}),
        ({"profile": '"float32"'}, {}),
        ({"in_shape": "[2, 2]"}, {}),
        ({"domain": "[0.0, 255.0]"}, {}),
        ({"sha256": "0" * 64}, {}),
        ({}, {"2.weight": weight * (1 + 2**-20)}),
        ({}, {"2.weight": weight.mT.contiguous()}),
        ({}, {"2.weight": weight.double()}),
    ]


@pytest.mark.parametrize("case", range(11))
def test_an_edit_is_found_by_the_hash(path: Path, case: int) -> None:
    changes, tensors = edited(path)[case]
    rewrite(path, changes, tensors, rehash=False)
    with pytest.raises(ModelFileError, match=r"SHA-256 is not that of its content.*freeze it"):
        load(path)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (torch.nan, "not finite"),
        (torch.inf, "not finite"),
        (-torch.inf, "not finite"),
        (3 * LARGEST, "above 1.09951e"),
        (-3e38, "above 1.09951e"),
    ],
)
@pytest.mark.parametrize("name", ["2.weight", "6.bias", "0.mean"])
def test_an_absurd_number_is_refused(path: Path, name: str, value: float, what: str) -> None:
    tensor = load_file(path)[name]
    tensor.flatten()[1] = value
    rewrite(path, tensors={name: tensor})
    with pytest.raises(ModelFileError, match=f"tensor {name} .*{what}"):
        load(path)


@pytest.mark.parametrize("name", ["3.weight", "99.weight", "2.other", "weight", "1.bias"])
def test_a_surplus_tensor_is_refused(path: Path, name: str) -> None:
    rewrite(path, tensors={name: torch.zeros(1)})
    with pytest.raises(ModelFileError, match="inconsistent"):
        load(path)


def test_a_surplus_entry_is_refused(path: Path) -> None:
    rewrite(path, {"constants": "[1.0]"})
    with pytest.raises(ModelFileError, match="the header must hold"):
        load(path)


@pytest.mark.parametrize(
    "name",
    ["2.weight", "6.bias", "0.std", *sorted(HEADER - {"format"})],
)
def test_a_missing_part_is_refused(path: Path, name: str) -> None:
    rewrite(path, drop=name, rehash=name != "sha256")
    with pytest.raises(ModelFileError, match="inconsistent"):
        load(path)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.complex64])
def test_a_tensor_of_another_type_is_refused(path: Path, dtype: torch.dtype) -> None:
    rewrite(path, tensors={"4.bias": load_file(path)["4.bias"].to(dtype)})
    with pytest.raises(ModelFileError, match="tensors must be of"):
        load(path)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("2.bias", (1,)),
        ("2.weight", (4, 5)),
        ("2.weight", (3, 4)),
        ("2.weight", (4,)),
        ("0.mean", (1,)),
        ("6.weight", (3, 5)),
        ("6.bias", (3, 1)),
    ],
)
def test_a_tensor_of_another_shape_is_refused(
    path: Path, name: str, shape: tuple[int, ...]
) -> None:
    rewrite(path, tensors={name: torch.zeros(shape)})
    with pytest.raises(ModelFileError, match=r"(?s)inconsistent: .*; freeze it again"):
        load(path)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("2.bias", (1,)),
        ("2.real", (4, 3, 2)),
        ("2.pairs", (14, 1, 2, 2)),
        ("2.pairs", (13, 2, 2, 2)),
        ("0.std", (1,)),
    ],
)
def test_a_convolution_of_another_shape_is_refused(
    convolutional: Path, tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    path = Path(shutil.copy(convolutional, tmp_path))
    rewrite(path, tensors={name: torch.ones(shape)})
    with pytest.raises(ModelFileError, match=r"(?s)inconsistent: .*; freeze it again"):
        load(path)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"in_shape": "[5]"}, "channels"),
        ({"in_shape": "[4, -1]"}, "positive integers"),
        ({"in_shape": "[4.0]"}, "positive integers"),
        ({"in_shape": "[4, 1000000000000]"}, "positive integers"),
        ({"in_shape": "[4, 134217728]"}, "at most"),
        ({"in_shape": "4"}, "positive integers"),
        ({"classes": '["ant"]'}, "classes must be 3 names, one a row of the head, got 1"),
        ({"classes": '"ant"'}, "list of names"),
        ({"classes": "[1, 2, 3]"}, "list of names"),
        ({"profiles": "{}"}, "made for the profiles"),
        ({"layers": "["}, "Expecting value"),
        ({"layers": "[" * 100_000}, "nested so deeply"),
        ({"layers": "[]"}, "surplus tensors"),
        ({"facts": "nonsense"}, "Expecting value"),
        ({"facts": "[1]"}, "inconsistent"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(
    path: Path, changes: dict[str, str], what: str
) -> None:
    rewrite(path, changes)
    with pytest.raises(ModelFileError, match=what):
        load(path)


@pytest.mark.parametrize(
    "layer",
    [
        '{"kind": "flatten"}',
        '{"kind": "flatten", "configuration": {}, "norm": 0.5}',
        '{"kind": "flatten", "configuration": {"size": 2}}',
        '{"kind": "relu", "configuration": {}}',
        '{"kind": ["flatten"], "configuration": {}}',
        '{"kind": "groupsort", "configuration": {"size": 2.0}}',
        '{"kind": "groupsort", "configuration": {}}',
        '{"kind": "groupsort", "configuration": []}',
        '"flatten"',
    ],
)
def test_a_layer_that_nothing_writes_is_refused(path: Path, layer: str) -> None:
    flatten = '{"kind": "flatten", "configuration": {}}'
    text = header(path)["layers"]
    assert flatten in text
    rewrite(path, {"layers": text.replace(flatten, layer)})
    with pytest.raises(ModelFileError, match=r"(?s)inconsistent: .*; freeze it again"):
        load(path)


def test_a_pool_of_no_size_is_refused(path: Path) -> None:
    flatten = '{"kind": "flatten", "configuration": {}}'
    pool = '{"kind": "scaled_average_pool", "configuration": {"size": 0}}'
    rewrite(
        path, {"layers": header(path)["layers"].replace(flatten, pool), "in_shape": "[4, 2, 2]"}
    )
    with pytest.raises(ModelFileError, match="inconsistent"):
        load(path)


def test_an_unknown_layer_lists_the_known_ones(path: Path) -> None:
    rewrite(path, {"layers": header(path)["layers"].replace("maxmin", "relu")})
    with pytest.raises(ModelFileError, match="layer kind must be one of flatten.* got 'relu'"):
        load(path)


def test_a_negative_deviation_is_refused(path: Path) -> None:
    rewrite(path, tensors={"0.std": -torch.ones(4)})
    with pytest.raises(ModelFileError, match="std must be positive"):
        load(path)


def test_constants_are_proved_not_stored(path: Path) -> None:
    before = load(path).pair_constants()
    rewrite(path, tensors={"6.weight": 2.0 * load_file(path)["6.weight"]})
    assert (load(path).pair_constants() - 2.0 * before).abs().max() <= 1e-12


def test_the_hash_depends_on_everything() -> None:
    tensors = {"a": torch.arange(4.0), "b": torch.zeros(0, 2)}
    hashes = {
        fingerprint({"layers": "x"}, tensors),
        fingerprint({"layers": "y"}, tensors),
        fingerprint({"layer": "x"}, tensors),
        fingerprint({"layers": "x"}, {"a": tensors["a"]}),
        fingerprint({"layers": "x"}, tensors | {"b": torch.zeros(0, 3)}),
        fingerprint({"layers": "x"}, tensors | {"a": torch.arange(4.0).view(2, 2)}),
        fingerprint({"layers": "x"}, tensors | {"a": torch.arange(4.0).flip(0)}),
        fingerprint({"layers": "x"}, tensors | {"a": torch.arange(4.0).view(torch.int32)}),
    }
    assert len(hashes) == 8
    assert fingerprint({"layers": "x", "sha256": "?"}, tensors) in hashes


def test_shared_weights_are_saved(tmp_path: Path) -> None:
    layer = Dense(torch.eye(2), torch.zeros(2))
    twin = Dense(layer.weight, layer.bias)
    save(FrozenNetwork([layer, twin], (2,)), tmp_path / "model.safetensors")
    assert len(load(tmp_path / "model.safetensors").layers) == 2


def test_expanded_tensors_are_saved(tmp_path: Path) -> None:
    layer = Dense(torch.eye(2), torch.zeros(1).expand(2))
    save(FrozenNetwork([layer], (2,)), tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").head.bias.tolist() == [0.0, 0.0]
    single = Dense(torch.eye(1), torch.zeros(()).expand(1))
    save(FrozenNetwork([single, layer_of(2)], (1,)), tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").features()[0].bias.tolist() == [0.0]


def layer_of(classes: int) -> Dense:
    return Dense(torch.ones(classes, 1), torch.zeros(classes))


def test_one_class_is_neither_saved_nor_certified(tmp_path: Path) -> None:
    network = FrozenNetwork([layer_of(1)], (1,))
    with pytest.raises(ValueError, match="at least 2 classes, got 1"):
        save(network, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="at least 2 classes, got 1"):
        certify(network, torch.ones(1, 1))
    with pytest.raises(ValueError, match="at least 2 classes, got 1"):
        audit(network)


@pytest.mark.parametrize("number", [math.nan, math.inf, 2.0**41])
def test_what_load_refuses_is_not_saved(tmp_path: Path, number: float) -> None:
    network = FrozenNetwork([Dense(torch.eye(2), torch.tensor([0.0, number]))], (2,))
    with pytest.raises(ValueError, match="frozen must be what load takes, but tensor 0.bias"):
        save(network, tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_layer_that_load_does_not_know_is_not_saved(tmp_path: Path) -> None:
    class Twice(FixedLayer):
        kind = "twice"

    network = FrozenNetwork([Twice(), Dense(torch.eye(2), torch.zeros(2))], (2,))
    with pytest.raises(ValueError, match="layer kind must be one of .*'twice'"):
        save(network, tmp_path / "model.safetensors")


@pytest.mark.parametrize("inside", [False, True])
def test_a_layer_with_the_name_of_another_is_not_saved(tmp_path: Path, inside: bool) -> None:
    class Relu(ExactLayer):
        kind = "abs"

        def forward(self, x: Tensor) -> Tensor:
            return x.relu()

    head = Dense(torch.eye(2), torch.zeros(2))
    layer = ConvexCombination(torch.tensor(0.5), [Relu()]) if inside else Relu()
    with pytest.raises(TypeError, match="a file calls 'abs', of type Abs, got Relu; save what is"):
        save(FrozenNetwork([layer, head], (2,)), tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"a": torch.ones(1)}, "facts must be JSON values, but Object of type Tensor is not JSON"),
        ({"a": math.nan}, "facts must be JSON values, but Out of range float values"),
        ({1: 2}, r"facts must come back from JSON as they are, got \{1: 2\}; name them by text"),
        ({"a": "b" * 99, "c": (1, 2)}, r"as they are, got \{'c': \(1, 2\)\}; .* lists of tuples"),
    ],
)
def test_facts_are_what_json_has(tmp_path: Path, facts: dict[Any, Any], message: str) -> None:
    network = FrozenNetwork([Dense(torch.eye(2), torch.zeros(2))], (2,))
    network.facts = facts
    with pytest.raises(ValueError, match=message):
        save(network, tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("side", [4, 6])
def test_short_numbers_are_stored_whatever_the_map(
    tmp_path: Path, dtype: torch.dtype, side: int
) -> None:
    frozen = freeze(UGNN((1, side, side), 3, depth=1)).to(dtype)
    save(frozen, tmp_path / "model.safetensors")
    x = torch.rand(2, 1, side, side, dtype=torch.float64)
    assert torch.equal(load(tmp_path / "model.safetensors").in_float64()(x), frozen.in_float64()(x))


def test_a_header_that_load_finds_too_long_is_not_saved(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    network = FrozenNetwork([Dense(torch.eye(2), torch.zeros(2))], (2,))
    for length, saved in ((2**22 - 5000, True), (2**22, False)):
        network.facts = {"note": "x" * length}
        if saved:
            save(network, file)
            assert load(file).facts == network.facts
            file.unlink()
            continue
        with pytest.raises(ValueError, match="its header must have at most 4194304 bytes, got"):
            save(network, file)
    assert list(tmp_path.iterdir()) == []
