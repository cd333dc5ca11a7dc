"""What every layer owes, and the layers without a stored weight."""

__all__ = [
    "activations", "arithmetic", "average_pool", "bounds", "contract", "cutting", "faithful",
    "fourier", "half_plane", "kernels", "l2_pool", "margin", "mixing", "network", "normalize",
    "promises", "rearrangement", "reflection", "separable", "singular_values", "slices",
]  # fmt: skip
