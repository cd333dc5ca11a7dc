"""The checker beside the truth, on networks and inputs of extreme numbers (:mod:`draws`).

What a layer meets on its way (``Step.growth``) is judged by whole evaluations near overflow alone.
"""

import json
import math
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from draws import Draw, network
from extremes import PROFILE_ORDER, contradicts, edges
from torch import Tensor
from truth import Truth

from unitmargin.checker.network import Network, Proof
from unitmargin.checker.reading import read_model
from unitmargin.checker.step import Error, Step
from unitmargin.frozen import FrozenNetwork, save
from unitmargin.frozen.profiles import Profile
from unitmargin.layers.contract import FixedLayer
from unitmargin.layers.normalize import Normalize


def judged(
    frozen: FrozenNetwork, checker: Network, profile: Profile, draw: Draw, count: int
) -> tuple[Counter[str], Counter[str]]:
    """What contradicts the checker at ordinary and extreme inputs, near a boundary and near
    overflow, and what was met."""
    evaluate = frozen.deployed(profile.name)
    x = draw.inputs(count, frozen.in_shape)
    x = torch.cat((x, edges(evaluate, x, draw)))
    logits = evaluate(x)
    labels = logits.argmax(1)
    with np.errstate(all="ignore"):
        proof = checker.prove(x.double().numpy(), labels.numpy())
    found: Counter[str] = Counter()
    met: Counter[str] = Counter()
    for index in np.flatnonzero(np.isfinite(proof.tolerance) & (proof.label >= 0)):
        met["evaluations compared"] += 1
        found["difference"] += is_wrong(frozen, proof, x[index], int(labels[index]), int(index))
    steps = Steps(frozen, checker, profile)
    for one in x:
        found += steps.judge(one)
    for index in np.flatnonzero(proof.radius > 0):
        met["radii"] += 1
        radius, label = float(proof.radius[index]), int(labels[index])
        found["label"] += contradicts(evaluate, x[index], label, radius, draw)
    return found, met


class Steps:
    """What the checker says of each layer alone, against the truth at a computed input."""

    def __init__(self, frozen: FrozenNetwork, checker: Network, profile: Profile) -> None:
        self.layers, self.evaluating = frozen.layers[:-1], frozen.deployed(profile.name).layers
        self.steps, self.truth = checker.steps, Truth(torch.float64)

    def judge(self, x: Tensor) -> Counter[str]:
        found: Counter[str] = Counter()
        own, deployed = x.double()[None], x[None]
        for layer, evaluate, step in zip(self.layers, self.evaluating, self.steps, strict=False):
            with np.errstate(all="ignore"):
                after, computed = torch.from_numpy(step.evaluate(own.numpy())), evaluate(deployed)
            if not all(bool(torch.isfinite(z).all()) for z in (after, computed)):
                break
            found["own error"] += self._errs(layer, own[0], after[0], step.own)
            found["deployed error"] += self._errs(layer, deployed[0], computed[0], step.deployed)
            found["norm"] += self._stretches(layer, deployed[0], step)
            own, deployed = after, computed
        return found

    def _errs(self, layer: FixedLayer, before: Tensor, after: Tensor, error: Error) -> bool:
        if math.inf in error:
            return False
        truth, arriving = self.truth, self.truth.fixed(before)
        exact = truth.apply(layer, arriving)
        bound = Fraction(error.slope) * truth.norm(arriving) + Fraction(error.constant)
        bound += Fraction(error.relative) * truth.norm(exact)
        return not truth.is_below(truth.fixed(after) - exact, above(bound))

    def _stretches(self, layer: FixedLayer, x: Tensor, step: Step) -> bool:
        """Whether the outputs of an input and of zero are further apart than the norm allows, or
        the latter, which no branch asks of a normalisation, is longer than the shift."""
        truth, arriving = self.truth, self.truth.fixed(x)
        at_zero = truth.apply(layer, arriving * 0)
        reach = above(Fraction(step.norm) * truth.norm(arriving))
        moved = truth.apply(layer, arriving) - at_zero
        shift = math.inf if isinstance(layer, Normalize) else step.shift
        return not (truth.is_below(moved, reach) and truth.is_below(at_zero, shift))


def above(bound: Fraction) -> float:
    """A bound as a float that is no less; beyond the largest it bounds nothing."""
    if bound > Fraction(2.0**1000):
        return math.inf
    return math.nextafter(float(bound), math.inf)


def is_wrong(frozen: FrozenNetwork, proof: Proof, x: Tensor, label: int, index: int) -> bool:
    """Whether a difference of logits is further from the exact one than the checker says."""
    truth = Truth(torch.float64)
    z = truth.fixed(x)
    for layer in frozen.layers:
        z = truth.apply(layer, z)
    for other, difference in enumerate(proof.differences[index].tolist()):
        if other != label:
            error = np.array([truth.number(difference) - int(z[label] - z[other])], dtype=object)
            if not truth.is_below(error, float(proof.tolerance[index])):
                return True
    return False


def sweep(seeds: range, count: int) -> tuple[Counter[str], Counter[str]]:
    """What was found, with the seeds that found it, and what was met on the way."""
    found: Counter[str] = Counter()
    met: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        for seed in seeds:
            profile = PROFILE_ORDER[seed % len(PROFILE_ORDER)]
            frozen = network(seed, profile.dtype)
            try:
                save(frozen, file)
                checker = Network(read_model(file), profile.name)
            except ValueError:
                met["refused"] += 1
                continue
            wrong, more = judged(frozen, checker, profile, Draw(seed, profile.dtype), count)
            met.update(more + Counter({"networks": 1, "networks with a radius": more["radii"] > 0}))
            found.update(
                {f"{what} (seed {seed}, {profile.name})": n for what, n in (+wrong).items()}
            )
    return found, met


def report(seeds: range, count: int) -> None:
    """Print what :func:`sweep` gives, as JSON."""
    print(json.dumps(sweep(seeds, count)))
