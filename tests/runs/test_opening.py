"""What a recipe names: its input normalisation is that of all training samples."""

import pytest
import torch
from torch import Tensor

from unitmargin.data import Dataset, Samples, load_dataset
from unitmargin.layers.normalize import Normalize
from unitmargin.runs import opening
from unitmargin.runs.opening import open_model
from unitmargin.runs.recipe import ModelOptions, Recipe

TOLERANCE = 1e-6
"""Statistics are rounded to float32."""


def by_class(n: int) -> Dataset:
    """Bytes of two classes, one after the other as folders give them: dark ones, bright ones."""
    random = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 100, (n, 3), generator=random, dtype=torch.uint8)
    labels = (torch.arange(n) >= n // 2).long()
    inputs[labels == 1] += 150
    samples = Samples(inputs, labels, scale=255.0)
    return Dataset("two", samples, samples.take(2), ("dark", "bright"))


def normalisation(dataset: Dataset, mode: str, model: str = "dense_ugnn") -> Normalize:
    recipe = Recipe(name="a", model=ModelOptions(name=model, normalization=mode))
    return open_model(recipe, dataset).normalize


def relative_error(found: Tensor, truth: Tensor) -> float:
    return float((found.double() / truth - 1).abs().max())


@pytest.mark.parametrize("mode", ["centre", "scalar", "channel"])
def test_statistics_are_of_all_samples_in_any_order(mode: str) -> None:
    dataset = by_class(25_000)
    values = dataset.train.inputs.double() / 255
    variance = values.var(0, correction=0)
    std = {
        "centre": torch.ones_like(variance),
        "scalar": variance.mean().sqrt().expand(3),
        "channel": variance.sqrt(),
    }[mode]
    shuffled = Dataset("two", dataset.train.take(25_000), dataset.test, dataset.classes)
    for ordered in (dataset, shuffled):
        found = normalisation(ordered, mode)
        assert relative_error(found.mean, values.mean(0)) <= TOLERANCE
        assert relative_error(found.std, std) <= TOLERANCE


def test_statistics_of_upsampled_images_are_those_of_the_images() -> None:
    digits = load_dataset("digits")
    first, second = (
        normalisation(dataset, "channel", "ugnn") for dataset in (digits, digits.upsampled(2))
    )
    assert torch.equal(first.mean, second.mean)
    assert torch.equal(first.std, second.std)


@pytest.mark.parametrize(
    ("mode", "what", "scale", "shift"),
    [
        ("centre", "mean", 1.0, 1.7e12),
        ("centre", "mean", 1.0, -1.7e12),
        ("channel", "deviation", 2e12, 0.0),
    ],
)
def test_statistics_that_no_file_holds_are_refused_by_their_channel(
    mode: str, what: str, scale: float, shift: float
) -> None:
    inputs = torch.tensor([[0.0, -1.0], [0.0, 1.0], [1.0, -1.0], [1.0, 1.0]]) * torch.tensor(
        [1.0, scale]
    )
    samples = Samples(inputs + torch.tensor([0.0, shift]), torch.arange(4) % 2)
    dataset = Dataset("two", samples, samples, ("a", "b"))
    number = f"{shift or scale:g}".replace("+", r"\+")
    message = (
        f"numbers up to 1.*12, which a model file may hold, got the {what} {number} of channel 1"
    )
    with pytest.raises(ValueError, match=f"{message}.*; write the column in a larger unit"):
        normalisation(dataset, mode)
    assert normalisation(dataset, "none").norm() == 1.0


def numbers_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the count of numbers of every batch that is asked for."""
    seen: list[int] = []
    batch = Samples.batch

    def counted(samples: Samples, index: Tensor | slice) -> tuple[Tensor, Tensor]:
        inputs, labels = batch(samples, index)
        seen.append(inputs.numel())
        return inputs, labels

    monkeypatch.setattr(Samples, "batch", counted)
    return seen


def test_statistics_are_read_in_batches_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "BATCH_NUMBERS", 100)
    seen = numbers_read(monkeypatch)
    normalisation(by_class(1000), "channel")
    assert sum(seen) == 3000
    assert max(seen) <= 100


def test_without_normalisation_no_sample_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = numbers_read(monkeypatch)
    assert normalisation(by_class(1000), "none").norm() == 1.0
    assert seen == []
