"""The proof: the largest radius within which no execution of the profile changes the label."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unitmargin.checker.arithmetic import TINY, UNIT, UP, Arithmetic, gamma, own_length
from unitmargin.checker.bounds import norms, pair_distances
from unitmargin.checker.layers import KINDS
from unitmargin.checker.reading import Array, CheckError, Model
from unitmargin.checker.step import Error, Step, lost, product, sound

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
        if profile not in model.profiles:
            raise CheckError(f"unknown profile {profile!r}, known: {', '.join(model.profiles)}")
        self.profile = model.profiles[profile]
        if not model.layers or model.layers[-1][0] != "dense":
            raise CheckError("the last layer must be dense: it holds one row a class")
        self.steps = [_step(self.profile, *layer) for layer in model.layers[:-1]]
        _, configuration, tensors = model.layers[-1]
        _step(self.profile, "dense", configuration, tensors)  # refuses what is no head
        self.weight, self.bias = tensors["weight"], tensors["bias"]
        if len(self.weight) < 2:
            raise CheckError("one class has no boundary, so there is nothing to check")
        self.distances = pair_distances(self.weight)

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
        sums = gamma(self.profile.length(features) + 1, self.profile.unit)
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


def _step(
    profile: Arithmetic, kind: str, configuration: dict[str, Any], tensors: dict[str, Array]
) -> Step:
    """A layer of the file; numbers that the profile's type cannot hold are refused."""
    if kind not in KINDS:
        raise CheckError(f"unknown layer kind {kind!r}, known: {', '.join(KINDS)}")
    single = profile.unit > UNIT
    if single and any(np.any(t.astype(np.float32) != t) for t in tensors.values()):
        raise CheckError(f"the profile {profile.name} cannot hold the weights of a layer {kind}")
    try:
        return sound(KINDS[kind](profile, **configuration, **tensors))
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise CheckError(f"a layer {kind} of the model is inconsistent: {error}") from None


def _pair(values: Array) -> Array:
    return np.stack((values, np.zeros_like(values)))


def _constant(like: Array, value: float) -> Array:
    return np.array([[value], [0.0]]) + np.zeros_like(like)


def _slope(like: Array, value: float) -> Array:
    return np.array([[0.0], [value]]) + np.zeros_like(like)


def _error(error: Error, arriving: Array, leaving: Array) -> Array:
    made = error.slope * arriving + error.relative * leaving
    return made + _constant(made, error.constant)
