"""Telling test samples with their closest adversarial points, and the closed form in numbers."""

import torch
from pydantic import ConfigDict, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor

from unitmargin.auditing.finding import FiniteOrNone
from unitmargin.certificates.boundary import Inputs, Mask, Values, spread_over
from unitmargin.certificates.closest import closest_adversarial
from unitmargin.data import Samples
from unitmargin.foundation.options import Options
from unitmargin.frozen import FrozenNetwork

PLACES = (
    (0.0, "large radius"), (1.0, "small radius"), (0.5, "typical radius"),
    (0.02, "large radius"), (0.98, "small radius"), (0.45, "typical radius"),
    (0.55, "typical radius"),
)  # fmt: skip
"""Which right predictions are shown: shares of the way down the order of falling radius. Where
there are few, an earlier place wins."""


def is_image(in_shape: tuple[int, ...]) -> bool:
    """Whether an input of this shape can be shown as a grey or colour image."""
    return len(in_shape) == 3 and in_shape[0] in (1, 3)


class Exhibit(Options):
    """One test sample and its closest adversarial point.

    Attributes:
        index: of the test sample.
        why: what it stands for, such as "typical radius".
        label, predicted, other: class names; ``other`` is the class beyond the boundary on
            which the adversarial point lies.
        radius: certified radius.
        distance: of the adversarial point; None where the ray met no other class.
        original, adversarial: the two inputs, float64.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: NonNegativeInt
    why: str
    label: str
    predicted: str
    other: str
    radius: NonNegativeFloat
    distance: NonNegativeFloat | None
    original: Tensor
    adversarial: Tensor


class Reach(Options):
    """How often the closed form and its ray find another label, and how far out.

    Attributes:
        samples: how many were tried.
        flipped_share: share of them with a point of another label.
        median_ratio: median of distance / certified radius; None without a certified sample.
    """

    samples: PositiveInt
    flipped_share: float
    median_ratio: FiniteOrNone


def choose_exhibits(radius: Values, right: Mask) -> list[tuple[int, str]]:
    """Positions of telling samples, each with what it stands for.

    Right predictions of large, typical and small radius, then the wrong one with the largest
    radius; fewer where there are not enough. No sample comes twice.

    Example:
        >>> choose_exhibits(torch.tensor([0.2, 0.9, 0.4]), torch.tensor([True, True, False]))
        [(1, 'large radius'), (0, 'small radius'), (2, 'wrong')]
    """
    order = radius.argsort(descending=True, stable=True)
    ranked = order[right[order]].tolist()
    ranks: dict[int, str] = {}
    for share, why in PLACES if ranked else ():
        ranks.setdefault(round(share * (len(ranked) - 1)), why)
    wrong = order[~right[order] & (radius[order] > 0)].tolist()
    shown = [(ranked[rank], ranks[rank]) for rank in sorted(ranks)]
    return [*shown, *((index, "wrong") for index in wrong[:1])]


def make_exhibits(
    frozen: FrozenNetwork, samples: Samples, radius: Values, right: Mask
) -> tuple[Exhibit, ...]:
    """Exhibits of the chosen samples: closest adversarial points by the closed form and its ray.

    Cost: that of :func:`closest_adversarial` for about eight samples.
    """
    chosen = choose_exhibits(radius, right)
    if not chosen:
        return ()
    inputs, labels = samples.batch(torch.tensor([index for index, _ in chosen]))
    found = closest_adversarial(frozen, inputs, domain="any")
    flipped = spread_over(found.flipped, inputs)
    adversarial = torch.where(flipped, found.flipped_point, found.point)
    wide = frozen.in_float64()
    with torch.no_grad():
        predicted = wide(inputs.double()).argmax(1)
        landed = wide(adversarial.double())
    others = landed.scatter(1, predicted[:, None], -torch.inf).argmax(1)
    return tuple(
        Exhibit(
            index=index,
            why=why,
            label=frozen.classes[int(labels[row])],
            predicted=frozen.classes[int(predicted[row])],
            other=frozen.classes[int(others[row])],
            radius=float(radius[index]),
            distance=float(found.flipped_distance[row]) if bool(found.flipped[row]) else None,
            original=inputs[row].double(),
            adversarial=adversarial[row].double(),
        )
        for row, (index, why) in enumerate(chosen)
    )


def closed_form_reach(frozen: FrozenNetwork, inputs: Inputs, radius: Values) -> Reach:
    """The closed form tried on inputs with these certified radii.

    Cost: that of :func:`closest_adversarial`.
    """
    found = closest_adversarial(frozen, inputs, domain="any")
    ratios = (found.flipped_distance / radius)[found.flipped & (radius > 0)]
    share = float(found.flipped.double().mean())
    median = float(ratios.quantile(0.5)) if len(ratios) else None
    return Reach(samples=len(inputs), flipped_share=share, median_ratio=median)
