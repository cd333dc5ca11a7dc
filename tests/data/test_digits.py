"""The digits: bytes of the unit interval, and a stratified split that never changes."""

import torch

from unitmargin.data.digits import digits

FIRST_TEST_LABELS = [3, 7, 3, 9, 0, 8, 7, 0, 8, 0, 3, 3]


def test_digits_are_bytes_that_scale_to_the_unit_interval() -> None:
    dataset = digits()
    inputs, _ = dataset.train.batch(slice(None))
    assert dataset.in_shape == (1, 8, 8)
    assert dataset.train.inputs.dtype == torch.uint8
    assert (float(inputs.min()), float(inputs.max())) == (0.0, 1.0)
    assert dataset.classes == tuple("0123456789")


def test_the_split_is_a_stratified_fifth_of_everything() -> None:
    dataset = digits()
    assert len(dataset.train) + len(dataset.test) == 1797
    counts = [samples.labels.bincount() for samples in (dataset.train, dataset.test)]
    assert (counts[1] - (counts[0] + counts[1]) / 5).abs().max() <= 0.5


def test_the_split_is_always_the_same() -> None:
    torch.manual_seed(0)
    first = digits()
    torch.manual_seed(1)
    assert torch.equal(first.test.inputs, digits().test.inputs)
    assert first.test.labels[:12].tolist() == FIRST_TEST_LABELS
