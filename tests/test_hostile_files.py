"""Files that somebody made to be misread: loader and checker end soon, in one line, and agree."""

import json
import os
import random
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from claims import EXAMPLES, certified
from hostile import layer, network, numbers, read_parts, small
from hostile_draws import damaged, models
from hostile_models import ENTRIES, MODELS, TEXTS
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from unitmargin.checker import CheckError, strict
from unitmargin.checker.network import Network
from unitmargin.checker.reading import HEADS, read_model
from unitmargin.frozen import ModelFileError, limits, load
from unitmargin.layers.promises import HEAD_PROMISES
from unitmargin.runs.folder import RunFolder

PATIENCE = 60.0
"""Seconds that a file may take on a busy machine; the process itself counts five of its own."""

QUICK, ALL = 100, 1000
"""Mutations of each kind of file in `make test`, and nightly."""

SEEDS = ("dense", "pooled", "pooled by norms", "by FFT", "residual", "mixed", "reflected")
"""Networks whose files are mutated; together they have layers of all kinds."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("made")
    return {name: certified(folder / name.replace(" ", "_"), EXAMPLES[name]()) for name in SEEDS}


class Worker:
    """The process that reads; see hostile_worker.py."""

    def __init__(self, warm: Path) -> None:
        root = Path(__file__).parents[1]
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("hostile_worker.py")), str(warm)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"},
        )
        self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, "it hangs"
        line = self.process.stdout.readline()
        assert line, f"it died with status {self.process.wait()}"
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, folder: RunFolder) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{folder.path}\n".encode())
        self.process.stdin.flush()
        return self.answer()


@pytest.fixture(scope="module")
def worker(made: dict[str, RunFolder]) -> Iterator[Worker]:
    worker = Worker(made["pooled"].path)
    yield worker
    worker.process.kill()
    worker.process.wait()
    for stream in (worker.process.stdin, worker.process.stdout):
        assert stream is not None
        stream.close()


def require_sound(answer: dict[str, Any]) -> None:
    """Ends in a result or a line, and loader and checker take the same models."""
    for word in ("load", "read", "check", "table", "agree"):
        assert answer.get(word, "taken") in ("taken", "refused"), answer
    assert answer["load"] == answer["read"], answer
    assert answer.get("agree", "taken") == "taken", answer
    assert answer["MB"] < 1000, answer


def require_same(path: Path, taken: bool) -> None:
    """Both readers take the file, or both refuse it in one line."""
    for read, refusal in (
        (lambda: load(path), ModelFileError),
        (lambda: Network(read_model(path), "float64"), CheckError),
    ):
        if taken:
            read()
        else:
            with pytest.raises(refusal) as refused:
                read()
            assert "\n" not in str(refused.value)
            assert len(str(refused.value)) <= 1100


@pytest.mark.parametrize("name", MODELS)
def test_both_readers_judge_a_model_alike(name: str, tmp_path: Path) -> None:
    parts, taken = MODELS[name]
    require_same(parts.write(tmp_path / "model.safetensors"), taken)


@pytest.mark.parametrize("entry", ENTRIES)
def test_both_readers_judge_an_entry_alike(entry: str, tmp_path: Path) -> None:
    for text, taken in ENTRIES[entry].items():
        parts = small().with_header(**{entry: text})
        require_same(parts.write(tmp_path / "model.safetensors"), taken)


@pytest.mark.parametrize("name", TEXTS)
def test_both_readers_judge_a_header_alike(name: str, tmp_path: Path) -> None:
    change, taken = TEXTS[name]
    require_same(small().write(tmp_path / "model.safetensors", change), taken)


def test_a_header_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for length in (2**62, 2**22 + 1):
        path.write_bytes(length.to_bytes(8, "little") + b"{" + b" " * (2**22 + 8))
        require_same(path, False)
    path.write_bytes(b"")
    require_same(path, False)


def test_the_limits_of_both_readers_are_the_same() -> None:
    assert set(HEADS) == set(HEAD_PROMISES)
    names = [name for name in vars(strict) if name.isupper()]
    assert len(names) >= 8
    for name in names:
        assert getattr(limits, name) == getattr(strict, name), name


def run_many(count: int, begin: int, test: Callable[[st.DataObject], None]) -> None:
    """``count`` draws from a fixed seed."""
    phases = (Phase.generate, Phase.shrink)
    kept = settings(
        max_examples=count, deadline=None, database=None, phases=phases,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    seed(begin)(kept(given(st.data())(test)))()


@pytest.mark.parametrize("count", [QUICK, pytest.param(ALL, marks=pytest.mark.nightly)])
def test_a_changed_model_is_judged_alike(
    count: int, made: dict[str, RunFolder], worker: Worker, tmp_path: Path
) -> None:
    """Structurally, with the hash of its content, so that it passes that of the file."""
    folder = RunFolder(shutil.copytree(made["pooled"].path, tmp_path / "run"))
    known = {name: read_parts(run.model_file) for name, run in made.items()}
    met = {"taken": 0, "refused": 0}

    def judge(data: st.DataObject) -> None:
        parts, change = data.draw(models(known[data.draw(st.sampled_from(SEEDS))]))
        parts.write(folder.model_file, change)
        answer = worker.ask(folder)
        require_sound(answer)
        met[answer["load"]] += 1

    run_many(count, count, judge)
    assert min(met.values()) >= count // 30, met


@pytest.mark.parametrize("count", [QUICK, pytest.param(ALL, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("what", ["model", "certificates", "facts", "inputs"])
def test_a_damaged_file_ends_in_one_line(
    what: str, count: int, made: dict[str, RunFolder], worker: Worker, tmp_path: Path
) -> None:
    folder = RunFolder(shutil.copytree(made["pooled"].path, tmp_path / "run"))
    file = {
        "model": folder.model_file,
        "certificates": folder.certificates_file,
        "facts": folder.certificate_facts_file,
        "inputs": folder.inputs_file,
    }[what]
    content = file.read_bytes()

    def judge(data: st.DataObject) -> None:
        file.write_bytes(data.draw(damaged(content)))
        require_sound(worker.ask(folder))

    run_many(count // 2, random.Random(what).randrange(1000), judge)
    file.write_bytes(content)
    answer = worker.ask(folder)
    assert [answer[word] for word in ("load", "read", "check", "table")] == ["taken"] * 4


LARGEST = {
    "layers on small maps": (
        lambda: network(
            *[layer("circular_convolution", map_size=[8, 8])] * 990, layer("flatten"),
            in_shape=(1, 8, 8), inputs=64,
        ),
        {"real": [4, 1, 1], "pairs": [30, 2, 1, 1], "bias": [1]},
    ),
    "layers on long maps": (
        lambda: network(
            *[layer("circular_convolution", map_size=[1, 1024])] * 900, layer("flatten"),
            in_shape=(1, 1, 1024), inputs=1024,
        ),
        {"real": [2, 1, 1], "pairs": [511, 2, 1, 1], "bias": [1]},
    ),
    "a large map": (
        lambda: network(
            layer("circular_convolution", map_size=[1024, 512]), layer("flatten"),
            in_shape=(1, 1024, 512), inputs=1024 * 512,
        ),
        {"real": [4, 1, 1], "pairs": [(1024 * 512 - 4) // 2, 2, 1, 1], "bias": [1]},
    ),
    "lists": (lambda: small().with_header(facts=f'{{"x": [{",".join(["[]"] * 1_300_000)}]}}'), {}),
    "names": (lambda: small().with_header(classes=json.dumps(["a"] * 600_000)), {}),
    "long numbers": (
        lambda: small().with_header(facts=f'{{"x": [{",".join(["9" * 4000] * 950)}]}}'), {},
    ),
    "tensors": (
        lambda: small()._replace(tensors={f"{i}.x": numbers([0]) for i in range(40_000)}), {},
    ),
}  # fmt: skip
"""Files as large as the limits let them be; shapes of the tensors of each layer but the head."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_files_take_little_time_and_memory(
    name: str, made: dict[str, RunFolder], worker: Worker, tmp_path: Path
) -> None:
    folder = RunFolder(shutil.copytree(made["pooled"].path, tmp_path / "run"))
    build, shapes = LARGEST[name]
    parts = build()
    layers = len(json.loads(parts.header["layers"])) - 2
    own = {
        f"{index}.{part}": numbers(shape, 0.1)
        for index in range(layers if shapes else 0)
        for part, shape in shapes.items()
    }
    parts._replace(tensors=own | parts.tensors).write(folder.model_file)
    answer = worker.ask(folder)
    answer.pop("agree", None)
    require_sound(answer)
