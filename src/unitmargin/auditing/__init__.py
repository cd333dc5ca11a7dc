"""What each layer and head promises, measured."""

__all__ = ["audit", "finding", "gradients"]
