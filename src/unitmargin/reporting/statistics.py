"""What numbers of a test set say of other samples: intervals and standard errors."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float64
from torch import Tensor

from unitmargin.reporting.wording import NO_NUMBER

Z95 = 1.959964
"""The standard normal number that 97.5% are below."""

FEWEST = 2
"""Samples without which nothing is known of how they vary."""

CHANCE = 0.05
"""That of two standard errors, where samples are many."""

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
    which is NaN of fewer than ``FEWEST`` samples.

    ``chance`` is how probable it is that one as large comes of means that are equal, both signs
    taken together, by an exact test; of other numbers than shares, the least that a test of signs
    or ranks can come to with so many samples.
    """

    value: float
    error: float
    chance: float

    @property
    def known(self) -> bool:
        """Whether there are samples enough for an error."""
        return not math.isnan(self.error)

    @property
    def clear(self) -> bool:
        """Whether it is more than two standard errors from 0, if they are known, and its chance is
        below ``CHANCE``: of few samples that differ, errors are too small."""
        return abs(self.value) > 2.0 * self.error and self.chance < CHANCE


def paired_difference(first: Values, second: Values) -> Difference:
    r"""Mean of ``first - second`` on the same samples, in their order.

    .. math:: \bar d = \frac 1 n \sum_i (a_i - b_i), \;
        s = \sqrt{\frac 1 {n^2} \sum_i (a_i - b_i - \bar d)^2}

    Of shares, whose numbers are 0 and 1, it is the error behind McNemar's test: with b samples that
    the first alone has, and c that the second alone has,
    :math:`s = \sqrt{b + c - (b - c)^2 / n} / n`. Samples on which both agree add nothing to it.
    The chance is that of b heads or more, or c or fewer, of b + c coins.

    Source: Q. McNemar, Note on the sampling error of the difference between correlated proportions
    or percentages, Psychometrika 12 (1947).

    Example:
        >>> import torch
        >>> a, b = torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
        >>> paired_difference(a.double(), b.double())
        Difference(value=0.25, error=0.21650635094610965, chance=1.0)
    """
    difference = first - second
    error = float(difference.std(correction=0)) / math.sqrt(len(difference))
    ahead, behind = int((difference > 0).sum()), int((difference < 0).sum())
    counts = (ahead, behind) if _shares(first, second) else (ahead + behind, 0)
    enough = len(difference) >= FEWEST
    return Difference(float(difference.mean()), error if enough else math.nan, sign_chance(*counts))


def unpaired_difference(first: Values, second: Float64[Tensor, " others"]) -> Difference:
    r"""Difference of the means on samples that have nothing to do with each other.

    .. math:: \bar a - \bar b, \; s = \sqrt{s_a^2 / n_a + s_b^2 / n_b}

    The chance of shares is that of Fisher's exact test.
    """
    error = math.sqrt(sum(float(x.var(correction=0)) / len(x) for x in (first, second)))
    enough = min(len(first), len(second)) >= FEWEST
    value = float(first.mean()) - float(second.mean())
    # Of other numbers, all of the one before all of the other is the rarest order of ranks.
    counts = (int(first.sum()), int(second.sum())) if _shares(first, second) else (len(first), 0)
    chance = exact_chance(counts[0], len(first), counts[1], len(second))
    return Difference(value, error if enough else math.nan, chance)


def sign_chance(ahead: int, behind: int) -> float:
    """How probable so uneven counts are, where either of both is as probable for each.

    Example:
        >>> round(sign_chance(4, 0), 6), round(sign_chance(6, 0), 6), sign_chance(0, 0)
        (0.125, 0.03125, 1.0)
    """
    count = ahead + behind
    shares = _log_choices(count, torch.arange(max(ahead, behind), count + 1))
    return min(1.0, 2.0 * float((shares - count * math.log(2.0)).exp().sum()))


def exact_chance(count: int, of: int, other: int, of_other: int) -> float:
    """How probable shares so far apart are, where all samples are alike: twice the smaller tail of
    Fisher's exact test.

    Source: R. A. Fisher, On the interpretation of chi-squared from contingency tables, and the
    calculation of P, Journal of the Royal Statistical Society 85 (1922).

    Example:
        >>> round(exact_chance(3, 4, 1, 4), 6)
        0.485714
    """
    both = count + other
    counts = torch.arange(max(0, both - of_other), min(both, of) + 1)
    ways = _log_choices(of, counts) + _log_choices(of_other, both - counts)
    shares = (ways - _log_choices(of + of_other, torch.tensor(both))).exp()
    tails = shares[counts <= count].sum(), shares[counts >= count].sum()
    return min(1.0, 2.0 * float(min(tails)))


def _log_choices(count: int, chosen: Tensor) -> Tensor:
    """Logarithms of binomial coefficients, in float64."""
    numbers = torch.tensor(count, dtype=torch.float64), chosen.double(), count - chosen.double()
    whole, part, rest = (torch.lgamma(number + 1.0) for number in numbers)
    return whole - part - rest


def _shares(*values: Tensor) -> bool:
    """Whether all numbers are 0 or 1."""
    return all(bool(((each == 0.0) | (each == 1.0)).all()) for each in values)


def median(values: Values) -> float | None:
    """The median, of an even number the mean of the middle two; None of nothing.

    Equal to ``quantile(0.5)``, which refuses more than 16 million numbers.

    Example:
        >>> median(torch.tensor([4.0, 1.0, 2.0, 8.0]).double())
        3.0
    """
    if not len(values):
        return None
    ordered, middle = values.sort().values, (len(values) - 1) / 2
    low, high = ordered[math.floor(middle)], ordered[math.ceil(middle)]
    return float(low.lerp(high, middle % 1))


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
