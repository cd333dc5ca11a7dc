"""Files: the safetensors container by hand, the model in it, and the certified inputs."""

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unitmargin.checker.arithmetic import PROFILES, definitions
from unitmargin.checker.strict import (
    LARGEST_INPUT,
    LONGEST_HEADER,
    LONGEST_NAME,
    MOST_AXES,
    MOST_LAYERS,
    is_size,
    one_line,
    parse,
)

Array = NDArray[np.float64]

FORMAT = "unitmargin-frozen-3"

HEADER = {
    "format", "layers", "in_shape", "domain", "classes", "facts", "profile", "profiles", "sha256",
}  # fmt: skip
"""Entries of a model file: all of them, and no other."""

HEADS = ("upd", "orthonormal", "unit_rows")
"""What a model file may promise of its head; nothing here depends on it."""

WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Bytes of a stored number; other types are refused."""

LARGEST = 2.0**40
"""Largest magnitude of a stored number: behind a larger bias no radius is worth checking."""

UNFIT = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip
"""What content that is none of its kind may raise."""


NPY = re.compile(
    rb"\x93NUMPY\x01\0..\{'descr': ?'<f(?P<width>[248])', ?'fortran_order': ?(?P<order>True|False),"
    rb" ?'shape': ?\((?P<shape>[0-9 ,]{0,99})\),? ?\} *\n?",
    re.DOTALL,
)
"""The beginning of a .npy file of floating-point numbers."""


class CheckError(ValueError):
    """Files that cannot be checked: damaged, edited, of another format, or of another model."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class Stored(NamedTuple):
    """One tensor as it lies in a file."""

    dtype: str
    shape: tuple[int, ...]
    content: memoryview

    def exact(self) -> Array:
        """The numbers, exactly, in float64."""
        if self.dtype == "BF16":  # the upper half of a float32 number
            bits = np.frombuffer(self.content, "<u2").astype(np.uint32) << 16
            return bits.view(np.float32).astype(np.float64).reshape(self.shape)
        kind = f"<f{WIDTHS[self.dtype]}"
        return np.frombuffer(self.content, kind).astype(np.float64).reshape(self.shape)


class Model(NamedTuple):
    """What a model file says: ``layers`` are (kind, configuration, tensors) in order, as the file
    gives them, and ``encoding`` is what became of the columns of a table."""

    in_shape: tuple[int, ...]
    classes: list[str]
    encoding: Any
    layers: list[tuple[Any, Any, dict[str, Array]]]
    sha256: str


