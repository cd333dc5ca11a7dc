"""With NumPy and onnxruntime alone a guard answers; nothing is imported before it is needed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from onnx_files import write_half_planes

PROGRAM = """
import json, sys

class Bare:
    "An environment with NumPy and onnxruntime alone."
    def find_spec(self, name, path=None, target=None):
        known = sys.stdlib_module_names | {"numpy", "onnxruntime", "unitmargin"}
        if name.partition(".")[0] not in known:
            raise ModuleNotFoundError(f"no {name} here")

path, bare, code = sys.argv[1:]
if bare == "bare":
    if "torch" in sys.modules:
        raise SystemExit("torch is imported already")
    sys.meta_path.insert(0, Bare())
found = {}
exec(code)
found["modules"] = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_half_planes(tmp_path_factory.mktemp("imports") / "model.onnx")


def run(path: Path, code: str, environment: str = "bare") -> dict[str, Any]:
    command = [sys.executable, "-c", PROGRAM, str(path), environment, code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_guard_answers_with_numpy_and_onnxruntime_alone(path: Path) -> None:
    code = (
        "import numpy, unitmargin.guard\n"
        "guard = unitmargin.guard.Guard(path, reject_below=0.14)\n"
        "found['answer'] = guard(numpy.array([0.9, 0.9], numpy.float32))._asdict()\n"
        "found['counters'] = guard.counters\n"
        "from unitmargin import guard as room\n"
        "found['same'] = room is unitmargin.guard\n"
    )
    found = run(path, code)
    assert (found["answer"]["label"], found["answer"]["reason"]) == (1, "certified")
    assert found["counters"]["certified"] == 1
    assert found["same"]
    assert {"numpy", "onnxruntime"} <= set(found["modules"])
    assert not {"torch", "jaxtyping", "safetensors"} & set(found["modules"])


def test_the_room_is_imported_with_numpy_alone(path: Path) -> None:
    modules = set(run(path, "import unitmargin.guard")["modules"])
    foreign = modules - sys.stdlib_module_names - {"numpy", "unitmargin", "__main__"}
    assert "numpy" in modules
    assert not {name for name in foreign if name in ("torch", "onnxruntime", "prometheus_client")}


def test_the_public_guard_needs_no_more_than_its_room(path: Path) -> None:
    code = (
        "import numpy\nfrom unitmargin import Guard\n"
        "found['label'] = Guard(path)(numpy.array([0.1, 0.2], numpy.float32)).label\n"
    )
    assert run(path, code)["label"] == 0


def test_the_public_guard_imports_no_torch_either(path: Path) -> None:
    code = (
        "import numpy, unitmargin as um\n"
        "found['names'] = 'Guard' in um.__all__ and sorted(um.__all__) == dir(um)\n"
        "guard = um.Guard(path)\n"
        "found['label'] = guard(numpy.array([0.1, 0.2])).label\n"
    )
    found = run(path, code, "whole")
    assert (found["label"], found["names"]) == (0, True)
    assert not {"torch", "jaxtyping", "safetensors"} & set(found["modules"])
