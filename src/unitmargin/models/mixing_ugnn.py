"""Unitary-gradient networks of orthogonal matrices on slices of maps: no Fourier transform."""

from collections.abc import Sequence

from unitmargin.layers.contract import Layer
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.rearrangement import Flatten
from unitmargin.layers.slices import Arrangement, Folds, Groups, Positions, Shifts, Windows
from unitmargin.models.classifier import Classifier, image_shape
from unitmargin.orthogonal.mixing import OrthogonalMixing


class MixingUGNN(Classifier):
    def __init__(
        self,
        in_shape: Sequence[int],
        n_classes: int,
        head: str = "manifold",
        fold: int = 4,
        windows: int = 4,
        shifts: int = 2,
        pairs: int = 4,
        group: int = 16,
        normalize: Normalize | None = None,
    ) -> None:
        channels, height, width = image_shape(in_shape, 2 * fold)
        arranged: list[Arrangement] = [Folds((height, width), fold)]
        height, width, channels = height // fold, width // fold, channels * fold**2
        arranged += [Windows((height, width), 2, 1) for _ in range(windows)]
        arranged.append(Folds((height, width), 2, 1))
        half = height // 2, width // 2
        arranged += [Shifts(half) for _ in range(shifts)]
        for _ in range(pairs):
            arranged += [Positions(half), Groups(half, group)]
        layers: list[Layer] = []
        channels = in_shape[0]
        for one in arranged:
            layers.append(OrthogonalMixing(one, channels))
            channels = channels * one.size**2 if isinstance(one, Folds) else channels
        layers.append(Flatten())
        super().__init__(in_shape, n_classes, layers, channels * half[0] * half[1], head, normalize)
