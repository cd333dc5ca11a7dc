"""Unitary-gradient networks of orthogonal matrices on slices of maps: no Fourier transform."""

from collections.abc import Sequence

from unitmargin.foundation.numbers import require_amount
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten
from unitmargin.models.classifier import Classifier, image_shape
from unitmargin.models.plans import default_plan, plan_layers
from unitmargin.orthogonal.mixing import ABSOLUTE


class MixingUGNN(Classifier):
    r"""Unitary-Gradient Neural Network of mixing layers: the fast one, in training and deployed.

    Every layer multiplies slices of its map with orthogonal matrices and takes absolute values of
    some outputs (:class:`unitmargin.orthogonal.mixing.OrthogonalMixing`); all weights are on the
    manifold. The ``plan`` names the layers in order:

    - ``fold S``: windows of S x S pixels become pixels of a map S times smaller;
    - ``window S [SHIFT]``: windows, one matrix for all; ``window 1`` mixes the channels of pixels;
    - ``shift``: channels of pixels, some of which have moved by one pixel;
    - ``position``: channels of pixels, a matrix for each;
    - ``group S``: S channels over all pixels, a matrix for each group;
    - ``reflect`` in front of one of these: slices are reflected where they would be mixed
      (:class:`unitmargin.orthogonal.reflection.OrthogonalReflection`);
    - ``unshuffle S``: a fold without a matrix;
    - ``pool S``: norms of S x S pixels of each channel;
    - ``widen K``: channels of zeros, K times as many in all. Such a network is 1-Lipschitz, with
      unit gradients no more, and its certificates are lower bounds.

    Args (the others: :class:`Classifier`):
        plan: default: folds down to a small map with windows between them (where images are large,
            shifts and pools of norms), then pairs of ``window 1`` and ``group``. It has at most 64
            pixels if the sides have enough common factors up to 5; else up to 1024, with a matrix
            of that side for each channel: resize such images, or give a plan.
        absolute: share of the outputs of a slice that get absolute values.

    Guarantee: pairwise gradient norms are 1 within 1e-5 in float32 where the network is
    differentiable, relative to the normalised input.
    Cost: n multiplications an entry of a map for a layer of slices of n entries.

    Raises:
        ValueError: a plan that does not fit the input.

    Example:
        >>> import torch
        >>> MixingUGNN((1, 8, 8), 10, plan=["fold 2", "group 4"])(torch.rand(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_shape: Sequence[int],
        n_classes: int,
        head: str = "manifold",
        plan: Sequence[str] | None = None,
        absolute: float = ABSOLUTE,
        normalize: Normalize | None = None,
    ) -> None:
        shape = image_shape(in_shape)
        absolute = require_amount("absolute", absolute, "give a share such as 0.25")
        if absolute > 1.0:
            raise ValueError(
                f"absolute must be at most 1, got {absolute}; give a share such as 0.25"
            )
        chosen = default_plan(shape) if plan is None else plan
        layers, flat = plan_layers(chosen, shape, absolute)
        super().__init__(in_shape, n_classes, [*layers, Flatten()], flat, head, normalize)
