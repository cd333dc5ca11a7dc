"""The deployed network with its certificates: one graph from inputs to labels and radii."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unitmargin.certificates.certify import traceable_certificate
from unitmargin.frozen import FrozenNetwork, require_frozen
from unitmargin.frozen.profiles import Profile, find_profile
from unitmargin.frozen.proof import input_norms
from unitmargin.layers.faithful import require_no_global_hooks


class CertifyingNetwork(nn.Module):
    """What :func:`certifying_network` makes: it issues certificates from tensors that it holds.

    Its buffers are the weights as the profile evaluates them, and the proved bounds of that
    evaluation by pair of classes. No step depends on a value.

    Raises:
        TypeError: it is moved to another type, whose numbers nothing was proved of; or, when it is
            called, inputs that are no floating-point numbers, or a hook of the forward pass of all
            modules.
        ValueError: when it is called, inputs of another shape or device than the network's.
    """

    lipschitz: Tensor
    alpha: Tensor
    beta: Tensor

    def __init__(self, frozen: FrozenNetwork, profile: Profile) -> None:
        super().__init__()
        bounds = frozen.kept_proof(profile).bounds
        self.network = frozen.deployed(profile)
        self.normalisation = frozen.in_float64().normalisation
        with torch.inference_mode(False):
            for name in ("lipschitz", "alpha", "beta"):
                bound = getattr(bounds, name).to(self.network.device, copy=True)
                self.register_buffer(name, bound)
        self.input_scale = bounds.input_scale
        self.largest = bounds.largest
        self.limit = bounds.limit

    def forward(self, x: Float[Tensor, "batch *shape"]) -> dict[str, Tensor]:
        require_no_global_hooks()
        self.network.require_input(x)
        x = x.detach()
        with torch.autocast(x.device.type, enabled=False):
            held = x.to(self.network.dtype)
            logits = self.network(held)
            norms = input_norms(x, self.normalisation, self.input_scale)
            # Of an input that the profile cannot hold another one is evaluated: no claim.
            held_as_given = (held.double() == x.double()).flatten(1).all(1)
            norms = torch.where(held_as_given, norms, torch.inf)
            certificate = traceable_certificate(logits, self, norms)
        return {
            "label": certificate.label,
            "runner_up": certificate.runner_up,
            "margin": certificate.margin,
            "radius": certificate.radius,
            "logits": logits,
        }

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        for kind in {self.network.dtype, self.lipschitz.dtype}:
            moved = fn(torch.empty(0, dtype=kind)).dtype
            if moved != kind:
                raise TypeError(
                    f"a certifying network must keep the types its bounds were proved for, got "
                    f"{moved} for {kind}; make another one, with the profile you want"
                )
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]


def certifying_network(frozen: FrozenNetwork, profile: str | None = None) -> CertifyingNetwork:
    r"""A plain module that issues the certificates of a frozen network, for exports and compilers.

    Its ``forward(x)`` returns the tensors ``label``, ``runner_up`` (int64, -1 where a logit is not
    finite), ``margin``, ``radius`` (float64), ``logits``, by name: those of
    ``certify(frozen, x, profile, domain="any")``, bit for bit where torch evaluates them alike.
    Shapes: ``x (batch, *in_shape)`` of any floating dtype, on the module's device; every output has
    one entry a sample, ``logits`` one row.
    Guarantee: that of :func:`unitmargin.certify`, on these assumptions. The environment was judged
    here (:class:`ProfileError`) and is not judged again: whoever evaluates the module, or what was
    exported of it, keeps to the arithmetic of the profile (docs/deployment.md). Weights and buffers
    are not changed, and its layers get no hooks; it is a copy, and follows no later change of
    ``frozen``. The domain of the
    network is not asked for. A sample whose numbers the profile cannot hold (float64 ones under
    ``float32``) gets radius 0, and the label of the rounded input.

    Args:
        frozen: the deployed network.
        profile: ``float64`` or ``float32``. Default: the network's own.

    Raises:
        TypeError: a model that is not frozen.
        ValueError: an unknown profile, or a weight that it cannot hold.
        ProfileError: the environment breaks an assumption of the profile.

    Cost: a copy of the weights, and the proof of their bounds the first time.

    Example:
        >>> from unitmargin import UGNN, certify, freeze
        >>> frozen, x = freeze(UGNN(in_shape=(1, 8, 8), n_classes=10)), torch.rand(3, 1, 8, 8)
        >>> found, expected = certifying_network(frozen)(x), certify(frozen, x)
        >>> bool((found["radius"] == expected.radius).all())
        True
    """
    require_frozen(frozen)
    return CertifyingNetwork(frozen, find_profile(frozen.profile if profile is None else profile))
