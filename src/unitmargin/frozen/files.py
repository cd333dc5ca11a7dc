"""The file of a frozen network: safetensors with a JSON header and a hash, never pickle."""

import copy
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unitmargin.foundation.choice import choose
from unitmargin.foundation.failures import one_line
from unitmargin.foundation.files import require_path
from unitmargin.foundation.tensors import read_tensors, write_tensors
from unitmargin.frozen.combination import BRANCH_LAYERS, ConvexCombination, take_prefixed
from unitmargin.frozen.convolution import CircularConvolution
from unitmargin.frozen.dense import Dense
from unitmargin.frozen.deployed import FrozenNetwork, require_frozen
from unitmargin.frozen.limits import (
    LARGEST_INPUT,
    LONGEST_NAME,
    MOST_AXES,
    MOST_TENSORS,
    facts_text,
    is_size,
    parse,
    read_table,
    require_layers,
    require_length,
)
from unitmargin.frozen.mixing import MIXINGS
from unitmargin.frozen.profiles import PROFILES
from unitmargin.frozen.reflection import REFLECTIONS
from unitmargin.layers.activations import ACTIVATIONS
from unitmargin.layers.average_pool import ScaledAveragePool
from unitmargin.layers.contract import FixedLayer, own_kind
from unitmargin.layers.faithful import require_faithful
from unitmargin.layers.l2_pool import L2Pool
from unitmargin.layers.margin import require_several_classes
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten, MaxPool, PixelUnshuffle, Widen

FORMAT = "unitmargin-frozen-3"

HEADER = {
    "format", "layers", "in_shape", "domain", "classes", "facts", "profile", "profiles", "sha256",
}  # fmt: skip
"""Entries of the header: all of them, and no other."""

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
"""Types of stored numbers, by their safetensors names."""

LARGEST = 2.0**40
"""Largest magnitude of a stored number. Weights of unit-gradient networks are at most 1; behind a
bias above it float64 itself resolves logits no finer than 1e-4, so no radius would be worth having.
"""

WITHOUT_WEIGHT = (
    Flatten, PixelUnshuffle, Widen, MaxPool, ScaledAveragePool, L2Pool, Normalize,
)  # fmt: skip

STORED: tuple[type[FixedLayer], ...] = (
    Dense, CircularConvolution, *MIXINGS.values(), *REFLECTIONS.values(), ConvexCombination,
)  # fmt: skip

FROZEN_LAYERS: dict[str, type[FixedLayer]] = {
    **{layer.kind: layer for layer in WITHOUT_WEIGHT},
    **{layer.kind: layer for layer in STORED},
    **ACTIVATIONS,
}
"""The layers that a file may name."""

BRANCH_LAYERS |= {kind: layer for kind, layer in FROZEN_LAYERS.items() if layer is not Normalize}


UNFIT = (LookupError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError)
"""What rebuilding a network from entries that do not fit together may raise."""


