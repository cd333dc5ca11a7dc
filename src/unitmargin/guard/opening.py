"""Who evaluates for a guard: chosen by the kind of the file, judged with its options."""

from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unitmargin.guard.onnx_model import Claims, OnnxModel

MOST_THREADS = 1024
"""More than processors have; onnxruntime starts as many as it is told."""


@runtime_checkable
class Model(Protocol):
    """What evaluates: an :class:`OnnxModel`, or the same by torch for a model file."""

    classes: tuple[str, ...]
    in_shape: tuple[int, ...]
    domain: tuple[float, float] | None
    dtype: np.dtype[Any]
    profile: str
    model_sha256: str
    encoding: dict[str, Any] | None
    images: dict[str, Any] | None

    def certify(self, x: NDArray[np.floating[Any]]) -> Claims: ...


def open_model(file: Path, profile: str | None, sealed: bool, threads: int | None) -> Model:
    """The network of an exported file or of a model file; see :class:`Guard` for the options."""
    if not isinstance(sealed, bool):
        raise TypeError(f"sealed must be True or False, got {sealed!r}; leave it out for True")
    kind = file.suffix.lower()
    if kind == ".onnx":
        return _open_exported(file, profile, sealed, threads)
    if kind != ".safetensors":
        raise ValueError(
            f"path must end in .onnx or .safetensors, got {file.name!r}; name an exported network "
            "or a model file"
        )
    if threads is not None:
        raise ValueError(
            f"threads must be left out for a model file, got {threads!r}; call "
            "torch.set_num_threads, which holds for the whole process"
        )
    from unitmargin.guard.frozen_model import FrozenModel

    return FrozenModel(file, profile, sealed)


def _open_exported(file: Path, profile: str | None, sealed: bool, threads: int | None) -> OnnxModel:
    if not sealed:
        raise ValueError(
            "sealed must be True for an exported network, got False; open a model file, whose "
            "weights can be compared"
        )
    if threads is not None and (not isinstance(threads, Integral) or isinstance(threads, bool)):
        raise TypeError(
            f"threads must be a whole number, got {type(threads).__name__}; leave it out for "
            "onnxruntime's choice"
        )
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        got = threads if abs(threads) < 1e9 else "a number of many digits"
        raise ValueError(
            f"threads must be from 1 to {MOST_THREADS}, got {got}; leave it out for onnxruntime's "
            "choice"
        )
    model = OnnxModel(file, None if threads is None else int(threads))
    if profile not in (None, model.profile):
        raise ValueError(
            f"profile must be {model.profile}, that of the file, got {profile!r}; export the "
            "network under another one"
        )
    return model
