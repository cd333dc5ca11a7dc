"""Benchmarks say what they take, and tell what they measured; nothing is timed here."""

import itertools
import json
import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import torch
from certified import certified, write_made_searches, write_made_weights
from searches import made_search

from unitmargin.data import Samples
from unitmargin.frozen import Dense, FixedNetwork
from unitmargin.layers.normalize import Normalize
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.history import write_history
from unitmargin.runs.recipe import read_recipe
from unitmargin.runs.shipped import embedded_recipe
from unitmargin.training.epochs import EpochRecord

FOLDER = Path(__file__).parents[1] / "benchmarks"

SCRIPTS = sorted(file.stem for file in FOLDER.glob("*.py") if "__main__" in file.read_text())

COMMAND = re.compile(r"^ *python benchmarks/\w+\.py((?:.|\n(?! *python) +(?=\S))*)", re.MULTILINE)
"""A command line of a docstring, with the lines that continue it."""

RESULTS = FOLDER / "results"


@cache
def script(name: str) -> Any:
    """A benchmark as a module; nothing of its folder stays on the path or among the modules."""
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        spec.loader.exec_module(module)
    for beside in FOLDER.glob("*.py"):
        if getattr(sys.modules.get(beside.stem), "__file__", None) == str(beside):
            del sys.modules[beside.stem]
    return module


class Parsed(Exception):
    """Ends a script where it reads its arguments; it has the parser."""


def parser_of(name: str) -> ArgumentParser:
    def end(parser: ArgumentParser) -> None:
        raise Parsed(parser)

    module = script(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArgumentParser, "parse_args", end)
        with pytest.raises(Parsed) as found:
            module.main()
    parser: ArgumentParser = found.value.args[0]
    return parser


def shown(text: str) -> list[list[str]]:
    """The arguments of each command line of a docstring, one list for each choice of values;
    1 stands for words in capitals, which any type takes."""
    found = []
    for command in COMMAND.findall(text):
        words = [word.removeprefix("[").removesuffix("...") for word in shlex.split(command)]
        words = [word[:-1] if word.count("]") > word.count("[") else word for word in words]
        choices = [("1" if word.isupper() else word).split("|") for word in words if word != "|"]
        found += [list(chosen) for chosen in itertools.product(*choices)]
    return found


def test_a_command_line_is_read_whole() -> None:
    text = """What.

    python benchmarks/one.py RUN... [--set a=1 'b=["c d"]'] [--seconds 6 | --steps N]
        [--precision x|y] [--quick]
    python benchmarks/one.py --stop

More.
"""
    whole = ["1", "--set", "a=1", 'b=["c d"]', "--seconds", "6", "--steps", "1", "--precision"]
    assert shown(text) == [[*whole, "x", "--quick"], [*whole, "y", "--quick"], ["--stop"]]


@pytest.mark.parametrize("name", SCRIPTS)
def test_usage_is_what_the_parser_takes(name: str) -> None:
    usages, parser = shown(script(name).__doc__), parser_of(name)
    parser.allow_abbrev = False
    assert usages
    for usage in usages:
        parser.parse_args(usage)


def run_main(name: str, *words: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *map(str, words)])
        script(name).main()


def refusal(capsys: pytest.CaptureFixture[str], name: str, *words: object) -> str:
    """What a script says of arguments that it does not take, behind its usage."""
    with pytest.raises(SystemExit, match="2"):
        run_main(name, *words)
    *_, last = capsys.readouterr().err.splitlines()
    return last


# Half the distance of its two rows is their length: the boundary is the plane through zero.
@pytest.mark.parametrize(("length", "std"), [(0.5, 1.0), (1.0, 1.0), (0.5, 0.25), (2**-0.5, 0.5)])
def test_shares_are_those_within_the_distance_of_the_boundary(length: float, std: float) -> None:
    weight = torch.tensor([[length, 0.0], [-length, 0.0]])
    layers = [Normalize(torch.zeros(2), torch.full((2,), std)), Dense(weight, torch.zeros(2))]
    inputs = torch.tensor([[0.1, 9.0], [0.2, 0.0], [0.3, 0.0], [0.5, 0.0], [-0.5, 0.0]])
    samples = Samples(inputs, torch.zeros(5, dtype=torch.int64))
    # Of 0.1, 0.2, 0.3 and 0.5 those above 0, 0.141, 0.282 and 0.424.
    assert script("accuracy").shares(FixedNetwork(layers, (2,)), samples) == [0.8, 0.6, 0.4, 0.2]