class ModelFileError(ValueError):
    """A model file that cannot be trusted: damaged, edited, of another format, or inconsistent."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


def save(frozen: FrozenNetwork, path: str | Path) -> None:
    """Write a frozen network to one safetensors file; the file appears whole or not at all.

    The header holds the layers' configurations, the input shape and domain, the class names, the
    facts recorded at freezing, the network's profile, the definitions of all profiles, as JSON, and
    the hash of it all. See :func:`load`.

    Raises:
        TypeError: a model that is not frozen, or evaluates something else than what is written; no
            path.
        ValueError: a folder, or what :func:`load` would refuse: a number that is not finite, a
            layer of an unknown kind, facts that JSON does not have; nothing is written.
    """
    require_frozen(frozen)
    require_faithful(frozen)
    _require_own_kinds(frozen)
    file = require_path("path", path)
    tensors: dict[str, Tensor] = {}
    layers = []
    for index, layer in enumerate([*frozen.features(), frozen.head]):
        layers.append({"kind": layer.kind, "configuration": layer.configuration()})
        tensors |= {f"{index}.{name}": tensor for name, tensor in layer.state_dict().items()}
    header = {
        "format": FORMAT,
        "layers": json.dumps(layers),
        "in_shape": json.dumps(list(frozen.in_shape)),
        "domain": json.dumps(frozen.domain),
        "classes": json.dumps(list(frozen.classes)),
        "facts": facts_text(frozen.facts),
        "profile": json.dumps(frozen.profile),
        "profiles": _profiles(),
    }
    header["sha256"] = fingerprint(header, tensors)
    try:
        require_length(header, tensors)
        _require_entries(header, tensors)
        _rebuild(header, tensors)
    except UNFIT as error:
        reason = one_line(f"frozen must be what load takes, but {error}; mend it first")
        raise ValueError(reason) from None
    write_tensors(file, tensors, header)


def _require_own_kinds(frozen: FrozenNetwork) -> None:
    """Raise for a layer of somebody's that has the name of another kind in files."""
    for name, layer in frozen.network.named_modules():
        if not isinstance(layer, FixedLayer):
            continue
        known = FROZEN_LAYERS.get(layer.kind)
        if known not in (None, own_kind(layer)):
            raise TypeError(
                f"{name} must be what a file calls {layer.kind!r}, of type {known.__name__}, got "
                f"{type(layer).__name__}; save what is made of this package's layers alone"
            )


