"""An exported network, evaluated by ONNX Runtime: NumPy arrays in, claims out, no torch."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unitmargin.guard.inputs import require_floats

FORMAT = "unitmargin-onnx-1"
"""What the metadata of a file must state."""

DIGEST = "content_sha256"
"""The entry of the metadata that holds the SHA-256 of the file, with itself read as ``BLANK``."""

BLANK = "0" * 64

STATED = re.compile(DIGEST.encode() + rb"\x12@([0-9a-f]{64})")
"""That entry in the bytes of a file: its name, and a text of 64 characters."""

IMAGES_FACT = "images"
"""The fact of a model file, and the entry of an exported one, that says how inputs are made of
images, where that is not as they are."""

OUTPUTS = ("label", "runner_up", "margin", "radius")

INPUTS = {"tensor(float)": "float32", "tensor(double)": "float64"}
"""Types of inputs, as ONNX Runtime names them and as NumPy does."""

SMALLEST_NORMAL = 2.0**-1022

LEVELS = {
    "none": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}  # fmt: skip
"""Optimisations of ONNX Runtime; the certificates of a file hold under each of them."""

STEP = "write it with `unitmargin export RUN model.onnx`"


class Claims(NamedTuple):
    """What a network claims of a batch, as in :class:`unitmargin.Certificate`."""

    label: NDArray[np.int64]
    runner_up: NDArray[np.int64]
    margin: NDArray[np.float64]
    radius: NDArray[np.float64]


class OnnxModel:
    """The network of an exported file and what the file states of it.

    Thread-safe: an evaluation changes nothing. It needs NumPy and onnxruntime alone.

    The content of the file is compared with the hash that it states, if it states one: that finds
    damage and edits, and nobody who writes the hash anew.

    Attributes:
        classes: names of the classes.
        in_shape: shape of one input.
        dtype: type of the inputs, float32 or float64.
        domain: interval of the entries of inputs that the network was made for, None for any.
        profile: the execution profile whose certificates it issues.
        model_sha256: SHA-256 of the model file that it was exported from.
        units: what radii are measured in, in words.
        encoding: what became of the columns of the training table, None for other data.
        images: how inputs are made of images, None where they are taken as they are.

    Cost: onnxruntime keeps the content of the file beside its own copy of the weights.

    Args:
        path: the file.
        threads: of one evaluation; default: onnxruntime's own choice.
        level: what onnxruntime may optimise, a key of ``LEVELS``.

    Raises:
        ImportError: onnxruntime is not installed.
        FileNotFoundError: no such file.
        ValueError: a file that is damaged or edited, or was not written by ``unitmargin export``.
        RuntimeError: denormal numbers are flushed to zero in this thread.
    """

    def __init__(self, path: str | Path, threads: int | None = None, level: str = "all") -> None:
        if level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}, got {level!r}; choose one")
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(f"{file} does not exist; {STEP}")
        content = file.read_bytes()
        digest = _require_content(file, content)
        require_denormals("an exported network")  # opening it computes what is constant in it
        self.session = _open(file, content, threads, level)
        stated = _metadata(file, self.session)
        if stated.get("format") != FORMAT:
            raise ValueError(
                f"{file} must be of the format {FORMAT}, got {stated.get('format')!r}; {STEP}"
            )
        if digest is None:
            _require_content(file, content, stated.get(DIGEST))  # as another program may write it
        try:
            self._read(stated)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"{file} must state what export states, got {type(error).__name__}: {error}; {STEP}"
            ) from None

    def certify(self, x: NDArray[Any]) -> Claims:
        """Claims of a batch ``(batch, *in_shape)``; label -1 where there is none.

        Raises:
            TypeError: numbers that ``dtype`` cannot hold, or what are no real numbers.
            ValueError: integers or truth values, or another shape.
            RuntimeError: denormal numbers are flushed to zero in this thread.
        """
        require_denormals(f"profile {self.profile}")
        require_floats(x)
        if x.shape[1:] != self.in_shape:
            raise ValueError(
                f"x must have shape (batch, {', '.join(map(str, self.in_shape))}), got {x.shape}; "
                "reshape it"
            )
        held = x.astype(self.dtype, casting="safe", copy=False)
        return Claims(*self.session.run(OUTPUTS, {"x": held}))

    def _read(self, stated: dict[str, str]) -> None:
        self.classes = tuple(json.loads(stated["classes"]))
        self.in_shape = tuple(json.loads(stated["in_shape"]))
        domain = json.loads(stated["domain"])
        self.domain = None if domain is None else (float(domain[0]), float(domain[1]))
        self.profile = stated["profile"]
        self.model_sha256 = stated["model_sha256"]
        self.units = stated["units"]
        self.encoding: dict[str, Any] | None = json.loads(stated.get("encoding", "null"))
        self.images: dict[str, Any] | None = json.loads(stated.get(IMAGES_FACT, "null"))
        (given,) = self.session.get_inputs()
        self.dtype = np.dtype(INPUTS[given.type])
        if (given.name, *given.shape[1:]) != ("x", *self.in_shape):
            raise ValueError(f"an input {given.name} {given.shape} for inputs {self.in_shape}")
        missing = set(OUTPUTS) - {output.name for output in self.session.get_outputs()}
        if missing:
            raise ValueError(f"no output {', '.join(sorted(missing))}")


def require_denormals(who: str) -> None:
    """Raise a RuntimeError where this thread flushes denormal numbers to zero."""
    if SMALLEST_NORMAL * 0.5 * 2.0 != SMALLEST_NORMAL:
        raise RuntimeError(
            f"{who} needs denormal numbers, but this thread flushes them to zero; look for "
            "torch.set_flush_denormal, or for a library built with -ffast-math"
        )


def content_sha256(content: bytes, stated: str) -> str:
    """SHA-256 of a file in which the hash that it states is read as ``BLANK``.

    Example:
        >>> content_sha256(b"x" + b"9" * 64, "9" * 64) == content_sha256(b"x" + b"0" * 64, BLANK)
        True
    """
    place, parts = content.find(stated.encode()), memoryview(content)
    digest = hashlib.sha256(parts[:place])
    digest.update(BLANK.encode())
    digest.update(parts[place + len(BLANK) :])
    return digest.hexdigest()


def _metadata(file: Path, session: Any) -> dict[str, str]:
    try:
        stated: dict[str, str] = session.get_modelmeta().custom_metadata_map
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} must have metadata of text, but {error}; {STEP} again") from None
    return stated


def _require_content(file: Path, content: bytes, stated: str | None = None) -> str | None:
    """Raise unless a file has the content whose hash it states; the hash, if it states one. By
    default it is looked for in the bytes, before anything else of the file is judged."""
    if stated is None and (found := STATED.search(content)):
        stated = found[1].decode()
    if stated is not None and content_sha256(content, stated) != stated:
        raise ValueError(
            f"{file} must have the content whose {DIGEST} it states, got another one, which was "
            f"damaged, or written by another program; {STEP} again"
        )
    return stated


def _open(file: Path, content: bytes, threads: int | None, level: str) -> Any:
    """A session of onnxruntime, whose own errors are of many kinds."""
    try:
        import onnxruntime
    except ImportError:
        raise ImportError(
            "onnxruntime must be installed to evaluate an exported network, got none; run "
            "`pip install unitmargin[deploy]`"
        ) from None
    options = onnxruntime.SessionOptions()
    names = onnxruntime.GraphOptimizationLevel.__members__
    options.graph_optimization_level = names[LEVELS[level]]
    options.log_severity_level = 3
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{file} must be an ONNX file, but {reason}; {STEP}") from None
