"""Certificates that are stored, against those that are derived again: a changed one is found."""

import torch
from torch import Tensor

from unitmargin.auditing.finding import Finding, at_most
from unitmargin.certificates.boundary import TINY, Inputs, Labels, Mask, Values
from unitmargin.certificates.certify import Certificate, certify, steepness
from unitmargin.certificates.inputs import require_inputs
from unitmargin.certificates.rows import sample_name
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import PROFILES
from unitmargin.frozen.proof import Proof
from unitmargin.layers.margin import pair_margins

STORED = "stored_certificates"

RADIUS_AGREEMENT = 1e-10
"""Radii written earlier may have been computed with another batch size or thread count, which
moves float64 logits by a few ulp; a larger difference means another model or other data. Where
inputs are in large units the bound of that rounding is larger, and takes its place."""


def stored_finding(
    frozen: FrozenNetwork, inputs: Inputs, stored: Certificate, index: Labels | None = None
) -> Finding:
    r"""Stored certificates are what some evaluation of the network's profile may give.

    Evaluations differ by rounding, at most by half the slack :math:`s_k` each. One in float64 has
    the error :math:`E_k` and shows margins :math:`\mu_k` from which no honest radius is far above:

    .. math:: r \le \min_k (\mu_k + E_k - s_k / 2) / L_{lk}

    so that a radius which is raised as far as a slack allows is found, also of float32, whose slack
    is large. From below the tolerance is the slack. Where a radius is claimed the label is that of
    every evaluation, the margin another one's up to the slack, and the runner-up second up to it.

    Args:
        stored: label, runner-up, margin and radius of the inputs; the slack is not read.
        index: numbers of the inputs among the test samples, by which they are named.

    The value is the largest difference of a radius, in units of ``RADIUS_AGREEMENT`` where rounding
    may be larger; infinite for another label, runner-up or margin.
    """
    own = certify(frozen, inputs, domain="any")
    label, margins, slack, highest = _of_any_evaluation(frozen, inputs)
    claims = (stored.radius > 0) | (own.radius > 0)
    changed = {
        "label": claims & (stored.label != label),
        "margin": claims & ~((stored.margin - own.margin).abs() <= slack),
        "runner-up": claims & _is_not_second(stored.runner_up, margins, slack),
        "radius": torch.zeros_like(claims),
    }
    slope = own.radius / (own.margin - own.slack).clamp_min(TINY)
    rounding = (own.slack * slope).clamp_min(RADIUS_AGREEMENT)
    low = (own.radius - stored.radius) * (RADIUS_AGREEMENT / rounding)
    high = torch.where(stored.radius > 0, (stored.radius - highest) / highest.clamp_min(TINY), 0.0)
    gap = torch.maximum(low, high).nan_to_num(nan=torch.inf).where(claims, 0.0).clamp_min(0.0)
    gap = gap.masked_fill(torch.stack([*changed.values()]).any(0), torch.inf)
    worst, value = int(gap.argmax()), float(gap.max())
    found = at_most(STORED, value, RADIUS_AGREEMENT)
    if found.passed:
        return found
    what = next((name for name, wrong in changed.items() if wrong[worst]), "radius")
    had, derived = (getattr(one, what.replace("-", "_"))[worst].item() for one in (stored, own))
    name = sample_name(worst, index)
    return found.changed(detail=f"{name}: stored {what} {had!r}, got {derived!r}")


def _of_any_evaluation(
    frozen: FrozenNetwork, inputs: Inputs
) -> tuple[Labels, Tensor, Values, Values]:
    """Label and margins in float64; the slack of the network's profile, the largest of all classes;
    and the largest radius that an evaluation of that profile may give."""
    given = require_inputs(frozen, inputs, "any")
    exact, own = (frozen.kept_proof(PROFILES[name]) for name in ("float64", frozen.profile))
    with torch.no_grad():
        logits = exact.evaluate(given).double()
    label = logits.argmax(1)
    margins = pair_margins(logits, label)
    error, error_of_exact = (_errors(proof, given, label) for proof in (own, exact))
    matrices = own.bounds.lipschitz, own.bounds.beta
    lipschitz, beta = (matrix.to(logits.device)[label] for matrix in matrices)
    steep = steepness(lipschitz, beta, own.bounds.input_scale)
    others = torch.isfinite(margins)  # the label's own column is infinite
    quotients = ((margins + error_of_exact - error) / steep).where(others, torch.inf)
    slack = 2.0 * (error + error_of_exact).where(others, 0.0).max(1).values
    largest = own.bounds.largest.constant + own.bounds.largest.slope * own.input_norms(given)
    highest = quotients.min(1).values.where(largest < own.bounds.limit, 0.0)  # near overflow none
    return label, margins, slack + RADIUS_AGREEMENT, highest.clamp_min(0.0)


def _errors(proof: Proof, given: Tensor, label: Labels) -> Tensor:
    """Bounds of the error of each margin in one evaluation: half the slack."""
    alpha, beta = (matrix.to(given.device) for matrix in (proof.bounds.alpha, proof.bounds.beta))
    return alpha[label] + beta[label] * proof.input_norms(given)[:, None]


def _is_not_second(runner_up: Labels, margins: Tensor, slack: Values) -> Mask:
    """Whether a class is none, or another one is nearer by more than rounding explains."""
    known = (runner_up >= 0) & (runner_up < margins.shape[1])
    own = margins.gather(1, runner_up.where(known, 0)[:, None]).squeeze(1)
    return ~known | ~(own <= margins.min(1).values + slack)
