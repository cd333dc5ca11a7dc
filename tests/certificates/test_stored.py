"""Stored certificates: those of every honest evaluation pass, and each kind of edit is found."""

from dataclasses import replace

import pytest
import torch

import unitmargin as um
from unitmargin.certificates.certify import Certificate, steepness
from unitmargin.certificates.stored import stored_finding
from unitmargin.frozen import FrozenNetwork
from unitmargin.frozen.profiles import PROFILES

PROFILE_NAMES = tuple(PROFILES)


def made(profile: str) -> tuple[FrozenNetwork, torch.Tensor, Certificate]:
    torch.manual_seed(0)
    frozen = um.freeze(um.UGNN((3, 8, 8), 10), profile=profile)
    x = torch.rand(60, 3, 8, 8)
    return frozen, x, um.certify(frozen, x)


def passes(profile: str, **edits: torch.Tensor) -> bool:
    frozen, x, certificate = made(profile)
    return stored_finding(frozen, x, replace(certificate, **edits)).passed


@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_certificates_of_other_batches_and_threads_pass(profile: str) -> None:
    frozen, x, certificate = made(profile)
    assert int((certificate.radius > 0).sum()) > 0
    parts = [um.certify(frozen, x[start : start + 7]) for start in range(0, len(x), 7)]
    columns = {name: torch.cat([getattr(part, name) for part in parts]) for name in vars(parts[0])}
    assert stored_finding(frozen, x, Certificate(**columns)).passed


@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_radii_are_not_raised_as_far_as_a_slack_allows(profile: str) -> None:
    """Those of the margin alone, without the slack, are what a naive program would write."""
    frozen, _, certificate = made(profile)
    bounds = frozen.proof(PROFILES[profile]).bounds
    rows = certificate.label, certificate.runner_up
    steep = steepness(bounds.lipschitz[rows], bounds.beta[rows], bounds.input_scale)
    naive = torch.where(certificate.radius > 0, certificate.margin / steep, 0.0)
    share = float((naive / certificate.radius).nan_to_num(1.0).max())
    assert (share > 1.01) == (profile == "float32")  # of float64 the slack is below 1e-9
    assert passes(profile, radius=naive) == (profile == "float64")
    far = 1e-6 if profile == "float64" else certificate.slack.max()
    assert not passes(profile, radius=certificate.radius + far * (certificate.radius > 0))


@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_every_other_claim_is_compared(profile: str) -> None:
    _, _, certificate = made(profile)
    worst = (
        int(certificate.radius.argmin())
        if profile == "float64"
        else int(torch.where(certificate.radius > 0, certificate.radius, torch.inf).argmin())
    )
    assert certificate.radius[worst] > 0
    other = torch.zeros_like(certificate.label)
    other[worst] = 1
    far = torch.zeros_like(certificate.margin)
    far[worst] = 1.0
    assert not passes(profile, label=(certificate.label + other) % 10)
    assert not passes(profile, margin=certificate.margin + far)
    assert not passes(
        profile, runner_up=torch.where(other > 0, certificate.label, certificate.runner_up)
    )
    assert not passes(profile, runner_up=torch.where(other > 0, 10, certificate.runner_up))
    assert not passes(profile, radius=torch.where(other > 0, 0.0, certificate.radius)) or (
        profile == "float32"  # a radius of 0 claims nothing, and the slack is larger
    )


def test_inputs_without_a_claim_pass() -> None:
    frozen, x, _ = made("float64")
    x[0], x[1] = torch.nan, 1e38
    certificate = um.certify(frozen, x, domain="any")
    assert certificate.label[0] == -1
    assert stored_finding(frozen, x, certificate).passed


@pytest.mark.parametrize(("profile", "size"), [("float32", 1e38), ("float64", 1e307)])
def test_nothing_is_claimed_near_overflow(profile: str, size: float) -> None:
    halves = torch.tensor([[0.5, 0.0], [-0.5, 0.0]])
    frozen = FrozenNetwork([um.frozen.Dense(halves, torch.zeros(2))], (2,), profile=profile)
    x = torch.tensor([[size, 0.0]], dtype=getattr(torch, profile))
    certificate = um.certify(frozen, x, domain="any")
    assert certificate.radius == 0
    assert stored_finding(frozen, x, certificate).passed
    raised = replace(certificate, radius=torch.tensor([size / 4], dtype=torch.float64))
    assert not stored_finding(frozen, x, raised).passed


def test_small_units_have_small_tolerances() -> None:
    frozen = um.freeze(um.DenseUGNN((2,), 2))
    x = 1e-12 * torch.rand(20, 2)
    certificate = um.certify(frozen, x)
    raised = replace(certificate, radius=1.001 * certificate.radius)
    assert bool((certificate.radius > 0).any())
    assert stored_finding(frozen, x, certificate).passed
    assert not stored_finding(frozen, x, raised).passed
