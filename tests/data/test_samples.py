"""Samples and data sets: batches, limits, up-sampling, and what is refused."""

import math

import numpy as np
import pandas
import pytest
import torch

from unitmargin.data.dataset import Dataset
from unitmargin.data.given import as_samples
from unitmargin.data.samples import Samples

BYTES = torch.arange(12, dtype=torch.uint8).reshape(4, 3)
LABELS = torch.tensor([0, 1, 0, 1])


def test_batch_divides_by_the_scale_in_float32() -> None:
    inputs, labels = Samples(BYTES, LABELS, 255.0).batch(slice(1, 3))
    assert inputs.dtype == torch.float32
    assert torch.equal(inputs, BYTES[1:3].float() / torch.tensor(255.0))
    assert labels.tolist() == [1, 0]


@pytest.mark.parametrize("index", [torch.tensor([3, 0, 3]), LABELS == 1, slice(None, None, 2)])
def test_batch_takes_positions_masks_and_slices(index: torch.Tensor | slice) -> None:
    inputs, labels = Samples(BYTES, LABELS).batch(index)
    assert torch.equal(inputs, BYTES[index].float())
    assert torch.equal(labels, LABELS[index])


def test_a_batch_is_a_copy() -> None:
    samples = Samples(torch.zeros(4, 3), LABELS)
    inputs, labels = samples.batch(slice(None))
    inputs += 1
    labels += 1
    assert samples.inputs.sum() == 0
    assert samples.labels.tolist() == LABELS.tolist()


def test_length_shape_and_device() -> None:
    samples = Samples(torch.zeros(4, 1, 8, 8), LABELS)
    assert len(samples) == 4
    assert samples.in_shape == (1, 8, 8)
    assert samples.to("cpu").in_shape == (1, 8, 8)


def test_take_begins_a_fixed_order() -> None:
    samples = Samples(torch.arange(100.0).reshape(100, 1), torch.arange(100))
    before = torch.get_rng_state()
    few, many = samples.take(10), samples.take(50)
    assert torch.equal(few.inputs, many.inputs[:10])
    assert torch.equal(few.inputs[:, 0].long(), few.labels)
    assert few.labels[:4].tolist() == samples.take(4).labels.tolist()
    assert few.labels.tolist() != list(range(10))
    assert sorted(samples.take(1000).labels.tolist()) == list(range(100))
    assert torch.equal(before, torch.get_rng_state())


def test_take_keeps_the_scale() -> None:
    assert Samples(BYTES, LABELS, 255.0).take(2).scale == 255


def test_take_needs_a_positive_limit() -> None:
    with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
        Samples(BYTES, LABELS).take(0)


