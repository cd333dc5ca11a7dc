"""A frozen network as one ONNX file that answers with a label and a radius."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from unitmargin import __version__
from unitmargin.certificates.agreement import AGREEMENT, allowed_difference
from unitmargin.certificates.certify import certify
from unitmargin.data import ENCODING, read_encoding, stated_units
from unitmargin.foundation.choice import require_choice
from unitmargin.foundation.files import file_sha256, read_hashed, require_path, write_aside
from unitmargin.frozen import FrozenNetwork, load, require_frozen, save
from unitmargin.guard.onnx_model import (
    BLANK,
    DIGEST,
    FORMAT,
    IMAGES_FACT,
    OnnxModel,
    content_sha256,
)

DRAWN = 16
"""Inputs on which the written file has to agree."""


class DisagreementError(RuntimeError):
    """ONNX Runtime's labels or radii are not those of ``certify``: no file is written."""


def export_onnx(
    frozen: FrozenNetwork,
    path: str | Path,
    inputs: str = "float32",
    model_file: str | Path | None = None,
) -> None:
    r"""Write a network as one ONNX file, which answers inputs with a label and a radius.

    Input ``x (batch, *in_shape)`` in the units of the network's domain, any batch, of the type
    ``inputs``: ``float32``, or ``float64`` for those that are no float32 numbers.
    Outputs, one entry a sample: ``label`` (int64, -1 where an input or a logit is not finite),
    ``radius`` and ``margin`` (float64), ``runner_up`` (int64), ``logits (batch, classes)``.
    Metadata: ``format``, ``classes``, ``in_shape``, ``domain``, ``units``, ``profile``,
    ``encoding`` (what became of the columns of a table; inputs are the numbers that it gives),
    ``images`` (how inputs are made of images, where that is not as they are), ``model_sha256`` (of
    ``model_file``, which holds the network; default: of the file that :func:`unitmargin.save`
    writes of it), ``unitmargin`` (the version) and ``content_sha256`` (of this file, in which its
    own 64 characters are read as zeros): whoever opens the file finds by it that it was damaged.

    Guarantee: all arithmetic is in float64, by products of real matrices, sums, comparisons and
    moves of standard operators, an evaluation that the profile ``float64`` admits; so a radius of
    this file holds as one of :func:`unitmargin.certify` does, for both (docs/soundness.md). Before
    the file appears ONNX Runtime must agree with ``certify`` on inputs that are drawn: labels of
    what is certified are equal, and radii within 1e-9 and the slack. Entries outside of the domain
    are not refused; :class:`unitmargin.Guard` does so.
    Cost: the proof of the network, one evaluation here and there, and a copy of its model file.
    Source: equations (14) and (24) of docs/soundness.md.

    Raises:
        TypeError: a model that is not frozen, or no path.
        FileNotFoundError: no such model file.
        ImportError: onnx or onnxruntime is missing; they are the extra ``deploy``.
        ValueError: a name that does not end in .onnx, another type of inputs, more than 2 GB of
            numbers, a layer without nodes, a folder, or a model file of another network.
        DisagreementError: another label or radius in ONNX Runtime.

    Example:
        >>> import tempfile
        >>> from unitmargin import UGNN, freeze
        >>> from unitmargin.guard import OnnxModel
        >>> file = tempfile.mkdtemp() + "/model.onnx"
        >>> frozen = freeze(UGNN(in_shape=(1, 8, 8), n_classes=10))
        >>> export_onnx(frozen, file)
        >>> x = torch.rand(3, 1, 8, 8)
        >>> shipped = OnnxModel(file).certify(x.numpy()).radius
        >>> bool(abs(shipped - certify(frozen, x).radius.numpy()).max() < 1e-9)
        True
    """
    require_frozen(frozen)
    file = require_path("path", path)
    if file.suffix.lower() != ".onnx":
        raise ValueError(f"path must end in .onnx, got {file.name!r}; name the file so")
    require_choice("inputs", inputs, ("float32", "float64"))
    origin = None if model_file is None else require_path("model_file", model_file)
    if origin is not None and not origin.exists():
        raise FileNotFoundError(
            f"model_file must be there, got {origin}; run `unitmargin freeze` first, or leave it "
            "out"
        )
    require_engines()
    from unitmargin.deployment.network import onnx_model

    sha256 = _saved_sha256(frozen) if origin is None else _own_sha256(frozen, origin)
    model = onnx_model(frozen, _stated(frozen, sha256), inputs)
    content = model.SerializeToString()
    (entry,) = (entry for entry in model.metadata_props if entry.key == DIGEST)
    entry.value = content_sha256(content, BLANK)
    with write_aside(file) as aside:
        aside.write_bytes(model.SerializeToString())
        _require_agreement(frozen, OnnxModel(aside))


