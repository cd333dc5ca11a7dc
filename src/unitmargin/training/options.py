"""How to train, as a recipe says it."""

from dataclasses import dataclass

OPTIMIZERS = ("adam", "sgd")


@dataclass(frozen=True)
class TrainingOptions:
    """How to train.

    Attributes:
        epochs: passes over the training samples.
        steps: the training ends after this many steps, in the middle of an epoch if need be, and
            the schedule runs by them; 0: after whole epochs.
        batch_size: samples a step.
        optimizer: adam or sgd, of weights that are not on the manifold.
        momentum: of sgd.
        weight_decay: of adam or sgd, as a multiple of the weight added to its gradient.
        learning_rate: of adam or sgd, at a schedule factor of 1.
        manifold_rate: step of weights on the manifold, as a share of their norm.
        schedule: a name of ``SCHEDULES``, such as halving (the paper: x 0.5 at 1/3 and 2/3).
        loss: multi_margin or offset_cross_entropy.
        margin: of multi_margin, in input units (the paper: 0.5).
        offset, temperature: of offset_cross_entropy, in input units.
        crop: random crop after padding by this many pixels.
        padding: zeros or reflect.
        flip: random horizontal flip.
        precision: float32, tf32 or bfloat16, of activations in training; weights stay float32.
        seed: of weights, order and augmentation.
    """

    epochs: int = 30
    steps: int = 0
    batch_size: int = 256
    optimizer: str = "adam"
    momentum: float = 0.9
    weight_decay: float = 0.0
    learning_rate: float = 3e-3
    manifold_rate: float = 1e-2
    schedule: str = "linear"
    loss: str = "offset_cross_entropy"
    margin: float = 0.5
    offset: float = 0.2
    temperature: float = 0.25
    crop: int = 0
    padding: str = "zeros"
    flip: bool = False
    precision: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "learning_rate", "manifold_rate", "temperature"):
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"{name} must be positive, got {value}; see docs/guide.md")
        for name in ("crop", "steps", "weight_decay"):
            value = getattr(self, name)
            if not value >= 0:
                raise ValueError(f"{name} must be at least 0, got {value}; 0 switches it off")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(
                f"optimizer must be one of {', '.join(OPTIMIZERS)}, got {self.optimizer!r}; "
                "choose one"
            )
