"""A model file, evaluated by torch: the one file of the room that imports it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unitmargin.certificates.certify import sound_certificate
from unitmargin.data import ENCODING, stated_units
from unitmargin.foundation.files import read_hashed
from unitmargin.frozen import load
from unitmargin.frozen.profiles import find_profile, require_environment
from unitmargin.guard.inputs import require_floats
from unitmargin.guard.onnx_model import IMAGES_FACT, Claims


class FrozenModel:
    """The network of a model file, as :class:`OnnxModel` is that of an exported one.

    Sealed, it keeps the network as the profile evaluates it, with its bounds, and nothing to
    compare it with; else it compares all weights, as they are stored and as they are evaluated, at
    every evaluation. The environment is asked at every evaluation in both cases. Inputs are of
    ``dtype``, the type of the profile.

    Args:
        path: the file.
        profile: whose certificates are issued; default: that of the file.
        sealed: whether weights are compared once, when the file is opened.

    Raises:
        FileNotFoundError: no such file.
        ModelFileError: a damaged one; see :func:`unitmargin.load`.
        ValueError: an unknown profile, weights that it cannot hold, or a file that was replaced
            while it was read.
        ProfileError: here and at every evaluation, an environment that breaks its arithmetic.
        TypeError: here and at every evaluation, a hook of the forward pass of all modules.
        RuntimeError: at an evaluation unless sealed, other weights than those of the file.
    """

    def __init__(self, path: Path, profile: str | None = None, sealed: bool = True) -> None:
        frozen, self.model_sha256 = read_hashed(path, load)
        chosen = find_profile(frozen.profile if profile is None else profile)
        self.classes = frozen.classes
        self.in_shape = frozen.in_shape
        self.domain = frozen.domain
        self.profile = chosen.name
        self.dtype = np.dtype(chosen.definition()["dtype"])
        self.encoding = frozen.facts.get(ENCODING)
        self.units = stated_units(self.encoding)
        self.images = frozen.facts.get(IMAGES_FACT)
        self._path = path
        self._profile = chosen
        self._device = frozen.network.device
        self._proof = frozen.proof(chosen)
        self._stored = [] if sealed else frozen.stored(chosen)

    def certify(self, x: NDArray[Any]) -> Claims:
        """Claims of a batch ``(batch, *in_shape)`` of ``dtype``; label -1 where there is none.

        Raises:
            TypeError: what are no real numbers, or a hook of the forward pass of all modules.
            ValueError: integers or truth values.
            RuntimeError: not sealed, and the weights in memory changed.
        """
        require_floats(x)
        require_environment(self._profile, self._device)
        if not all(stored.unchanged() for stored in self._stored):
            raise RuntimeError(
                f"the weights in memory must be those of {self._path}, got others; open it again"
            )
        proof = self._proof
        given = torch.from_numpy(x if x.flags.writeable else x.copy())
        with torch.no_grad():
            found = sound_certificate(proof.evaluate(given), proof.bounds, proof.input_norms(given))
        tensors = found.label, found.runner_up, found.margin, found.radius
        return Claims(*(tensor.numpy() for tensor in tensors))
