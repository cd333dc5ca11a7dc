"""Classifiers whose distance to the decision boundary is known in closed form.

The ground truth of certificates and of solvers, in float32 and in float64. Each entry of ``EXACT``
is a function of the dtype that returns an :class:`ExactClassifier`: a frozen network, points of its
input space, and two independent formulas, ``distance(x)`` and ``closest(x)``. Both are evaluated in
float64 from the *stored* weights, so they are the truth of the network as deployed.

``tight`` says whether the certificate of the network equals the distance at the given points
(affine pieces of unit gradient whose nearest one decides) or is a strict lower bound of it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.frozen import Dense, FrozenNetwork
from unitmargin.heads.upd import simplex
from unitmargin.layers.activations import Abs, GroupSort
from unitmargin.layers.arithmetic import gamma
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.rearrangement import Flatten

RADIAL_ROUNDINGS = 8
"""Roundings of the norm of four numbers: a square, three additions, a root, and room."""

N_INPUTS = 48
"""Points of each classifier: enough to meet every class and every face."""

Measure = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class ExactClassifier:
    """A network, points of its input space, and the truth about them.

    Attributes:
        network: the classifier, in the asked dtype.
        inputs: ``(N_INPUTS, *in_shape)`` in the dtype of the network, none of them on the boundary.
        distance: float64 ``(batch,)``, the distance from each point to the nearest one with
            another label: the solution of the paper's problem MAP.
        closest: float64 ``(batch, *in_shape)``, a point of the boundary at that distance.
        tight: whether ``certify(network, inputs).radius`` equals ``distance(inputs)``.
    """

    network: FrozenNetwork
    inputs: Tensor
    distance: Measure
    closest: Measure
    tight: bool


class Radial(FixedLayer):
    """Euclidean norm of the input, one feature: 1-Lipschitz, unit gradient except at 0."""

    kind = "radial"

    def forward(self, x: Float[Tensor, "batch n"]) -> Float[Tensor, "batch 1"]:
        norm: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        return norm

    def rounding(self, unit: float) -> float:
        return gamma(RADIAL_ROUNDINGS, unit)


def affine(
    dtype: torch.dtype = torch.float64, classes: int = 5, features: int = 7
) -> ExactClassifier:
    r"""Multi-class affine classifier with general rows.

    Its regions are intersections of half-spaces, so
    :math:`d(x) = \min_{k \ne l} (f_l - f_k)(x) / \|w_l - w_k\|`.
    """
    generator = torch.Generator().manual_seed(classes)
    weight = torch.randn(classes, features, generator=generator, dtype=torch.float64)
    return _affine(weight, dtype, (features,), [], generator, tight=True)


def unit_affine(
    dtype: torch.dtype = torch.float64, classes: int = 5, in_shape: Sequence[int] = (2, 2, 3)
) -> ExactClassifier:
    r"""Affine signed distance classifier: all pair distances of the rows are 1, so
    :math:`d(x) = f_l(x) - f_s(x)`. Takes small images and flattens them."""
    features = math.prod(in_shape)
    generator = torch.Generator().manual_seed(classes)
    square = torch.randn(features, features, generator=generator, dtype=torch.float64)
    frame = torch.linalg.qr(square).Q[: classes - 1]
    weight = simplex(classes, torch.float64) @ frame
    return _affine(weight, dtype, tuple(in_shape), [Flatten()], generator, tight=True)


def stretched_affine(dtype: torch.dtype = torch.float64) -> ExactClassifier:
    """An affine classifier behind a dense layer with singular values from 0.5 to 2: the product of
    norms overestimates the slope, so the certificate stays strictly below the distance."""
    generator = torch.Generator().manual_seed(3)
    features, classes = 6, 4
    square = torch.randn(features, features, generator=generator, dtype=torch.float64)
    left, _, right = torch.linalg.svd(square)
    values = torch.linspace(2.0, 0.5, features, dtype=torch.float64)
    stretch = Dense(((left * values) @ right).to(dtype), torch.zeros(features, dtype=dtype))
    weight = torch.randn(classes, features, generator=generator, dtype=torch.float64)
    return _affine(weight, dtype, (features,), [stretch], generator, tight=False)


def _affine(
    weight: Tensor,
    dtype: torch.dtype,
    in_shape: tuple[int, ...],
    before: list[FixedLayer],
    generator: torch.Generator,
    tight: bool,
) -> ExactClassifier:
    bias = 0.3 * torch.randn(weight.shape[0], generator=generator, dtype=torch.float64)
    head = Dense(weight.to(dtype), bias.to(dtype))
    network = FrozenNetwork([*before, head], in_shape)
    product, shift = head.weight.double(), head.bias.double()
    for layer in reversed(before):
        if isinstance(layer, Dense):
            shift = product @ layer.bias.double() + shift
            product = product @ layer.weight.double()

    def faces(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Distance of every face, the nearest one, and the differences of the rows."""
        logits = x.flatten(1).double() @ product.mT + shift
        label = logits.argmax(1)
        rows = product[label][:, None, :] - product[None, :, :]
        gaps = logits.gather(1, label[:, None]) - logits
        distances = (gaps / rows.norm(dim=2)).scatter(1, label[:, None], torch.inf)
        return distances, distances.argmin(1), rows

    def distance(x: Tensor) -> Tensor:
        return faces(x)[0].min(1).values

    def closest(x: Tensor) -> Tensor:
        distances, nearest, rows = faces(x)
        row = rows[torch.arange(len(x)), nearest]
        step = distances.min(1).values / row.norm(dim=1)
        return (x.flatten(1).double() - step[:, None] * row).view(x.shape)

    inputs = torch.randn(N_INPUTS, *in_shape, generator=generator, dtype=torch.float64)
    return ExactClassifier(network, inputs.to(dtype), distance, closest, tight)


