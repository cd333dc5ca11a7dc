"""Training: schedules, learning, and runs that are interrupted and resumed bit by bit."""

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tables import read_rows
from torch import Tensor

from unitmargin.auditing.audit import largest_error, network_rows
from unitmargin.certificates.accuracy import HEADLINE_EPSILON
from unitmargin.data import Samples
from unitmargin.layers.margin import margins
from unitmargin.layers.normalize import Normalize
from unitmargin.layers.promises import GNP
from unitmargin.models import Classifier, DenseUGNN, build_model, fixed_network
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.opening import open_dataset, open_model
from unitmargin.runs.recipe import DataOptions, ModelOptions, Recipe
from unitmargin.steps.train import train_run
from unitmargin.training.evaluation import evaluate
from unitmargin.training.logs import LOGS
from unitmargin.training.losses import LOSSES
from unitmargin.training.options import TrainingOptions
from unitmargin.training.processes import Processes
from unitmargin.training.sample_trainer import SampleTrainer
from unitmargin.training.train import EpochRecord, TrainResult, train
from unitmargin.training.trainer import Trainer

EPOCHS = 4

BATCHES = 3
"""Batches an epoch of the runs below: 40 samples in batches of 16."""


def blobs(n: int, shape: tuple[int, ...], classes: int = 3) -> tuple[Tensor, Tensor]:
    """Well separated round clouds, the same on every import."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % classes
    centres = 1.5 * torch.randn(classes, *shape, generator=generator)
    return centres[labels] + 0.1 * torch.randn(n, *shape, generator=generator), labels


DATA = {
    "dense_ugnn": blobs(40, (6,)),
    "ugnn": blobs(40, (1, 4, 4)),
    "mixing_ugnn": blobs(40, (8, 4, 4)),
}


def dense() -> Classifier:
    torch.manual_seed(1)
    return DenseUGNN((6,), 3, head="bounded", linear="bjorck")


def convolutional() -> Classifier:
    """All kinds of parameters: free, real and complex on the manifold."""
    torch.manual_seed(1)
    options = {"conv": "manifold", "linear": "manifold", "kernel_size": 5, "depth": 1}
    return build_model("ugnn", (1, 4, 4), 3, **options)


def mixing() -> Classifier:
    """Stacks of several matrices, some of which move in turns."""
    torch.manual_seed(1)
    plan = ["window 2", "position", "group 1", "shift"]
    return build_model("mixing_ugnn", (8, 4, 4), 3, plan=plan)


MODELS: dict[str, Callable[[], Classifier]] = {
    "dense_ugnn": dense, "ugnn": convolutional, "mixing_ugnn": mixing,
}  # fmt: skip

CHANGES: dict[str, dict[str, Any]] = {
    "dense_ugnn": {},
    "ugnn": {"crop": 1, "flip": True},
    "mixing_ugnn": {"interval": 3, "precision": "bfloat16", "flip": True, "evaluate_every": 2},
}


def run(kind: str, checkpoint: Path | None = None, **changes: Any) -> TrainResult:
    options = TrainingOptions(
        epochs=EPOCHS, batch_size=16, learning_rate=1e-2, schedule="one_cycle"
    )
    data, changes = DATA[kind], CHANGES[kind] | changes
    return train(MODELS[kind](), data, data, options, checkpoint=checkpoint, quiet=True, **changes)


def same_weights(first: Classifier, second: Classifier) -> bool:
    mine, other = first.state_dict(), second.state_dict()
    return mine.keys() == other.keys() and all(torch.equal(mine[k], other[k]) for k in mine)


def without_seconds(result: TrainResult) -> list[tuple[float, ...]]:
    timed = ("seconds", "rate", "waiting", "memory", "core_seconds")
    names = [name for name in EpochRecord.__dataclass_fields__ if name not in timed]
    return [tuple(getattr(record, name) for name in names) for record in result.history]


# --- Schedules ---------------------------------------------------------------------------------


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="schedule must be one of"):
        run("dense_ugnn", schedule="cosine")


def test_the_rate_follows_the_schedule_by_batches() -> None:
    result = run("dense_ugnn", schedule="linear")
    last_steps = [(epoch * BATCHES + BATCHES - 1) / (EPOCHS * BATCHES) for epoch in range(EPOCHS)]
    expected = [1e-2 * (1 - progress) for progress in last_steps]
    assert [record.learning_rate for record in result.history] == pytest.approx(expected)


def test_steps_end_a_training_within_an_epoch() -> None:
    """Four steps are an epoch and a third; the schedule runs to their end."""
    result = run("dense_ugnn", schedule="linear", steps=BATCHES + 1)
    rates = [record.learning_rate for record in result.history]
    assert rates == pytest.approx([1e-2 * (1 - 2 / 4), 1e-2 * (1 - 3 / 4)])


def test_whole_epochs_of_steps_are_those_epochs() -> None:
    assert same_weights(run("ugnn", steps=EPOCHS * BATCHES).model, run("ugnn").model)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_steps_resume_bit_by_bit(tmp_path: Path, optimizer: str) -> None:
    options = {"steps": 2 * BATCHES + 2, "optimizer": optimizer}
    whole = run("ugnn", **options)
    file = tmp_path / "checkpoint.safetensors"

    class Interrupt(Exception):
        pass

    def stop(history: Sequence[EpochRecord]) -> None:
        if len(history) == 2:
            raise Interrupt

    with pytest.raises(Interrupt):
        run("ugnn", file, after_epoch=stop, **options)
    assert same_weights(run("ugnn", file, **options).model, whole.model)


# --- Learning ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_it_learns_what_can_be_learnt(kind: str) -> None:
    result = run(kind, epochs=40, learning_rate=2e-2, manifold_rate=2e-2, crop=0, flip=False)
    first, last = result.history[0], result.history[-1]
    assert last.loss < first.loss
    assert last.clean_accuracy >= 0.95
    assert last.certified_accuracy >= 0.9
    assert last.orthogonality_error <= 1e-5
    assert [record.epoch for record in result.history] == list(range(1, 41))


def test_sgd_by_hand() -> None:
    """One step of SGD: the gradient plus the decay, no momentum yet."""
    x, y = DATA["dense_ugnn"]
    model = dense()
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    torch.nn.functional.multi_margin_loss(model(x[order]), y[order], margin=0.5).backward()
    expected = {
        name: parameter.detach() - 0.1 * (parameter.grad + 0.2 * parameter.detach())
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    options = {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.2, "momentum": 0.9}
    result = run(
        "dense_ugnn", epochs=1, batch_size=40, schedule="constant", loss="multi_margin", **options
    )
    trained = dict(result.model.named_parameters())
    for name, value in expected.items():
        torch.testing.assert_close(trained[name].detach(), value, rtol=0, atol=1e-7)


def test_two_epochs_by_hand() -> None:
    """The loop is what its text says: order by seed and epoch, one Adam step a batch."""
    x, y = DATA["dense_ugnn"]
    model = dense()
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for epoch in range(2):
        generator = torch.Generator().manual_seed(7 * 1_000_003 + epoch)
        total = 0.0
        for index in torch.randperm(40, generator=generator).split(16):
            loss = torch.nn.functional.multi_margin_loss(model(x[index]), y[index], margin=0.5)
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += float(loss.detach()) * len(index)
        losses.append(total / 40)
    result = run("dense_ugnn", epochs=2, seed=7, schedule="constant", loss="multi_margin")
    model.domain.copy_(torch.tensor(Samples(x, y).domain, dtype=torch.float64))
    assert same_weights(result.model, model)
    assert [record.loss for record in result.history] == pytest.approx(losses, rel=1e-12)


def test_accuracies_are_counted_from_the_margins() -> None:
    x, y = torch.randn(100, 6), torch.randint(3, (100,))
    normalize = Normalize(torch.zeros(6), torch.full((6,), 0.5))
    model = DenseUGNN((6,), 3, normalize=normalize)
    margin = margins(model(x), y)
    expected = ((margin > 0).double().mean(), (margin > 2 * HEADLINE_EPSILON).double().mean())
    assert evaluate(fixed_network(model), Samples(x, y)) == tuple(map(float, expected))
    assert 0 < expected[1] < expected[0]


def test_the_orthogonality_error_is_the_worst_layer() -> None:
    model = build_model("dense_ugnn", (6,), 3, linear="manifold")
    assert largest_error(network_rows(fixed_network(model)), GNP) <= 1e-6
    with torch.no_grad():
        model.features[3].raw[0] *= 1.25
    assert largest_error(network_rows(fixed_network(model)), GNP) == pytest.approx(0.25, abs=1e-6)


def test_it_prints_one_line_an_epoch_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    data = DATA["dense_ugnn"]
    train(dense(), data, data, epochs=2, batch_size=16)
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("epoch ")]
    assert [line.split("  ")[0] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    assert "certified@36/255" in lines[0]
    train(dense(), data, data, epochs=1, batch_size=16, quiet=True)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_log_holds_no_progress_bar(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("sys.stderr", screen)
    data = blobs(40, (6,))
    train(dense(), data, data, epochs=1, batch_size=16)
    assert ("epoch 1:" in screen.getvalue()) == terminal


def test_an_epoch_is_evaluated_where_its_turn_has_come_and_at_the_end() -> None:
    history = run("dense_ugnn", epochs=5, evaluate_every=2).history
    evaluated = [row.epoch for row in history if row.clean_accuracy is not None]
    assert evaluated == [2, 4, 5]
    bare = history[0]
    assert (bare.certified_accuracy, bare.orthogonality_error) == (None, None)
    assert "clean" not in bare.line(5)
    assert "loss" in bare.line(5)
    every = run("dense_ugnn", epochs=5).history
    assert [row.loss for row in every] == [row.loss for row in history]


def test_two_epochs_show_each_image_both_ways() -> None:
    inputs, labels = DATA["ugnn"]
    options = TrainingOptions(epochs=4, flip=True, batch_size=16)
    samples = Samples(inputs, labels)
    trainer = SampleTrainer(MODELS["ugnn"](), samples, options, Processes(), quiet=True)
    seen = []
    for epoch in range(3):
        trainer.mirrored = trainer._mirrored(epoch)
        seen.append(trainer._batch(torch.arange(40), torch.Generator()).inputs)
    assert torch.equal(seen[0], seen[2])
    mirrored = (seen[0] == inputs.flip(3)).flatten(1).all(1)
    assert torch.equal(seen[0], torch.where(mirrored[:, None, None, None], inputs.flip(3), inputs))
    assert torch.equal(seen[1], seen[0].flip(3))
    assert 8 < int(mirrored.sum()) < 32


def test_the_callers_random_numbers_do_not_matter() -> None:
    torch.manual_seed(3)
    first = run("ugnn")
    torch.manual_seed(4)
    assert same_weights(first.model, run("ugnn").model)
    assert not same_weights(first.model, run("ugnn", seed=1).model)


# --- Resuming ----------------------------------------------------------------------------------


def interrupt_at(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """Ctrl-C during step n, after its gradients and before its update."""
    original, calls = Trainer._step, [0]

    def interrupted(self: Any, *arguments: Any) -> Tensor:
        calls[0] += 1
        if calls[0] == n:
            raise KeyboardInterrupt
        loss: Tensor = original(self, *arguments)
        return loss

    monkeypatch.setattr(Trainer, "_step", interrupted)


@pytest.mark.parametrize("n", [2, BATCHES + 1, 2 * BATCHES + 1, 2 * BATCHES + 2, EPOCHS * BATCHES])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.usefixtures("multiplied")
def test_an_interrupted_run_ends_with_the_same_weights(
    kind: str, n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(kind)
    checkpoint = tmp_path / "checkpoint.safetensors"
    with monkeypatch.context() as patch:
        interrupt_at(patch, n)
        with pytest.raises(KeyboardInterrupt):
            run(kind, checkpoint)
    assert checkpoint.is_file() == (n > BATCHES)
    resumed = run(kind, checkpoint)
    assert same_weights(whole.model, resumed.model)
    assert without_seconds(whole) == without_seconds(resumed)


def test_a_run_may_be_interrupted_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    for n in (BATCHES + 2, BATCHES + 1):
        with monkeypatch.context() as patch:
            interrupt_at(patch, n)
            with pytest.raises(KeyboardInterrupt):
                run("ugnn", checkpoint)
    assert same_weights(run("ugnn").model, run("ugnn", checkpoint).model)


def test_a_finished_checkpoint_trains_no_further(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    first = run("dense_ugnn", checkpoint)
    again = run("dense_ugnn", checkpoint)
    assert same_weights(first.model, again.model)
    assert first.history == again.history


def test_a_checkpoint_of_other_options_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    run("dense_ugnn", checkpoint)
    with pytest.raises(ValueError, match="was trained with batch_size = 16, not 8"):
        run("dense_ugnn", checkpoint, batch_size=8)


# --- Errors ------------------------------------------------------------------------------------


def test_an_unknown_option_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="epoch is no option, known: epochs, .* mean 'epochs'"):
        run("dense_ugnn", epoch=3)


def test_a_loss_that_is_not_finite_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"

    loss = TrainingOptions().loss
    monkeypatch.setitem(LOSSES, loss, lambda logits, labels: logits.sum() * math.nan)
    with pytest.raises(FloatingPointError, match="loss must be finite, got nan in epoch 1"):
        run("dense_ugnn", checkpoint, batch_size=40)
    with pytest.raises(FloatingPointError, match="cannot be orthogonalised .* lower the learning"):
        run("dense_ugnn", checkpoint)
    assert not checkpoint.exists()


# --- The run folder ----------------------------------------------------------------------------

TINY = Recipe(
    name="tiny",
    data=DataOptions(name="digits", limit=60),
    model=ModelOptions(name="dense_ugnn", options={"hidden": [12]}),
    training=TrainingOptions(epochs=2, batch_size=32),
)


def test_a_run_writes_weights_and_history_and_no_checkpoint(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    message = train_run(TINY, folder)
    assert message.startswith("train: 2 epochs, clean ")
    names = {file.name for file in folder.path.iterdir()}
    assert names == {".lock", "recipe.toml", "weights.safetensors", "history.csv"}
    rows = read_rows(folder.history_file)
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert folder.history()[1].loss == float(rows[1]["loss"])
    assert f"clean {float(rows[1]['clean_accuracy']):.4f}" in message
    dataset = open_dataset(TINY)
    by_hand = train(
        open_model(TINY, dataset), dataset.train, dataset.test, TINY.training, quiet=True
    )
    assert [float(row["loss"]) for row in rows] == [record.loss for record in by_hand.history]


def test_a_log_is_told_of_each_epoch_and_of_the_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    @contextmanager
    def fake(path: Path, options: Mapping[str, Any]) -> Iterator[Any]:
        told.append((path, options))
        yield told.append
        told.append("end")

    monkeypatch.setitem(LOGS, "wandb", fake)
    installed = ModuleSpec("wandb", None, origin="wandb/__init__.py")
    monkeypatch.setattr("unitmargin.training.logs.find_spec", lambda _: installed)
    folder = RunFolder(tmp_path / "run")
    train_run(TINY, folder, log="wandb")
    (path, options), *records, end = told
    assert (path, records, end) == (folder.path, list(folder.history()), "end")
    assert Recipe(**options) == TINY


def test_a_log_without_its_package_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unitmargin.training.logs.find_spec", lambda _: None)
    with pytest.raises(ImportError, match="wandb must be installed"):
        train_run(TINY, RunFolder(tmp_path / "run"), log="wandb")
    assert not (tmp_path / "run").exists()


def test_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    train_run(TINY, folder)
    before = folder.weights_file.read_bytes()
    assert "is already there" in train_run(TINY, folder)
    assert folder.weights_file.read_bytes() == before
    with pytest.raises(RunError, match="run of another recipe"):
        train_run(Recipe(name="tiny"), folder)


@pytest.mark.parametrize(
    "recipe",
    [
        TINY.changed(data={"name": "npz", "path": "none.npz"}),
        TINY.changed(model={"options": {"hidden": [65]}}),
        TINY.changed(model={"options": {"linear": "bjorck"}}, training={"precision": "tf32"}),
    ],
    ids=["data", "model", "precision"],
)
def test_a_run_that_cannot_start_writes_nothing(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none.npz|J J\\^T = I|tf32 needs"):
        train_run(recipe, RunFolder(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": -1}, "epochs must be greater than 0, got -1"),
        ({"learning_rate": math.nan}, "learning_rate must be a finite number, got nan"),
        ({"loss": "hinge"}, "loss must be one of multi_margin, .* got 'hinge'"),
    ],
)
def test_changes_are_judged_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        run("dense_ugnn", **changes)
    assert type(raised.value) is ValueError
    assert "\n" not in str(raised.value)


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, broken = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "broken")
    train_run(TINY, whole)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            train_run(TINY, broken)
    assert broken.checkpoint_file.is_file()
    assert not broken.weights_file.exists()
    assert [row["epoch"] for row in read_rows(broken.history_file)] == ["1"]
    train_run(TINY, broken)
    assert [row["epoch"] for row in read_rows(broken.history_file)] == ["1", "2"]
    mine, other = load_file(broken.weights_file), load_file(whole.weights_file)
    assert mine.keys() == other.keys()
    assert all(torch.equal(mine[name], other[name]) for name in mine)
    assert not broken.checkpoint_file.exists()


TAUGHT = TINY.changed(training={"teacher_epochs": 5, "teacher_width": 8, "batch_size": 16})


def test_a_run_interrupted_in_its_teacher_belongs_to_its_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "broken")
    train_run(TAUGHT, whole)
    assert not whole.teacher_file.exists()
    with monkeypatch.context() as patch:
        interrupt_at(patch, 6)
        with pytest.raises(KeyboardInterrupt):
            train_run(TAUGHT, broken)
    assert broken.teacher_file.is_file()
    assert not broken.checkpoint_file.exists()
    with pytest.raises(RunError, match="run of another recipe"):
        train_run(TAUGHT.changed(training={"seed": 1}), broken)
    assert broken.recipe() == TAUGHT
    train_run(TAUGHT, broken)
    mine, other = load_file(broken.weights_file), load_file(whole.weights_file)
    assert all(torch.equal(mine[name], other[name]) for name in mine)
    assert not broken.teacher_file.exists()


def test_minutes_are_timed_anew_where_nothing_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with a recipe alone, as an interruption in the first epoch leaves it."""
    folder = RunFolder(tmp_path)
    folder.start(TINY)
    monkeypatch.setattr("unitmargin.steps.train.steps_within", lambda *given: 3)
    assert train_run(TINY, folder, minutes=0.1).startswith("train: 3 steps")
    monkeypatch.setattr("unitmargin.steps.train.steps_within", lambda *given: 7)
    assert "is already there" in train_run(TINY, folder, minutes=0.1)
    assert folder.recipe().training.steps == 3


