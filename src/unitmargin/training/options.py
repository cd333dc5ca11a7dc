"""How to train, as a recipe says it."""

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from unitmargin.data.augment import MODES
from unitmargin.foundation.options import Options, among
from unitmargin.training.losses import LOSSES, SOFT_LABELS
from unitmargin.training.precision import PRECISIONS
from unitmargin.training.schedules import SCHEDULES

IMAGE_DIMENSIONS = 3
"""Of an input that is an image: channels, height, width."""

SEEDS = 2**32
"""Seeds below it leave room for the million epochs that follow each in the order of samples."""


class TrainingOptions(Options):
    """How to train.

    Attributes:
        epochs: passes over the training samples.
        steps: the training ends after this many steps, in the middle of an epoch if need be, and
            the schedule runs by them; 0: after whole epochs.
        batch_size: samples a step.
        pieces: a batch is computed in so many, one after another, whose gradients are added in
            their order.
        optimizer: adam or sgd, of weights that are not on the manifold.
        momentum: of sgd.
        weight_decay: of adam or sgd, as a multiple of the weight added to its gradient.
        learning_rate: of adam or sgd, at a schedule factor of 1.
        manifold_rate: step of weights on the manifold, in radians.
        interval: the dearest weights on the manifold move at every so many steps, in turns, the
            others at every (interval // 4)-th, below 8 at each.
        schedule: a name of ``SCHEDULES``, such as halving (the paper: x 0.5 at 1/3 and 2/3).
        loss: a name of ``LOSSES``: multi_margin or offset_cross_entropy.
        margin: of multi_margin, in input units (the paper: 0.5).
        offset, temperature: of offset_cross_entropy, in input units.
        crop, padding: random crop after padding by this many pixels, zeros or reflect.
        flip: random horizontal flip.
        teacher_epochs: of an unconstrained network that is trained first and thrown away, whose
            answers soften the labels of images; 0: none.
        teacher_width: channels of its first convolution; the last have eight times as many.
        teacher_share: of its answers in a label; the rest is the class.
        teacher_temperature: divides its logits.
        precision: float32, tf32 or bfloat16, of activations in training; weights stay float32.
            bfloat16 is float32 on processors that do not multiply it.
        recompute_activations: activations are computed again in the backward pass, where they are
            kept otherwise.
        evaluate_every: the network is evaluated on the test samples after every so many epochs,
            and after the last.
        seed: of weights, order and augmentation.
    """

    epochs: PositiveInt = 30
    steps: NonNegativeInt = 0
    batch_size: PositiveInt = 256
    pieces: PositiveInt = 1
    optimizer: Annotated[str, among("optimizer", ("adam", "sgd"))] = "adam"
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    weight_decay: NonNegativeFloat = 0.0
    learning_rate: PositiveFloat = 3e-3
    manifold_rate: PositiveFloat = 2e-2
    interval: PositiveInt = 1
    schedule: Annotated[str, among("schedule", SCHEDULES)] = "linear"
    loss: Annotated[str, among("loss", LOSSES)] = "offset_cross_entropy"
    margin: PositiveFloat = 0.5
    offset: NonNegativeFloat = 0.2
    temperature: PositiveFloat = 0.25
    crop: NonNegativeInt = 0
    padding: Annotated[str, among("padding", MODES)] = "zeros"
    flip: bool = False
    teacher_epochs: NonNegativeInt = 0
    teacher_width: PositiveInt = 32
    teacher_share: Annotated[float, Field(ge=0, le=1)] = 0.8
    teacher_temperature: PositiveFloat = 2.0
    precision: Annotated[str, among("precision", PRECISIONS)] = "float32"
    recompute_activations: bool = False
    evaluate_every: PositiveInt = 1
    seed: Annotated[int, Field(ge=0, lt=SEEDS)] = 0

    @model_validator(mode="after")
    def _judge_teacher(self) -> "TrainingOptions":
        if self.teacher_epochs and self.loss not in SOFT_LABELS:
            raise ValueError(
                f"loss must take soft labels where a teacher makes them, got {self.loss!r}; use "
                f"{', '.join(SOFT_LABELS)}, or no teacher_epochs"
            )
        return self

    def require_inputs(self, in_shape: Sequence[int]) -> None:
        """Raise unless inputs of that shape can be cropped and flipped as the options ask."""
        asked = {"crop": self.crop, "flip": self.flip}
        wanted = [f"{name} = {str(value).lower()}" for name, value in asked.items() if value]
        if wanted and len(in_shape) != IMAGE_DIMENSIONS:
            raise ValueError(
                "crop and flip must be left out for inputs that are no images, got "
                f"{' and '.join(wanted)} for inputs of shape {tuple(in_shape)}; leave them out"
            )
        if self.crop and self.crop >= min(in_shape[1:]):
            raise ValueError(
                f"crop must be below the sides of images, {in_shape[1]} x {in_shape[2]}, got "
                f"{self.crop}; use an eighth of a side, or 0"
            )

    def require_epochs(self, epochs: int | None) -> None:
        """Raise where epochs are asked for and steps say how long the training is."""
        if epochs is not None and self.steps:
            raise ValueError(
                f"epochs must be left out where steps are given, got {epochs} and steps = "
                f"{self.steps}; set steps to 0 (--set training.steps=0), or leave them out"
            )

    def epoch_steps(self, samples: int) -> int:
        """Steps of a pass over so many samples."""
        return math.ceil(samples / self.batch_size)

    def count_steps(self, samples: int) -> int:
        """Steps of the whole training on so many samples."""
        return self.steps or self.epochs * self.epoch_steps(samples)

    def changes(self, other: "TrainingOptions") -> set[str]:
        """Names of the options that differ."""
        mine, its = self.model_dump(), other.model_dump()
        return {name for name, value in mine.items() if its[name] != value}
