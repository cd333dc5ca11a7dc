"""The programs of examples/deployment answer as ``certify`` does, and compare.py finds out if not.

The C++ program is built where ONNXRUNTIME_ROOT names a release of ONNX Runtime; the JavaScript one
runs where ``npm install`` has been run in its folder.
"""

import json
import math
import os
import shlex
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import unitmargin as um
from unitmargin.frozen import Dense, FrozenNetwork

DEPLOYMENT = Path(__file__).parents[1] / "examples/deployment"

CLASSES = ('"a"\\', "b, ü]", "\x01c", "")
"""Names that JSON writes with escapes, and one of no letter."""

DOMAIN = (-0.1, 0.6)
"""The float32 numbers next to both ends lie outside: inputs of the domain are rounded to them."""


def _script() -> Any:
    spec = spec_from_file_location("compare", DEPLOYMENT / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = _script()


def _built(folder: Path) -> str:
    root = os.environ.get("ONNXRUNTIME_ROOT")
    if root is None:
        pytest.skip("ONNXRUNTIME_ROOT names no release of ONNX Runtime with its C++ headers")
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    source = ["-S", str(DEPLOYMENT / "cpp"), "-B", str(folder), f"-DONNXRUNTIME_ROOT={root}"]
    strict = "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
    subprocess.run(["cmake", *source, strict], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(folder)], check=True, capture_output=True)
    return shlex.quote(str(folder / "certify"))


def _installed() -> str:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not (DEPLOYMENT / "javascript/node_modules/onnxruntime-node").is_dir():
        pytest.skip("onnxruntime-node is not installed in examples/deployment/javascript")
    return f"node {shlex.quote(str(DEPLOYMENT / 'javascript/certify.mjs'))}"