def file_sha256(path: Path) -> str:
    """Hash of a whole file, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_container(path: Path) -> tuple[dict[str, str], dict[str, Stored]]:
    """Header entries and tensors of a safetensors file: 8 bytes of header length, the header as
    JSON, and the tensors back to back."""
    return _container(path, path.read_bytes())


def _container(path: Path, content: bytes) -> tuple[dict[str, str], dict[str, Stored]]:
    data = memoryview(content)
    try:
        length = int.from_bytes(data[:8], "little")
        if len(data) < 8 or 8 + length > len(data):
            raise ValueError("it is truncated")
        if length > LONGEST_HEADER:
            raise ValueError(f"its header has more than {LONGEST_HEADER} bytes")
        table = parse(bytes(data[8 : 8 + length]))
        metadata = table.pop("__metadata__", {})
        if bytes(data[8:9]) != b"{" or not all(type(text) is str for text in metadata.values()):
            raise ValueError("its header is no object of texts and tensors")
        tensors, end = {}, 0
        for name, entry in sorted(table.items(), key=lambda item: item[1]["data_offsets"]):
            tensors[name], end = _stored(name, entry, data[8 + length :], end)
        if 8 + length + end != len(data):
            raise ValueError("it has another length than its header says")
    except UNFIT as error:
        raise CheckError(f"{path} is no sound safetensors file: {error}; make it again") from None
    return metadata, tensors


def _stored(name: str, entry: dict[str, Any], data: memoryview, end: int) -> tuple[Stored, int]:
    """The tensor of an entry, which begins where the one before it ends, and its own end."""
    dtype, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if len(entry) != 3 or not isinstance(shape, list) or len(shape) > MOST_AXES:
        raise ValueError(f"tensor {name} has entries {entry}")
    if not all(is_size(count) or (type(count) is int and count == 0) for count in shape):
        raise ValueError(f"tensor {name} has shape {shape}")
    if not type(start) is type(stop) is int or start != end:
        raise ValueError(f"tensor {name} does not follow the one before it")
    if stop - start != math.prod(shape) * WIDTHS[dtype]:
        raise ValueError(f"tensor {name} has another length than its shape")
    return Stored(dtype, tuple(shape), data[start:stop]), stop


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
    content = path.read_bytes()
    header, tensors = _container(path, content)
    if header.get("format") != FORMAT:
        raise CheckError(f"{path} must have format {FORMAT}, got {header.get('format')!r}")
    if header.get("sha256") != fingerprint(header, tensors):
        raise CheckError(f"{path} was edited: its SHA-256 is not that of its content")
    try:
        if set(header) != HEADER:
            raise ValueError(f"its header must hold {sorted(HEADER)}, got {sorted(header)}")
        stated = listed(parse(header["layers"]))
        if max(len(stated), len(tensors) / 4) > MOST_LAYERS:
            raise ValueError(f"it has more than {MOST_LAYERS} layers or four times as many tensors")
        exact, layers = _numbers(tensors), []
        for index, layer in enumerate(stated):
            own = [name for name in exact if name.startswith(f"{index}.")]
            state = {name.partition(".")[2]: exact.pop(name) for name in own}
            layers.append((*specified(layer), state))
        if exact:
            raise ValueError(f"surplus tensors {sorted(exact)}")
        _require_profiles(parse(header["profiles"]), parse(header["profile"]))
        _require_domain(parse(header["domain"]))
        facts = _facts(parse(header["facts"]))
        in_shape = _in_shape(parse(header["in_shape"]))
        classes = listed(parse(header["classes"]))
        if not all(type(name) is str and len(name) <= LONGEST_NAME for name in classes):
            raise ValueError(f"its classes must be names of at most {LONGEST_NAME} characters")
    except UNFIT as error:
        raise CheckError(f"{path} is inconsistent: {error}") from None
    sha256 = hashlib.sha256(content).hexdigest()  # of what was read: a file may be replaced
    return Model(in_shape, classes, facts.get("encoding"), layers, sha256)


def listed(value: Any) -> list[Any]:
    """The value, if it is a list."""
    if not isinstance(value, list):
        raise ValueError(f"a list is missing, got {value!r}")
    return value


def specified(layer: Any) -> tuple[Any, Any]:
    """Kind and configuration of a layer."""
    if not isinstance(layer, dict) or set(layer) != {"kind", "configuration"}:
        raise ValueError(f"a layer must be given by kind and configuration, got {layer!r}")
    return layer["kind"], layer["configuration"]


def _numbers(tensors: dict[str, Stored]) -> dict[str, Array]:
    """The stored numbers: of one type, finite, and at most LARGEST in magnitude."""
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        raise ValueError("its tensors must be of one type")
    exact = {name: tensor.exact() for name, tensor in tensors.items()}
    for name, values in exact.items():
        if not np.all(np.abs(values) <= LARGEST):  # also for NaN
            raise ValueError(f"tensor {name} is not finite, or above {LARGEST:g}")
    return exact


def _in_shape(lengths: Any) -> tuple[int, ...]:
    if not (isinstance(lengths, list) and 1 <= len(lengths) <= MOST_AXES):
        raise ValueError(f"in_shape must have 1 to {MOST_AXES} lengths, got {lengths!r}")
    if not all(map(is_size, lengths)) or math.prod(lengths) > LARGEST_INPUT:
        raise ValueError(f"in_shape must hold at most {LARGEST_INPUT} numbers, got {lengths!r}")
    return tuple(lengths)


def _require_profiles(stated: Any, chosen: Any) -> None:
    """As text, since true equals 1 and 2.0 equals 2."""
    if json.dumps(stated, sort_keys=True) != json.dumps(definitions(), sort_keys=True):
        raise ValueError(f"it defines the profiles {stated}, not {definitions()}")
    if not (isinstance(chosen, str) and chosen in PROFILES):
        raise ValueError(f"its profile must be one of {', '.join(PROFILES)}")


def _facts(facts: Any) -> dict[str, Any]:
    if not isinstance(facts, dict) or facts.get("head", HEADS[0]) not in HEADS:
        raise ValueError(f"its facts must be an object, its head one of {', '.join(HEADS)}")
    return facts


def _require_domain(ends: Any) -> None:
    """The interval of the entries of inputs: two finite numbers in order, or null for any."""
    if ends is None:
        return
    if not (
        isinstance(ends, list)
        and len(ends) == 2
        and all(type(end) in (int, float) for end in ends)
        and -math.inf < float(ends[0]) < float(ends[1]) < math.inf
    ):
        raise ValueError(f"its domain must be two finite numbers, low < high, got {ends}")


def read_inputs(path: Path, in_shape: tuple[int, ...]) -> Array:
    """The certified inputs, in float64: tensor ``inputs`` of a safetensors file, or a .npy file."""
    if path.suffix.lower() == ".npy":
        inputs = _read_npy(path)
    else:
        _, tensors = read_container(path)
        if set(tensors) != {"inputs"}:
            raise CheckError(f"{path} must hold one tensor `inputs`, got {sorted(tensors)}")
        inputs = tensors["inputs"].exact()
    if inputs.ndim == 0 or inputs.shape[1:] != in_shape:
        raise CheckError(f"inputs must have shape (samples, {in_shape}), got {inputs.shape}")
    return inputs


def _read_npy(path: Path) -> Array:
    """The array of a .npy file: ten bytes of kind and header length, a header as NumPy writes it,
    which is matched and not evaluated, and the numbers."""
    data = memoryview(path.read_bytes())
    try:
        begin = 10 + int.from_bytes(data[8:10], "little")
        found = NPY.fullmatch(bytes(data[:begin]))
        if found is None:
            raise ValueError("it must hold floating-point numbers as NumPy saves them")
        shape = tuple(int(size) for size in found["shape"].split(b",") if size.strip())
        if len(shape) > MOST_AXES or not all(map(is_size, shape)):
            raise ValueError(f"it has shape {shape}")
        values = np.frombuffer(data[begin:], f"<f{found['width'].decode()}")
        ordered = values.reshape(shape, order="F" if found["order"] == b"True" else "C")
    except UNFIT as error:
        raise CheckError(f"{path} is no .npy file: {error}; save it again") from None
    inputs: Array = ordered.astype(np.float64, order="C")
    return inputs
