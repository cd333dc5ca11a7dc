"""The gallery of a report: telling test samples with their closest adversarial points."""

import base64
import io
import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from PIL import Image
from torch import Tensor

from unitmargin.certificates.closest import closest_adversarial
from unitmargin.data import Samples
from unitmargin.frozen import FrozenNetwork

PLACES = (
    (0.0, "large radius"),
    (1.0, "small radius"),
    (0.5, "typical radius"),
    (0.02, "large radius"),
    (0.98, "small radius"),
    (0.45, "typical radius"),
    (0.55, "typical radius"),
)
"""Which right predictions are shown: shares of the way down the order of falling radius. Where
there are few, an earlier place wins."""

IMAGE_CHANNELS = (1, 3)

LARGEST_DIFFERENCE = 0.5
"""An amplified difference fills at most this much on either side of mid grey."""


@dataclass(frozen=True, eq=False)
class Exhibit:
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

    index: int
    why: str
    label: str
    predicted: str
    other: str
    radius: float
    distance: float | None
    original: Tensor
    adversarial: Tensor


def choose_exhibits(
    radius: Float[Tensor, " batch"], right: Bool[Tensor, " batch"]
) -> list[tuple[int, str]]:
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
    return [(ranked[rank], ranks[rank]) for rank in sorted(ranks)] + [
        (index, "wrong") for index in wrong[:1]
    ]


def make_exhibits(
    frozen: FrozenNetwork,
    samples: Samples,
    radius: Float[Tensor, " batch"],
    right: Bool[Tensor, " batch"],
) -> list[Exhibit]:
    """Exhibits of the chosen samples: closest adversarial points by the closed form and its ray.

    Cost: one backward and up to 72 float64 forward passes for each of about eight samples.
    """
    chosen = choose_exhibits(radius, right)
    if not chosen:
        return []
    inputs, labels = samples.batch(torch.tensor([index for index, _ in chosen]))
    found = closest_adversarial(frozen, inputs)
    adversarial = torch.where(_as_mask(found.flipped, inputs), found.flipped_point, found.point)
    wide = frozen.in_float64()
    with torch.no_grad():
        predicted = wide(inputs.double()).argmax(1)
        landed = wide(adversarial.double())
    others = landed.scatter(1, predicted[:, None], -torch.inf).argmax(1)
    return [
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
    ]


def _as_mask(values: Bool[Tensor, " batch"], like: Tensor) -> Tensor:
    return values.view(-1, *(1,) * (like.ndim - 1))


def is_image(in_shape: tuple[int, ...]) -> bool:
    """Whether an input of this shape can be shown as a grey or colour image."""
    return len(in_shape) == 3 and in_shape[0] in IMAGE_CHANNELS


def amplification(exhibit: Exhibit) -> int:
    """Factor 1, 2, 5, 10, ... that makes the difference of the two inputs visible.

    The largest that keeps ``factor * difference`` within ``LARGEST_DIFFERENCE``, and at least 1.
    """
    largest = float((exhibit.adversarial - exhibit.original).abs().max())
    if largest == 0.0:
        return 1
    room = LARGEST_DIFFERENCE / largest
    decade = int(10 ** max(math.floor(math.log10(room)), 0))
    return max(factor * decade for factor in (1, 2, 5) if factor == 1 or factor * decade <= room)


def image_source(pixels: Float[Tensor, "channels height width"]) -> str:
    """A PNG of an image with values in [0, 1] (others are clipped), as a data address."""
    values = (pixels.clamp(0.0, 1.0) * 255.0).round().to(torch.uint8).movedim(0, -1)
    grey = values.shape[-1] == 1
    image = Image.fromarray(np.ascontiguousarray(values.squeeze(-1) if grey else values))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def difference_source(exhibit: Exhibit) -> str:
    """The amplified difference around mid grey, as a data address."""
    difference = exhibit.adversarial - exhibit.original
    return image_source(0.5 + amplification(exhibit) * difference)
