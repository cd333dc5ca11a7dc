"""Accelerate prepares one optimiser, and trains a network whose weights stay on the manifold.

python examples/loops/accelerate_digits.py
"""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

import unitmargin as um

STEPS = 200


def main() -> None:
    set_seed(0)
    digits = um.load_dataset("digits")
    model = um.DenseUGNN((1, 8, 8), 10, linear="manifold", hidden=(64, 64, 32))
    optimizer = um.build_optimizer(model, learning_rate=1e-2, manifold_rate=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    batches = DataLoader(TensorDataset(*digits.train.batch(slice(None))), 64, shuffle=True)
    accelerator = Accelerator(cpu=True)
    prepared = accelerator.prepare(model, optimizer, batches, schedule)
    network, optimizer, batches, schedule = prepared
    step = 0
    while step < STEPS:
        for inputs, labels in batches:
            loss = torch.nn.functional.multi_margin_loss(network(inputs), labels, margin=0.5)
            accelerator.backward(loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            step += 1
            if step == STEPS:
                break
    model = accelerator.unwrap_model(network)
    print(f"{step} steps, orthogonality error {um.audit(model).orthogonality_error:.1e}")
    frozen = um.freeze(model, domain=digits.train.domain)
    inputs, labels = digits.test.batch(slice(None))
    share = um.certified_accuracy(um.certify(frozen, inputs), labels, 0.1)
    print(f"certified at 0.1: {share:.3f} of the test set")


if __name__ == "__main__":
    main()
