"""What the loader delivers against what steps consume: samples a second of processor time.

    python benchmarks/loader.py [--recipe cifar10-fast] [--side 32] [--samples 30000] [--batches 20]
        [--folder FOLDER] [--json FILE]

Samples are random bytes in a file that is mapped, gathered in a random order, cropped and mirrored
as the recipe says; a file is mapped if it has 2**26 bytes. Processor time is that of all threads of
the process, so that a busy machine changes the ratio little; where cores are free, the loader works
beside the step.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from timing import interleaved_medians

from unitmargin.data import load_dataset
from unitmargin.data.arrays import LARGE
from unitmargin.foundation.files import write_json
from unitmargin.runs.opening import open_model
from unitmargin.runs.provenance import provenance
from unitmargin.runs.recipe import Recipe, read_recipe
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.training.memory import retained_memory
from unitmargin.training.processes import Processes
from unitmargin.training.sample_trainer import SampleTrainer
from unitmargin.training.share import Share

CHANNELS = 3

WARM_UP = 2
"""Batches before the clock starts: first touches of memory cost more than the work itself."""


def needed(side: int) -> int:
    """How many images make a file that is mapped."""
    return math.ceil(LARGE / (CHANNELS * side**2))


def write_samples(folder: Path, count: int, side: int) -> Path:
    """A file of random images."""
    random = np.random.default_rng(0)
    images = random.integers(256, size=(count, CHANNELS, side, side), dtype=np.uint8)
    labels = random.integers(10, size=count)
    file = folder / "random.npz"
    np.savez(file, x_train=images, y_train=labels, x_test=images[:100], y_test=labels[:100])
    return file


def open_trainer(recipe: Recipe, file: Path, cache: Path) -> SampleTrainer:
    dataset = load_dataset("npz", file, cache=cache)
    model = open_model(recipe, dataset)
    return SampleTrainer(model, dataset.train, recipe.training, Processes(), quiet=True)


def endless(trainer: SampleTrainer) -> Iterator[Share]:
    epoch = 0
    while True:
        yield from trainer._drawn(epoch)
        epoch += 1


def timed(call: Callable[[], object]) -> Callable[[], float]:
    """Processor seconds of a call."""

    def seconds() -> float:
        started = time.process_time()
        call()
        return time.process_time() - started

    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recipe", default="cifar10-fast")
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--samples", type=int, default=30000)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="for the samples; default: a temporary one")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.samples < needed(options.side):
        parser.error(
            f"samples must be at least {needed(options.side)} of side {options.side} to be mapped, "
            f"got {options.samples}; pass --samples {needed(options.side)}"
        )
    try:
        recipe = read_recipe(embedded_recipe(options.recipe))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory(dir=options.folder) as name, retained_memory():
        folder = Path(name)
        file = write_samples(folder, options.samples, options.side)
        trainer = open_trainer(recipe, file, folder / "cache")
        shares = endless(trainer)
        held = next(shares)
        trainer.model.train()
        calls = {
            "loader": timed(lambda: list(islice(shares, 1))),
            "step": timed(lambda: trainer._step(held, progress=0.1)),
        }
        medians = interleaved_medians(calls, WARM_UP, options.batches)
    rates = {what: held.batch / seconds for what, seconds in medians.items()}
    ratio = rates["loader"] / rates["step"]
    print(f"{options.recipe}, {options.side} x {options.side}, batch {held.batch}, processor time:")
    for what, rate in rates.items():
        print(f"  {what}: {rate:.0f} samples/s")
    print(f"  loader / step: {ratio:.1f}")
    if options.json:
        settings = {"recipe": options.recipe, "side": options.side, "batch": held.batch}
        write_json(options.json, {**provenance(), **settings, **rates, "loader_over_step": ratio})


if __name__ == "__main__":
    main()
