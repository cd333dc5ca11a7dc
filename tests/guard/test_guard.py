"""A guard on files whose answers are known: half planes, and the largest of some entries."""

import copy
import json
import math
import pickle
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto
from onnx_files import write_corners, write_half_planes

from unitmargin.guard import OUTCOMES, Answer, Guard
from unitmargin.guard import guard as room

ROUNDING = 1e-15
"""Of a handful of float64 operations on numbers of size 1."""

ENTRIES = st.floats(0.0, 1.0, width=32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guard")


@pytest.fixture(scope="module")
def half_planes(folder: Path) -> Path:
    return write_half_planes(folder / "half_planes.onnx")


@pytest.fixture(scope="module")
def free(folder: Path) -> Path:
    """The same classes for inputs of any size."""
    return write_half_planes(folder / "free.onnx", None)


@given(ENTRIES, ENTRIES)
def test_label_and_radius_are_those_of_the_half_planes(
    half_planes: Path, a: float, b: float
) -> None:
    guard = opened(half_planes)
    answer = one(guard, np.array([a, b], np.float32))
    distance = (a + b - 1.0) / math.sqrt(2.0)
    assert math.isclose(answer.radius, abs(distance), abs_tol=ROUNDING)
    assert math.isclose(answer.margin, abs(distance), abs_tol=ROUNDING)
    if abs(distance) > ROUNDING:
        assert answer.predicted == int(distance > 0)
        assert answer.runner_up == 1 - answer.predicted
        assert answer.label == (answer.predicted if answer.radius > 0.14 else None)


GUARDS: dict[Path, Guard] = {}


def opened(path: Path) -> Guard:
    """One guard a file: opening one takes longer than all answers."""
    return GUARDS.setdefault(path, Guard(path, 0.14))


def one(guard: Guard, x: object) -> Answer:
    answer = guard(x)
    assert isinstance(answer, Answer)
    return answer


def test_every_outcome_has_its_reason_and_its_counter(half_planes: Path) -> None:
    guard = Guard(half_planes, 0.14)
    batch = [[0.9, 0.3], [np.nan, 0.5], [-0.3, 1.2], [0.5, 0.5], [0.5, 0.6]]
    answers = guard(np.array(batch, np.float32))
    assert [(a.outcome, a.reason, a.label, a.name, a.predicted) for a in answers] == [
        ("certified", "certified", 1, "class 1", 1),
        ("not_finite", "not finite in float32", None, None, None),
        (
            "outside_domain", "outside the domain [0.0, 1.0]: entries from -0.3 to 1.2",
            None, None, 0,
        ),
        ("no_claim", "no claim", None, None, 0),
        ("below_threshold", "radius 0.07 < 0.14", None, None, 1),
    ]  # fmt: skip
    of_arrays = [outcome for outcome in OUTCOMES if outcome != "not_encoded"]
    assert [answer.outcome for answer in answers] == of_arrays
    assert guard.counters == dict.fromkeys(of_arrays, 1) | {"not_encoded": 0}


def test_the_first_reason_that_holds_is_given(half_planes: Path) -> None:
    guard = opened(half_planes)
    assert one(guard, np.array([np.nan, 7.0])).outcome == "not_finite"
    assert one(guard, np.array([-1.0, 2.0])).outcome == "outside_domain"  # a tie, too
    assert one(guard, np.array([0.5, 0.5])).outcome == "no_claim"  # below the threshold, too


def test_a_radius_equal_to_the_threshold_is_rejected(half_planes: Path) -> None:
    x = np.array([0.75, 0.75], np.float32)
    radius = one(Guard(half_planes), x).radius
    assert one(Guard(half_planes, math.nextafter(radius, 0.0)), x).certified
    answer = one(Guard(half_planes, radius), x)
    assert (answer.label, answer.reason) == (None, f"radius {radius} = {radius}")


def test_without_a_threshold_every_claim_is_certified(half_planes: Path) -> None:
    guard = Guard(half_planes)
    assert one(guard, np.array([0.5, np.nextafter(np.float32(0.5), np.float32(1))], "f4")).certified
    assert not one(guard, np.array([0.5, 0.5], np.float32)).certified


def test_a_float64_input_has_a_radius_around_itself(half_planes: Path) -> None:
    guard = opened(half_planes)
    wide = np.random.default_rng(0).random((200, 2))
    answers, rounded = guard(wide), guard(wide.astype(np.float32))
    moved = np.linalg.norm(wide - wide.astype(np.float32), axis=1)
    lowered = np.array([a.radius for a in rounded]) - np.array([a.radius for a in answers])
    assert (moved > 0).all()
    assert (lowered >= moved).all()
    assert (lowered <= 1.5 * moved).all()
    assert [a.margin for a in answers] == [a.margin for a in rounded]
    distances = np.abs(wide.sum(1) - 1.0) / math.sqrt(2.0)
    assert all(a.radius <= d for a, d in zip(answers, distances, strict=True))


def test_float64_inputs_that_are_float32_numbers_lose_nothing(half_planes: Path) -> None:
    guard = opened(half_planes)
    x = np.random.default_rng(0).random((20, 2), np.float32)
    assert guard(x.astype(np.float64)) == guard(x)


def test_a_network_of_float64_answers_float64_inputs_as_they_are(folder: Path) -> None:
    file = write_half_planes(folder / "wide.onnx", None, TensorProto.DOUBLE)
    guard = opened(file)
    x = np.array([0.25 + 2.0**-25, 0.75 - 0.9 * 2.0**-25])
    assert math.isclose(one(guard, x).radius, (x[0] + x[1] - 1.0) / math.sqrt(2), rel_tol=1e-7)
    assert one(guard, x).radius == one(guard, x).margin
    assert one(guard, np.array([9.0, 0.0], np.float32)).certified
    assert one(guard, np.array([1e300, 0.0])).outcome == "no_claim"  # the file's own limit
    assert one(guard, np.array([np.nan, 0.0])).reason == "not finite in float64"


def test_a_guard_is_not_opened_where_denormal_numbers_are_flushed(half_planes: Path) -> None:
    """Opening it computes what is constant in the network."""
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor flushes nothing")
    try:
        with pytest.raises(RuntimeError, match="an exported network needs denormal numbers"):
            Guard(half_planes)
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("value", [float("nan"), -1.0, float("inf")])
def test_another_threshold_is_judged_as_the_first(half_planes: Path, value: float) -> None:
    guard = Guard(half_planes, 0.3)
    with pytest.raises(ValueError, match="reject_below must be"):
        guard.reject_below = value
    assert guard.reject_below == 0.3
    guard.reject_below = 1.0
    assert guard.reject_below == 1.0
    assert not one(guard, np.array([0.9, 0.1])).certified


def test_denormal_numbers_that_are_flushed_are_an_error(half_planes: Path) -> None:
    guard, x = opened(half_planes), np.array([0.9, 0.9])
    assert guard(x)
    assert torch.set_flush_denormal(True)
    try:
        with pytest.raises(RuntimeError, match="profile float64 needs denormal numbers, but this"):
            guard(x)
    finally:
        torch.set_flush_denormal(False)
    assert guard(x)


def test_a_claim_below_the_rounding_of_its_input_is_none(half_planes: Path) -> None:
    x = np.array([0.25 + 2.0**-25, 0.75 - 0.9 * 2.0**-25])  # the second is 0.75 in float32
    answer = one(opened(half_planes), x)
    assert (answer.outcome, answer.radius, answer.predicted) == ("no_claim", 0.0, 1)
    assert answer.margin > 0.0


def test_entries_are_compared_with_the_domain_in_the_type_of_the_input(folder: Path) -> None:
    guard = Guard(write_half_planes(folder / "tenth.onnx", (0.1, 0.7)))
    for kind in (np.float64, np.float32, np.float16):
        ends = np.array([0.1, 0.7]).astype(kind)
        assert one(guard, ends).outcome == "certified"
        assert one(guard, np.nextafter(ends, kind(9.0))).outcome == "outside_domain"
        assert one(guard, np.nextafter(ends, kind(-9.0))).outcome == "outside_domain"


VALUES = (np.nan, np.inf, -np.inf, 1e300, 1e38, 5e-324, -0.0, 0.5)


@pytest.mark.parametrize("dtype", ["f4", ">f8", "f2"])
def test_no_value_of_an_input_raises(half_planes: Path, free: Path, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = np.array([(a, b) for a in VALUES for b in VALUES]).astype(dtype)
    with np.errstate(all="raise"):
        for path in (half_planes, free):
            answers = opened(path)(x)
            for entries, answer in zip(x.astype(np.float64), answers, strict=True):
                assert answer == one(opened(path), entries.astype(dtype))
                assert np.isfinite([answer.radius, answer.margin]).all()
                held = bool((np.abs(entries) <= np.finfo(np.float32).max).all())
                assert (answer.outcome != "not_finite") == held
                assert held or answer.predicted is None


def test_without_a_domain_large_inputs_have_claims_and_larger_ones_none(free: Path) -> None:
    guard = opened(free)
    assert one(guard, np.array([1e20, 1e20], np.float32)).certified
    answer = one(guard, np.array([1e35, 1e35], np.float32))  # the file gives it the label -1
    assert (answer.outcome, answer.predicted, answer.runner_up) == ("no_claim", None, None)


def test_one_input_has_one_answer_and_a_batch_a_list(half_planes: Path) -> None:
    guard = Guard(half_planes)
    x = np.random.default_rng(0).random((3, 2), np.float32)
    answers = guard(x)
    assert isinstance(answers, list)
    assert answers == [guard(row) for row in x]
    assert guard(x[:1]) == answers[:1]
    assert guard(x[:0]) == []
    assert guard(torch.from_numpy(x)) == answers
    assert sum(guard.counters.values()) == 10


def test_a_large_batch_is_evaluated_in_parts(
    half_planes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard, sizes = Guard(half_planes), []
    x = np.random.default_rng(0).random((25, 2))
    whole = guard(x)
    certify = guard.model.certify
    monkeypatch.setattr(guard.model, "certify", lambda x: sizes.append(len(x)) or certify(x))
    monkeypatch.setattr(room, "CHUNK", 21)
    assert guard(x) == whole
    assert sizes == [10, 10, 5]
    monkeypatch.setattr(room, "CHUNK", 1)
    assert guard(x) == whole


def test_many_threads_get_the_answers_of_one_and_all_are_counted(half_planes: Path) -> None:
    guard, alone = Guard(half_planes, 0.14), Guard(half_planes, 0.14)
    batches = list(np.random.default_rng(0).uniform(-0.1, 1.1, (400, 3, 2)))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(guard, batches))
    finally:
        sys.setswitchinterval(interval)
    assert answers == [alone(batch) for batch in batches]
    counted = Counter(answer.outcome for several in answers for answer in several)
    assert guard.counters == alone.counters == {name: counted[name] for name in OUTCOMES}
    assert len(counted) >= 3


def test_counters_are_a_copy(half_planes: Path) -> None:
    guard = Guard(half_planes)
    guard.counters["certified"] = 9
    assert guard.counters["certified"] == 0


def test_a_wrong_call_raises_and_counts_nothing(half_planes: Path) -> None:
    guard = Guard(half_planes)
    for wrong, error in ((np.zeros((2, 3)), ValueError), (np.ones((1, 2), int), ValueError),
                         ([[0.5, 0.5]], TypeError), (np.float32(0.5), ValueError)):  # fmt: skip
        with pytest.raises(error, match=r"^x must .+, got .+; .+"):
            guard(wrong)
    assert set(guard.counters.values()) == {0}


def test_pickles_and_copies_are_refused(half_planes: Path) -> None:
    guard = Guard(half_planes)
    for do in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="must be opened where it answers, got one .*; pass"):
            do(guard)


FORK = """
import json, os, sys, numpy
from unitmargin.guard import Guard
guard = Guard(sys.argv[1])
assert guard(numpy.array([0.9, 0.9])).label == 1
read, write = os.pipe()
if not os.fork():
    try:
        guard(numpy.array([0.9, 0.9]))
    except RuntimeError as error:
        os.write(write, str(error).encode())
    os.write(write, str(Guard(sys.argv[1])(numpy.array([0.9, 0.9])).label).encode())
    os._exit(0)
os.wait()
print(os.read(read, 1000).decode())
"""


def test_a_fork_opens_a_guard_of_its_own(half_planes: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(half_planes)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == (
        "a guard must answer in the process that opened it, got a call in a fork; open it after "
        "the fork1"
    )


def test_a_guard_says_what_it_guards(folder: Path) -> None:
    guard = Guard(write_corners(folder / "corners.onnx", (2, 3), 4), 0.5, threads=1)
    assert guard.reject_below == 0.5
    assert guard.model.in_shape == (2, 3)
    assert guard.model.classes == ("class 0", "class 1", "class 2", "class 3")
    assert (guard.model.domain, guard.model.profile) == ((0.0, 1.0), "float64")
    x = np.zeros((2, 3), np.float32)
    x[0, 2], x[1, 0] = 1.0, 0.25
    answer = one(guard, x)
    assert (answer.label, answer.name, answer.runner_up) == (2, "class 2", 3)
    assert math.isclose(answer.radius, 0.75 / math.sqrt(2.0), abs_tol=ROUNDING)
    assert json.dumps(answer._asdict())
