"""What numbers of a test set say of other samples: intervals and standard errors."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Float64
from torch import Tensor

from unitmargin.reporting.wording import NO_NUMBER

Z95 = 1.959964
"""The standard normal number that 97.5% are below."""

FEWEST = 2
"""Samples without which nothing is known of how they vary."""

Values = Float64[Tensor, " batch"]


def share_interval(count: int, of: int) -> list[float] | None:
    r"""Wilson's interval of 95% for a share, None of nothing.

    .. math:: \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference,
    Journal of the American Statistical Association 22 (1927).

    Example:
        >>> [round(end, 3) for end in share_interval(45, 50)]
        [0.786, 0.957]
    """
    if not of:
        return None
    share, square = count / of, Z95**2 / of
    middle = share + square / 2
    half = Z95 * math.sqrt(share * (1.0 - share) / of + square / (4 * of))
    low, high = (end / (1.0 + square) for end in (middle - half, middle + half))
    # At the ends the formula is exact, and floating-point arithmetic is not.
    return [0.0 if count == 0 else low, 1.0 if count == of else high]


class Difference(NamedTuple):
    """A difference of two means, and the standard error that the choice of the samples gives it,
    which is NaN of fewer than ``FEWEST`` samples."""

    value: float
    error: float

    @property
    def known(self) -> bool:
        """Whether there are samples enough for an error."""
        return not math.isnan(self.error)

    @property
    def clear(self) -> bool:
        """Whether it is more than two standard errors from 0, if they are known."""
        return abs(self.value) > 2.0 * self.error


def paired_difference(first: Values, second: Values) -> Difference:
    r"""Mean of ``first - second`` on the same samples, in their order.

    .. math:: \bar d = \frac 1 n \sum_i (a_i - b_i), \;
        s = \sqrt{\frac 1 {n^2} \sum_i (a_i - b_i - \bar d)^2}

    Of shares, whose numbers are 0 and 1, it is the error behind McNemar's test: with b samples that
    the first alone has, and c that the second alone has,
    :math:`s = \sqrt{b + c - (b - c)^2 / n} / n`. Samples on which both agree add nothing to it.

    Source: Q. McNemar, Note on the sampling error of the difference between correlated proportions
    or percentages, Psychometrika 12 (1947).

    Example:
        >>> import torch
        >>> a, b = torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
        >>> paired_difference(a.double(), b.double())
        Difference(value=0.25, error=0.21650635094610965)
    """
    difference = first - second
    error = float(difference.std(correction=0)) / math.sqrt(len(difference))
    return Difference(float(difference.mean()), error if len(difference) >= FEWEST else math.nan)


def unpaired_difference(first: Values, second: Float64[Tensor, " others"]) -> Difference:
    r"""Difference of the means on samples that have nothing to do with each other.

    .. math:: \bar a - \bar b, \; s = \sqrt{s_a^2 / n_a + s_b^2 / n_b}
    """
    error = math.sqrt(sum(float(x.var(correction=0)) / len(x) for x in (first, second)))
    enough = min(len(first), len(second)) >= FEWEST
    value = float(first.mean()) - float(second.mean())
    return Difference(value, error if enough else math.nan)


def interval(ends: Sequence[float] | None) -> str:
    """An interval of shares, with one decimal, rounded outwards.

    Example:
        >>> interval([0.78, 0.95711]), interval(None)
        ('[78.0%, 95.8%]', 'none')
    """
    if ends is None:
        return NO_NUMBER
    low, high = (100.0 * end for end in ends)
    # Products such as 100 * 0.58 are off by an ulp, which is no tenth of a percent.
    return f"[{math.floor(10 * low + 1e-9) / 10:.1f}%, {math.ceil(10 * high - 1e-9) / 10:.1f}%]"


def signed(value: float, decimals: int) -> str:
    """A difference with its sign.

    Example:
        >>> signed(1.23, 2), signed(-0.5, 2), signed(-1e-9, 4)
        ('+1.23', '−0.50', '0.0000')
    """
    text = f"{value:+.{decimals}f}"
    return text.replace("-", "−") if float(text) else text[1:]
