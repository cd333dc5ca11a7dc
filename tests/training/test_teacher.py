"""The teacher: labels by a formula, the same bits whoever trains it and however often it stops."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from groups import in_group
from safetensors.torch import save_file
from torch import Tensor, nn

from unitmargin.data import Samples, TarShards
from unitmargin.foundation.tensors import read_tensors
from unitmargin.models import MixingUGNN
from unitmargin.training import teacher as module
from unitmargin.training.checkpoint import STATE, read_checkpoint
from unitmargin.training.identity import identify
from unitmargin.training.lesson import Lesson
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes, join_processes
from unitmargin.training.sample_trainer import SampleTrainer
from unitmargin.training.teacher import (
    Standardised,
    build_teacher,
    require_teachable,
    teach,
    teacher_file,
)
from unitmargin.training.train import TrainResult, train

CLASSES, SIDE, EPOCHS = 3, 8, 6

ROUNDING = 1e-6
"""Shares of a softmax in float32."""

CPU = torch.device("cpu")

OPTIONS = TrainingOptions(
    epochs=2,
    batch_size=8,
    crop=1,
    flip=True,
    teacher_epochs=EPOCHS,
    teacher_width=4,
    teacher_share=0.75,
)


def images(count: int = 40, seed: int = 0) -> Samples:
    """Noise, brighter by class."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    noise = torch.rand(count, 1, SIDE, SIDE, generator=generator)
    return Samples((noise + labels[:, None, None, None]) / CLASSES, labels)


def lesson(
    samples: Samples, options: TrainingOptions = OPTIONS, file: Path | None = None
) -> Lesson:
    processes, place = join_processes("cpu")
    kept = None
    if file:
        kept = file, identify(MixingUGNN((1, SIDE, SIDE), CLASSES), samples, None, options)
    return teach(samples, CLASSES, options, processes, place, kept)


