"""measurements.safetensors: all of it returns, and what is damaged or foreign is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from unitmargin.certificates.exhibits import Exhibit, Reach
from unitmargin.certificates.plane import Plane
from unitmargin.foundation.files import file_sha256
from unitmargin.foundation.options import Options
from unitmargin.foundation.tensors import read_tensors, write_tensors
from unitmargin.runs.folder import RunError, RunFolder
from unitmargin.runs.measurements import Measurements


def measured(model_sha256: str) -> Measurements:
    grid = torch.linspace(0, 1, 3).double()
    exhibits = [
        Exhibit(
            index=index,
            why="wrong",
            label="a",
            predicted="b",
            other="c",
            radius=0.1,
            distance=distance,
            original=torch.rand(2).double(),
            adversarial=torch.rand(2).double(),
        )
        for index, distance in ((4, 0.3), (5, None))
    ]
    points = torch.rand(6, 2).double()
    return Measurements(
        model_sha256=model_sha256,
        reach=Reach(samples=9, flipped_share=1.0, median_ratio=None),
        input_range=[-0.5, 1.0],
        layers=[["Dense", 1.0, 1.0], ["Abs", 1.0, 1.0]],
        gradient_norms=torch.rand(4, 3).double(),
        exhibits=exhibits,
        plane=Plane(
            points=points,
            labels=torch.arange(6),
            horizontal=grid,
            vertical=grid,
            logits=torch.rand(9, 3).double(),
        ),
    )


def plain(value: Any) -> Any:
    """Values that can be compared, tensors as lists."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return {name: plain(entry) for name, entry in value} if isinstance(value, Options) else value


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path)
    run.model_file.write_bytes(b"a model")
    return run


@pytest.mark.parametrize("whole", [True, False])
def test_all_of_it_returns(whole: bool, folder: RunFolder) -> None:
    written = measured(file_sha256(folder.model_file))
    written = written if whole else written.changed(exhibits=[], plane=None)
    written.write(folder.measurements_file)
    assert plain(folder.measurements()) == plain(written)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "mine"}, "format must be 'unitmargin-measurements-1', got 'mine'"),
        ({"model_sha256": "0"}, "model_sha256 must be .* got 0"),
        ({"reach": 3}, "reach must be a table, got 3"),
        ({"exhibits": [{"index": 3}]}, "why must be given, got nothing"),
        ({"layers": [3]}, "layers.0 must be a valid list, got 3"),
        ({"exhibits": 3}, "it must hold measurements"),
        ({"self": 3}, "self is no option"),
        ({"reach": {"samples": 0, "flipped_share": 1, "median_ratio": None}}, "samples must be"),
    ],
)
def test_what_does_not_fit_is_refused(
    change: dict[str, Any], message: str, folder: RunFolder
) -> None:
    measured(file_sha256(folder.model_file)).write(folder.measurements_file)
    content = {
        "format": "unitmargin-measurements-1",
        "model_sha256": file_sha256(folder.model_file),
        "reach": {"samples": 9, "flipped_share": 1.0, "median_ratio": None},
        "input_range": [0, 1],
        "layers": [],
        "exhibits": [],
    }
    tensors = load_file(folder.measurements_file)
    header = {"measurements": json.dumps(content | change)}
    save_file(tensors, folder.measurements_file, metadata=header)
    with pytest.raises(RunError, match=f"{message}.*run `unitmargin verify {folder.path}` again"):
        folder.measurements()


def test_a_tensor_of_another_shape_is_refused_in_one_line(folder: RunFolder) -> None:
    measured(file_sha256(folder.model_file)).write(folder.measurements_file)
    tensors, header = read_tensors(folder.measurements_file)
    tensors["gradient_norms"] = torch.rand(1000)
    write_tensors(folder.measurements_file, tensors, header)
    with pytest.raises(RunError, match="gradient_norms must be an instance of Float64") as raised:
        folder.measurements()
    assert "\n" not in str(raised.value)


def test_a_file_that_is_cut_is_refused(folder: RunFolder) -> None:
    measured(file_sha256(folder.model_file)).write(folder.measurements_file)
    folder.measurements_file.write_bytes(folder.measurements_file.read_bytes()[:-9])
    with pytest.raises(RunError, match=f"run `unitmargin verify {folder.path}` again"):
        folder.measurements()
