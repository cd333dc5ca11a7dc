"""What a guard says of one input: a label with its radius, or why there is none."""

from decimal import ROUND_FLOOR, Context
from typing import NamedTuple

CERTIFIED = "certified"
NOT_ENCODED = "not_encoded"
NOT_FINITE = "not_finite"
OUTSIDE_DOMAIN = "outside_domain"
NO_CLAIM = "no_claim"
BELOW_THRESHOLD = "below_threshold"

OUTCOMES = (CERTIFIED, NOT_ENCODED, NOT_FINITE, OUTSIDE_DOMAIN, NO_CLAIM, BELOW_THRESHOLD)
"""Keys of the counters: the only acceptance, then the rejections; the first that holds is given."""


class Answer(NamedTuple):
    r"""The answer of a :class:`Guard` to one input; true where it is certified.

    Guarantee: where ``label`` is a class, no change of norm at most ``reject_below`` to numbers of
    the network's type makes the network predict another one; nor does any of norm below ``radius``.

    Attributes:
        label: certified class; None for a rejected input.
        name: name of that class; None for a rejected input.
        radius: l2 radius, in units of the input, within which ``predicted`` is constant; 0 for "no
            claim".
        reason: "certified", or a sentence that says why not: "radius 0.05 < 0.14".
        outcome: the same as one of ``OUTCOMES``, for counting.
        predicted: class that the network gives the input, also where it is rejected: for logs, not
            for decisions. None where there is none: a row that cannot be read, numbers or logits
            that are not finite.
        runner_up: class with the second largest logit; None where ``predicted`` is.
        margin: difference of the two largest logits.

    Example:
        >>> answer = Answer(None, None, 0.05, "radius 0.05 < 0.14", "below_threshold", 3, 5, 0.05)
        >>> bool(answer), answer.predicted
        (False, 3)
    """

    label: int | None
    name: str | None
    radius: float
    reason: str
    outcome: str
    predicted: int | None
    runner_up: int | None
    margin: float

    @property
    def certified(self) -> bool:
        """Whether there is a label."""
        return self.label is not None

    def __bool__(self) -> bool:
        return self.label is not None


def too_small(radius: float, threshold: float) -> str:
    """A radius that is not above the threshold, with as many digits as tell the two apart, and
    rounded down: a larger one was not proved.

    Example:
        >>> too_small(0.0496, 36 / 255), too_small(0.1411, 36 / 255), too_small(0.5, 0.5)
        ('radius 0.049 < 0.14', 'radius 0.1411 < 0.1412', 'radius 0.5 = 0.5')
    """
    if radius == threshold:
        return f"radius {radius} = {threshold}"
    enough = (d for d in range(2, 18) if f"{radius:.{d}g}" != f"{threshold:.{d}g}")
    digits = next(enough)
    return f"radius {_lowered(radius, digits)} < {threshold:.{digits}g}"


def _lowered(radius: float, digits: int) -> str:
    floor = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(radius))
    return f"{float(floor):.{digits}g}"
