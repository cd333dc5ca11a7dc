"""Lightning's automatic optimisation trains a network whose weights stay on the manifold.

python examples/loops/lightning_digits.py
"""

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import unitmargin as um

STEPS = 200


class Digits(lightning.LightningModule):
    """A network, its loss, and one optimiser of all its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.network = um.DenseUGNN((1, 8, 8), 10, linear="manifold", hidden=(64, 64, 32))

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        inputs, labels = batch
        return torch.nn.functional.multi_margin_loss(self.network(inputs), labels, margin=0.5)

    def configure_optimizers(self) -> dict[str, object]:
        optimizer = um.build_optimizer(self, learning_rate=1e-2, manifold_rate=2e-2)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def main() -> None:
    lightning.seed_everything(0, verbose=False)
    digits = um.load_dataset("digits")
    batches = DataLoader(TensorDataset(*digits.train.batch(slice(None))), 64, shuffle=True)
    module = Digits()
    trainer = lightning.Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, batches)
    print(f"{trainer.global_step} steps, orthogonality error", end=" ")
    print(f"{um.audit(module.network).orthogonality_error:.1e}")
    frozen = um.freeze(module.network, domain=digits.train.domain)
    inputs, labels = digits.test.batch(slice(None))
    share = um.certified_accuracy(um.certify(frozen, inputs), labels, 0.1)
    print(f"certified at 0.1: {share:.3f} of the test set")


if __name__ == "__main__":
    main()
