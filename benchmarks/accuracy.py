"""Accuracy of recipes at equal core-seconds, on training images that are held out.

    python benchmarks/accuracy.py RECIPE... --data IMAGES [--seconds 60 | --steps N] [--seeds 2]
        [--set training.temperature=0.3 model.plan='["fold 4", "group 3"]'] [--json-lines FILE]

Each recipe is trained with as many steps as take so many core-seconds, counted by the processor
time of the steps alone, or with ``--steps``, on all training images but ``HELD_OUT``, and judged on
those; test images are not touched. Radii are those of the evaluation after an epoch: layers other
than the head and the input normalisation are taken to be 1-Lipschitz. A teacher comes on top, and
its core-seconds are those of the row. ``--set`` changes every recipe. Run it with
OMP_NUM_THREADS=1: core-seconds of threads that wait count too.
"""

import argparse
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from unitmargin.auditing.audit import largest_error, network_rows
from unitmargin.certificates.accuracy import certified_share
from unitmargin.data import Dataset, Samples
from unitmargin.frozen import FixedNetwork
from unitmargin.layers.promises import GNP
from unitmargin.models import fixed_network
from unitmargin.runs.opening import open_dataset, open_model
from unitmargin.runs.provenance import provenance
from unitmargin.runs.recipe import Recipe, read_recipe
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.training.evaluation import right_and_radius
from unitmargin.training.memory import retained_memory
from unitmargin.training.processes import Processes
from unitmargin.training.sample_trainer import SampleTrainer
from unitmargin.training.teacher import teach

HELD_OUT = 5_000
"""Training images for choices: their standard error is 0.7 points."""

SPLIT_SEED = 12345

EPSILONS = (0.0, 36 / 255, 72 / 255, 108 / 255)

TIMED_STEPS = 32
"""Steps from which the length of a training is computed, after as many that warm up."""


class Row(NamedTuple):
    """What a training came to: core-seconds, shares certified at each radius, held out and seen."""

    name: str
    seed: int
    steps: int
    core_seconds: float
    held_out: list[float]
    seen: list[float]
    orthogonality_error: float


def split(dataset: Dataset) -> tuple[Samples, Samples]:
    """Training images without those held out, and those."""
    generator = torch.Generator().manual_seed(SPLIT_SEED)
    order = torch.randperm(len(dataset.train), generator=generator)
    kept, held = order[:-HELD_OUT], order[-HELD_OUT:]
    return _chosen(dataset.train, kept), _chosen(dataset.train, held)


def _chosen(samples: Samples, index: torch.Tensor) -> Samples:
    return replace(samples, inputs=samples.inputs[index], labels=samples.labels[index])


def shares(network: FixedNetwork, samples: Samples) -> list[float]:
    """Shares of the samples that are right with a radius above each epsilon."""
    right, radius = right_and_radius(network, samples)
    return [certified_share(right, radius, epsilon) for epsilon in EPSILONS]


def steps_within(recipe: Recipe, dataset: Dataset, samples: Samples, seconds: float) -> int:
    """As many steps as take so many core-seconds."""
    trial = recipe.changed(training={"steps": 2 * TIMED_STEPS})
    trainer = SampleTrainer(
        open_model(trial, dataset), samples, trial.training, Processes(), quiet=True
    )
    trainer.steps, started = TIMED_STEPS, time.process_time()
    trainer.epoch(0)
    trainer.steps, started = TIMED_STEPS, time.process_time()
    trainer.epoch(0)
    return max(1, round(seconds * TIMED_STEPS / (time.process_time() - started)))


def train(recipe: Recipe, dataset: Dataset, seconds: float, steps: int | None) -> Row:
    kept, held = split(dataset)
    steps = steps or steps_within(recipe, dataset, kept, seconds)
    recipe = recipe.changed(training={"steps": steps})
    model = open_model(recipe, dataset)
    trainer = SampleTrainer(model, kept, recipe.training, Processes(), quiet=True)
    started = time.process_time()
    if recipe.training.teacher_epochs:
        device = torch.device("cpu")
        trainer.lesson = teach(kept, model.n_classes, recipe.training, Processes(), device)
    for epoch in range(trainer.epochs):
        trainer.epoch(epoch)
    core_seconds = time.process_time() - started
    network = fixed_network(model.eval())
    seen = _chosen(kept, torch.arange(HELD_OUT))
    return Row(
        recipe.name,
        recipe.training.seed,
        steps,
        core_seconds,
        shares(network, held),
        shares(network, seen),
        largest_error(network_rows(network), GNP),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipes", nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--set", nargs="*", default=[], dest="settings")
    parser.add_argument("--json-lines", type=Path)
    arguments = parser.parse_args()
    try:
        recipes = [
            read_recipe(embedded_recipe(name), arguments.settings).overridden(data=arguments.data)
            for name in arguments.recipes
        ]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for name, chosen in zip(arguments.recipes, recipes, strict=True):
        rows = []
        for seed in range(arguments.seeds):
            recipe = chosen.overridden(seed=seed)
            with retained_memory():
                dataset = open_dataset(recipe)
                rows.append(train(recipe, dataset, arguments.seconds, arguments.steps))
            if arguments.json_lines:
                line = rows[-1]._asdict() | {"settings": arguments.settings} | provenance()
                with arguments.json_lines.open("a") as file:
                    file.write(json.dumps(line) + "\n")
        print(summary(name, rows), flush=True)


def summary(name: str, rows: list[Row]) -> str:
    """Means over the seeds, in percent."""

    def mean(values: list[list[float]]) -> str:
        return " / ".join(
            f"{100 * statistics.mean(column):.1f}" for column in zip(*values, strict=True)
        )

    seconds = statistics.mean(row.core_seconds for row in rows)
    error = max(row.orthogonality_error for row in rows)
    return (
        f"{name}: {seconds:.0f} core-seconds, {rows[0].steps} steps, {len(rows)} seeds: held out "
        f"{mean([row.held_out for row in rows])}, seen {mean([row.seen for row in rows])}, "
        f"|WW'-I| {error:.1e}"
    )


if __name__ == "__main__":
    main()
