"""The file of a frozen network: what is refused, and that nothing is half-written."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from unitmargin import DenseUGNN, freeze
from unitmargin.frozen import FrozenNetwork, ModelFileError, load, save
from unitmargin.frozen.files import FORMAT


@pytest.fixture
def frozen() -> FrozenNetwork:
    return freeze(DenseUGNN((4,), 3), classes=("ant", "bee", "cat"))


@pytest.fixture
def path(tmp_path: Path, frozen: FrozenNetwork) -> Path:
    file = tmp_path / "model.safetensors"
    save(frozen, file)
    return file


def header(path: Path) -> dict[str, str]:
    size = int.from_bytes(path.read_bytes()[:8], "little")
    metadata: dict[str, str] = json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]
    return metadata


def rewrite(
    path: Path,
    changes: dict[str, str] | None = None,
    tensors: dict[str, torch.Tensor] | None = None,
    drop: str = "",
) -> None:
    """The same file with changed header entries and tensors, without the entry ``drop``."""
    metadata = {key: text for key, text in (header(path) | (changes or {})).items() if key != drop}
    content = {key: value for key, value in load_file(path).items() if key != drop}
    save_file(content | (tensors or {}), path, metadata=metadata)


def test_the_header_is_json_and_says_what_the_network_is(path: Path, frozen: FrozenNetwork) -> None:
    content = header(path)
    assert content["format"] == FORMAT
    kinds = [layer["kind"] for layer in json.loads(content["layers"])]
    assert kinds == ["normalize", "flatten", "dense", "maxmin", "dense", "maxmin", "dense"]
    assert json.loads(content["classes"]) == ["ant", "bee", "cat"]
    assert json.loads(content["in_shape"]) == [4]
    assert json.loads(content["facts"]) == frozen.facts


def test_saving_overwrites_whole_files_and_leaves_nothing_aside(
    path: Path, frozen: FrozenNetwork
) -> None:
    path.write_bytes(b"something else")
    save(frozen, path)
    assert load(path).classes == ("ant", "bee", "cat")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_saving_makes_the_folder(frozen: FrozenNetwork, tmp_path: Path) -> None:
    save(frozen, tmp_path / "new" / "folder" / "model.safetensors")
    assert load(tmp_path / "new" / "folder" / "model.safetensors").n_classes == 3


def test_a_missing_file_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="run `unitmargin freeze` first"):
        load(tmp_path / "model.safetensors")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.99])
def test_a_truncated_file_is_damaged(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError, match="damaged or truncated"):
        load(path)


def test_noise_is_damaged(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 8)
    with pytest.raises(ModelFileError, match="damaged or truncated"):
        load(path)


def test_another_format_is_refused(path: Path) -> None:
    rewrite(path, {"format": "unitmargin-frozen-0"})
    with pytest.raises(ModelFileError, match=f"format {FORMAT}, got 'unitmargin-frozen-0'"):
        load(path)


def test_any_other_safetensors_file_is_refused(path: Path) -> None:
    save_file({"weight": torch.zeros(2)}, path)
    with pytest.raises(ModelFileError, match="must have format .* got None"):
        load(path)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_weight_that_is_not_finite_is_refused(path: Path, value: float) -> None:
    weight = load_file(path)["2.weight"]
    weight[1, 2] = value
    rewrite(path, tensors={"2.weight": weight})
    with pytest.raises(ModelFileError, match="tensor 2.weight .* is not finite"):
        load(path)


@pytest.mark.parametrize("name", ["3.weight", "99.weight", "2.other", "weight"])
def test_a_surplus_tensor_is_refused(path: Path, name: str) -> None:
    rewrite(path, tensors={name: torch.zeros(1)})
    with pytest.raises(ModelFileError, match="inconsistent"):
        load(path)


@pytest.mark.parametrize("name", ["2.weight", "6.bias", "0.std", "layers", "classes", "in_shape"])
def test_a_missing_part_is_refused(path: Path, name: str) -> None:
    rewrite(path, drop=name)
    with pytest.raises(ModelFileError, match="inconsistent"):
        load(path)


def test_an_unknown_layer_lists_the_known_ones(path: Path) -> None:
    rewrite(path, {"layers": header(path)["layers"].replace("maxmin", "relu")})
    with pytest.raises(ModelFileError, match="unknown layer kind 'relu', known: flatten"):
        load(path)


def test_a_header_that_is_not_json_is_refused(path: Path) -> None:
    rewrite(path, {"layers": "["})
    with pytest.raises(ModelFileError, match="inconsistent"):
        load(path)


def test_a_negative_deviation_is_refused(path: Path) -> None:
    rewrite(path, tensors={"0.std": -torch.ones(4)})
    with pytest.raises(ModelFileError, match="std must be positive"):
        load(path)


def test_constants_are_measured_not_stored(path: Path) -> None:
    before = load(path).pair_constants()
    rewrite(path, tensors={"6.weight": 2.0 * load_file(path)["6.weight"]})
    assert (load(path).pair_constants() - 2.0 * before).abs().max() <= 1e-12
