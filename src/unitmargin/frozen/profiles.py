"""Execution profiles: how a network is evaluated, and what the environment must not do to it.

A profile evaluates by standard dot products alone: no Winograd convolution, no reduced precision.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unitmargin.frozen.blocked import WIDE_CHANNELS, BlockedDense, blocked_layer
from unitmargin.frozen.dense import Dense
from unitmargin.layers.arithmetic import SMALLEST_NORMAL, UNIT_ROUNDOFF
from unitmargin.layers.contract import FixedLayer

CHUNK = 32
"""Products a float32 dot product of ``float32-blocked`` sums before it meets another: the slack
falls with it, and shorter products take longer than sums in float64."""


class ProfileError(RuntimeError):
    """The environment breaks an assumption of the execution profile; nothing is certified."""


@dataclass(frozen=True)
class Profile:
    """One way to evaluate a frozen network, with the arithmetic that its bounds assume.

    Attributes:
        name: as in ``certify(frozen, x, profile=name)``.
        dtype: type of weights, inputs and activations.
        chunk: longest dot product in that type; None for any length.
    """

    name: str
    dtype: torch.dtype
    chunk: int | None = None

    @property
    def unit(self) -> float:
        """Unit roundoff of the profile's type."""
        return UNIT_ROUNDOFF[self.dtype]

    def definition(self) -> dict[str, Any]:
        """What the profile is, as JSON values."""
        return {
            "dtype": str(self.dtype).removeprefix("torch."),
            "chunk": self.chunk,
            "wide_channels": None if self.chunk is None else WIDE_CHANNELS,
        }

    def length(self, n: int) -> int:
        """Most roundings that one of n summed products meets, in any order within a chunk."""
        if self.chunk is None or n <= self.chunk:
            return n
        return self.chunk + math.ceil(math.log2(-(-n // self.chunk)))

    def deploy(self, layers: Sequence[FixedLayer]) -> list[FixedLayer]:
        """Copies of the layers, the last of which is the head, as this profile evaluates them.

        Raises:
            ValueError: a stored number is no number of the profile's type.
        """
        for index, layer in enumerate(layers):
            for name, tensor in layer.state_dict().items():
                if not torch.equal(tensor.to(self.dtype).double(), tensor.double()):
                    raise ValueError(
                        f"profile {self.name} needs weights that are {self.dtype} numbers, got "
                        f"tensor {name} of layer {index} in {tensor.dtype}; freeze the network "
                        f"with dtype={self.dtype}, or use the profile float64"
                    )
        copies = [copy.deepcopy(layer).to(self.dtype) for layer in layers]
        if self.chunk is None:
            return copies
        head = copies[-1]
        assert isinstance(head, Dense)  # checked by the network
        return [
            *(blocked_layer(layer, self.chunk) for layer in copies[:-1]),
            BlockedDense(head, self.chunk),
        ]


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("float64", torch.float64),
        Profile("float32-blocked", torch.float32, CHUNK),
        Profile("float32", torch.float32),
    )
}


def find_profile(name: str) -> Profile:
    """The profile of the given name.

    Raises:
        ValueError: unknown name.
    """
    if name not in PROFILES:
        raise ValueError(
            f"profile must be one of {', '.join(PROFILES)}, got {name!r}; choose one of these"
        )
    return PROFILES[name]


def check_environment(profile: Profile, device: torch.device) -> None:
    """Refuse settings under which the profile's arithmetic is not what its bounds assume.

    Raises:
        ProfileError: denormal numbers are flushed to zero, or products of float32 numbers may be
            computed in TF32 or bfloat16.
    """
    for dtype in (torch.float32, torch.float64):
        tiny = torch.full((1,), SMALLEST_NORMAL[dtype], dtype=dtype, device=device)
        if not bool((tiny * 0.5 > 0).all()):
            raise ProfileError(
                f"profile {profile.name} needs denormal numbers, but {dtype} ones are flushed to "
                f"zero on {device}; call torch.set_flush_denormal(False)"
            )
    if profile.dtype != torch.float32:
        return
    for setting, value, wanted in _float32_settings():
        if value not in wanted:
            raise ProfileError(
                f"profile {profile.name} needs full float32 products, but {setting} is {value!r}; "
                f"set it to {wanted[0]!r}, or use the profile float64"
            )


def _float32_settings() -> list[tuple[str, object, tuple[object, ...]]]:
    """Settings that may shorten float32 products: name, value, and the values that do not."""
    full = ("ieee", "none")
    return [
        (
            "torch.get_float32_matmul_precision()",
            torch.get_float32_matmul_precision(),
            ("highest",),
        ),
        (
            "torch.backends.cuda.matmul.fp32_precision",
            torch.backends.cuda.matmul.fp32_precision,
            full,
        ),
        (
            "torch.backends.mkldnn.matmul.fp32_precision",
            torch.backends.mkldnn.matmul.fp32_precision,  # type: ignore[attr-defined]
            full,
        ),
    ]