class Corners(nn.Module):
    """Logits that are three corners of an image, so that its mirror image has others."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        corners = torch.stack((x[:, 0, 0, 0], x[:, 0, 0, -1], x[:, 0, -1, 0]), 1)
        return 40.0 * corners + 0.0 * self.weight


@pytest.mark.parametrize("flip", [False, True])
def test_labels_follow_the_formula(monkeypatch: pytest.MonkeyPatch, flip: bool) -> None:
    monkeypatch.setattr(module, "build_teacher", lambda *_: Corners())
    monkeypatch.setattr(module, "_require_better_than_one_class", lambda *_: None)
    samples = images()
    options = OPTIONS.changed(flip=flip, teacher_temperature=1.5)
    labels = lesson(samples, options).labels
    for row, image, label in zip(labels, samples.inputs[:, 0], samples.labels, strict=True):
        left, right, below, across = (
            float(image[0, 0]), float(image[0, -1]), float(image[-1, 0]), float(image[-1, -1])
        )  # fmt: skip
        seen = [left, right, below]
        if flip:
            seen = [(left + right) / 2, (left + right) / 2, (below + across) / 2]
        shares = (torch.tensor(seen, dtype=torch.float64) * 40.0 / 8.0 / 1.5).softmax(0)
        expected = 0.75 * shares
        expected[label] += 0.25
        assert row.tolist() == pytest.approx(expected.tolist(), abs=ROUNDING)


def test_a_teacher_learns_and_its_shares_add_up_to_one() -> None:
    samples = images()
    labels = lesson(samples, OPTIONS.changed(teacher_epochs=20, teacher_share=1.0)).labels
    assert labels.sum(1).tolist() == pytest.approx([1.0] * len(samples), abs=ROUNDING)
    assert float((labels.argmax(1) == samples.labels).double().mean()) > 0.8


def test_no_share_leaves_the_labels() -> None:
    samples = images()
    labels = lesson(samples, OPTIONS.changed(teacher_share=0.0)).labels
    assert torch.equal(labels, nn.functional.one_hot(samples.labels, CLASSES).float())


def test_a_teacher_that_knows_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="teacher_epochs must be enough for a teacher"):
        lesson(images(400), OPTIONS.changed(teacher_epochs=1, batch_size=400))


def test_a_teacher_that_is_refused_leaves_no_file(tmp_path: Path) -> None:
    network, options = MixingUGNN((1, SIDE, SIDE), CLASSES), OPTIONS.changed(teacher_epochs=1)
    file = tmp_path / "checkpoint.safetensors"
    with pytest.raises(ValueError, match="teacher_epochs must be enough for a teacher"):
        train(
            network, images(400), None, options.changed(batch_size=400), checkpoint=file, quiet=True
        )
    assert not list(tmp_path.iterdir())


def test_a_batch_above_all_samples_is_all_of_them() -> None:
    samples, options = images(), OPTIONS.changed(teacher_epochs=20)
    large, whole = (lesson(samples, options.changed(batch_size=b)).labels for b in (10**5, 40))
    assert torch.equal(large, whole)


def test_a_teacher_that_diverges_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RATE", 1e30)
    with pytest.raises(FloatingPointError, match="the loss of the teacher must be finite"):
        lesson(images())


def test_the_state_of_the_caller_is_left_alone() -> None:
    before = torch.get_rng_state()
    lesson(images())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("count", [3, 17, 33])
@pytest.mark.parametrize("size", [1, 16])
def test_no_batch_has_one_sample(count: int, size: int) -> None:
    """Of one sample on a map of one pixel there are no statistics."""
    labels = lesson(images(count), OPTIONS.changed(batch_size=size, teacher_epochs=20)).labels
    assert labels.shape == (count, CLASSES)
    assert bool(labels.isfinite().all())


def test_statistics_of_few_batches_are_their_mean() -> None:
    layer, generator = Standardised(2), torch.Generator().manual_seed(0)
    batches = [torch.randn(9, 2, 3, 3, generator=generator) + shift for shift in range(4)]
    for batch in batches:
        layer(batch)
    mean = torch.stack([batch.mean((0, 2, 3)) for batch in batches]).mean(0)
    torch.testing.assert_close(layer.running_mean, mean)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 9), (2, 16, 16)])
def test_images_of_any_size(shape: tuple[int, ...]) -> None:
    teacher = build_teacher(shape[0], 4, 2, 0).eval()
    assert teacher(torch.rand(2, *shape)).shape == (2, 4)


# --- Interruptions, processes -------------------------------------------------------------------


class StoppedError(Exception):
    pass


def test_an_interrupted_teacher_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    samples, file = images(), tmp_path / "teacher.safetensors"
    whole = lesson(samples)
    epoch = SampleTrainer.epoch

    def stop_in_the_second(self: SampleTrainer, number: int) -> tuple[float, float]:
        if number == 1:
            raise StoppedError
        return epoch(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(SampleTrainer, "epoch", stop_in_the_second)
        with pytest.raises(StoppedError):
            lesson(samples, file=file)
    first = read_checkpoint(file).history
    assert len(first) == 1
    again = lesson(samples, file=file)
    assert torch.equal(again.labels, whole.labels)
    history = read_checkpoint(file).history
    assert history[:1] == first
    assert again.seconds > sum(row["seconds"] for row in history)
    assert again.core_seconds > sum(row["core_seconds"] for row in history)


def test_a_finished_teacher_is_not_trained_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    samples, file = images(), tmp_path / "teacher.safetensors"
    whole = lesson(samples, file=file)
    monkeypatch.setattr(SampleTrainer, "epoch", None)
    assert torch.equal(lesson(samples, file=file).labels, whole.labels)


def test_a_file_with_another_history_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "teacher.safetensors"
    lesson(images(), OPTIONS.changed(teacher_epochs=1), file)
    tensors, words = read_tensors(file)
    save_file(tensors, file, {STATE: words[STATE].replace('"core_seconds"', '"hours"')})
    with pytest.raises(
        ValueError, match="is no checkpoint of this version .*core_seconds.*delete it"
    ):
        lesson(images(), OPTIONS.changed(teacher_epochs=1), file)


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        (images(seed=1), OPTIONS, f"SHA-256 is {images().sha256}, not {images(seed=1).sha256}"),
        (images(), OPTIONS.changed(teacher_epochs=4), "teacher_epochs = 6, not 4"),
        (images(), OPTIONS.changed(seed=1), "seed = 0, not 1"),
    ],
)
def test_the_file_of_another_training_is_refused(
    tmp_path: Path, samples: Samples, options: TrainingOptions, message: str
) -> None:
    file = tmp_path / "teacher.safetensors"
    lesson(images(), file=file)
    with pytest.raises(ValueError, match=message):
        lesson(samples, options, file)


def labels_of_a_group() -> Tensor:
    return lesson(images()).labels


@pytest.mark.parametrize("count", [2, 3])
def test_any_number_of_processes_has_the_same_labels(count: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    alone = labels_of_a_group()
    torch.set_num_threads(before)
    for labels in in_group(count, labels_of_a_group):
        assert torch.equal(labels, alone)


# --- The training of its student ----------------------------------------------------------------


def student(checkpoint: Path | None = None, **changes: object) -> TrainResult:
    torch.manual_seed(0)
    model = MixingUGNN((1, SIDE, SIDE), CLASSES)
    return train(model, images(), options=OPTIONS, checkpoint=checkpoint, quiet=True, **changes)


def weights(result: TrainResult) -> list[Tensor]:
    return list(result.model.state_dict().values())


def test_a_training_with_a_teacher_goes_on_bit_by_bit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole, file = student(), tmp_path / "checkpoint.safetensors"
    epoch = SampleTrainer.epoch

    def stop_in_the_second(self: SampleTrainer, number: int) -> tuple[float, float]:
        if self.lesson and number == 1:
            raise StoppedError
        return epoch(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(SampleTrainer, "epoch", stop_in_the_second)
        with pytest.raises(StoppedError):
            student(file)
    assert teacher_file(file).is_file()
    pairs = zip(weights(student(file)), weights(whole), strict=True)
    assert all(torch.equal(mine, other) for mine, other in pairs)


def test_labels_of_the_classes_alone_train_as_without_a_teacher() -> None:
    taught, alone = student(teacher_share=0.0), student(teacher_epochs=0)
    for mine, other in zip(weights(taught), weights(alone), strict=True):
        torch.testing.assert_close(mine, other, rtol=0.0, atol=1e-4)


def test_the_first_epoch_has_the_cost_of_the_teacher(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.safetensors"
    first, _ = student(file).history
    history = read_checkpoint(teacher_file(file)).history
    assert first.core_seconds is not None
    assert first.seconds > sum(row["seconds"] for row in history) > 0.0
    assert first.core_seconds > sum(row["core_seconds"] for row in history)


def test_a_share_of_a_batch_has_its_own_labels() -> None:
    samples = images()
    trainer = SampleTrainer(
        MixingUGNN((1, SIDE, SIDE), CLASSES), samples, OPTIONS, Processes(), quiet=True
    )
    rows = torch.rand(len(samples), CLASSES)
    trainer.lesson = Lesson(rows, 0.0, 0.0)
    index = torch.tensor([5, 3, 39])
    share = trainer._batch(index, torch.Generator())
    assert torch.equal(share.labels, rows[index])


# --- What cannot be taught ----------------------------------------------------------------------


def test_shards_are_refused() -> None:
    shards = TarShards.__new__(TarShards)
    with pytest.raises(ValueError, match="teacher_epochs must be 0 where shards are streamed"):
        require_teachable(shards, OPTIONS)
    require_teachable(shards, OPTIONS.changed(teacher_epochs=0))


def test_inputs_that_are_no_images_are_refused() -> None:
    vectors = Samples(torch.rand(4, 2), torch.arange(4) % 2)
    with pytest.raises(ValueError, match="teacher_epochs must be 0 for inputs that are no images"):
        require_teachable(vectors, OPTIONS)
    require_teachable(vectors, OPTIONS.changed(teacher_epochs=0))


def test_one_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="teacher_epochs must be 0 for one sample"):
        require_teachable(images(1), OPTIONS)


def test_a_loss_without_soft_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="loss must take soft labels where a teacher makes them"):
        OPTIONS.changed(loss="multi_margin")


def test_a_loader_is_refused() -> None:
    samples = images()
    data = torch.utils.data.TensorDataset(samples.inputs, samples.labels)
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    with pytest.raises(ValueError, match="teacher_epochs must be left out with a DataLoader"):
        train(MixingUGNN((1, SIDE, SIDE), CLASSES), loader, teacher_epochs=1, quiet=True)


def test_samples_by_rows_have_labels_in_their_order() -> None:
    samples = images()
    rows = torch.arange(len(samples)).flip(0)[5:]
    chosen = replace(samples, labels=samples.labels[rows], rows=rows)
    labels = lesson(chosen, OPTIONS.changed(teacher_share=0.0)).labels
    assert labels.argmax(1).tolist() == samples.labels[rows].tolist()
