"""The checker's own reader: the same numbers as the reference library, and no doubtful file."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claims import EXAMPLES
from safetensors.torch import load_file, save_file

from unitmargin.checker.reading import (
    LARGEST,
    WIDTHS,
    CheckError,
    file_sha256,
    fingerprint,
    read_container,
    read_inputs,
    read_model,
)
from unitmargin.foundation.files import file_sha256 as other_sha256
from unitmargin.frozen import files, save


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    file = tmp_path_factory.mktemp("saved") / "model.safetensors"
    save(EXAMPLES["pooled"]().network, file)
    return file


@pytest.fixture
def path(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(saved, tmp_path))


def test_limits_and_types_are_those_of_the_format() -> None:
    assert set(WIDTHS) == set(files.DTYPES.values())
    assert LARGEST == files.LARGEST


def test_the_hash_is_that_of_the_library(path: Path) -> None:
    header, tensors = read_container(path)
    assert header["sha256"] == fingerprint(header, tensors)
    assert header["sha256"] == files.fingerprint(header, load_file(path))
    assert file_sha256(path) == other_sha256(path) == read_model(path).sha256


def test_the_hash_of_a_model_is_that_of_what_was_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, read = other_sha256(path), Path.read_bytes

    def replaced(file: Path) -> bytes:
        content = read(file)
        file.write_bytes(b"another one")
        return content

    monkeypatch.setattr(Path, "read_bytes", replaced)
    assert read_model(path).sha256 == before


@pytest.mark.parametrize("dtype", files.DTYPES)
def test_numbers_of_all_types_are_exact(tmp_path: Path, dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0.1, -3e-5], [6e4, 5e-8], [-0.0, 1.0]], dtype=torch.float64).to(dtype)
    save_file({"a": tensor, "none": torch.zeros(0, 2, dtype=dtype)}, tmp_path / "a.safetensors")
    _, tensors = read_container(tmp_path / "a.safetensors")
    assert (tensors["a"].exact() == tensor.double().numpy()).all()
    assert tensors["none"].exact().shape == (0, 2)


def test_a_model_is_its_layers(path: Path) -> None:
    model = read_model(path)
    stored = load_file(path)
    assert model.in_shape == (2, 6, 8)
    assert [kind for kind, _, _ in model.layers] == [
        "normalize", "circular_convolution", "groupsort", "max_pool", "circular_convolution",
        "flatten", "dense",
    ]  # fmt: skip
    assert model.layers[2][1] == {"size": 4}
    for index, (_, _, tensors) in enumerate(model.layers):
        for name, values in tensors.items():
            assert (values == stored[f"{index}.{name}"].double().numpy()).all()


def test_no_truncated_or_flipped_file_is_read(path: Path) -> None:
    content = path.read_bytes()
    size = 8 + int.from_bytes(content[:8], "little")
    for length in {0, 7, 8, len(content) - 1, *range(9, len(content), len(content) // 40)}:
        path.write_bytes(content[:length])
        with pytest.raises(CheckError, match="no sound safetensors file"):
            read_model(path)
    path.write_bytes(content + b" ")
    with pytest.raises(CheckError, match="another length than its header says"):
        read_model(path)
    for step, position in enumerate((*range(0, size, 37), *range(size, len(content), 97))):
        flipped = bytearray(content)
        flipped[position] ^= 1 << step % 8
        path.write_bytes(flipped)
        with pytest.raises(CheckError):
            read_model(path)


def container(path: Path, table: dict[str, Any] | str, data: bytes = b"\0" * 8) -> Path:
    text = (table if isinstance(table, str) else json.dumps(table)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


ENTRY = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "table",
    [
        {},
        [],
        {"a": ENTRY | {"dtype": "I64"}},
        {"a": ENTRY | {"shape": [2]}},
        {"a": ENTRY | {"data_offsets": [0, 16]}},
        {"a": ENTRY | {"data_offsets": [1, 9]}},
        {"a": ENTRY, "b": ENTRY},
        {"a": ENTRY | {"shape": "1"}},
        {"a": ENTRY | {"shape": [1.0]}},
        {"a": ENTRY | {"shape": [-1, -1]}},
        {"a": 3},
        '{"a": 1, "a": 2}',
        '{"__metadata__": {"x": "1", "x": "2"}}',
        "[" * 100_000,
        "\\xff",
    ],
)
def test_doubtful_containers_are_refused(tmp_path: Path, table: Any) -> None:
    with pytest.raises(CheckError, match=r"no sound safetensors file: .*; make it again"):
        read_container(container(tmp_path / "a.safetensors", table))


def test_a_container_by_hand(tmp_path: Path) -> None:
    metadata, tensors = read_container(container(tmp_path / "a", {"a": ENTRY}))
    assert metadata == {}
    assert tensors["a"].exact().tolist() == [0.0]


def edited(path: Path, changes: dict[str, str], tensors: dict[str, torch.Tensor]) -> Path:
    header, _ = read_container(path)
    content = load_file(path) | tensors
    header |= changes
    header["sha256"] = files.fingerprint(header, content)
    save_file(content, path, metadata=header)
    return path


@pytest.mark.parametrize(
    ("changes", "tensors", "message"),
    [
        ({"format": "unitmargin-frozen-2"}, {}, "format unitmargin-frozen-3, got"),
        ({"layers": "["}, {}, "inconsistent"),
        ({"layers": "[]"}, {}, "surplus tensors"),
        ({"layers": "[1]"}, {}, "inconsistent"),
        (
            {"profiles": '{"float64": {"dtype": "float16"}}'},
            {},
            "defines the profiles",
        ),
        ({"profiles": '{"float64": {"dtype": "float64"}}'}, {}, "defines the profiles"),
        (
            {"profiles": '{"x": {"dtype": "float32"}}'},
            {},
            "defines the profiles",
        ),
        ({}, {"6.bias": torch.tensor([0.0, torch.nan, 0, 0, 0])}, "not finite, or above"),
        ({}, {"6.bias": torch.full((5,), 2 * LARGEST)}, "not finite, or above"),
        ({}, {"9.bias": torch.zeros(5)}, "surplus tensors"),
    ],
)
def test_doubtful_models_are_refused(
    path: Path, changes: dict[str, str], tensors: dict[str, torch.Tensor], message: str
) -> None:
    with pytest.raises(CheckError, match=message):
        read_model(edited(path, changes, tensors))


@pytest.mark.parametrize(
    ("entry", "taken"),
    [
        ("null", True),
        ("[0.0, 1.0]", True),
        ("[-1, 2.5e3]", True),
        ("[0.0, 5e-324]", True),
        ("[1.0, 0.0]", False),
        ("[1.0, 1.0]", False),
        ("[9007199254740992, 9007199254740993]", False),
        ("[false, true]", False),
        ('["0", "1"]', False),
        ('"01"', False),
        ('{"0": 0, "1": 1}', False),
        ("[0.0]", False),
        ("[0.0, 1.0, 2.0]", False),
        ("[]", False),
        ("1.0", False),
        ("[[0.0], [1.0]]", False),
        ("[null, 1.0]", False),
        ("[0.0, NaN]", False),
        ("[NaN, 1.0]", False),
        ("[0.0, Infinity]", False),
        ("[0.0, 1e999]", False),
        (f"[0, {10**400}]", False),
        ("", False),
        ("[0.0, 1.0", False),
    ],
)
def test_both_readers_take_the_same_domains(path: Path, entry: str, taken: bool) -> None:
    edited(path, {"domain": entry}, {})
    if taken:
        read_model(path)
        ends = json.loads(entry)
        assert files.load(path).domain == (None if ends is None else tuple(map(float, ends)))
        return
    with pytest.raises(CheckError, match="inconsistent"):
        read_model(path)
    with pytest.raises(files.ModelFileError, match="inconsistent"):
        files.load(path)


def test_an_edit_without_the_hash_is_found(path: Path) -> None:
    header, _ = read_container(path)
    content = load_file(path)
    content["6.bias"][0] += 1.0
    save_file(content, path, metadata=header)
    with pytest.raises(CheckError, match="was edited"):
        read_model(path)


def test_inputs_of_both_formats(tmp_path: Path) -> None:
    x = torch.rand(3, 2, 6, 8)
    save_file({"inputs": x}, tmp_path / "inputs.safetensors")
    np.save(tmp_path / "inputs.npy", x.numpy())
    shutil.copy(tmp_path / "inputs.npy", tmp_path / "INPUTS.NPY")
    for name in ("inputs.safetensors", "inputs.npy", "INPUTS.NPY"):
        assert (read_inputs(tmp_path / name, (2, 6, 8)) == x.double().numpy()).all()
        with pytest.raises(CheckError, match="inputs must have shape"):
            read_inputs(tmp_path / name, (2, 6, 7))
    save_file({"x": x}, tmp_path / "inputs.safetensors")
    with pytest.raises(CheckError, match="one tensor `inputs`"):
        read_inputs(tmp_path / "inputs.safetensors", (2, 6, 8))
    np.save(tmp_path / "inputs.npy", np.zeros((3, 2), dtype=int))
    with pytest.raises(CheckError, match="floating-point numbers"):
        read_inputs(tmp_path / "inputs.npy", (2,))
    np.save(tmp_path / "inputs.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(CheckError, match=r"no \.npy file"):
        read_inputs(tmp_path / "inputs.npy", (2,))
    (tmp_path / "inputs.npy").write_bytes(b"")
    with pytest.raises(CheckError, match=r"no \.npy file"):
        read_inputs(tmp_path / "inputs.npy", (2,))


def npy(shape: str, kind: str = "<f4", data: bytes = b"", order: bool = False) -> bytes:
    """A .npy file whose header says what it likes."""
    text = f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    "content",
    [
        npy("(1000000000000, 2)"),
        npy("(2500000000, 2)"),
        npy("(2, 2)", data=b"\0" * 15),
        npy("(2, 2)", data=b"\0" * 20),
        npy("(-1, 2)", data=b"\0" * 16),
        npy("(True, 2)", data=b"\0" * 8),
        npy("(2.0, 2)", data=b"\0" * 16),
        npy("2", data=b"\0" * 16),
        npy("[2, 2]", data=b"\0" * 16),
        npy("(2, 2)", ">f4", data=b"\0" * 16),
        npy("(2, 2)", "<f16", data=b"\0" * 64),
        npy("(2, 2)", "<c8", data=b"\0" * 32),
        npy("(2, 2)", "|O", data=b"\0" * 32),
        npy("(2, 2)", "nonsense", data=b"\0" * 32),
        npy("(" * 5000),
        npy("-" * 9000 + "1"),
        npy("(9" * 90),
        npy("(" + "1, " * 20 + ")", data=b"\0" * 4),
        npy("(1 0, 2)", data=b"\0" * 80),
        npy("(2, 2)")[:20],
        b"\x93NUMPY\x09\0" + npy("(2, 2)")[8:],
        b"PK\x03\x04" * 9,
        b"",
    ],
)
def test_doubtful_arrays_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(CheckError, match=r"no \.npy file") as refused:
        read_inputs(tmp_path / "x.npy", (2,))
    assert "\n" not in str(refused.value)


def test_arrays_in_either_order_are_read(tmp_path: Path) -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    np.save(tmp_path / "x.npy", x)
    assert (read_inputs(tmp_path / "x.npy", (2,)) == x).all()
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    assert (read_inputs(tmp_path / "x.npy", (2,)) == x).all()
    np.save(tmp_path / "x.npy", np.float32(1))
    with pytest.raises(CheckError, match="inputs must have shape"):
        read_inputs(tmp_path / "x.npy", (2,))
