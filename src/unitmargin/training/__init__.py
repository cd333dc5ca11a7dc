"""Training: one loop, its losses, schedules and optimisers, exact resume."""

__all__ = ["checkpoint", "optimizers", "options", "precision", "processes", "train", "trainer"]
