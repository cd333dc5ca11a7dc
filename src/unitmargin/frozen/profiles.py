"""Execution profiles: how a network is evaluated, and what the environment must not do to it.

A profile evaluates by standard dot products alone: no Winograd convolution, no reduced precision.
"""

import os
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.foundation.choice import choose
from unitmargin.frozen.network import FixedNetwork
from unitmargin.layers.arithmetic import SMALLEST_NORMAL, Arithmetic
from unitmargin.layers.faithful import require_no_global_hooks

THREAD_NUMBERS = 2**15
"""Numbers that torch leaves to one thread: with as many for each, every thread has its share."""


SHORTENING = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
"""Variables by which oneDNN shortens float32 products; it reads them once, at its first product."""

STARTED = {name: os.environ.get(name, "") for name in SHORTENING}
"""Their values at the start: later ones may not be what oneDNN has read."""


class ProfileError(RuntimeError):
    """The environment breaks an assumption of the execution profile; nothing is certified."""


@dataclass(frozen=True)
class Profile(Arithmetic):
    """One way to evaluate a frozen network, with the arithmetic that its bounds assume.

    The name is that of ``certify(frozen, x, profile=name)``. Sums run in any order.
    """

    def definition(self) -> dict[str, Any]:
        """What the profile is, as JSON values."""
        return {"dtype": str(self.dtype).removeprefix("torch.")}

    def hold(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The same numbers in the profile's type.

        Raises:
            ValueError: a number that is none of that type.
        """
        held = x.to(self.dtype)
        shortened = x.dtype == torch.float64 and self.dtype != torch.float64
        if shortened and not bool(((held.double() == x) | x.isnan()).all()):
            raise ValueError(
                f"x must hold {self.dtype} numbers for the profile {self.name}, got {x.dtype} ones "
                f"that are none; round it to {self.dtype}, or use the profile float64"
            )
        return held

    def deploy(self, network: FixedNetwork) -> FixedNetwork:
        """A copy of the network as this profile evaluates it, made of what a file would hold.

        Raises:
            ValueError: a stored number is NaN, or no number of the profile's type; numbers of a
                layer that do not belong together.
        """
        for index, layer in enumerate(network.layers):
            for name, tensor in layer.state_dict().items():
                if bool(tensor.isnan().any()):
                    raise ValueError(
                        f"weights must be numbers, got NaN in tensor {name} of layer {index}; "
                        "freeze the network from an earlier checkpoint"
                    )
                if not torch.equal(tensor.to(self.dtype).double(), tensor.double()):
                    raise ValueError(
                        f"profile {self.name} needs weights that are {self.dtype} numbers, got "
                        f"tensor {name} of layer {index} in {tensor.dtype}; freeze the network "
                        f"with dtype={self.dtype}, or use the profile float64"
                    )
        layers = [layer.in_type(self.dtype) for layer in (*network.features(), network.head)]
        return FixedNetwork(layers, network.in_shape, network.head_promise)


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("float64", torch.float64),
        Profile("float32", torch.float32),
    )
}


def find_profile(profile: Profile | str) -> Profile:
    """The profile of that name, or one as it is.

    Raises:
        ValueError: an unknown name.
    """
    return profile if isinstance(profile, Profile) else choose("profile", profile, PROFILES)


def require_environment(profile: Profile, device: torch.device) -> None:
    """Refuse settings under which the profile's arithmetic is not what its bounds assume.

    Raises:
        TypeError: a hook of the forward pass of all modules, which evaluates something else.
        ProfileError: denormal numbers are flushed to zero where the network is evaluated or on the
            CPU, which bounds it, or products of float32 numbers may be computed in TF32 or
            bfloat16.
    """
    require_no_global_hooks()
    for place in dict.fromkeys((device, torch.device("cpu"))):
        if not bool(_halved(profile.dtype, place).all()):
            raise ProfileError(
                f"profile {profile.name} needs denormal numbers, but some are flushed to zero on "
                f"{place}; call torch.set_flush_denormal(False), and torch.set_num_threads(1) "
                "where threads were started before, which keep what they were started with"
            )
    if profile.dtype != torch.float32:
        return
    for setting, value, wanted in _float32_settings():
        if value not in wanted:
            raise ProfileError(
                f"profile {profile.name} needs full float32 products, but {setting} is {value!r}; "
                f"set it to {wanted[0]!r}, or use the profile float64"
            )


def _halved(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Denormal numbers, as every thread that computes here makes them."""
    count = THREAD_NUMBERS * torch.get_num_threads() if device.type == "cpu" else 1
    return torch.full((count,), SMALLEST_NORMAL[dtype], dtype=dtype, device=device) * 0.5


def _float32_settings() -> list[tuple[str, object, tuple[object, ...]]]:
    """Settings that may shorten float32 products: name, value, and the values that do not."""
    try:
        general = torch.get_float32_matmul_precision()
    except RuntimeError:  # the settings below were made without it, and speak for themselves
        general = "highest"
    cuda = torch.backends.cuda.matmul
    mkldnn = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    full = ("ieee", "none")
    return [
        ("torch.get_float32_matmul_precision()", general, ("highest",)),
        ("torch.backends.cuda.matmul.fp32_precision", cuda.fp32_precision, full),
        ("torch.backends.mkldnn.matmul.fp32_precision", mkldnn.fp32_precision, full),
        *(
            (f"{name}, read when Python starts,", value.upper(), ("STRICT", ""))
            for values in (STARTED, os.environ)
            for name in SHORTENING
            if (value := values.get(name, ""))
        ),
    ]
