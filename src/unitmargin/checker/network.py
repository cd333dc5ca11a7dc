"""The proof: the largest radius within which no execution of the profile changes the label."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unitmargin.checker.arithmetic import PROFILES, TINY, UNIT, UP, gamma, own_length
from unitmargin.checker.bounds import norms, pair_distances
from unitmargin.checker.layers import build, require_depth
from unitmargin.checker.reading import UNFIT, Array, CheckError, Model
from unitmargin.checker.step import Error, lost, product

DOWN = 1.0 - 2.0**-48
"""Factor on a radius for its last few operations."""


class Proof(NamedTuple):
    """What the checker can say of a batch; one entry a sample.

    ``radius`` is proved for the given label, 0 if none is. ``differences`` are those of the given
    label's logit and each other one (infinite for itself), ``margin`` the smallest of them, and
    ``tolerance`` bounds how far those of any execution are from them. ``label`` is the argmax.
    """

    label: NDArray[np.int64]
    differences: Array
    margin: Array
    tolerance: Array
    radius: Array


class Network:
    """The stored network under one profile, with the bounds of its layers."""

    def __init__(self, model: Model, profile: str) -> None:
        if profile not in PROFILES:
            raise CheckError(f"unknown profile {profile!r}, known: {', '.join(PROFILES)}")
        # A library may have set the processor to read or write such numbers as zero.
        if not (np.array([2.0**-127], np.float32).astype(np.float64) * 2.0**-920).all():
            raise CheckError(
                "denormal numbers must be kept for a proof, got a process that flushes them to "
                "zero; check by the command `unitmargin check`, a process of its own"
            )
        self.profile = PROFILES[profile]
        if not model.layers or model.layers[-1][0] != "dense":
            raise CheckError("the last layer must be dense: it holds one row a class")
        try:
            with np.errstate(all="ignore"):  # NaN and infinity are no bounds
                shapes = self._read(model)
        except UNFIT as error:
            raise CheckError(f"the layers of the model are inconsistent: {error}") from None
        self.widest = max(map(math.prod, shapes))
        self.weight, self.bias = (model.layers[-1][2][name] for name in ("weight", "bias"))
        if len(self.weight) != len(model.classes):
            raise CheckError(f"{len(model.classes)} class names for {len(self.weight)} classes")
        if len(self.weight) < 2:
            raise CheckError("one class has no boundary, so there is nothing to check")
        self.distances = pair_distances(self.weight)

    def _read(self, model: Model) -> list[tuple[int, ...]]:
        """Makes the layers; the shapes that activations have on their way."""
        require_depth([layer[:2] for layer in model.layers])
        self.steps, shapes = [], [model.in_shape]
        for index, (kind, configuration, tensors) in enumerate(model.layers):
            if kind == "normalize" and index:
                raise ValueError("an input normalisation must be the first layer")
            single = self.profile.unit > UNIT
            if single and any(np.any(t.astype(np.float32) != t) for t in tensors.values()):
                raise ValueError(f"{self.profile.name} cannot hold the weights of a layer {kind}")
            self.steps.append(build(self.profile, kind, configuration, tensors))
            shapes += self.steps[-1].shapes(shapes[-1])
        self.steps.pop()  # the head, whose bounds are those of pairs of rows
        return shapes

    def prove(self, x: Array, labels: NDArray[np.int64]) -> Proof:
        """Bounds are pairs: row 0 at the input, row 1 their growth with the radius.

        ``own`` is the error of the checker's activations, ``near`` the norm of exact ones anywhere
        in the ball, ``far`` the error of deployed ones there: equations (C9) to (C11).
        """
        z, size = x, _pair(norms(x))
        own, far, reach = np.zeros_like(size), np.zeros_like(size), 1.0
        near = size + _slope(size, 1.0)
        peak = near
        for step in self.steps:
            arriving = near + far
            z, before = step.evaluate(z), size
            size = _pair(norms(z))
            own = (step.norm * own + _error(step.own, before, size)) * UP
            reach *= step.norm * UP
            near = (size + own + _slope(size, reach)) * UP
            through = step.norm * far
            far = (through + _error(step.deployed, arriving, near + through)) * UP
            inside = step.growth[0] * arriving + _constant(size, step.growth[1])
            peak = np.maximum(peak, inside + near + far)
        logits = product(z, self.weight.T) + self.bias
        return self._conclude(logits, labels, own, near + far, far, reach, size, peak)

    def _conclude(
        self, logits: Array, labels: NDArray[np.int64], own: Array, arriving: Array, far: Array,
        reach: float, size: Array, peak: Array,
    ) -> Proof:  # fmt: skip
        """(C12): the smallest provable radius over all other classes."""
        features = self.weight.shape[1]
        rows = np.arange(len(logits))
        lengths, biases = norms(self.weight), np.abs(self.bias)
        lengths, biases = lengths[labels, None] + lengths, biases[labels, None] + biases
        distances = self.distances[labels]
        differences = logits[rows, labels, None] - logits
        mine = distances * own[0, :, None] + gamma(own_length(features) + 2) * (
            lengths * size[0, :, None] + biases + np.abs(differences)
        )
        sums = gamma(features + 1, self.profile.unit)
        rounding = distances * far[:, :, None] + sums * lengths * arriving[:, :, None]
        rounding[0] += sums * biases + lost(4 * features, 1.0, self.profile)
        steep = (distances * reach + rounding[1]) * UP + TINY
        doubt = (mine + rounding[0]) * UP
        radii = (differences - doubt) / steep
        doubt[rows, labels], radii[rows, labels] = 0.0, np.inf
        others = differences.copy()
        others[rows, labels] = np.inf
        radius = np.maximum(radii.min(1) * DOWN, 0.0)
        finite = np.isfinite(logits).all(1)
        largest = peak + lengths.max() * arriving + _constant(peak, float(biases.max()))
        sound = finite & ((largest[0] + largest[1] * radius) * UP < self.profile.limit)
        return Proof(
            label=np.where(finite, logits.argmax(1), -1),
            differences=others,
            margin=others.min(1),
            tolerance=doubt.max(1),
            radius=np.where(sound, radius, 0.0),
        )


def _pair(values: Array) -> Array:
    return np.stack((values, np.zeros_like(values)))


def _constant(like: Array, value: float) -> Array:
    return np.array([[value], [0.0]]) + np.zeros_like(like)


def _slope(like: Array, value: float) -> Array:
    return np.array([[0.0], [value]]) + np.zeros_like(like)


def _error(error: Error, arriving: Array, leaving: Array) -> Array:
    made = error.slope * arriving + error.relative * leaving
    return made + _constant(made, error.constant)