def sphere(dtype: torch.dtype = torch.float64, radius: float = 1.0) -> ExactClassifier:
    r"""Class 0 outside, class 1 inside the sphere about 0: :math:`f_0 - f_1 = \|x\| - r`.

    A signed distance classifier that is not affine: :math:`d(x) = |\,\|x\| - r\,|`.
    """
    half = torch.tensor([[0.5], [-0.5]], dtype=dtype)
    bias = torch.tensor([-radius / 2, radius / 2], dtype=dtype)
    network = FrozenNetwork([Radial(), Dense(half, bias)], (4,), ("outside", "inside"))
    level = float(bias.double()[1] - bias.double()[0])

    def distance(x: Tensor) -> Tensor:
        return (x.double().norm(dim=1) - level).abs()

    def closest(x: Tensor) -> Tensor:
        return x.double() * (level / x.double().norm(dim=1, keepdim=True))

    generator = torch.Generator().manual_seed(4)
    directions = torch.randn(N_INPUTS, 4, generator=generator, dtype=torch.float64)
    lengths = torch.linspace(0.1, 3.0, N_INPUTS, dtype=torch.float64)[:, None]
    inputs = radius * lengths * directions / directions.norm(dim=1, keepdim=True)
    return ExactClassifier(network, inputs.to(dtype), distance, closest, tight=True)


def _largest_feature(dtype: torch.dtype, features: int) -> list[FixedLayer]:
    """Sort the features, then compare the largest with 0: class 0 above, class 1 below."""
    weight = torch.zeros(2, features, dtype=dtype)
    weight[0, 0], weight[1, 0] = 0.5, -0.5
    return [GroupSort(features), Dense(weight, torch.zeros(2, dtype=dtype))]


