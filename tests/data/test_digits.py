"""The digits: bytes of the unit interval, and a stratified split that never changes."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from unitmargin.data.digits import FILE, digits

CONTENT = {
    "train": "c22eabb0124b5136428fbd467e4a1b4f9c5407487a5ff7c42ed9dbac25500b6d",
    "test": "9e43793ae872acb947a5412ea2b842940e8b6fd691371bcfec9aa9daa62bb596",
}
"""Hashes that weights and checkpoints of every run on the digits state."""

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


def test_the_content_is_that_of_every_run_before() -> None:
    dataset = digits()
    assert {"train": dataset.train.sha256, "test": dataset.test.sha256} == CONTENT


def test_the_file_holds_what_scikit_learn_loads() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    values, targets = datasets.load_digits(return_X_y=True)
    with np.load(FILE) as arrays:
        assert np.array_equal(arrays["inputs"].reshape(-1, 64), values)
        assert np.array_equal(arrays["labels"], targets)


def test_nothing_else_is_imported() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None; import unitmargin as um; "
        "print(len(um.load_dataset('digits').train))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1438"
