"""A batch in pieces gives the same weights to the last bit, whoever computes which piece."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from groups import in_group
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from unitmargin.data import load_dataset
from unitmargin.models import Classifier, build_model
from unitmargin.training.losses import multi_margin
from unitmargin.training.pieces import Pieces, require_pieces
from unitmargin.training.processes import Processes
from unitmargin.training.share import Share
from unitmargin.training.train import train
from unitmargin.training.trainer import Trainer

ROUNDING = 1e-13
"""Gradients of pieces are added in another order than samples within a batch. In float64 that
moves weights by 1e-16 a step here; a lost, doubled or misweighted piece moves them by 1e-3."""

ALIGNMENT = 64
"""Bytes at whose multiples torch allocates on CPUs."""

OPTIONS: dict[str, Any] = {"epochs": 2, "batch_size": 60, "crop": 1, "flip": True}

LIMIT = 203
"""Samples whose last batch has 23, which no number of pieces below divides."""

KINDS: dict[str, dict[str, Any]] = {
    "dense_ugnn": {"hidden": [32, 32], "linear": "manifold", "head": "simplex"},
    "mixing_ugnn": {"plan": ["fold 2", "window 2", "group 4"]},
}

Outcome = tuple[dict[str, list[Any]], list[float]]


def network(kind: str = "dense_ugnn") -> Classifier:
    torch.manual_seed(0)
    return build_model(kind, (1, 8, 8), 10, **KINDS[kind])


def trained(
    kind: str = "dense_ugnn", checkpoint: Path | None = None, stop: int = 99, **changes: Any
) -> Outcome:
    """Weights and losses after a training, which breaks off in an epoch."""

    def interrupt(history: Any) -> None:
        if len(history) == stop:
            raise InterruptedError

    model, dataset = network(kind), load_dataset("digits", limit=LIMIT)
    watched = {"checkpoint": checkpoint, "after_epoch": interrupt if stop < 99 else None}
    try:
        result = train(model, dataset, quiet=True, **watched, **OPTIONS | changes)
    except InterruptedError:
        return {}, []
    weights = {name: value.tolist() for name, value in model.state_dict().items()}
    return weights, [record.loss for record in result.history]


@pytest.mark.parametrize(("kind", "pieces"), [("dense_ugnn", 4), ("mixing_ugnn", 6)])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_any_number_of_processes_trains_the_same_bits(kind: str, pieces: int, count: int) -> None:
    one = trained(kind, pieces=pieces)
    assert in_group(count, lambda: trained(kind, pieces=pieces)) == [one] * count


@pytest.mark.parametrize(("begun", "resumed"), [(2, 3), (3, 1), (1, 4)])
def test_another_number_of_processes_resumes_to_the_same_bits(
    tmp_path: Path, begun: int, resumed: int
) -> None:
    file = tmp_path / "checkpoint.safetensors"
    in_group(begun, lambda: trained(checkpoint=file, stop=2, pieces=4))
    assert file.is_file()
    again = in_group(resumed, lambda: trained(checkpoint=file, pieces=4))
    assert again == [trained(pieces=4)] * resumed


def test_the_last_batch_may_have_fewer_samples_than_pieces_or_processes() -> None:
    # 203 = 3 * 67 + 2: two pieces of a sample, and a third process with nothing to do.
    some = {"batch_size": 67, "pieces": 5, "epochs": 1}
    assert in_group(3, lambda: trained(**some)) == [trained(**some)] * 3


def test_processes_begin_with_the_weights_of_the_first_one() -> None:
    def work() -> Outcome:
        rank = int(os.environ["RANK"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "manual_seed", lambda _: torch.default_generator.manual_seed(rank))
            return trained(pieces=2, epochs=1)

    assert in_group(2, work) == [trained(pieces=2, epochs=1)] * 2


@pytest.mark.parametrize("batch", [0, 1, 5, 12, 60])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("pieces", [3, 4, 8])
def test_pieces_are_the_batch_and_belong_to_one_process_each(
    pieces: int, count: int, batch: int
) -> None:
    def dealt(rank: int) -> Pieces:
        division = Pieces(pieces, Processes(), torch.nn.Linear(1, 1))
        division.processes = Processes(rank, count)
        return division

    sizes = dealt(0).sizes(batch)
    assert sum(sizes) == batch
    assert len(sizes) == max(1, min(pieces, batch))
    assert max(sizes) - min(sizes) <= 1
    slices = torch.arange(batch).split(sizes)
    for rank in range(count):
        expected = torch.cat([torch.arange(0), *slices[rank::count]])
        assert torch.equal(dealt(rank).positions(batch), expected)


def weights_after_steps(
    model: torch.nn.Module, inputs: Tensor, labels: Tensor, pieces: int, rate: float
) -> list[Tensor]:
    """Parameters after three steps down the gradient of the multi-margin loss."""

    def backward(some: Tensor, of: Tensor, factor: float) -> Tensor:
        loss = multi_margin(model(some), of, 0.5) * factor
        loss.backward()
        return loss.detach()

    division = Pieces(pieces, Processes(), model)
    for _ in range(3):
        loss = division.differentiate(Share(inputs, labels, len(labels)), backward)
        assert torch.allclose(loss, multi_margin(model(inputs), labels, 0.5))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= rate * parameter.grad
    return [parameter.detach() for parameter in model.parameters()]


@pytest.mark.parametrize("pieces", [2, 4, 8, 64])
def test_pieces_move_weights_to_the_same_bits_where_every_sum_is_exact(pieces: int) -> None:
    def after(pieces: int) -> list[Tensor]:
        # Halves as inputs and weights, four classes, equal pieces: no sum or mean is rounded.
        generator = torch.Generator().manual_seed(3)
        inputs = torch.randint(-4, 5, (32, 6), generator=generator) / 2
        model = torch.nn.Linear(6, 4)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randint(-4, 5, parameter.shape, generator=generator) / 2)
        return weights_after_steps(model, inputs, torch.arange(32) % 4, pieces, 0.125)

    whole, parts = after(1), after(pieces)
    assert not torch.equal(whole[0] * 2, (whole[0] * 2).round())  # it has moved
    assert all(torch.equal(*pair) for pair in zip(whole, parts, strict=True))


@pytest.mark.parametrize("pieces", [4, 7, 32])
def test_pieces_move_weights_as_the_whole_batch_but_for_rounding(pieces: int) -> None:
    def after(pieces: int) -> list[Tensor]:
        torch.manual_seed(0)
        model = build_model("ugnn", (1, 8, 8), 4, hidden=[8]).double()
        inputs = torch.randn(30, 1, 8, 8, dtype=torch.float64)
        return weights_after_steps(model, inputs, torch.arange(30) % 4, pieces, 0.1)

    for whole, parts in zip(after(1), after(pieces), strict=True):
        assert float((whole - parts).abs().max()) <= ROUNDING


def test_pieces_and_gradients_lie_where_memory_is_aligned() -> None:
    """Of two equal matrices, one of which begins 4 bytes further, products differ in last bits."""
    found: list[int] = []

    def backward(some: Tensor, of: Tensor, factor: float) -> Tensor:
        found.extend((some.data_ptr(), of.data_ptr()))
        loss = multi_margin(model(some), of, 0.5) * factor
        loss.backward()
        return loss.detach()

    model = torch.nn.Linear(3, 3)
    share = Share(torch.rand(7, 3), torch.arange(7) % 3, 7)
    Pieces(3, Processes(), model).differentiate(share, backward)
    found += [parameter.grad.data_ptr() for parameter in model.parameters()]
    assert [place % ALIGNMENT for place in found] == [0] * 8


@pytest.mark.parametrize("source", ["samples", "loader"])
def test_a_piece_is_computed_after_another(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = Trainer._backward

    def counted(self: Trainer, inputs: Tensor, labels: Tensor, factor: float) -> Tensor:
        assert all(parameter.grad is None for parameter in self.model.parameters())
        sizes.append(len(inputs))
        return original(self, inputs, labels, factor)

    monkeypatch.setattr(Trainer, "_backward", counted)
    data: Any = TensorDataset(torch.rand(23, 2), torch.arange(23) % 2)
    data = DataLoader(data, batch_size=10) if source == "loader" else data
    model = build_model("dense_ugnn", (2,), 2)
    train(model, data, epochs=1, batch_size=10, pieces=4, quiet=True)
    assert sizes == [3, 3, 2, 2, 3, 3, 2, 2, 1, 1, 1]


def test_other_pieces_are_another_training(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.safetensors"
    trained(checkpoint=file, stop=2, pieces=4)
    with pytest.raises(ValueError, match="was trained with pieces = 4, not 5"):
        trained(checkpoint=file, pieces=5)


def test_pieces_that_cannot_be_dealt_to_processes_are_refused() -> None:
    message = (
        "pieces must be 1, or at least the number of processes, 3, got 2; use 3, or fewer processes"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        require_pieces(2, Processes(1, 3))
    message = (
        "pieces must be 1, or a multiple of the number of processes, 4, where shards are streamed, "
        "got 6; use 8"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        require_pieces(6, Processes(0, 4), streamed=True)
    for count, streamed in ((1, True), (8, True), (6, False), (4, False)):
        require_pieces(count, Processes(0, 4), streamed)
