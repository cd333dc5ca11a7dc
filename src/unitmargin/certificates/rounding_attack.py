"""The rounding attack: points inside a certified ball that rounding gives another label.

At the edge of the ball the exact margin is almost nothing, so a few units in the last place of
the input decide the computed label. The attack searches there, at three radii: the naive margin,
the margin over the Lipschitz bound, and the sound radius. Docs: "The attack" in docs/soundness.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Float
from torch import Tensor

from unitmargin.certificates.boundary import TINY, Inputs, Labels, move_to_boundary, spread_over
from unitmargin.certificates.certify import Logits, certificate_from_logits, sound_certificate
from unitmargin.foundation.choice import choose
from unitmargin.frozen import FixedNetwork, FrozenNetwork
from unitmargin.frozen.profiles import PROFILES
from unitmargin.layers.margin import margins, ranked

CANDIDATES = 1500
"""Points tried at each radius of each sample, as in the measurements of docs/results.md."""

PER_PASS = 250
"""Candidates a forward pass: bounds the memory."""

BOUNDARY_STEPS = 6
"""Newton steps towards the boundary of a pair of classes: the last ones change nothing."""

RIVALS = 2
"""Nearest classes whose boundaries are aimed at."""

POWER = 0.05
"""Share of samples whose naive radius must break; below it the attack proves nothing."""

RADII = ("naive", "margin/L", "sound")


@dataclass(frozen=True, eq=False)
class RoundingAttack:
    """What the attack broke.

    Attributes:
        profile: the execution profile that was attacked.
        samples: attacked points.
        issued: certificates with a positive radius, by kind of radius.
        broken: certificates contradicted by a point inside their ball, by kind of radius.
        points: a contradicting point a broken sound certificate: (sample, input).
    """

    profile: str
    samples: int
    issued: dict[str, int]
    broken: dict[str, int]
    points: tuple[tuple[int, Tensor], ...]

    @property
    def has_power(self) -> bool:
        """Whether enough naive certificates broke for the sound ones to mean something."""
        return self.broken["naive"] >= POWER * max(self.issued["naive"], 1)


def rounding_attack(
    frozen: FrozenNetwork,
    x: Inputs,
    profile: str = "float64",
    candidates: int = CANDIDATES,
    seed: int = 0,
    evaluate: Callable[[Inputs], Logits] | None = None,
) -> RoundingAttack:
    """Search a few units in the last place around the edge of each certified ball.

    A certificate counts as broken if an input strictly inside its ball, by exact rational
    arithmetic, has a strictly larger logit of another class under the profile. ``evaluate`` is the
    execution that is attacked, one that the profile admits; default: torch's.

    Cost: ``3 * candidates`` forward passes a sample under the profile.
    """
    chosen = choose("profile", profile, PROFILES)
    network = evaluate or frozen.deployed(profile)
    inputs, proof = x.detach().to(chosen.dtype), frozen.kept_proof(chosen)
    with torch.no_grad():
        logits = network(inputs)
    certificate = sound_certificate(logits, proof.bounds, proof.input_norms(inputs))
    exact = certificate_from_logits(logits, frozen.pair_constants())
    radii = dict(zip(RADII, (certificate.margin, exact.radius, certificate.radius), strict=True))
    aims = _directions(frozen, inputs, certificate.label)
    generator = torch.Generator().manual_seed(seed)
    issued, broken = dict.fromkeys(RADII, 0), dict.fromkeys(RADII, 0)
    points: list[tuple[int, Tensor]] = []
    for name, values in radii.items():
        for index in torch.nonzero(values > 0).flatten().tolist():
            issued[name] += 1
            search = _Search(network, inputs[index], int(certificate.label[index]), generator)
            found = search.run(aims[:, index], float(values[index]), candidates)
            broken[name] += found is not None
            if found is not None and name == "sound":
                points.append((index, found))
    return RoundingAttack(profile, len(inputs), issued, broken, tuple(points))


def near_boundary(frozen: FrozenNetwork, x: Inputs, backwards: float) -> Inputs:
    """The inputs moved along their margin's gradient to the boundary, less ``backwards``."""
    wide = frozen.in_float64()
    aim = _aims_at(wide, x.double(), wide(x.double()).argmax(1), rival=1)
    length = aim.flatten(1).norm(dim=1).clamp_min(TINY)
    keep = spread_over(1.0 - backwards / length, x)
    return (x.double() + keep * aim).to(x.dtype)


