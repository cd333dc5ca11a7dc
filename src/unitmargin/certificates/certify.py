r"""Certificates: label and radius from one forward pass, and the closest adversarial point.

For a classifier whose logit pairs are Lipschitz with constants :math:`L_{lk}`, the label l cannot
change within the radius :math:`\min_{k \ne l} (f_l - f_k) / L_{lk}` (the paper, observation on
certifiable robustness; L = 1 for an exact UGNN). That holds for real numbers; the sound radius
holds for the numbers that a computer gets (docs/soundness.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.certificates.boundary import Labels, Values
from unitmargin.certificates.inputs import Inputs, input_batches, require_inputs
from unitmargin.certificates.rows import as_html, as_text, positions, table
from unitmargin.frozen import FrozenNetwork, require_frozen
from unitmargin.frozen.profiles import find_profile
from unitmargin.layers.arithmetic import SMALLEST_NORMAL, Affine, require_bound
from unitmargin.layers.margin import pair_margins, ranked, require_several_classes

Logits = Float[Tensor, "batch c"]

DOWN = 1.0 - 2.0**-40
"""Factor that covers the rounding of the radius itself: a dozen float64 operations."""

SMALLEST = SMALLEST_NORMAL[torch.float64]
"""Radii below it are rounded in absolute terms, not relative ones, so nothing is claimed; and what
the product of a slope may lose to underflow."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What may be claimed of a batch of predictions; all tensors have one entry a sample.

    ``len(certificate)`` counts the samples; ``certificate[index]`` is the certificate of those that
    a number, a slice, positions or a mask choose, one sample of a number. What is printed is
    rounded down, the slack up.

    Attributes:
        label: predicted class; -1 where a logit is not finite.
        runner_up: class with the second largest logit; -1 where a logit is not finite.
        margin: difference of the two largest logits, float64; the signed-distance estimate of a
            UGNN, and no distance for networks that are 1-Lipschitz alone.
        radius: l2 radius, in input units, within which the label is constant; float64, 0 for "no
            claim" (a tie, a margin below the slack, or a logit that is not finite).
        slack: what was subtracted from the margin for the rounding of two evaluations, an upper
            bound of it.
    """

    label: Labels
    runner_up: Labels
    margin: Values
    radius: Values
    slack: Values

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, index: object) -> "Certificate":
        """Raises TypeError for what is no index, IndexError for samples that are not there."""
        chosen = positions(index, len(self))
        return Certificate(**{k: v[chosen.to(v.device)] for k, v in vars(self).items()})

    def cpu(self) -> "Certificate":
        """The same in the memory of the processor."""
        return Certificate(**{name: values.cpu() for name, values in vars(self).items()})

    def numpy(self) -> dict[str, np.ndarray]:
        """Each attribute as an array, by its name: columns of a data frame."""
        return {name: values.cpu().numpy() for name, values in vars(self).items()}

    def __repr__(self) -> str:
        return as_text(*self._shown())

    def _repr_html_(self) -> str:
        return as_html(*self._shown())

    def _shown(self) -> tuple[str, list[tuple[str, ...]], int]:
        title = f"Certificate of {len(self)} samples on {self.label.device}"
        try:
            rows = table(vars(self), raised=("slack",))
        except RuntimeError:  # tensors without numbers: on the meta device, or being traced
            rows = [("", *vars(self))]
        return title, rows, len(self) - len(rows) + 1


@runtime_checkable
class Bounds(Protocol):
    """What a sound radius asks of :class:`unitmargin.frozen.rounding.RoundingBounds`."""

    @property
    def lipschitz(self) -> Float[Tensor, "c c"]: ...

    @property
    def alpha(self) -> Float[Tensor, "c c"]: ...

    @property
    def beta(self) -> Float[Tensor, "c c"]: ...

    @property
    def input_scale(self) -> float: ...

    @property
    def largest(self) -> Affine: ...

    @property
    def limit(self) -> float: ...


def certificate_from_logits(logits: Logits, constants: Float[Tensor, "c c"]) -> Certificate:
    """Certificate in exact arithmetic, of given logits and pair constants: no slack.

    Label and runner-up come from one stable descending sort, so a tie lists the lower index
    first, as ``argmax`` does, and gets radius 0.
    """
    pair = constants.to(logits.device, torch.float64)
    none = torch.zeros_like(pair)
    return _certificate(
        logits, lambda label: pair[label], none, none, none[0, 0].expand(len(logits))
    )


def sound_certificate(logits: Logits, bounds: Bounds, norms: Values) -> Certificate:
    r"""Certificate that holds in floating point, of computed logits:

    .. math:: r = \min_{k \ne l}
        \frac{\mu_k - 2(\alpha_{lk} + \beta_{lk} \rho)}{L_{lk} + \beta_{lk} S_0}

    with :math:`\mu_k` the differences of the logits and ``norms`` upper bounds of the normalised
    inputs' norms :math:`\rho`; rounded down (equation (14) of docs/soundness.md). Where a number of
    the evaluation may come near overflow nothing is claimed, and no radius that is denormal.

    Raises:
        ValueError: a norm that is negative or NaN.
    """
    require_bound("the norm of an input", float(norms.min()) if len(norms) else 0.0)
    return traceable_certificate(logits, bounds, norms)


def traceable_certificate(logits: Logits, bounds: Bounds, norms: Values) -> Certificate:
    """As :func:`sound_certificate`, of norms that are known to be at least 0: no step depends on a
    value, so exports and compilers take it as one graph."""
    matrices = bounds.lipschitz, bounds.alpha, bounds.beta
    lipschitz, alpha, beta = (matrix.to(logits.device) for matrix in matrices)
    scale = bounds.input_scale
    found = _certificate(
        logits, lambda label: steepness(lipschitz[label], beta[label], scale), alpha, beta, norms
    )
    radius = found.radius * DOWN
    largest = bounds.largest.constant + bounds.largest.slope * (norms + bounds.input_scale * radius)
    claimed = (largest < bounds.limit) & (radius >= SMALLEST)
    radius = torch.where(claimed, radius, torch.zeros_like(radius))
    return replace(found, radius=radius)


def steepness(
    lipschitz: Float[Tensor, "*pairs"], beta: Float[Tensor, "*pairs"], input_scale: float
) -> Float[Tensor, "*pairs"]:
    """What a margin less its slack is divided by: the divisors of (14), rounded up."""
    return (lipschitz + beta * input_scale + SMALLEST) / DOWN


def _certificate(
    logits: Tensor,
    steep: Callable[[Labels], Tensor],
    alpha: Tensor,
    beta: Tensor,
    norms: Tensor,
) -> Certificate:
    """Smallest quotient of ``difference - 2 (alpha + beta norm)`` and ``steep`` over all classes.

    Every matrix has one entry a pair of classes, and ``steep`` gives the rows of labels.
    """
    wide = logits.double()
    require_several_classes(wide.shape[1])
    finite = torch.isfinite(wide).all(1)
    label, runner_up = ranked(wide)[:, :2].unbind(1)
    differences = pair_margins(wide, label)
    slack = 2.0 * (alpha[label] + beta[label] * norms[:, None])
    radii = ((differences - slack) / steep(label)).scatter(1, label[:, None], torch.inf)
    radius = radii.min(1).values
    margin, own = (rows.gather(1, runner_up[:, None]).squeeze(1) for rows in (differences, slack))
    nothing = torch.zeros_like(radius)
    return Certificate(
        label=torch.where(finite, label, -1),
        runner_up=torch.where(finite, runner_up, -1),
        margin=torch.where(finite, margin, nothing),
        radius=torch.where(finite & (radius > 0), radius, nothing),
        slack=own,
    )


def certify(
    frozen: FrozenNetwork, x: Inputs, profile: str | None = None, domain: str = "model"
) -> Certificate:
    r"""Certify a batch with radii that hold in floating-point arithmetic.

    Shapes: ``x (batch, *in_shape)``, a tensor, NumPy array or data frame of any floating dtype
    whose numbers the profile can hold; an empty batch gives an empty certificate. Radii are in the
    units of ``x``. No labels are needed; those of a pair (inputs, labels) are left out. Samples, a
    torch data set or a loader of pairs or of inputs give one certificate of all their inputs in
    their order, taken batch by batch; of a ``unitmargin`` data set the test samples are certified.
    Guarantee: no input within ``radius``, its edge included, has another label, whoever evaluates
    the stored weights: in any order of summation, batch size, thread count and device that keep to
    the profile's arithmetic. The margin is divided by proved Lipschitz bounds after a proved bound
    of the rounding errors, ``slack``, was taken off (docs/soundness.md).

    Args:
        profile: ``float64``, or ``float32``: honest, and usually too loose for large inputs.
            Default: the network's own.
        domain: ``model`` refuses entries outside of ``frozen.domain``, which are in other units
            than those the network was trained in, and so would the radius be; ``any`` takes them.

    Raises:
        TypeError: a model that is not frozen, or ``x`` of another kind.
        ValueError: integer input, another shape or device than the network's, entries outside of
            its domain, an unknown profile, or numbers that the profile cannot hold.
        ProfileError: the environment breaks an assumption of the profile.

    Cost: one forward pass, one norm and a few numbers a class of each input; of a network, the
    proof of its constants once, and one comparison of its weights a batch.
    Source: the paper, section 4.3, observation on certifiable robustness.

    Example:
        >>> from unitmargin import UGNN, freeze
        >>> frozen = freeze(UGNN(in_shape=(1, 8, 8), n_classes=10))
        >>> bool((certify(frozen, torch.rand(3, 1, 8, 8)).radius >= 0).all())
        True
    """
    require_frozen(frozen)
    parts: list[Certificate] = []
    done = 0
    for batch in input_batches(x):
        parts.append(_certify_batch(frozen, batch, profile, domain, done))
        done += len(parts[-1])
    if not parts:
        raise ValueError("x must yield a batch at least, got none; add inputs")
    if len(parts) == 1:
        return parts[0]
    columns = (
        torch.cat([getattr(part, column.name) for part in parts]) for column in fields(Certificate)
    )
    return Certificate(*columns)


def _certify_batch(
    frozen: FrozenNetwork, x: object, profile: str | None, domain: str, first: int
) -> Certificate:
    given = require_inputs(frozen, x, domain, first)
    chosen = find_profile(frozen.profile if profile is None else profile)
    proof = frozen.kept_proof(chosen)
    with torch.no_grad():
        logits = proof.evaluate(given)
    return sound_certificate(logits, proof.bounds, proof.input_norms(given))