def fingerprint(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of weights, configuration and profiles: of the file's meaning, not of its bytes.

    Hashed are a line of JSON with sorted keys, ``{"header": every entry but the hash, "tensors":
    {name: [type, shape]}}``, and then the little-endian numbers of the tensors in the order of
    their names. It finds accidents and careless edits; whoever rewrites the hash as well is found
    by the hash that was noted elsewhere (``certificates.json``), or not at all.
    """
    shapes = {name: [DTYPES.get(t.dtype), list(t.shape)] for name, t in tensors.items()}
    entries = {name: text for name, text in header.items() if name != "sha256"}
    line = json.dumps({"header": entries, "tensors": shapes}, sort_keys=True)
    digest = hashlib.sha256(line.encode())
    for name in sorted(tensors):
        numbers = tensors[name].detach().cpu().clone(memory_format=torch.contiguous_format)
        digest.update(numbers.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load(path: str | Path) -> FrozenNetwork:
    """Read a frozen network; every certificate constant is proved again from its weights.

    Raises:
        TypeError: no path.
        ValueError: a folder.
        FileNotFoundError: no such file.
        ModelFileError: damaged or truncated, another format, a hash that is not that of the
            content, other profiles than this version's, an unknown layer, missing or surplus
            entries or tensors, wrong shapes or types, a number that is not finite or above
            ``LARGEST``, a size beyond ``limits.py``, JSON that readers may take for different
            things, or layers that do not take what the one before them gives.

    Cost: one hash of the weights; memory in proportion to the file.

    Example:
        >>> frozen = load("runs/digits/model.safetensors")  # doctest: +SKIP
    """
    path = require_path("path", path)
    if not path.is_file():
        raise FileNotFoundError(f"no model file at {path}; run `unitmargin freeze` first")
    if path.suffix.lower() == ".onnx":
        raise ModelFileError(
            f"{path} is an exported network, which unitmargin.Guard opens; load the model file of "
            "which it was made"
        )
    try:
        read_table(path)
    except UNFIT as error:
        raise ModelFileError(f"{path} is damaged or truncated ({error}); freeze it again") from None
    try:
        tensors, header = read_tensors(path)
    except UNFIT as error:
        raise ModelFileError(f"{error}; freeze it again") from None
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} must have format {FORMAT}, got {header.get('format')!r}; freeze the network "
            "again with this version"
        )
    try:
        _require_entries(header, tensors)
        return _rebuild(header, tensors)
    except UNFIT as error:
        raise ModelFileError(f"{path} is inconsistent: {error}; freeze it again") from None


def class_names(path: Path) -> tuple[str, ...]:
    """The names of the classes in a model file; nothing else of it is read or judged.

    Raises:
        ModelFileError: a damaged file, or no names in it.
    """
    try:
        return tuple(_names((read_table(path).get("__metadata__") or {}).get("classes", "")))
    except UNFIT as error:
        raise ModelFileError(f"{path} has no class names: {error}; freeze it again") from None


def _names(text: str) -> list[str]:
    classes = parse(text)
    if not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise ValueError(f"classes must be a list of names, got {classes}")
    if max(map(len, classes), default=0) > LONGEST_NAME:
        raise ValueError(f"names of classes must have at most {LONGEST_NAME} characters")
    return classes


def _profiles() -> str:
    """The execution profiles of this version, as the header holds them."""
    definitions = {name: profile.definition() for name, profile in PROFILES.items()}
    return json.dumps(definitions, sort_keys=True)


def _require_entries(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> None:
    """Everything that is known before the layers are."""
    if set(header) != HEADER:
        raise ValueError(f"the header must hold {sorted(HEADER)}, got {sorted(header)}")
    if header["sha256"] != fingerprint(header, tensors):
        raise ValueError("its SHA-256 is not that of its content, which was edited or damaged")
    if json.dumps(parse(header["profiles"]), sort_keys=True) != _profiles():
        raise ValueError(f"it was made for the profiles {header['profiles']}, not {_profiles()}")
    if len(tensors) > MOST_TENSORS:
        raise ValueError(f"it must hold at most {MOST_TENSORS} tensors, got {len(tensors)}")
    types = {tensor.dtype for tensor in tensors.values()}
    if types - set(DTYPES):
        raise ValueError(f"tensors must be of type {', '.join(DTYPES.values())}")
    if len(types) > 1:
        raise ValueError("all tensors must be of one type")
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"tensor {name} is not finite")
        if bool((tensor.double().abs() > LARGEST).any()):
            raise ValueError(f"tensor {name} holds numbers above {LARGEST:g}")


def _rebuild(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> FrozenNetwork:
    in_shape, classes = parse(header["in_shape"]), _names(header["classes"])
    if not (isinstance(in_shape, list) and all(map(is_size, in_shape))):
        raise ValueError(f"in_shape must be a list of positive integers, got {in_shape}")
    if math.prod(in_shape) > LARGEST_INPUT or len(in_shape) > MOST_AXES:
        raise ValueError(
            f"in_shape must hold at most {LARGEST_INPUT} numbers in {MOST_AXES} axes, got "
            f"{in_shape}"
        )
    specifications, facts = parse(header["layers"]), parse(header["facts"])
    require_layers(specifications)
    if not isinstance(facts, dict):
        raise ValueError(f"facts must be an object, got {facts}")
    layers: list[FixedLayer] = []
    surplus = dict(tensors)
    for index, specification in enumerate(specifications):
        layers.append(_layer(specification, take_prefixed(surplus, f"{index}.")))
    if surplus:
        raise ValueError(f"surplus tensors {sorted(surplus)}")
    domain, profile = parse(header["domain"]), parse(header["profile"])
    frozen = FrozenNetwork(layers, tuple(in_shape), classes, facts, domain, profile)
    if tuple(classes) != frozen.classes:
        raise ValueError(f"classes must be {frozen.n_classes} names, got none")
    require_several_classes(frozen.n_classes)
    # Raises where shapes do not fit; a batch of nothing takes no memory, whatever the in_shape.
    # Half precision has no Fourier transform of every length.
    with torch.no_grad():
        network = copy.deepcopy(frozen.network).double()
        network(torch.zeros(0, *in_shape, dtype=torch.float64, device=network.device))
    return frozen


def _layer(specification: Any, state: dict[str, Tensor]) -> FixedLayer:
    """One layer, if its configuration is exactly what such a layer writes."""
    kind, configuration = specification["kind"], specification["configuration"]
    layer = choose("layer kind", kind, FROZEN_LAYERS).rebuild(configuration, state)
    mine, stated = (json.dumps(c, sort_keys=True) for c in (layer.configuration(), configuration))
    if mine != stated:
        raise ValueError(f"configuration {configuration} of a layer {kind}")
    if set(layer.state_dict()) != set(state):
        raise ValueError(f"tensors {sorted(state)} of a layer {kind}")
    return layer
