"""T10: a profile owns its evaluation, and refuses an environment that breaks its bounds."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from unitmargin import UGNN, certify, freeze
from unitmargin.frozen import Dense, FrozenNetwork, canary, profiles
from unitmargin.frozen.canary import require_arithmetic
from unitmargin.frozen.profiles import PROFILES, Profile, ProfileError, require_environment

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def frozen() -> FrozenNetwork:
    torch.manual_seed(0)
    return freeze(UGNN((1, 8, 8), 4, hidden=(60,)))


@contextmanager
def flushing() -> Iterator[None]:
    assert torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("name", PROFILES)
def test_t10_flushing_denormals_is_refused(frozen: FrozenNetwork, name: str) -> None:
    x = torch.rand(2, 1, 8, 8)
    certify(frozen, x, name)  # constants are kept: the environment is checked every time
    with flushing(), pytest.raises(ProfileError, match="set_flush_denormal"):
        certify(frozen, x, name)
    assert bool((certify(frozen, x, name).radius >= 0).all())


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_t10_reduced_precision_products_are_refused(frozen: FrozenNetwork, precision: str) -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        with pytest.raises(ProfileError, match="full float32 products"):
            certify(frozen, torch.rand(2, 1, 8, 8), "float32")
        certify(frozen, torch.rand(2, 1, 8, 8), "float64")  # not concerned
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("name", PROFILES)
def test_t10_autocast_does_not_reach_the_evaluation(frozen: FrozenNetwork, name: str) -> None:
    x = torch.rand(3, 1, 8, 8)
    expected = certify(frozen, x, name)
    fresh = FrozenNetwork([*frozen.features(), frozen.head], frozen.in_shape)
    with torch.autocast("cpu", torch.bfloat16):
        found = certify(fresh, x, name)
    assert torch.equal(found.radius, expected.radius)
    assert torch.equal(found.margin, expected.margin)


@pytest.mark.parametrize("name", PROFILES)
def test_t10_the_canary_accepts_this_machine(name: str) -> None:
    require_arithmetic(PROFILES[name], CPU)


@pytest.mark.parametrize("name", canary.PRODUCTS)
def test_t10_the_canary_refuses_rounded_products(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = canary.PRODUCTS[name]

    def truncated(left: Tensor, right: Tensor) -> Tensor:
        return exact(left.bfloat16().to(left.dtype), right.bfloat16().to(right.dtype))

    monkeypatch.setitem(canary.PRODUCTS, name, truncated)
    for profile in PROFILES:
        with pytest.raises(ProfileError, match=f"standard dot products, but a {name}"):
            require_arithmetic(PROFILES[profile], CPU)


@pytest.mark.parametrize("name", PROFILES)
def test_t10_the_canary_refuses_a_transform_of_lower_precision(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = torch.fft.rfft2

    def rough(x: Tensor, norm: str) -> Tensor:
        return exact(x, norm=norm) * (1.0 + 2.0**-11)

    monkeypatch.setattr(canary.torch.fft, "rfft2", rough)
    with pytest.raises(ProfileError, match="standard FFT"):
        require_arithmetic(PROFILES[name], CPU)


def test_t10_float64_products_bound_every_profile(
    frozen: FrozenNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = canary.PRODUCTS["matrix product"]

    def shortened(left: Tensor, right: Tensor) -> Tensor:
        return exact(left.float().to(left.dtype), right.float().to(right.dtype))

    monkeypatch.setitem(canary.PRODUCTS, "matrix product", shortened)
    require_arithmetic(PROFILES["float32"], CPU)
    fresh = FrozenNetwork([*frozen.features(), frozen.head], frozen.in_shape)
    with pytest.raises(ProfileError, match="profile float64 needs standard dot products"):
        certify(fresh, torch.rand(1, 1, 8, 8), "float32")


def test_t10_the_canary_runs_once_a_network(
    frozen: FrozenNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(profile: Profile, device: torch.device) -> None:
        raise ProfileError("called")

    monkeypatch.setattr("unitmargin.frozen.proof.require_arithmetic", refuse)
    fresh = FrozenNetwork([*frozen.features(), frozen.head], frozen.in_shape)
    with pytest.raises(ProfileError, match="called"):
        certify(fresh, torch.rand(1, 1, 8, 8))


def test_unknown_profiles_list_the_known_ones(frozen: FrozenNetwork) -> None:
    with pytest.raises(ValueError, match="float64, float32, got 'float16'"):
        certify(frozen, torch.rand(1, 1, 8, 8), "float16")


def test_numbers_the_profile_cannot_hold_are_refused(frozen: FrozenNetwork) -> None:
    with pytest.raises(ValueError, match=r"x must hold torch.float32 numbers"):
        certify(frozen, torch.full((1, 1, 8, 8), 0.1, dtype=torch.float64), "float32")
    largest = torch.full((1, 1, 8, 8), torch.finfo(torch.float64).max, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"x must hold torch.float32 numbers"):
        certify(frozen, -largest, "float32")
    weight = torch.full((2, 2), 0.1, dtype=torch.float64)
    wide = FrozenNetwork([Dense(weight, torch.zeros(2).double())], (2,))
    with pytest.raises(ValueError, match="tensor weight of layer 0 in torch.float64"):
        certify(wide, torch.zeros(1, 2), "float32")


@pytest.mark.parametrize("name", PROFILES)
def test_weights_that_are_no_numbers_are_named(name: str) -> None:
    hidden = Dense(torch.eye(2), torch.tensor([0.0, torch.nan]))
    network = FrozenNetwork([hidden, Dense(torch.eye(2), torch.zeros(2))], (2,))
    with pytest.raises(ValueError, match="must be numbers, got NaN in tensor bias of layer 0; fre"):
        certify(network, torch.zeros(1, 2), name)


THREADS = """
import torch
torch.set_num_threads(1)
torch.set_flush_denormal(True)
torch.set_num_threads(2)
(torch.ones(2**17) + 1).sum()  # the second thread starts, and flushes
torch.set_flush_denormal(False)

