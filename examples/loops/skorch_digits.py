"""skorch fits a network whose weights stay on the manifold, as a scikit-learn classifier.

skorch makes its optimiser of parameters, where the manifold is known by the layers: so the net
overrides ``initialize_optimizer``.

    python examples/loops/skorch_digits.py
"""

import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import LRScheduler

import unitmargin as um

STEPS = 200
EPOCH_STEPS = 20


class ManifoldNet(NeuralNetClassifier):
    """A net whose ``lr`` is the rate of free weights, with one rate for the manifold."""

    def initialize_optimizer(self, *_: object) -> "ManifoldNet":
        self.optimizer_ = um.build_optimizer(self.module_, self.lr, manifold_rate=2e-2)
        return self


def main() -> None:
    torch.manual_seed(0)
    digits = um.load_dataset("digits")
    net = ManifoldNet(
        um.DenseUGNN,
        module__in_shape=(1, 8, 8),
        module__n_classes=10,
        module__linear="manifold",
        module__hidden=(64, 64, 32),
        criterion=torch.nn.MultiMarginLoss,
        criterion__margin=0.5,
        lr=1e-2,
        batch_size=64,
        max_epochs=STEPS // EPOCH_STEPS,
        iterator_train__shuffle=True,
        iterator_train__drop_last=True,
        train_split=None,
        verbose=0,
        callbacks=[LRScheduler("CosineAnnealingLR", T_max=STEPS, step_every="batch")],
    )
    inputs, labels = digits.train.batch(slice(0, 64 * EPOCH_STEPS))
    net.fit(inputs, labels)
    steps = sum(len(epoch["batches"]) for epoch in net.history)
    print(f"{steps} steps, orthogonality error {um.audit(net.module_).orthogonality_error:.1e}")
    frozen = um.freeze(net.module_, domain=digits.train.domain)
    inputs, labels = digits.test.batch(slice(None))
    share = um.certified_accuracy(um.certify(frozen, inputs), labels, 0.1)
    print(f"certified at 0.1: {share:.3f} of the test set")


if __name__ == "__main__":
    main()
