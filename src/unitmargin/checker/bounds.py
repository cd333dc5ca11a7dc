"""Proved upper bounds of matrix norms, in float64; numbers in brackets as in docs/soundness.md."""

import math

import numpy as np

from unitmargin.checker.arithmetic import TINY, UNIT, UP, gamma
from unitmargin.checker.reading import Array

PERRON_STEPS = 30
"""Steps that choose the vector of :func:`absolute_norm`, whose bound holds for any of them."""

COLUMNS = 64
"""Columns of rows that are subtracted at once: a thousand rows of so many stay in its cache."""


def spectral_norm(blocks: Array) -> float:
    """(C1): upper bound of the largest spectral norm of a stack ``(b, m, n)`` of matrices.

    With G = W W^T, theta the mean of its diagonal, R = G - theta I and any V with
    |V^T V - I| <= d < 1: |W|^2 = theta + lambda_max(R), and lambda_max(R) is at most the largest
    Gershgorin disc of V^T R V, divided by 1 - d. V are computed eigenvectors: a guess that makes
    the discs small, not a fact that is trusted.
    """
    largest = float(np.abs(blocks).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    scale = 2.0 ** math.frexp(largest)[1]
    wide = blocks / scale
    if wide.shape[1] > wide.shape[2]:
        wide = wide.transpose(0, 2, 1)
    rows, columns = wide.shape[1:]
    eye = np.eye(rows)
    gram = wide @ wide.transpose(0, 2, 1)
    lost = gamma(columns) * np.square(_frobenius(wide)) + TINY  # norm of the error of gram
    centre = np.trace(gram, axis1=1, axis2=2) / rows
    rest = gram - centre[:, None, None] * eye
    rest = 0.5 * (rest + rest.transpose(0, 2, 1))
    size = _frobenius(rest)
    vectors = np.linalg.eigh(rest)[1]
    spread = np.square(_frobenius(vectors))
    defect = _frobenius(vectors.transpose(0, 2, 1) @ vectors - eye) + gamma(rows + 2) * spread
    if not np.all(defect < 0.5):
        raise ValueError("computed eigenvectors are not orthogonal, so a norm has no proof")
    turned = vectors.transpose(0, 2, 1) @ (rest @ vectors)
    turned = 0.5 * (turned + turned.transpose(0, 2, 1))
    diagonal = np.diagonal(turned, axis1=1, axis2=2)
    beside = np.abs(turned * (1.0 - eye)).sum(2) * (1.0 + gamma(rows))
    disc = (diagonal + beside).max(1) + 2.0 * gamma(rows + 2) * size * spread * UP
    above = np.maximum(disc, 0.0) / (1.0 - defect * UP)
    squared = centre + (above + 4.0 * UNIT * size + lost) * UP
    return float(np.sqrt(squared.max())) * UP * scale + TINY


def absolute_norm(blocks: Array) -> float:
    """(C2): upper bound of the largest norm of the matrices of absolute values.

    Collatz and Wielandt: | |W| |^2 <= max_i (|W|^T |W| v)_i / v_i for any v > 0.
    """
    magnitude = np.abs(blocks)
    if not magnitude.any():
        return 0.0
    turned = magnitude.transpose(0, 2, 1)
    vector = np.ones((len(blocks), blocks.shape[2], 1))
    for _ in range(PERRON_STEPS):
        product = turned @ (magnitude @ vector)
        vector = np.maximum(product / (product.max(1, keepdims=True) + TINY), UNIT)
    product = turned @ (magnitude @ vector)
    squared = float((product / vector).max()) * (1.0 + gamma(sum(blocks.shape[1:]) + 2))
    return math.sqrt(squared) * UP + TINY


def pair_distances(rows: Array) -> Array:
    """(C3): upper bounds of the distances of all pairs of rows."""
    squared = np.zeros((len(rows), len(rows)))
    for part in np.array_split(rows, math.ceil(rows.shape[1] / COLUMNS), axis=1):
        squared += np.stack([np.square(row - part).sum(1) for row in part])
    distances: Array = np.sqrt(squared / (1.0 - gamma(rows.shape[1] + 4))) * UP + TINY
    return distances


def norms(values: Array) -> Array:
    """Upper bounds of the norms of a batch of arrays."""
    flat = values.reshape(len(values), -1)
    lengths: Array = np.sqrt(np.square(flat).sum(1)) * (1.0 + gamma(flat.shape[1] + 2)) * UP + TINY
    return lengths


def _frobenius(blocks: Array) -> Array:
    """Upper bounds of the Frobenius norms of a stack."""
    count = blocks.shape[1] * blocks.shape[2]
    lengths: Array = np.sqrt(np.square(blocks).sum((1, 2))) * (1.0 + gamma(count + 2)) + TINY
    return lengths
