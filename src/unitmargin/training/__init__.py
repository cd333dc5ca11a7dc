"""Training: one loop, its losses, schedules and optimisers, exact resume."""

__all__ = [
    "checkpoint", "identity", "joint_optimizer", "logs", "memory", "optimizers", "options",
    "pieces", "precision", "processes", "sample_trainer", "schedules", "teacher", "train",
    "trainer",
]  # fmt: skip
