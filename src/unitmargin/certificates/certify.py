"""Certify a batch: label and radius from one forward pass."""

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.certificates.certificate import Certificate, sound_certificate
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import find_profile


def certify(
    frozen: FrozenNetwork, x: Float[Tensor, "batch *shape"], profile: str = "float64"
) -> Certificate:
    r"""Certify a batch with radii that hold in floating-point arithmetic.

    Shapes: ``x (batch, *in_shape)``, any floating dtype whose numbers the profile can hold. Radii
    are in the units of ``x``. No labels are needed.
    Guarantee: no input closer than ``radius`` has another label, whoever evaluates the stored
    weights: in any order of summation, batch size, thread count and device that keep to the
    profile's arithmetic. The margin is divided by proved Lipschitz bounds after a proved bound of
    the rounding errors, ``slack``, was taken off (docs/soundness.md).

    Args:
        frozen: the deployed network.
        x: inputs, as they enter the network.
        profile: ``float64``; ``float32-blocked``, whose long sums run in an order that the library
            owns; ``float32``, in any order: honest, and usually too loose for large inputs.

    Raises:
        ValueError: integer input, another shape than the network's, an unknown profile, or numbers
            that the profile cannot hold.
        ProfileError: the environment breaks an assumption of the profile.

    Cost: one forward pass and one norm (and, once a network, the proof of its constants).
    Source: the paper, section 4.3, observation on certifiable robustness.

    Example:
        >>> from unitmargin import UGNN, freeze
        >>> frozen = freeze(UGNN(in_shape=(1, 8, 8), n_classes=10))
        >>> bool((certify(frozen, torch.rand(3, 1, 8, 8)).radius >= 0).all())
        True
    """
    frozen.require_input(x)
    chosen = find_profile(profile)
    proof = frozen.proof(chosen)
    inputs = x.detach().to(chosen.dtype)
    if not torch.equal(torch.nan_to_num(inputs.double()), torch.nan_to_num(x.detach().double())):
        raise ValueError(
            f"x must hold {chosen.dtype} numbers for the profile {chosen.name}, got {x.dtype} ones "
            f"that are none; round it with x.to({chosen.dtype}), or use the profile float64"
        )
    with torch.no_grad():
        logits = proof.network(inputs)
    return sound_certificate(logits, proof.bounds, proof.input_norms(x))
