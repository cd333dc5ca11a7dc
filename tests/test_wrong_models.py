"""What holds a model is refused with the name of what it holds, where no types are checked."""

import subprocess
import sys

PROGRAM = """
import torch, unitmargin as um
from unitmargin.training.train import TrainResult

model = um.DenseUGNN((2,), 2)
for wrong in (
    *[
        lambda held=held, read=read: read(held)
        for held in (
            TrainResult(model, ()),
            torch.nn.DataParallel(model),
            torch.compile(model),
            torch.optim.swa_utils.AveragedModel(model),
        )
        for read in (um.freeze, um.audit)
    ],
    lambda: um.build_optimizers(TrainResult(model, ()), 1e-2, 1e-2),
):
    try:
        wrong()
    except TypeError as error:
        print(error)
"""


HOLDERS = {
    "TrainResult": "model",
    "DataParallel": "module",
    "OptimizedModule": "_orig_mod",
    "AveragedModel": "module",
}
"""What holds a model, and where."""


def test_the_message_names_what_to_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        *(
            f"{what}, got {kind}; pass what it holds, its .{name}"
            for kind, name in HOLDERS.items()
            for what in ("model must be of type Classifier", "network must be of type Network")
        ),
        "model must be of type Module, got TrainResult; pass what it holds, its .model",
    ]
