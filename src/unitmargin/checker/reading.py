"""Files: the safetensors container by hand, the model in it, and the certified inputs."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unitmargin.checker.arithmetic import Arithmetic, arithmetic

Array = NDArray[np.float64]

FORMAT = "unitmargin-frozen-3"

WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Bytes of a stored number; other types are refused."""

UNFIT = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What entries that are none of a model may raise."""

LARGEST = 2.0**40
"""Largest magnitude of a stored number: behind a larger bias no radius is worth checking."""


class CheckError(ValueError):
    """Files that cannot be checked: damaged, edited, of another format, or of another model."""


class Stored(NamedTuple):
    """One tensor as it lies in a file."""

    dtype: str
    shape: tuple[int, ...]
    content: bytes

    def exact(self) -> Array:
        """The numbers, exactly, in float64."""
        if self.dtype == "BF16":  # the upper half of a float32 number
            bits = np.frombuffer(self.content, "<u2").astype(np.uint32) << 16
            return bits.view(np.float32).astype(np.float64).reshape(self.shape)
        kind = f"<f{WIDTHS[self.dtype]}"
        return np.frombuffer(self.content, kind).astype(np.float64).reshape(self.shape)


class Model(NamedTuple):
    """What a model file says: ``layers`` are (kind, configuration, tensors) in order."""

    in_shape: tuple[int, ...]
    classes: list[str]
    layers: list[tuple[str, dict[str, Any], dict[str, Array]]]
    profiles: dict[str, Arithmetic]
    sha256: str


def file_sha256(path: Path) -> str:
    """Hash of a whole file, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_container(path: Path) -> tuple[dict[str, str], dict[str, Stored]]:
    """Header entries and tensors of a safetensors file: 8 bytes of header length, the header as
    JSON, and the tensors back to back."""
    try:
        data = path.read_bytes()
        size = 8 + int.from_bytes(data[:8], "little")
        if len(data) < 8 or size > len(data):
            raise ValueError("it is truncated")
        table = json.loads(data[8:size].decode(), object_pairs_hook=_unique)
        metadata = table.pop("__metadata__", {})
        tensors = {}
        end = 0
        for name, entry in sorted(table.items(), key=lambda item: item[1]["data_offsets"]):
            start, stop = entry["data_offsets"]
            shape = tuple(entry["shape"])
            if any(type(count) is not int or count < 0 for count in shape):
                raise ValueError(f"tensor {name} has shape {shape}")
            if start != end or stop - start != math.prod(shape) * WIDTHS[entry["dtype"]]:
                raise ValueError(f"tensor {name} does not follow the one before it")
            tensors[name] = Stored(entry["dtype"], shape, data[size + start : size + stop])
            end = stop
        if size + end != len(data):
            raise ValueError("it has another length than its header says")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckError(f"{path} is no sound safetensors file: {error}; make it again") from None
    return metadata, tensors


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ: two readers might believe two different ones."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key of its header occurs twice")
    return dict(pairs)


def fingerprint(header: dict[str, str], tensors: dict[str, Stored]) -> str:
    """SHA-256 of header and tensors, as the model file states it of itself."""
    entries = {name: text for name, text in header.items() if name != "sha256"}
    shapes = {name: [tensor.dtype, list(tensor.shape)] for name, tensor in tensors.items()}
    line = json.dumps({"header": entries, "tensors": shapes}, sort_keys=True)
    digest = hashlib.sha256(line.encode())
    for name in sorted(tensors):
        digest.update(tensors[name].content)
    return digest.hexdigest()


def read_model(path: Path) -> Model:
    """The network in a model file, its hash confirmed."""
    header, tensors = read_container(path)
    if header.get("format") != FORMAT:
        raise CheckError(f"{path} must have format {FORMAT}, got {header.get('format')!r}")
    if header.get("sha256") != fingerprint(header, tensors):
        raise CheckError(f"{path} was edited: its SHA-256 is not that of its content")
    exact = {name: tensor.exact() for name, tensor in tensors.items()}
    for name, values in exact.items():
        if not np.all(np.abs(values) <= LARGEST):  # also for NaN
            raise CheckError(f"tensor {name} of {path} is not finite, or above {LARGEST:g}")
    try:
        layers = []
        for index, layer in enumerate(json.loads(header["layers"])):
            own = [name for name in exact if name.startswith(f"{index}.")]
            state = {name.partition(".")[2]: exact.pop(name) for name in own}
            layers.append((layer["kind"], layer["configuration"], state))
        if exact:
            raise ValueError(f"surplus tensors {sorted(exact)}")
        definitions = json.loads(header["profiles"])
        profiles = {name: arithmetic(name, **entry) for name, entry in definitions.items()}
        in_shape = tuple(json.loads(header["in_shape"]))
        classes = json.loads(header["classes"])
        if not (isinstance(classes, list) and all(type(name) is str for name in classes)):
            raise ValueError(f"its classes must be names, got {classes}")
        _require_domain(json.loads(header["domain"]))
        if json.loads(header["profile"]) not in profiles:
            raise ValueError(f"its profile must be one of {', '.join(profiles)}")
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise CheckError(f"{path} is inconsistent: {error}") from None
    return Model(in_shape, classes, layers, profiles, file_sha256(path))


def _require_domain(ends: Any) -> None:
    """The interval of the entries of inputs: two finite numbers in order, or null for any."""
    if ends is None:
        return
    if not (
        isinstance(ends, list)
        and len(ends) == 2
        and all(type(end) in (int, float) and math.isfinite(end) for end in ends)
        and float(ends[0]) < float(ends[1])
    ):
        raise ValueError(f"its domain must be two finite numbers, low < high, got {ends}")


def read_inputs(path: Path, in_shape: tuple[int, ...]) -> Array:
    """The certified inputs, in float64: tensor ``inputs`` of a safetensors file, or a .npy file."""
    if path.suffix == ".npy":
        try:
            with path.open("rb") as file:
                values = np.lib.format.read_array(file, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise CheckError(f"{path} is no .npy file: {error}") from None
        if values.dtype not in (np.float16, np.float32, np.float64):
            raise CheckError(f"{path} must hold floating-point numbers, got {values.dtype}")
        inputs: Array = values.astype(np.float64)
    else:
        _, tensors = read_container(path)
        if set(tensors) != {"inputs"}:
            raise CheckError(f"{path} must hold one tensor `inputs`, got {sorted(tensors)}")
        inputs = tensors["inputs"].exact()
    if inputs.shape[1:] != in_shape:
        raise CheckError(f"inputs must have shape (samples, {in_shape}), got {inputs.shape}")
    return inputs
