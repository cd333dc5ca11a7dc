"""Files that a guard opens, and options that they do not have."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_files import write_half_planes

from unitmargin.guard import Guard, OnnxModel, onnx_model


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_half_planes(tmp_path_factory.mktemp("opening") / "model.onnx")


def test_the_profile_of_an_exported_network_is_its_own(path: Path) -> None:
    assert Guard(path, profile="float64").model.profile == "float64"
    with pytest.raises(ValueError, match=r"profile must be float64, .*got 'float32'; export"):
        Guard(path, profile="float32")


def test_weights_in_onnxruntime_cannot_be_compared(path: Path) -> None:
    with pytest.raises(ValueError, match="sealed must be True .*, got False; open a model file"):
        Guard(path, sealed=False)


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_threads_are_a_number_that_can_be_started(path: Path, threads: int) -> None:
    with pytest.raises(ValueError, match=f"threads must be from 1 to 1024, got {threads}; leave"):
        Guard(path, threads=threads)
    with pytest.raises(ValueError, match="got a number of many digits; leave it out"):
        Guard(path, threads=10**5000)


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path must end in .*, got 'model\.pt'; name"):
        Guard(tmp_path / "model.pt")


@pytest.mark.parametrize("suffix", [".onnx", ".safetensors"])
def test_files_that_are_missing_or_damaged_are_named(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"model{suffix}"
    with pytest.raises(FileNotFoundError, match="model"):
        Guard(file)
    for content in (b"", b"no network", bytes(range(256))):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=f"model{suffix}") as error:
            Guard(file)
        assert "\n" not in str(error.value)


def test_an_onnx_file_of_somebody_else_is_refused(tmp_path: Path, path: Path) -> None:
    whole = path.read_bytes()
    file = tmp_path / "other.onnx"
    file.write_bytes(whole.replace(b"unitmargin-onnx-1", b"unitmargin-onnx-9"))
    with pytest.raises(
        ValueError, match=r"must be of the format .*, got 'unitmargin-onnx-9'; write"
    ):
        Guard(file)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"must be an ONNX file, but .*; write"):
        Guard(file)


@pytest.mark.parametrize(
    ("stated", "fault"),
    [
        ({"classes": "[half"}, "JSONDecodeError: .*"),
        ({"domain": "[0, null]"}, "TypeError: .*"),
        ({"in_shape": "[3]"}, r"ValueError: an input x \['batch', 2\] for inputs \(3,\)"),
    ],
)
def test_metadata_that_do_not_fit_are_refused(
    tmp_path: Path, stated: dict[str, str], fault: str
) -> None:
    file = write_half_planes(tmp_path / "model.onnx", stated=stated)
    with pytest.raises(ValueError, match=f"must state what export states, got {fault}; write it"):
        Guard(file)


@pytest.mark.parametrize("entry", ["classes", "model_sha256"])
def test_metadata_that_are_missing_are_named(tmp_path: Path, path: Path, entry: str) -> None:
    model = onnx.load(path)
    (place,) = (i for i, item in enumerate(model.metadata_props) if item.key == entry)
    del model.metadata_props[place]
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match=f"got KeyError: '{entry}'; write it"):
        Guard(tmp_path / "model.onnx")


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int16"])
def test_bytes_are_no_inputs(path: Path, dtype: str) -> None:
    with pytest.raises(ValueError, match=f"x must hold floating point numbers, got {dtype}; scale"):
        OnnxModel(path).certify(np.ones((1, 2), dtype))


def test_a_file_states_how_inputs_are_made_of_images(tmp_path: Path, path: Path) -> None:
    stated = {"images": json.dumps({"resize": 8})}
    assert OnnxModel(write_half_planes(tmp_path / "a.onnx", stated=stated)).images == {"resize": 8}
    assert OnnxModel(path).images is None


def test_a_graph_without_its_outputs_is_refused(tmp_path: Path, path: Path) -> None:
    model = onnx.load(path)
    (place,) = (i for i, output in enumerate(model.graph.output) if output.name == "radius")
    del model.graph.output[place]
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="got ValueError: no output radius; write it"):
        Guard(tmp_path / "model.onnx")


def test_what_is_compared_is_what_evaluates(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is read once: another one that takes its place meanwhile is not evaluated."""
    file = tmp_path / "model.onnx"
    file.write_bytes(path.read_bytes())
    real = onnx_model._require_content

    def replaced(*given: Any) -> str | None:
        digest = real(*given)
        file.write_bytes(b"other")
        return digest

    monkeypatch.setattr(onnx_model, "_require_content", replaced)
    x = np.full((1, 2), 0.25, np.float32)
    assert np.array_equal(OnnxModel(file).certify(x).radius, OnnxModel(path).certify(x).radius)


def test_inputs_of_another_shape_are_refused_in_one_line(path: Path) -> None:
    with pytest.raises(ValueError, match=r"x must have shape \(batch, 2\), got \(3, 5\); reshape"):
        OnnxModel(path).certify(np.zeros((3, 5), np.float32))
