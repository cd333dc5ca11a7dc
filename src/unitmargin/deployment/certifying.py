"""The deployed network with its certificate: one graph from inputs to labels and radii."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.certificates.certify import traceable_certificate
from unitmargin.frozen import FrozenNetwork, require_frozen
from unitmargin.frozen.profiles import Profile, find_profile
from unitmargin.frozen.proof import input_norms


class CertifyingNetwork(nn.Module):
    """Label and sound radius of each input, as tensors alone; see :func:`certifying_network`.

    Its buffers are the weights as the profile evaluates them and the proved bounds.
    """

    lipschitz: Tensor
    alpha: Tensor
    beta: Tensor

    def __init__(self, frozen: FrozenNetwork, profile: Profile) -> None:
        super().__init__()
        bounds = frozen.proof(profile).bounds
        self.network = frozen.deployed(profile)
        self.normalisation = frozen.in_float64().normalisation
        self.dtype = profile.dtype
        for name in ("lipschitz", "alpha", "beta"):
            self.register_buffer(name, getattr(bounds, name).to(self.network.device, copy=True))
        self.input_scale, self.largest, self.limit = (
            bounds.input_scale,
            bounds.largest,
            bounds.limit,
        )

    def forward(self, x: Float[Tensor, "batch *shape"]) -> dict[str, Tensor]:
        self.network.require_input(x)
        x = x.detach()
        with torch.autocast(x.device.type, enabled=False):
            held = x.to(self.dtype)
            logits = self.network(held)
            norms = input_norms(x, self.normalisation, self.input_scale)
            changed = (held.double() != x.double()).flatten(1).any(1)
            norms = torch.where(changed, torch.inf, norms)
            certificate = traceable_certificate(logits, self, norms)
        return {
            "label": certificate.label,
            "runner_up": certificate.runner_up,
            "margin": certificate.margin,
            "radius": certificate.radius,
            "logits": logits,
        }


def certifying_network(frozen: FrozenNetwork, profile: str | None = None) -> CertifyingNetwork:
    """todo"""
    require_frozen(frozen)
    return CertifyingNetwork(frozen, find_profile(frozen.profile if profile is None else profile))