from unitmargin import UGNN, certify, freeze
from unitmargin.frozen.profiles import ProfileError

x, frozen = torch.rand(2, 1, 4, 4), freeze(UGNN((1, 4, 4), 2))
for threads in (2, 1):
    torch.set_num_threads(threads)
    for profile in ("float32", "float64"):
        try:
            print(threads, profile, bool((certify(frozen, x, profile).radius >= 0).all()))
        except ProfileError as error:
            print(threads, profile, error)
"""


def test_t10_a_thread_that_flushes_is_found_and_the_advice_cures() -> None:
    """A thread keeps the setting that it was started with, whatever its parent sets later."""
    command = [sys.executable, "-c", THREADS]
    environment = os.environ | {"OMP_NUM_THREADS": "2", "OMP_DYNAMIC": "false"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    lines = done.stdout.splitlines()
    assert lines[2:] == ["1 float32 True", "1 float64 True"]
    for line in lines[:2]:
        assert "needs denormal numbers, but some are flushed to zero on cpu; call" in line
        assert "torch.set_num_threads(1)" in line


def test_t10_the_cpu_that_bounds_a_network_elsewhere_is_asked_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another device, which is no machine's here, is taken to keep denormal numbers."""
    asked, halved = [], profiles._halved

    def answer(dtype: torch.dtype, device: torch.device) -> Tensor:
        asked.append(device.type)
        return halved(dtype, device) if device == CPU else torch.ones(1)

    monkeypatch.setattr(profiles, "_halved", answer)
    require_environment(PROFILES["float64"], torch.device("cuda"))
    assert sorted(asked) == ["cpu", "cuda"]
    with flushing(), pytest.raises(ProfileError, match="flushed to zero on cpu; call"):
        require_environment(PROFILES["float64"], torch.device("cuda"))


@pytest.mark.parametrize("name", profiles.SHORTENING)
@pytest.mark.parametrize("when", ["at the start", "later"])
def test_t10_an_environment_that_shortens_products_is_refused(
    name: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, refused in (("BF16", True), ("any", True), ("strict", False), ("", False)):
        if when == "later":
            monkeypatch.setenv(name, value)
        else:
            monkeypatch.setitem(profiles.STARTED, name, value)
        require_environment(PROFILES["float64"], CPU)
        if not refused:
            require_environment(PROFILES["float32"], CPU)
            continue
        words = f"full float32 products, but {name}, read .* is '{value.upper()}'; set it to 'STRI"
        with pytest.raises(ProfileError, match=words):
            require_environment(PROFILES["float32"], CPU)


SETTINGS = """
import sys
import torch
from unitmargin.frozen.profiles import PROFILES, ProfileError, require_environment

path, value = sys.argv[1:]
owner = torch.backends
*inner, last = path.split(".")
for name in inner:
    owner = getattr(owner, name)
setattr(owner, last, value)
try:
    require_environment(PROFILES["float32"], torch.device("cpu"))
except ProfileError as error:
    print(error)
require_environment(PROFILES["float64"], torch.device("cpu"))
"""


@pytest.mark.parametrize(
    "setting",
    [
        "fp32_precision bf16",
        "mkldnn.fp32_precision bf16",
        "mkldnn.matmul.fp32_precision bf16",
        "cuda.matmul.fp32_precision tf32",
    ],
)
def test_t10_short_products_are_refused_however_they_were_allowed(setting: str) -> None:
    command = [sys.executable, "-c", SETTINGS, *setting.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert "profile float32 needs full float32 products, but torch.backends." in done.stdout