def test_minutes_leave_a_run_that_was_begun_by_epochs_its_length(tmp_path: Path) -> None:
    folder, recipe = RunFolder(tmp_path), TINY.changed(training={"schedule": "halving"})
    train_run(recipe.overridden(epochs=1), folder)
    before = folder.weights_file.read_bytes()
    assert "is already there" in train_run(recipe.overridden(epochs=5), folder, minutes=0.1)
    assert (folder.recipe().training.epochs, folder.weights_file.read_bytes()) == (1, before)


def test_samples_to_be_attacked_are_no_other_training(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    train_run(TINY, folder)
    before = folder.weights_file.read_bytes()
    assert "is already there" in train_run(TINY.changed(verify_samples=7), folder)
    assert (folder.recipe().verify_samples, folder.weights_file.read_bytes()) == (7, before)


def test_minutes_change_nothing_but_the_number_of_steps(tmp_path: Path) -> None:
    """Steps are timed on a network of its own, drawn as the one that is trained."""
    timed, counted = RunFolder(tmp_path / "timed"), RunFolder(tmp_path / "counted")
    train_run(TINY, timed, minutes=1e-6)
    assert timed.recipe().training.steps == 1
    train_run(timed.recipe(), counted)
    mine, other = (load_file(run.weights_file) for run in (timed, counted))
    assert all(torch.equal(mine[name], other[name]) for name in other)


@pytest.mark.parametrize(
    ("changes", "minutes", "message"),
    [
        ({"crop": 1}, 0.1, "crop and flip must be left out for inputs that are no images"),
        ({}, 0.0, "minutes must be positive and finite, got 0.0; leave it out for epochs"),
    ],
)
def test_a_recipe_is_judged_before_its_steps_are_timed(
    changes: dict[str, Any], minutes: float, message: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    model = {"name": "dense_ugnn", "options": {"hidden": [2]}}
    recipe = TINY.changed(data={"name": "moons"}, model=model, training=changes)
    monkeypatch.delattr("unitmargin.steps.train.steps_within")
    with pytest.raises(ValueError, match=message):
        train_run(recipe, RunFolder(tmp_path / "run"), minutes=minutes)
    assert not (tmp_path / "run").exists()