def box(dtype: torch.dtype = torch.float64) -> ExactClassifier:
    r"""Class 0 outside, class 1 inside a box: :math:`f_0 - f_1 = \max_i (|x_i - c_i| - h_i)`.

    Built from GNP layers alone, so it has unit gradients almost everywhere. Inside, the distance is
    the smallest gap to a face and the certificate is tight. Outside, the distance is
    :math:`\|(|x - c| - h)_+\|`, which beyond an edge or a corner exceeds the certificate.
    """
    centre = torch.tensor([0.2, -0.1, 0.4], dtype=dtype)
    half = torch.tensor([0.5, 0.8, 1.1], dtype=dtype)
    eye = torch.eye(3, dtype=dtype)
    layers = [Dense(eye, -centre), Abs(), Dense(eye, -half)]
    network = FrozenNetwork([*layers, *_largest_feature(dtype, 3)], (3,), ("outside", "inside"))
    middle, size = centre.double(), half.double()

    def distance(x: Tensor) -> Tensor:
        excess = (x.double() - middle).abs() - size
        inside = -excess.max(1).values
        return torch.where(inside > 0, inside, excess.clamp_min(0.0).norm(dim=1))

    def closest(x: Tensor) -> Tensor:
        offset = x.double() - middle
        excess = offset.abs() - size
        nearest = excess.argmax(1, keepdim=True)
        onto_face = offset.scatter(1, nearest, offset.sign().gather(1, nearest) * size[nearest])
        outside = torch.minimum(torch.maximum(offset, -size), size)
        inside = excess.max(1, keepdim=True).values < 0
        return middle + torch.where(inside, onto_face, outside)

    generator = torch.Generator().manual_seed(5)
    inputs = middle + 1.5 * torch.randn(N_INPUTS, 3, generator=generator, dtype=torch.float64)
    inside = torch.rand(N_INPUTS // 2, 3, generator=generator, dtype=torch.float64)
    inputs[::2] = middle + size * (2.0 * inside - 1.0)
    return ExactClassifier(network, inputs.to(dtype), distance, closest, tight=False)


def polyhedron(dtype: torch.dtype = torch.float64, faces: int = 8) -> ExactClassifier:
    r"""Class 1 inside :math:`\{A x \le b\}` with unit rows, class 0 outside:
    :math:`f_0 - f_1 = \max_i (a_i x - b_i)`.

    All points lie inside, where the distance is the smallest gap to a face,
    :math:`d(x) = \min_i (b_i - a_i x) / \|a_i\|`; outside there is no closed form and both
    functions refuse. The faces are not orthogonal, so the norm of A keeps the certificate strictly
    below the distance.
    """
    generator = torch.Generator().manual_seed(6)
    normals = torch.randn(faces, 4, generator=generator, dtype=torch.float64)
    normals = (normals / normals.norm(dim=1, keepdim=True)).to(dtype)
    offsets = torch.linspace(0.5, 1.2, faces, dtype=torch.float64).to(dtype)
    layers = [Dense(normals, -offsets), *_largest_feature(dtype, faces)]
    network = FrozenNetwork(layers, (4,), ("outside", "inside"))
    rows, levels = normals.double(), offsets.double()

    def gaps(x: Tensor) -> Tensor:
        distances = (levels - x.double() @ rows.mT) / rows.norm(dim=1)
        if bool((distances < 0).any()):
            raise ValueError("x must lie inside the polyhedron; outside there is no closed form")
        return distances

    def distance(x: Tensor) -> Tensor:
        return gaps(x).min(1).values

    def closest(x: Tensor) -> Tensor:
        gap, nearest = gaps(x).min(1)
        row = rows[nearest]
        return x.double() + gap[:, None] * row / row.norm(dim=1, keepdim=True)

    directions = torch.randn(N_INPUTS, 4, generator=generator, dtype=torch.float64)
    room = levels / (directions @ rows.mT).clamp_min(1e-9)  # steps along the ray to each face
    share = torch.rand(N_INPUTS, 1, generator=generator, dtype=torch.float64)
    inputs = 0.95 * share * room.min(1, keepdim=True).values * directions
    return ExactClassifier(network, inputs.to(dtype), distance, closest, tight=False)


EXACT: dict[str, Callable[[torch.dtype], ExactClassifier]] = {
    "affine": affine,
    "unit_affine": unit_affine,
    "stretched_affine": stretched_affine,
    "sphere": sphere,
    "box": box,
    "polyhedron": polyhedron,
}
