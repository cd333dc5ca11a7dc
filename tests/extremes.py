"""A judge that looks for what contradicts bounds and certificates of networks of extreme numbers
(:mod:`draws`): the truth is exact (:mod:`truth`), and so is the distance of another label."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import torch
from draws import Draw, network
from torch import Tensor
from truth import Truth

from unitmargin import certify
from unitmargin.frozen import FrozenNetwork, proof
from unitmargin.frozen.profiles import PROFILES, Profile
from unitmargin.layers.arithmetic import Affine
from unitmargin.layers.bounds import LayerRounding

MOVES = 96
"""Inputs tried around each certified one."""


class Judge:
    """Bounds and certificates of a network under a profile against the truth."""

    def __init__(self, network: FrozenNetwork, profile: Profile) -> None:
        self.frozen, self.profile = network, profile
        self.proof = network.proof(profile)
        self.evaluating = network.deployed(profile.name)
        self.truth = Truth(profile.dtype)
        self.found: Counter[str] = Counter()
        self.certified = self.compared = 0

    def rejects(self, wrong: bool, what: str) -> None:
        if wrong:
            self.found[what] += 1

    def judge(self, x: Tensor, draw: Draw) -> None:
        norms = self.proof.input_norms(x)
        exact = [self._layers(one, float(norm)) for one, norm in zip(x, norms, strict=True)]
        certificate = certify(self.frozen, x, self.profile.name)
        for index, radius in enumerate(certificate.radius.tolist()):
            if radius > 0:
                self.certified += 1
                self.rejects(exact[index], "overflow at a certified input")
                label = int(certificate.label[index])
                self.rejects(
                    contradicts(self.evaluating, x[index], label, radius, draw),
                    "another label inside a ball",
                )

    def _layers(self, x: Tensor, norm: float) -> bool:
        """Compare layer by layer; True if a number overflows."""
        bounds, truth = self.proof.bounds, self.truth
        z, exact = x[None], truth.fixed(x)
        rows: Sequence[LayerRounding] = bounds.layers
        safe = bounds.largest.at(norm) < bounds.limit
        first = self.frozen.network.normalisation
        normalised = exact if first is None else truth.apply(first, exact)
        self.rejects(not truth.is_below(normalised, norm), "norm of the input")
        for layer, mine, row in zip(self.evaluating.layers, self.frozen.layers, rows, strict=True):
            z, exact = layer(z), truth.apply(mine, exact)
            if not bool(torch.isfinite(z).all()):
                self.rejects(safe, f"overflow in {row.kind}")
                return True
            if layer is self.evaluating.head:
                break
            computed = truth.fixed(z[0])
            self.rejects(
                not truth.is_below(computed - exact, row.total.at(norm)), f"error of {row.kind}"
            )
            self.rejects(not truth.is_below(computed, row.output.at(norm)), f"norm of {row.kind}")
        self._pairs(truth.fixed(z[0]) - exact, norm)
        self.compared += 1
        return False

    def _pairs(self, error: Tensor, norm: float) -> None:
        bounds = self.proof.bounds
        for one in range(len(error)):
            for other in range(one):
                pair = Affine(float(bounds.alpha[one, other]), float(bounds.beta[one, other]))
                difference = error[[one]] - error[[other]]
                self.rejects(
                    not self.truth.is_below(difference, pair.at(norm)),
                    "error of a pair",
                )


def contradicts(
    evaluate: Callable[[Tensor], Tensor], x: Tensor, label: int, radius: float, draw: Draw
) -> bool:
    """Whether an input exactly inside the ball has another label, or a logit that is not finite."""
    points = moves(x, radius, draw)
    logits = evaluate(points)
    other = (logits.argmax(1) != label) | ~torch.isfinite(logits).all(1)
    return any(is_inside(x, point, radius) for point in points[other])


def is_inside(x: Tensor, point: Tensor, radius: float) -> bool:
    """Whether the distance is at most the radius, in rational arithmetic."""
    pairs = zip(x.flatten().tolist(), point.flatten().tolist(), strict=True)
    squared = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs)
    return squared <= Fraction(radius) ** 2


def moves(x: Tensor, radius: float, draw: Draw) -> Tensor:
    """Neighbours of an input: last places, steps of the radius, outwards, swapped, zeroed."""
    many = x.expand(MOVES, *x.shape).clone()
    towards = torch.where(draw.normal(MOVES, *x.shape) < 0, torch.inf, -torch.inf).to(x)
    moved = draw.normal(MOVES, *x.shape) < draw.normal(MOVES, *(1,) * x.ndim)
    places = torch.where(moved, torch.nextafter(many, towards), many)[: MOVES // 3]
    steps = draw.normal(MOVES // 3, *x.shape)
    steps[::3] *= torch.nn.functional.one_hot(
        torch.randint(x.numel(), (len(steps[::3]),), generator=draw.generator), x.numel()
    ).view(-1, *x.shape)
    steps[1::3] = x.double().sign() * (1.0 if radius > 1 else -1.0)
    lengths = steps.flatten(1).norm(dim=1).clamp_min(1e-9).view(-1, *(1,) * x.ndim)
    share = torch.rand(len(steps), generator=draw.generator).double() ** 0.1
    reach = share.view(lengths.shape) * min(radius, 2.0**1000)
    far = x.double() + steps / lengths * reach
    top = torch.finfo(x.dtype).max
    swapped = many[: MOVES // 6].flatten(1)
    for row in swapped:
        a, b = (draw.random.randrange(x.numel()) for _ in range(2))
        row[[a, b]] = row[[b, a]]
    zeroed = many[: MOVES // 6].flatten(1) * (draw.normal(MOVES // 6, x.numel()) > 0)
    others = torch.cat((swapped, zeroed.to(x))).view(-1, *x.shape)
    return torch.cat((places, far.to(x), others)).clamp(-top, top)


def edges(network: Callable[[Tensor], Tensor], x: Tensor, draw: Draw) -> Tensor:
    """Inputs moved to where the label changes, and made larger to where a logit is not finite; to
    the last places of the type."""
    other = x * draw.normal(*x.shape).to(x).clamp(-1.0, 1.0)
    other[::2] = draw.inputs(len(other[::2]), x.shape[1:])
    grown = x[: len(x) // 2]
    top = torch.finfo(x.dtype).max
    largest = grown.abs().flatten(1).amax(1).clamp_min(torch.finfo(x.dtype).tiny)
    grown_to = (grown / largest.view(-1, *(1,) * (x.ndim - 1)) * top).clamp(-top, top)
    label = network(x).argmax(1)

    def holds(points: Tensor) -> Tensor:
        logits = network(points.flatten(0, 1)).unflatten(0, points.shape[:2])
        kept = logits[:, : len(x)].argmax(2) == label
        return torch.cat((kept, torch.isfinite(logits[:, len(x) :]).all(2)), dim=1)

    return _last_of(holds, torch.cat((x, grown)), torch.cat((other, grown_to)))


def _last_of(holds: Callable[[Tensor], Tensor], one: Tensor, other: Tensor) -> Tensor:
    """Between two inputs, the last one for which something holds."""
    for _ in range(9 if one.dtype == torch.float32 else 16):
        shares = torch.linspace(0, 1, 17, dtype=one.dtype).view(-1, *(1,) * one.ndim)
        points = (1.0 - shares) * one + shares * other
        last = holds(points).long().cumprod(0).sum(0).clamp(1, 16) - 1
        row = torch.arange(len(one))
        one, other = points[last, row], points[last + 1, row]
    return one


def judged(seed: int, profile: Profile, count: int) -> Judge | None:
    """A network judged at ordinary and extreme inputs, near a boundary and near overflow; None if
    it has no proof."""
    frozen = network(seed, profile.dtype)
    draw = Draw(seed, profile.dtype)
    try:
        judge = Judge(frozen, profile)
    except ValueError as error:
        if "\n" in str(error):
            raise
        return None
    x = draw.inputs(count, frozen.in_shape)
    judge.judge(torch.cat((x, edges(judge.evaluating, x, draw))), draw)
    return judge


PROFILE_ORDER = list(PROFILES.values())


def sweep(seeds: range, count: int = 4) -> tuple[Counter[str], Counter[str]]:
    """What was found, with the seeds that found it, and what was met on the way; ``count`` inputs
    a network, and one and a half times as many at its edges."""
    found: Counter[str] = Counter()
    met: Counter[str] = Counter()
    for seed in seeds:
        profile = PROFILE_ORDER[seed % len(PROFILE_ORDER)]
        judge = judged(seed, profile, count)
        if judge is None:
            met["without a proof"] += 1
            continue
        met["networks"] += 1
        met["networks with a certificate"] += judge.certified > 0
        met["certificates"] += judge.certified
        met["evaluations compared"] += judge.compared
        found.update(f"{what} (seed {seed}, {profile.name})" for what in judge.found)
    return found, met


def report(seeds: range, count: int) -> None:
    """Print what :func:`sweep` gives, as JSON; the canary is asked once a profile."""
    proof.require_arithmetic = lru_cache(proof.require_arithmetic)
    print(json.dumps(sweep(seeds, count)))
