"""Groups of processes: each does its share, and together they do what one does."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from groups import in_group
from torch import Tensor

from unitmargin.data import Samples, load_dataset
from unitmargin.models import build_model
from unitmargin.models.freezing import fixed_network
from unitmargin.training import evaluation, sample_trainer
from unitmargin.training.drawn_trainer import ahead
from unitmargin.training.evaluation import evaluate
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes, join_processes
from unitmargin.training.sample_trainer import SampleTrainer
from unitmargin.training.share import Share
from unitmargin.training.train import train

EXACTNESS = 1e-6
"""Gradients are summed in another order, which rounds them otherwise: by 1e-7 here. In a longer
training some number comes to lie so near a kink that the two roundings take its two sides."""

OPTIONS: dict[str, Any] = {"epochs": 2, "batch_size": 60, "crop": 1, "flip": True}

LIMIT = 200

Weights = dict[str, list[Any]]


def network() -> Any:
    torch.manual_seed(0)
    kinds = {"linear": "manifold", "head": "manifold"}
    return build_model("dense_ugnn", (1, 8, 8), 10, hidden=[32, 32], **kinds)


def trained(checkpoint: Path | None = None, stop: int = 99, **changes: Any) -> Weights:
    """Weights after a training, which breaks off in an epoch."""

    def interrupt(history: Any) -> None:
        if len(history) == stop:
            raise InterruptedError

    model, dataset = network(), load_dataset("digits", limit=LIMIT)
    watched = {"checkpoint": checkpoint, "after_epoch": interrupt if stop < 99 else None}
    try:
        train(model, dataset, quiet=True, **watched, **OPTIONS | changes)
    except InterruptedError:
        return {}
    return {name: value.tolist() for name, value in model.state_dict().items()}


def distance(first: Weights, second: Weights) -> float:
    gaps = [torch.tensor(first[name]) - torch.tensor(second[name]) for name in first]
    return float(max(gap.abs().max() for gap in gaps))


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("count", [2, 4])
def test_any_number_of_processes_trains_what_one_trains(count: int, optimizer: str) -> None:
    one = trained(optimizer=optimizer)
    first, *others = in_group(count, lambda: trained(optimizer=optimizer))
    assert all(other == first for other in others)
    assert distance(one, first) <= EXACTNESS


@pytest.mark.parametrize(("begun", "resumed"), [(2, 3), (3, 1), (1, 4)])
def test_another_number_of_processes_resumes(tmp_path: Path, begun: int, resumed: int) -> None:
    file = tmp_path / "checkpoint.safetensors"
    # One epoch is on the disk when the second one ends without being kept.
    in_group(begun, lambda: trained(file, stop=2))
    assert file.is_file()
    again = in_group(resumed, lambda: trained(file))
    assert distance(trained(), again[0]) <= EXACTNESS


def shares(count: int) -> list[list[int]]:
    """How many images each process augments in the steps of an epoch."""
    sizes: list[int] = []
    original = sample_trainer.crop_flip

    def counted(images: Tensor, *arguments: Any, **options: Any) -> Tensor:
        sizes.append(len(images))
        return original(images, *arguments, **options)

    def work() -> list[int]:
        sample_trainer.crop_flip = counted
        trained(epochs=1)
        return sizes

    return in_group(count, work)


def test_each_process_augments_its_share_alone() -> None:
    assert shares(1) == [[60, 60, 60, 20]]
    assert shares(2) == [[30, 30, 30, 10]] * 2
    assert shares(3) == [[20, 20, 20, 7], [20, 20, 20, 7], [20, 20, 20, 6]]


def test_shares_of_a_batch_are_the_batch() -> None:
    dataset = load_dataset("digits", limit=LIMIT).train
    options = TrainingOptions(**OPTIONS)

    def batches(rank: int, count: int) -> list[Share]:
        trainer = SampleTrainer(network(), dataset, options, Processes(), quiet=True)
        trainer.processes = Processes(rank, count)
        return list(trainer._batches(1))

    for whole, *parts in zip(batches(0, 1), *(batches(rank, 3) for rank in range(3)), strict=True):
        for rank, part in enumerate(parts):
            assert torch.equal(part.inputs, whole.inputs[rank::3])
            assert torch.equal(part.labels, whole.labels[rank::3])
            assert part.batch == whole.batch == len(whole.labels)


def evaluated(batch: int) -> tuple[int, float, float]:
    processes, _ = join_processes("cpu")
    net, calls = fixed_network(network().eval()), []
    forward = net.forward

    def counted(inputs: Tensor) -> Tensor:
        calls.append(len(inputs))
        return forward(inputs)

    object.__setattr__(net, "forward", counted)
    evaluation.EVALUATION_BATCH = batch
    found = evaluate(net, load_dataset("digits", limit=LIMIT).test, processes)
    return sum(calls), *found


def test_each_process_evaluates_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "EVALUATION_BATCH", 30)
    seen, clean, certified = evaluated(30)
    assert seen == LIMIT
    assert in_group(2, lambda: evaluated(30)) == [(110, clean, certified), (90, clean, certified)]


def test_processes_without_a_batch_know_what_the_others_found() -> None:
    _, *alone = evaluated(1000)
    assert [found[1:] for found in in_group(3, lambda: evaluated(1000))] == [tuple(alone)] * 3


def gathered(parts: int) -> list[int]:
    processes, _ = join_processes("cpu")
    return processes.gather([10 * part for part in processes.own(range(parts))])


@pytest.mark.parametrize("parts", [0, 1, 2, 7])
def test_answers_are_gathered_in_order(parts: int) -> None:
    assert in_group(3, lambda: gathered(parts)) == [[10 * part for part in range(parts)]] * 3


def test_batches_made_ahead_come_in_order_and_end_with_their_reader() -> None:
    made: list[int] = []

    def batches() -> Any:
        for number in range(5):
            made.append(number)
            yield Share(torch.zeros(1), torch.zeros(1), number)

    assert [share.batch for share in ahead(batches())] == [0, 1, 2, 3, 4]
    made.clear()
    reader = ahead(batches())
    assert next(reader).batch == 0
    reader.close()
    assert made == [0, 1]


def test_batches_are_made_ahead_without_helpers() -> None:
    """Where the thread that makes them has two, they and those of the step share the cores."""
    helpers, threads = torch.get_num_threads(), []

    def batches() -> Any:
        torch.rand(100_000).sin()  # an operation that would have helpers
        threads.append(torch.get_num_threads())
        yield Share(torch.zeros(1), torch.zeros(1), 1)

    try:
        torch.set_num_threads(2)
        list(ahead(batches()))
        with ThreadPoolExecutor(1) as other:
            of_others = other.submit(torch.get_num_threads).result()
        assert (threads, torch.get_num_threads(), of_others) == ([1], 2, 2)
    finally:
        torch.set_num_threads(helpers)


def test_a_fault_in_a_batch_made_ahead_is_raised_where_it_is_used() -> None:
    def batches() -> Any:
        yield Share(torch.zeros(1), torch.zeros(1), 1)
        raise FloatingPointError("broken")

    reader = ahead(batches())
    next(reader)
    with pytest.raises(FloatingPointError, match="broken"):
        next(reader)


def read_ahead(self: SampleTrainer, epoch: int) -> Any:
    return ahead(self._drawn(epoch))


def test_batches_made_ahead_train_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = trained()
    monkeypatch.setattr(SampleTrainer, "_batches", read_ahead)
    assert trained() == usual


def test_larger_inputs_are_evaluated_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "NUMBERS", 16 * 64)
    monkeypatch.setattr(evaluation, "EVALUATION_BATCH", 30)
    net, seen = fixed_network(network().eval()), []
    monkeypatch.setattr(Samples, "batch", noted_lengths(seen))
    evaluate(net, load_dataset("digits", limit=40).test)
    assert seen == [16, 16, 8]


def noted_lengths(seen: list[int]) -> Callable[..., Any]:
    real = Samples.batch

    def batch(self: Samples, *given: Any, **named: Any) -> Any:
        found = real(self, *given, **named)
        seen.append(len(found[0]))
        return found

    return batch


@pytest.mark.parametrize(("interval", "steps"), [(1, 6), (3, 8), (8, 10), (16, 18)])
def test_whole_intervals_are_timed(
    interval: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In which every weight moves as often as in a training; two steps before them warm up."""
    dataset, made = load_dataset("digits", limit=LIMIT).train, []
    options = TrainingOptions(**OPTIONS).changed(interval=interval)
    trainer = SampleTrainer(network(), dataset, options, Processes(), quiet=True)
    monkeypatch.setattr(trainer, "_step", lambda share, progress: made.append(share) or 0.0)
    assert trainer.seconds_per_step() > 0
    assert len(made) == steps
