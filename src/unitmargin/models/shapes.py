"""Shapes of images that a network can take."""

from collections.abc import Sequence


def image_shape(in_shape: Sequence[int]) -> tuple[int, int, int]:
    """``in_shape`` as channels, height, width, or an error that names the vector model."""
    if len(in_shape) != 3:
        raise ValueError(
            f"in_shape must be (channels, height, width), got {tuple(in_shape)}; for vectors use "
            "the model dense_ugnn"
        )
    channels, height, width = in_shape
    return channels, height, width


def image_shape_multiple(in_shape: Sequence[int], factor: int) -> tuple[int, int, int]:
    """The same, or an error where ``factor`` does not divide both sides."""
    channels, height, width = image_shape(in_shape)
    if height % factor or width % factor:
        raise ValueError(
            f"height and width must be divisible by {factor}, got {height} x {width}; resize or "
            "crop the input"
        )
    return channels, height, width


def largest_depth(height: int, width: int, most: int) -> int:
    """As many halvings as both sides allow, at most ``most``."""
    depth = 0
    while depth < most and height % 2 ** (depth + 1) == 0 and width % 2 ** (depth + 1) == 0:
        depth += 1
    return depth