def _directions(
    frozen: FrozenNetwork, x: Inputs, label: Labels
) -> Float[Tensor, "aims batch *shape"]:
    """Unit vectors towards the boundaries of the nearest rivals: by the gradient and by the
    boundary point itself."""
    wide, aims = frozen.in_float64(), []
    for rival in range(1, min(RIVALS, frozen.n_classes - 1) + 1):
        for steps in (1, BOUNDARY_STEPS):
            aim = _aims_at(wide, x.double(), label.clamp_min(0), rival, steps)
            length = aim.flatten(1).norm(dim=1).clamp_min(TINY)
            aims.append(aim / spread_over(length, x))
    return torch.stack(aims)


def _aims_at(
    wide: FixedNetwork, x: Inputs, label: Labels, rival: int, steps: int = BOUNDARY_STEPS
) -> Inputs:
    """Displacement to the boundary of the label and its n-th rival, by Newton steps."""
    other = ranked(wide(x).scatter(1, label[:, None], torch.inf))[:, rival]
    point = x.clone()
    for _ in range(steps):
        point = point + move_to_boundary(wide, point, label, other).move
    return torch.nan_to_num(point - x)


@dataclass(frozen=True)
class _Search:
    """Candidates around one point: single steps of the last place on random coordinates."""

    network: Callable[[Inputs], Logits]
    x: Tensor
    label: int
    generator: torch.Generator

    def run(self, aims: Tensor, radius: float, candidates: int) -> Tensor | None:
        """A point inside the ball with another label, or None."""
        for index in range(-(-candidates // PER_PASS)):
            around = self._around(aims[index % len(aims)], radius)
            found = self._inside_with_another_label(around, radius)
            if found is not None:
                return found
        return None

    def _around(self, aim: Tensor, radius: float) -> Tensor:
        """Roundings of ``x + radius * aim``, each entry moved by at most one last place."""
        shorter = radius * (1.0 - 4 * torch.finfo(torch.float64).eps)
        point = (self.x.double() + shorter * aim).to(self.x.dtype)
        shape = (PER_PASS, *point.shape)
        moves = torch.randint(-1, 2, shape, generator=self.generator, device="cpu")
        shares = torch.rand(PER_PASS, generator=self.generator, device="cpu").view(
            -1, *(1,) * point.ndim
        )
        moves = (moves * (torch.rand(shape, generator=self.generator, device="cpu") < shares)).to(
            point.device
        )
        towards = torch.where(moves > 0, torch.inf, -torch.inf).to(point.dtype)
        return torch.where(moves == 0, point, torch.nextafter(point.expand(shape), towards))

    def _inside_with_another_label(self, points: Tensor, radius: float) -> Tensor | None:
        distances = (points.double() - self.x.double()).flatten(1).norm(dim=1)
        near = points[distances <= radius * (1.0 + 1e-12)]
        if not len(near):
            return None
        with torch.no_grad():
            logits = self.network(near)
        labels = torch.full((len(near),), self.label, device=near.device)
        flipped = near[margins(logits, labels) < 0.0]
        inside = (point for point in flipped if strictly_inside(self.x, point, radius))
        return next(inside, None)


def strictly_inside(x: Tensor, point: Tensor, radius: float) -> bool:
    """Whether two inputs are closer than the radius, in exact rational arithmetic."""
    pairs = zip(x.flatten().tolist(), point.flatten().tolist(), strict=True)
    squared = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs)
    return squared < Fraction(radius) ** 2