@pytest.mark.parametrize(
    ("inputs", "labels", "scale", "message"),
    [
        (torch.zeros(4, 3, dtype=torch.float64), LABELS, 1.0, "uint8 or float32, got torch.float6"),
        (torch.zeros(4), LABELS, 1.0, r"shape \(n, \*shape\).*add the batch axis: inputs\[None\]"),
        (torch.zeros(0, 3), LABELS[:0], 1.0, "at least one number.*pass a sample at least"),
        (torch.zeros(4, 0), LABELS, 1.0, "at least one number"),
        (torch.tensor([[0.0], [math.nan]]), LABELS[:2], 1.0, "NaN or infinity in sample 1"),
        (torch.tensor([[math.inf], [0.0]]), LABELS[:2], 1.0, "NaN or infinity in sample 0"),
        (BYTES, LABELS[:3], 1.0, r"int64 of shape \(4,\).*got torch.int64 of shape \(3,\)"),
        (BYTES, LABELS.int(), 1.0, "labels must be int64.*got torch.int32"),
        (BYTES, LABELS - 1, 1.0, "labels must be >= 0, got -1"),
        (BYTES, LABELS, 0.0, "scale must be finite and > 0, got 0.0"),
        (BYTES, LABELS, math.nan, "scale must be finite and > 0, got nan"),
    ],
)
def test_samples_refuse(
    inputs: torch.Tensor, labels: torch.Tensor, scale: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Samples(inputs, labels, scale)


def test_dataset_counts_classes_and_takes() -> None:
    dataset = Dataset("tiny", Samples(BYTES, LABELS), Samples(BYTES[:2], LABELS[:2]), ("a", "b"))
    assert dataset.in_shape == (3,)
    assert dataset.n_classes == 2
    assert [len(dataset.take(3).train), len(dataset.take(3).test)] == [3, 2]


@pytest.mark.parametrize(
    ("test_inputs", "test_labels", "classes", "message"),
    [
        (BYTES[:, :2], LABELS, ("a", "b"), r"one shape, got \(3,\) and \(2,\)"),
        (BYTES, LABELS + 1, ("a", "b"), "every test label must be < 2.*got 2"),
        (BYTES, LABELS, ("a",), "two or more different names"),
        (BYTES, LABELS, ("a", "a"), "two or more different names"),
    ],
)
def test_dataset_refuses(
    test_inputs: torch.Tensor, test_labels: torch.Tensor, classes: tuple[str, ...], message: str
) -> None:
    train, test = Samples(BYTES, LABELS), Samples(test_inputs, test_labels)
    with pytest.raises(ValueError, match=f"data set 'tiny'.*{message}"):
        Dataset("tiny", train, test, classes)


def test_as_samples_keeps_samples_and_converts_pairs() -> None:
    samples = Samples(BYTES, LABELS)
    assert as_samples(samples) is samples
    made = as_samples((BYTES.double(), LABELS.to(torch.int32)))
    assert made.inputs.dtype == torch.float32
    assert made.labels.dtype == torch.int64
    assert made.scale == 1.0


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (BYTES, LABELS, "inputs of data must be of a floating dtype, got torch.uint8.*scale=255"),
        (BYTES.float(), LABELS.float(), "integer dtype, got torch.float32"),
        (BYTES.float(), LABELS.bool(), "integer dtype, got torch.bool"),
    ],
)
def test_as_samples_refuses(inputs: torch.Tensor, labels: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_samples((inputs, labels))


def test_upsampled_pixels_are_repeated_and_distances_multiplied() -> None:
    pixels = torch.arange(2 * 3 * 2 * 2, dtype=torch.uint8).view(2, 3, 2, 2)
    samples = Samples(pixels, torch.tensor([0, 1]), scale=255.0, upsample=3)
    plain = Samples(pixels, torch.tensor([0, 1]), scale=255.0)
    large, small = samples.batch(slice(0, 2))[0], plain.batch(slice(0, 2))[0]
    assert samples.in_shape == (3, 6, 6) == tuple(large.shape[1:])
    for row in range(3):
        for column in range(3):
            assert torch.equal(large[..., row::3, column::3], small)
    assert float((large[0] - large[1]).norm()) == pytest.approx(
        3.0 * float((small[0] - small[1]).norm()), rel=1e-6
    )


@pytest.mark.parametrize(
    ("shape", "factor", "rule"),
    [((2, 3), 2, "be 1 for inputs that are no images"), ((2, 3, 2, 2), 0, "be >= 1, got 0")],
)
def test_an_impossible_upsampling_is_refused(
    shape: tuple[int, ...], factor: int, rule: str
) -> None:
    with pytest.raises(ValueError, match=f"upsample must {rule}"):
        Samples(torch.zeros(shape), torch.tensor([0, 1]), upsample=factor)


def test_samples_of_one_content_have_one_hash() -> None:
    samples = Samples(BYTES, LABELS, 255.0)
    strided = torch.stack((BYTES, BYTES), dim=1)[:, 0]
    assert not strided.is_contiguous()
    assert Samples(strided, LABELS.clone(), 255.0).sha256 == samples.sha256
    assert len(samples.sha256) == 64


def test_samples_of_other_content_have_another_hash() -> None:
    images = BYTES.reshape(4, 1, 3, 1)
    brighter, swapped = BYTES.clone(), LABELS.clone()
    brighter[3, 2] += 1
    swapped[:2] = LABELS[[1, 0]]
    others = [
        Samples(BYTES, LABELS, 255.0),
        Samples(BYTES, LABELS, 254.0),
        Samples(brighter, LABELS, 255.0),
        Samples(BYTES, swapped, 255.0),
        Samples(BYTES.float(), LABELS, 255.0),
        Samples(BYTES.flip(0), LABELS, 255.0),
        Samples(BYTES[:3], LABELS[:3], 255.0),
        Samples(images, LABELS, 255.0),
        Samples(images, LABELS, 255.0, upsample=2),
    ]
    assert len({samples.sha256 for samples in others}) == len(others)


LARGEST = 3.4e38
"""Almost the largest float32 number: no interval around it may overflow."""


@pytest.mark.parametrize(
    ("inputs", "scale", "domain"),
    [
        (BYTES, 255.0, (0.0, 1.0)),
        (BYTES, 11.0, (0.0, 1.0)),  # all of them in [0, 1]: digits are bytes up to 16
        (BYTES, 1.0, (0.0, 255.0)),
        (BYTES, 0.5, (0.0, 510.0)),
        (torch.tensor([[0.0], [1.0]]), 1.0, (0.0, 1.0)),
        (torch.tensor([[0.3], [0.4]]), 1.0, (0.0, 1.0)),
        (torch.tensor([[0.5], [0.5]]), 1.0, (0.0, 1.0)),
        (torch.tensor([[-0.0], [0.0]]), 1.0, (0.0, 1.0)),
        (torch.tensor([[0.0], [16.0]]), 16.0, (0.0, 1.0)),
        (torch.tensor([[-1.0], [3.0]]), 1.0, (-5.0, 7.0)),
        (torch.tensor([[-1.0], [3.0]]), 0.5, (-10.0, 14.0)),
        (torch.tensor([[5.0], [5.0]]), 1.0, (0.0, 10.0)),
        (torch.tensor([[5.0], [5.0]]), 3.0, (0.0, 10.0 / 3.0)),  # no multiple of a power of two
        (torch.tensor([[-4.0], [-4.0]]), 1.0, (-8.0, 0.0)),
        (torch.tensor([[-1e-45], [-1e-45]]), 1.0, (-2 * 2.0**-149, 0.0)),
    ],
)
def test_the_domain_of_samples(
    inputs: torch.Tensor, scale: float, domain: tuple[float, float]
) -> None:
    samples = Samples(inputs, torch.zeros(len(inputs), dtype=torch.int64), scale)
    assert samples.domain == pytest.approx(domain, rel=1e-6, abs=1e-6)
    assert samples.domain == domain or scale == 3.0
    assert samples.domain[0] < samples.domain[1]


def test_the_domain_of_huge_inputs_is_finite() -> None:
    low, high = Samples(torch.tensor([[-LARGEST], [LARGEST]]), LABELS[:2]).domain
    assert (low, high) == pytest.approx((-3 * LARGEST, 3 * LARGEST), rel=1e-6)


@pytest.mark.parametrize("scale", [255.0, 100.0, 3.7, 1 / 3])
def test_bytes_scaled_in_either_precision_lie_in_their_domain(scale: float) -> None:
    """Of 100 and 3.7 the quotients in float32 and in float64 differ on one side each."""
    pixels = torch.arange(256, dtype=torch.uint8)[:, None]
    samples = Samples(pixels, torch.zeros(256, dtype=torch.int64), scale)
    low, high = samples.domain
    for scaled in (samples.batch(slice(None))[0].double(), pixels.double() / scale):
        assert low <= float(scaled.min())
        assert float(scaled.max()) <= high


def test_data_frames_become_samples() -> None:
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=[7, 5])
    made = as_samples((frame, pandas.Series([1, 0], index=[5, 7], dtype="int8")))
    assert made.inputs.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert made.labels.tolist() == [1, 0]  # by position: an index plays no part
    assert (made.inputs.dtype, made.labels.dtype) == (torch.float32, torch.int64)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pandas.DataFrame({"a": [1.0, math.nan]}), "data: inputs must be finite.*in sample 1"),
        (pandas.DataFrame({"a": [1.0, None]}, dtype="Float64"), "must be finite.*in sample 1"),
        (pandas.DataFrame({"a": [1e300, 1.0]}), "must be finite.*in sample 0"),
        (pandas.DataFrame({"a": [1, 2]}), "must be of a floating dtype, got torch.int64"),
        (pandas.DataFrame({"a": [True, False]}), "must be of a floating dtype, got torch.bool"),
    ],
)
def test_data_frames_that_are_no_inputs_are_refused(frame: pandas.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_samples((frame, LABELS[:2]))


def test_samples_carry_no_graph() -> None:
    inputs = torch.rand(4, 3, requires_grad=True)
    assert not as_samples((inputs, LABELS)).inputs.requires_grad


def test_a_scale_is_a_number_of_any_kind() -> None:
    inputs, labels = torch.zeros(4, 1, 2, 2, dtype=torch.uint8), torch.arange(4)
    first, other = Samples(inputs, labels, 255.0), Samples(inputs, labels, np.float64(255))
    assert (other.sha256, type(other.scale)) == (first.sha256, float)
    whole = Samples.__new__(Samples)  # past the check of types, which users do not have
    vars(whole).update(inputs=inputs, labels=labels, scale=255, upsample=1, rows=None, origin=None)
    whole.__post_init__()
    assert (whole.sha256, type(whole.scale)) == (first.sha256, float)