@pytest.fixture(scope="module", params=["cpp", "javascript"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return _built(tmp_path_factory.mktemp("build")) if request.param == "cpp" else _installed()


@pytest.fixture(scope="module")
def frozen() -> FrozenNetwork:
    torch.manual_seed(1)
    network = um.DenseUGNN(in_shape=(2, 3), n_classes=4, hidden=(6, 6))
    return um.freeze(network, classes=CLASSES, domain=DOMAIN)


@pytest.fixture(scope="module")
def model(frozen: FrozenNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("exported") / "model.onnx"
    um.export_onnx(frozen, file)
    return file


def drawn(count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    low, high = DOMAIN
    return torch.rand(count, 2, 3, generator=generator) * (high - low) + low


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*shlex.split(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8")


def test_a_program_has_the_labels_and_radii_of_certify(
    program: str, frozen: FrozenNetwork, model: Path, tmp_path: Path
) -> None:
    x = drawn(300)
    script.write_inputs(x, tmp_path / "inputs.f32")
    found = script.answers(program, model, tmp_path / "inputs.f32")
    true = um.certify(frozen, x, "float64")
    assert bool((true.radius > 0).all())
    others, largest = script.compare(found, true)
    assert others == 0
    assert largest <= 1e-12
    assert [answer["runner_up"] for answer in found] == true.runner_up.tolist()
    assert [answer["name"] for answer in found] == [CLASSES[k] for k in true.label.tolist()]
    assert {answer["reason"] for answer in found} == {"certified"}
    assert list(found[0]) == ["label", "name", "radius", "runner_up", "reason"]


def test_a_program_has_no_label_for_what_a_guard_rejects(
    program: str, frozen: FrozenNetwork, model: Path, tmp_path: Path
) -> None:
    x = drawn(9)
    x[0, 0, 0], x[1, 1, 2], x[2, 0, 1] = math.nan, math.inf, -math.inf
    ends = [float(np.float32(end)) for end in DOMAIN]
    x[3], x[4] = ends[0], ends[1]
    x[5, 1, 1] = float(np.nextafter(np.float32(ends[0]), np.float32(-1)))
    x[6, 0, 2] = float(np.nextafter(np.float32(ends[1]), np.float32(1)))
    x[7] = 3e38
    script.write_inputs(x, tmp_path / "inputs.f32")
    found = script.answers(program, model, tmp_path / "inputs.f32")
    true = um.certify(frozen, x, "float64", domain="any")
    reasons = [
        "not_finite", "not_finite", "not_finite", "certified", "certified",
        "outside_domain", "outside_domain", "outside_domain", "certified",
    ]  # fmt: skip
    assert [answer["reason"] for answer in found] == reasons
    for answer, radius, second in zip(found, true.radius, true.runner_up, strict=True):
        certified = answer["reason"] == "certified"
        assert (answer["label"] is not None) is certified
        assert (answer["name"] is not None) is certified
        assert answer["radius"] == pytest.approx(float(radius), rel=1e-11)
        assert answer["runner_up"] == (int(second) if second >= 0 else None)


def test_a_label_means_a_radius_above_the_threshold(
    program: str, model: Path, tmp_path: Path
) -> None:
    file = tmp_path / "inputs.f32"
    script.write_inputs(drawn(5), file)
    radii = [answer["radius"] for answer in script.answers(program, model, file)]
    threshold = sorted(radii)[2]
    lines = run(program, model, file, "--reject-below", repr(threshold)).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [answer["radius"] for answer in found] == radii
    for answer in found:
        above = answer["radius"] > threshold
        assert answer["reason"] == ("certified" if above else "below_threshold")
        assert (answer["label"] is not None) is above


def test_nothing_is_claimed_on_the_boundary(program: str, tmp_path: Path) -> None:
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    line = FrozenNetwork([Dense(rows, torch.zeros(2))], (2,), facts={"head": "orthonormal"})
    um.export_onnx(line, tmp_path / "model.onnx")
    script.write_inputs(
        torch.tensor([[1.0, 1.0], [2.0**100, -(2.0**100)]]), tmp_path / "inputs.f32"
    )
    tie, far = script.answers(program, tmp_path / "model.onnx", tmp_path / "inputs.f32")
    assert tie == {"label": None, "name": None, "radius": 0, "runner_up": 1, "reason": "no_claim"}
    assert far["label"] == 0
    assert far["radius"] == pytest.approx(math.sqrt(2.0) * 2.0**100, rel=1e-9)


def test_no_inputs_have_no_answers(program: str, model: Path, tmp_path: Path) -> None:
    (tmp_path / "inputs.f32").touch()
    done = run(program, model, tmp_path / "inputs.f32")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_cannot_be_answered_is_one_line_and_status_2(
    program: str, frozen: FrozenNetwork, model: Path, tmp_path: Path
) -> None:
    inputs, cut, other, double = (tmp_path / name for name in ("x.f32", "cut", "other", "double"))
    script.write_inputs(drawn(2), inputs)
    cut.write_bytes(inputs.read_bytes()[:-4])
    stated = onnx.load(model)
    del stated.metadata_props[:]
    onnx.save(stated, other)
    um.export_onnx(frozen, double, inputs="float64")
    wrong = {
        (tmp_path / "none", inputs): "none", (model, tmp_path / "none"): "none",
        (model, tmp_path): "", (model, cut): "inputs of 6 float32 numbers, got 44 bytes",
        (inputs, inputs): "must be an ONNX file", (other, inputs): "unitmargin-onnx-1",
        (double, inputs): "float32", (model, inputs, "--reject-below", "x"): "--reject-below",
        (model, inputs, "--reject-below", "-1"): "--reject-below", (model,): "usage",
        (model, inputs, "--reject-below", "inf"): "--reject-below",
    }  # fmt: skip
    for arguments, said in wrong.items():
        done = run(program, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert said in done.stderr, arguments
        assert done.stderr.startswith("certify: "), arguments
        assert done.stderr.count("\n") == 1, arguments


def python(code: str, *arguments: str) -> str:
    return shlex.join([sys.executable, "-S", "-c", code, *arguments])


def printing(lines: list[dict[str, Any]]) -> str:
    """A program that answers anything with these lines; the last two arguments are files."""
    code = "import sys; print(*sys.argv[1:-2], sep=chr(10))"
    return python(code, *(json.dumps(line) for line in lines))


def right(frozen: FrozenNetwork, x: torch.Tensor) -> list[dict[str, Any]]:
    true = um.certify(frozen, x, "float64")
    pairs = zip(true.label.tolist(), true.radius.tolist(), strict=True)
    return [{"label": label, "radius": radius} for label, radius in pairs]


def test_inputs_are_little_endian_float32_input_by_input(tmp_path: Path) -> None:
    x = torch.tensor([[[1.0, 2.0], [3.0, 0.1]], [[-0.0, math.inf], [5.0, 1e-45]]])
    script.write_inputs(x.mT.contiguous().mT, tmp_path / "inputs.f32")
    found = np.frombuffer((tmp_path / "inputs.f32").read_bytes(), "<f4")
    assert found.tobytes() == x.reshape(-1).numpy().astype("<f4").tobytes()


def test_a_program_that_agrees_has_status_0(
    frozen: FrozenNetwork, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = drawn(6)
    lines = right(frozen, x)
    lines[2]["radius"] += 2e-10
    assert script.status([printing(lines)], frozen, x, tmp_path) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert "0 other labels on 6 inputs, largest difference of radii 2.0e-10" in line


@pytest.mark.parametrize("wrong", ["label", "no label", "radius", "nan", "missing", "more"])
def test_a_program_that_disagrees_has_status_1(
    wrong: str, frozen: FrozenNetwork, tmp_path: Path
) -> None:
    x = drawn(6)
    lines = right(frozen, x)
    match wrong:
        case "label":
            lines[3]["label"] = (lines[3]["label"] + 1) % 4
        case "no label":
            lines[3]["label"] = None
        case "radius":
            lines[3]["radius"] -= 2e-9
        case "nan":
            lines[3]["radius"] = math.nan
        case "missing":
            del lines[3:]
        case _:
            lines.append(lines[3])
    programs = [printing(lines), printing(right(frozen, x))]
    assert script.status(programs, frozen, x, tmp_path) == 1


def test_a_program_that_cannot_be_run_or_read_has_status_2(
    frozen: FrozenNetwork, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = ("hello", "3", "[]", '{"label": 3}', '{"label": 3, "radius": null}')
    programs = ["no-such-program", "'", python("import sys; sys.exit('no model')")]
    programs += [python(f"print({text!r})") for text in printed]
    x = drawn(1)
    assert script.status([*programs, printing(right(frozen, x))], frozen, x, tmp_path) == 2
    output = capsys.readouterr()
    assert "0 other labels" in output.out
    lines = output.err.splitlines()
    for program, line in zip(programs, lines, strict=True):
        assert line.startswith(f"{program}: must print one line of JSON an input, got")
    assert "exit status 1, no model" in lines[2]


def test_a_network_that_is_not_there_is_no_disagreement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(["--run", str(tmp_path), "--program", "true"]) == 2
    said = capsys.readouterr().err
    assert (said.count("\n"), "no model file at" in said) == (1, True)


def test_the_network_of_a_run_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen = um.freeze(um.DenseUGNN(in_shape=(1, 8, 8), n_classes=10, hidden=(16,)))
    um.save(frozen, tmp_path / "model.safetensors")
    x, _ = um.load_dataset("digits").test.batch(slice(0, 100))
    programs = ["--program", printing(right(frozen, x)), "--program", python("")]
    assert script.main(["--run", str(tmp_path), *programs]) == 1
    good, bad = capsys.readouterr().out.splitlines()
    assert "0 other labels on 100 inputs, largest difference of radii 0.0e+00" in good
    assert "100 other labels on 100 inputs" in bad