def require_engines() -> None:
    """Raise an ImportError that names what is missing of the extra ``deploy``."""
    missing = [name for name in ("onnx", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"{' and '.join(missing)} must be installed to export a network, got none; run "
            "`pip install unitmargin[deploy]`"
        )


def _saved_sha256(frozen: FrozenNetwork) -> str:
    with tempfile.TemporaryDirectory() as folder:
        save(frozen, Path(folder) / "model.safetensors")
        return file_sha256(Path(folder) / "model.safetensors")


def _own_sha256(frozen: FrozenNetwork, file: Path) -> str:
    """The SHA-256 of a model file, if it holds this network.

    A file that says the same in another order has another hash, and the same once it is saved anew.
    """
    own, stated = _saved_sha256(frozen), file_sha256(file)
    if stated == own:
        return stated
    stored, stated = read_hashed(file, load)
    if _saved_sha256(stored) != own:
        raise ValueError(
            f"model_file must hold the network that is exported, got {file} with another one; load "
            "the network from it, or leave it out"
        )
    return stated


def _stated(frozen: FrozenNetwork, model_sha256: str) -> dict[str, object]:
    """The metadata of the file."""
    encoding = frozen.facts.get(ENCODING)
    read_encoding(encoding, frozen.in_shape)  # raises where it does not fit
    return {
        "format": FORMAT,
        "classes": list(frozen.classes),
        "in_shape": list(frozen.in_shape),
        "domain": frozen.domain,
        "units": stated_units(encoding),
        "encoding": encoding,
        IMAGES_FACT: frozen.facts.get(IMAGES_FACT),
        "profile": "float64",
        "model_sha256": model_sha256,
        "unitmargin": __version__,
        DIGEST: BLANK,
    }


def _require_agreement(frozen: FrozenNetwork, model: OnnxModel) -> None:
    """Raise unless the written file has the labels and radii of ``certify`` on drawn inputs."""
    x = _draw(frozen).astype(model.dtype)
    found = model.certify(x)
    inputs = torch.from_numpy(x).to(frozen.network.device)
    true = certify(frozen, inputs, profile="float64", domain="any")
    radius = true.radius.cpu().numpy()
    apart = np.abs(found.radius - radius)
    allowed = allowed_difference(frozen, true).cpu().numpy()
    sure = radius > 0.0
    labels = true.label.cpu().numpy()
    other = int((found.label != labels)[sure].sum())
    if other or not bool((apart <= allowed).all()):
        raise DisagreementError(
            f"ONNX Runtime must have the labels of certify and its radii to {AGREEMENT} and the "
            f"slack, got {other} other labels and a difference of {float(apart.max()):.2e}; "
            "another version of onnxruntime may evaluate it as it is"
        )


def _draw(frozen: FrozenNetwork) -> NDArray[np.float32]:
    """Inputs of the domain as far as float32 reaches, or of the unit interval: noise, and two of
    equal entries."""
    largest = float(np.finfo(np.float32).max)
    low, high = (min(max(end, -largest), largest) for end in frozen.domain or (0.0, 1.0))
    generator = np.random.default_rng(0)
    x = generator.uniform(low, high, (DRAWN, *frozen.in_shape)).astype(np.float32)
    x[0], x[1] = low, high
    return np.clip(x, np.float32(low), np.float32(high))
