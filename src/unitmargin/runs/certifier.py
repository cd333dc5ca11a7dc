"""What certifies a batch: a frozen network under a profile, or an exported one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from numpy.typing import NDArray

from unitmargin.certificates.certify import certify
from unitmargin.certificates.exhibits import is_image
from unitmargin.data import ENCODING, ImageOptions, InputBatch, read_encoding, read_inputs
from unitmargin.foundation.choice import require_choice
from unitmargin.foundation.files import read_hashed
from unitmargin.foundation.numbers import shown
from unitmargin.frozen import FrozenNetwork, load
from unitmargin.frozen.profiles import PROFILES
from unitmargin.guard import Claims, Model, OnnxModel
from unitmargin.guard.onnx_model import IMAGES_FACT
from unitmargin.runs.folder import RunFolder
from unitmargin.training.processes import require_device

CERTIFY_BATCH = 512
"""Samples a forward pass: large enough for full speed, small enough for any memory."""

MODEL, EXPORTED = ".safetensors", ".onnx"
"""Suffixes of files that are no run folders."""


class FrozenCertifier:
    """A frozen network that certifies under a profile, its own by default, on a device.

    Raises:
        ValueError: an unknown profile, or a device on which nothing can be computed.
    """

    def __init__(
        self,
        frozen: FrozenNetwork,
        profile: str | None = None,
        device: str = "cpu",
        model_sha256: str = "",
    ) -> None:
        self.profile = frozen.profile if profile is None else profile
        require_choice("profile", self.profile, PROFILES)
        self.dtype = np.dtype(self.profile)
        self.device = require_device(device)
        self.frozen = frozen.to(self.device)
        self.classes = frozen.classes
        self.in_shape = frozen.in_shape
        self.domain = frozen.domain
        self.model_sha256 = model_sha256
        self.images = frozen.facts.get(IMAGES_FACT)
        self.encoding = frozen.facts.get(ENCODING)
        _image_options(self.images)

    def certify(self, x: NDArray[np.float32]) -> Claims:
        """See :func:`unitmargin.certify`."""
        given = torch.from_numpy(x).to(self.device)
        found = certify(self.frozen, given, self.profile, domain="any")
        return Claims(*(getattr(found, name).cpu().numpy() for name in Claims._fields))


def _image_options(stated: Any) -> ImageOptions:
    """How inputs are made of images, as a file says; else they are taken as they are."""
    if stated is not None and not isinstance(stated, dict):
        raise ValueError(
            f"the fact {IMAGES_FACT!r} of a model must be an object, got {shown(stated)}; freeze "
            "the run again"
        )
    return ImageOptions(**stated or {})


def is_run(place: Path) -> bool:
    """Whether a path names a run folder, not a model file or an exported one."""
    return place.is_dir() or place.suffix.lower() not in (MODEL, EXPORTED)


def open_certifier(place: Path, profile: str | None = None, device: str = "cpu") -> Model:
    """The network of a run folder, of a model file, or of an exported file.

    Raises:
        RunError: a run folder without a model, or with one of other weights.
        FileNotFoundError: no such file.
        ImportError: an exported file, and onnxruntime is not installed.
        ValueError: a damaged file or one that was replaced while it was read, an unknown profile or
            device, or another profile or device than an exported file was made for.
    """
    if is_run(place):
        frozen, sha256 = RunFolder(place).hashed_frozen()
        return FrozenCertifier(frozen, profile, device, sha256)
    if place.suffix.lower() == EXPORTED:
        return _exported(place, profile, device)
    frozen, sha256 = read_hashed(place, load)
    return FrozenCertifier(frozen, profile, device, sha256)


def _exported(file: Path, profile: str | None, device: str) -> OnnxModel:
    model = OnnxModel(file)
    for name, got, own in (("profile", profile, model.profile), ("device", device, "cpu")):
        if got not in (None, own):
            raise ValueError(
                f"{name} must be {own} for {file}, an exported network, got {got}; leave it out, "
                "or name the model file"
            )
    return model


def certify_files(
    certifier: Model, data: Path, batch_size: int = CERTIFY_BATCH
) -> Iterator[tuple[InputBatch, Claims]]:
    """New inputs from files and what is claimed of them, batch by batch.

    Raises:
        DataError: files that hold no inputs of the network; see :func:`read_inputs`.
        ValueError: inputs outside of its domain, or fewer than one a batch.
    """
    for batch in judged_batches(certifier, input_batches(certifier, data, batch_size)):
        yield batch, certifier.certify(batch.inputs)


def input_batches(certifier: Model, data: Path, batch_size: int) -> Iterator[InputBatch]:
    """New inputs from files for a network, batch by batch.

    Raises:
        DataError: files that hold no inputs of the network; see :func:`read_inputs`.
    """
    images = _image_options(certifier.images)
    encoding = read_encoding(certifier.encoding, certifier.in_shape)
    wanted = certifier.in_shape, certifier.classes, batch_size
    return read_inputs(data, *wanted, images=images, encoding=encoding)


def table_units(network: Model | FrozenNetwork) -> str | None:
    """What radii of a network that was trained on a table are measured in, None of other data.

    Raises:
        ValueError: a file that states no encoding of its inputs where it should.
    """
    encoding = read_encoding(stated_encoding(network), network.in_shape)
    return None if encoding is None else encoding.units


def stated_encoding(network: Model | FrozenNetwork) -> Any:
    """What a file says that became of the columns of a table, None of other data."""
    return network.facts.get(ENCODING) if isinstance(network, FrozenNetwork) else network.encoding


def radius_space(network: Model | FrozenNetwork) -> str:
    """What radii of a network are measured in, in words."""
    plain = "pixels in [0, 1]" if holds_pixels(network) else "the data's own units"
    return table_units(network) or plain


def holds_pixels(network: Model | FrozenNetwork) -> bool:
    """Whether inputs are images whose entries lie in [0, 1]: then radii are told as the field does.

    A network that states no domain does not say so.
    """
    return network.domain is not None and are_pixels(network.in_shape, network.domain)


def are_pixels(in_shape: tuple[int, ...], domain: tuple[float, float]) -> bool:
    """Whether inputs of a shape and an interval of entries are images with entries in [0, 1]."""
    low, high = domain
    return is_image(in_shape) and low >= 0.0 and high <= 1.0


def judged_batches(certifier: Model, batches: Iterator[InputBatch]) -> Iterator[InputBatch]:
    """The same batches.

    Raises:
        ValueError: inputs outside of the domain.
    """
    done = 0
    for batch in batches:
        names = batch.sources or tuple(f"sample {done + place}" for place in range(len(batch[0])))
        _require_domain(certifier, batch.inputs, names)
        yield batch
        done += len(batch.inputs)


def _require_domain(
    certifier: Model, inputs: Float32[np.ndarray, "batch *shape"], names: tuple[str, ...]
) -> None:
    if certifier.domain is None:
        return
    low, high = np.array(certifier.domain, np.float32)  # rounded as the inputs are
    outside = ((inputs < low) | (inputs > high)).reshape(len(inputs), -1)
    if not outside.any():
        return
    first = int(outside.any(1).argmax())
    encoding = read_encoding(certifier.encoding, certifier.in_shape)
    if encoding is not None:
        column = encoding.column_of(int(outside[first].argmax()))
        raise ValueError(
            f"{shown(column)} in {names[first]} must be within reach of the training rows, whose "
            f"entries lie in {list(certifier.domain)}, got {inputs[first][outside[first]][0]}; "
            "correct it, or leave out its row"
        )
    raise ValueError(
        f"inputs must lie in {list(certifier.domain)}, the domain of the network, got entries from "
        f"{float(inputs.min())} to {float(inputs.max())}, the first outside in {names[first]}; "
        "scale them as those the network was trained on"
    )
