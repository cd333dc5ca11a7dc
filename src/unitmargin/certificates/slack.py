"""The largest slack: what certificates take off a margin at most, for any input of the domain."""

import math

import torch

from unitmargin.frozen import FrozenNetwork, require_frozen
from unitmargin.frozen.profiles import find_profile
from unitmargin.frozen.proof import largest_input_norm
from unitmargin.layers.arithmetic import product_up, sum_up

INPUT_TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""Types of inputs; an end of the domain that is rounded to one of them still lies in the domain."""


def largest_slack(frozen: FrozenNetwork) -> float | None:
    r"""Upper bound of the slack of every certificate of an input in the network's domain.

    .. math:: \max_{l, k} 2 (\alpha_{lk} + \beta_{lk} \rho), \quad
        \rho \ge \|N(c)\| + S_0 \sqrt{d} \, h

    with c and h the middle and half the width of the domain, N the input normalisation, S_0 its
    constant and d the numbers of an input; rho covers what certificates add to a norm for its
    rounding. Under the network's profile. None without a domain,
    where no bound holds for all inputs.

    Raises:
        TypeError: a network that is not frozen.
        ProfileError: the environment breaks an assumption of the profile.

    Cost: the proof of the network's constants.
    Source: docs/soundness.md, equation (14).

    Example:
        >>> from unitmargin.frozen import Dense
        >>> rows = torch.tensor([[0.5], [-0.5]])
        >>> frozen = FrozenNetwork([Dense(rows, torch.zeros(2))], (1,), domain=(0.0, 1.0))
        >>> 0.0 < largest_slack(frozen) < 1e-14
        True
    """
    require_frozen(frozen)
    if frozen.domain is None:
        return None
    proof = frozen.kept_proof(find_profile(frozen.profile))
    low, high = _widest(frozen.domain)
    middle = low + 0.5 * (high - low)
    half = math.nextafter(max(middle - low, high - middle), math.inf)
    centre = torch.full((1, *frozen.in_shape), middle, dtype=torch.float64)
    far = product_up(math.nextafter(math.sqrt(math.prod(frozen.in_shape)), math.inf), half)
    bounds = proof.bounds
    norm = float(proof.input_norms(centre.to(frozen.head.weight.device))[0])
    reach = sum_up(norm, product_up(bounds.input_scale, far))
    largest = largest_input_norm(reach, math.prod(frozen.in_shape), bounds.input_scale)
    slack = 2.0 * (bounds.alpha + bounds.beta * largest)
    return math.nextafter(float(slack.max()), math.inf)


def _widest(domain: tuple[float, float]) -> tuple[float, float]:
    """The domain with its ends as the types of inputs round them, the widest of all. An end beyond
    the numbers of a type is infinite in it, and its largest numbers lie within the domain."""
    ends = torch.tensor(domain, dtype=torch.float64)
    rounded = torch.stack([ends.to(dtype).double() for dtype in INPUT_TYPES])
    low, high = rounded.where(rounded.isfinite(), ends).unbind(1)
    return float(low.min()), float(high.max())