def test_a_setting_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "accuracy", "cifar10-fast", "--data", ".", "--set", "temperature")
    assert "set must be KEY=VALUE, got 'temperature'" in said


def test_the_loader_says_how_many_samples_are_mapped(capsys: pytest.CaptureFixture[str]) -> None:
    # 67,108,864 bytes of 3 x 32 x 32 and of 3 x 64 x 64 each.
    for side, count in ((32, 21_846), (64, 5_462)):
        assert script("loader").needed(side) == count
        said = refusal(capsys, "loader", "--side", side, "--samples", count - 1)
        assert said.endswith(f"got {count - 1}; pass --samples {count}")
    usage = shown(script("loader").__doc__)[0]
    assert int(usage[usage.index("--samples") + 1]) > 21_846


@pytest.mark.parametrize(
    ("precision", "compiled", "told"),
    [
        ("float32", False, {"memory_over_twin", "mebibytes", "layers"}),
        ("bfloat16", False, {"memory_over_twin", "mebibytes"}),
        ("float32", True, set()),
    ],
)
def test_a_table_of_steps_has_no_figures_of_other_steps(
    precision: str, compiled: bool, told: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step_time = script("step_time")
    monkeypatch.setattr(step_time, "peak_memory", lambda *_: 1.0)
    monkeypatch.setattr(step_time, "layer_table", lambda _: [])
    arguments = Namespace(precision=precision, compile=compiled)
    assert set(step_time.beside_steps(arguments)) == told


def test_results_of_latency_have_the_names_of_the_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    latency = script("latency")
    monkeypatch.setattr(latency, "measure", lambda networks, *_: dict.fromkeys(networks, 2.0))
    monkeypatch.setattr(latency, "freeze", lambda model: Namespace(network=model))
    monkeypatch.setattr("sys.argv", ["latency.py", "--json", str(tmp_path / "written.json")])
    latency.main()
    assert "plain / twin = 1.000" in capsys.readouterr().out
    written = json.loads((tmp_path / "written.json").read_text())
    stored = [json.loads(file.read_text()) for file in RESULTS.glob("latency*.json")]
    assert len(stored) == 2
    for content in stored:
        assert set(content) == set(written)
        for size in ("batch_1", "batch_256"):
            assert set(content[size]) == set(written[size])
            times = content[size]["seconds"]
            assert set(times) | {"frozen"} == set(written[size]["seconds"])
            ratio = times["plain"] / times["twin"]
            assert content[size]["plain_over_twin"] == pytest.approx(ratio)


def made(seed: int, recipe: str = "cifar10-fast", **options: Any) -> dict[str, Any]:
    """A run of the frontier, by hand."""
    changed = read_recipe(embedded_recipe(recipe)).changed(training=options)
    told = {"training": script("frontier").training(changed.changed(training={"seed": seed}))}
    lengths = {"epochs": float(changed.training.epochs), "steps": changed.training.steps}
    figures = {"minutes": 1.0, "clean": 0.5, "certified": 0.25 * seed, "tightness": None}
    named = {"family": "any", "recipe": recipe, "seed": seed, "taught": False}
    return named | told | lengths | figures


@pytest.mark.parametrize(
    ("options", "seeds"),
    [
        ([{}, {}, {}], [3]),
        ([{"epochs": 100}, {"epochs": 104}], [1, 1]),
        ([{}, {"temperature": 0.9}, {}], [2, 1]),
        # Nothing reads the momentum of Adam, and how often a network is evaluated changes none.
        ([{}, {"momentum": 0.5, "evaluate_every": 3}], [2]),
    ],
)
def test_seeds_of_one_training_are_averaged(
    options: list[dict[str, Any]], seeds: list[int]
) -> None:
    runs = [made(seed, **some) for seed, some in enumerate(options)]
    (rows,) = script("frontier").averaged(runs).values()
    assert sorted((row["seeds"] for row in rows), reverse=True) == seeds


def test_lengths_by_minutes_are_one_within_five_percent() -> None:
    lengths = ((9.0, 880), (9.3, 910), (9.6, 940))
    runs = [made(seed) | {"epochs": e, "steps": s} for seed, (e, s) in enumerate(lengths)]
    (rows,) = script("frontier").averaged(runs[::-1]).values()
    told = {(row["seeds"], row["certified"]) for row in rows}
    assert told == {(2, 0.125), (1, 0.5)}


def test_a_run_of_the_frontier_says_what_it_was(tmp_path: Path) -> None:
    runs = [frontier_run(tmp_path / "a", 0, 3), frontier_run(tmp_path / "b", 1, 3)]
    runs.append(frontier_run(tmp_path / "c", 0, 5))
    file = tmp_path / "frontier.json"
    run_main("frontier", *(run.path for run in runs), "--json", file)
    known = json.loads(file.read_text())["runs"]
    families = script("frontier").averaged(known)
    found = [(row["epochs"], row["seeds"]) for rows in families.values() for row in rows]
    assert sorted(found) == [(3.0, 2), (5.0, 1)]


def frontier_run(path: Path, seed: int, epochs: int) -> RunFolder:
    """A finished run, whose data lie somewhere."""
    place = {"path": str(path), "name": "cifar10"}
    options = {"epochs": epochs, "seed": seed}
    run = certified(path, "paper/ugnn-maxmin-updu-raw", [0.2], data=place, training=options)
    write_made_weights(run, {"hardware": "", "torch": "", "commit": "0"})
    write_made_searches(run, [made_search([0.2], [0.4])])
    record = EpochRecord(1, 0.1, None, None, None, 0.1, 1.0, core_seconds=60.0)
    write_history(run.history_file, [record])
    return run


def test_runs_of_earlier_calls_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """The stored ones say no length: as docs/results.md has them."""
    run_main("frontier", RESULTS / "frontier-cpu.json")
    printed = capsys.readouterr().out.splitlines()
    told = {line.split("cross_entropy")[-1].split()[0]: line for line in printed}
    assert len(told) == len(printed) == 10
    assert re.search(r" 2 seeds .* 9\.86 min  clean 0\.6962 ", told["cifar10-fast"])


def test_one_run_given_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    stored = RESULTS / "frontier-cpu.json"
    said = refusal(capsys, "frontier", stored, stored)
    assert "got seed 0 of cifar10-minute 2 times; pass each run once" in said
    with pytest.raises(ValueError, match="got seed 1 of cifar10-fast 2 times"):
        script("frontier").averaged([made(0), made(1), made(1)])


def test_another_epsilon_of_the_frontier_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "frontier", RESULTS / "frontier-cpu.json", "--epsilon", "0.141")
    assert "epsilon must be that of" in said


@pytest.mark.parametrize(("broken", "weak"), [(3, False), (1, True)])
def test_power_is_of_the_naive_certificates_that_were_issued(broken: int, weak: bool) -> None:
    rounding = script("rounding")
    none = {"margin/L": 0, "sound": 0}
    issued = {"naive": 40, "margin/L": 40, "sound": 0}
    batch = {"samples": 100, "issued": issued, "broken": none | {"naive": broken}, "seconds": 1.0}
    row = rounding.markdown_row(rounding.Case("float32", "float64", 0.0), [batch])
    assert f"| {broken} of 40 |" in row
    assert row.endswith("no power") == weak


def test_a_state_of_other_options_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, state = certified(tmp_path / "run", "paper/ugnn-maxmin-updu-raw", [0.2]), tmp_path / "s"
    state.write_text(json.dumps({"run": "run", "samples": 7, "cases": {}}))
    said = refusal(capsys, "rounding", run.path, "--state", state)
    assert "state must be of this run and these options" in said
