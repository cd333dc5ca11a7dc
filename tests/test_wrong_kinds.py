"""What is no model of ours is an error that says what to call, where no types are checked."""

import subprocess
import sys

PROGRAM = """
import torch, unitmargin as um
from unitmargin.training.train import TrainResult

model, x = um.DenseUGNN((2,), 2), torch.zeros(1, 2)
frozen = um.freeze(model)
for wrong in (
    lambda: um.certify(model, x),
    lambda: um.closest_adversarial(model, x),
    lambda: um.save(model, "never.safetensors"),
    lambda: um.freeze(frozen),
    lambda: um.freeze(torch.nn.Linear(2, 2)),
    lambda: um.audit(torch.nn.Linear(2, 2)),
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
    lambda: um.certify(TrainResult(model, ()), x),
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


def test_the_message_names_the_kind_and_the_next_step() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    unfrozen = (
        "frozen must be of type FrozenNetwork, got DenseUGNN; call unitmargin.freeze(model), or "
        "unitmargin.load(path)"
    )
    trained = "model must be of type Classifier, got {}; pass the model that was trained; what is "
    assert done.stdout.splitlines() == [
        *3 * [unfrozen],
        trained.format("FrozenNetwork") + "frozen stays as it is",
        trained.format("Linear") + "frozen stays as it is",
        "network must be of type Network, got Linear; pass a unitmargin model, or a frozen network",
        *(
            f"{what}, got {kind}; pass what it holds, its .{name}"
            for kind, name in HOLDERS.items()
            for what in ("model must be of type Classifier", "network must be of type Network")
        ),
        unfrozen.replace("DenseUGNN", "TrainResult"),
        "model must be of type Module, got TrainResult; pass what it holds, its .model",
    ]
