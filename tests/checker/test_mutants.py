"""T15 for the checker: each term of its proof, removed from a copy, makes a named test fail."""

from pathlib import Path

import pytest
from mutants import Mutant, run_test_of, source

HAND = "test_network.py::test_a_radius_by_hand"
CONVOLUTION = "test_layers.py::test_circular_convolution"
COMBINATION = "test_peers.py::test_convex_combination"
FOURIER = "test_layers.py::test_transforms_by_hand"
FALSE = "test_table.py::test_each_false_claim_is_named"

MUTANTS = [
    Mutant("own errors in the pair", "network.py", "distances * own[0, :, None] +", "", HAND),
    Mutant("own rounding of the head", "network.py", "gamma(own_length(features) + 2) *", "0.0 *",
           HAND),
    Mutant("own earlier errors", "network.py", "step.norm * own +", "", HAND),
    Mutant("deployed errors in the pair", "network.py", "distances * far[:, :, None] +", "", HAND),
    Mutant("deployed earlier errors", "network.py", "through = step.norm * far",
           "through = 0.0 * far", HAND),
    Mutant("deployed rounding of the head", "network.py", "sums * lengths * arriving[:, :, None]",
           "0.0 * arriving[:, :, None]", HAND),
    Mutant("bias of the head", "network.py", "rounding[0] += sums * biases +", "rounding[0] +=",
           HAND),
    Mutant("errors that grow with the radius", "network.py", "distances * reach + rounding[1]",
           "distances * reach", HAND),
    Mutant("norms that grow with the radius", "network.py", "own + _slope(size, reach)",
           "own", HAND),
    Mutant("norms of the layers", "network.py", "reach *= step.norm * UP", "reach *= UP", HAND),
    Mutant("overflow", "network.py", "* UP < self.profile.limit", "* UP < np.inf",
           "test_network.py::test_nothing_is_proved_near_overflow"),
    Mutant("weights that the type cannot hold", "network.py", "single = profile.unit > UNIT",
           "single = False", "test_network.py::test_float32_profiles_need_float32_weights"),
    Mutant("hidden bias", "layers.py", "share * size + lost", "lost",
           "test_layers.py::test_dense"),
    Mutant("output of a float64 dense layer", "layers.py", "if wide:", "if False:",
           "test_layers.py::test_dense"),
    Mutant("first transform", "layers.py", "slope = turn * norm + gamma", "slope = gamma",
           CONVOLUTION),
    Mutant("products of a convolution", "layers.py", "gamma(roundings + 1, arithmetic.unit) * (",
           "0.0 * (", CONVOLUTION),
    Mutant("difference of the complex products", "layers.py",
           "gamma(roundings + 1, arithmetic.unit) * (", "gamma(roundings, arithmetic.unit) * (",
           CONVOLUTION),
    Mutant("bias of a convolution", "layers.py", "gamma(roundings + 3, arithmetic.unit) * size",
           "0.0", CONVOLUTION),
    Mutant("second transform", "layers.py", "slope + turn * (norm + slope)", "slope", CONVOLUTION),
    Mutant("own output of a convolution", "layers.py", "rounded(mine, norm, size, UNIT * UP)",
           "mine", CONVOLUTION),
    Mutant("normalisation", "layers.py", "gamma(3, profile.unit)", "0.0",
           "test_layers.py::test_normalize"),
    Mutant("roundings of an average", "layers.py",
           "gamma(size**2 + 1, arithmetic.unit) * UP", "0.0",
           "test_peers.py::test_scaled_average_pool"),
    Mutant("errors of a branch, slope", "layers.py", "rest * row.slope +", "", COMBINATION),
    Mutant("errors of a branch, constant", "layers.py", "rest * row.constant +", "", COMBINATION),
    Mutant("roundings of a combination, slope", "layers.py", "+ both * (kept", "+ 0.0 * (kept",
           COMBINATION),
    Mutant("roundings of a combination, constant", "layers.py",
           "both * rest * (row.shift", "0.0 * (row.shift", COMBINATION),
    Mutant("rounding of one minus the share", "layers.py", "both = gamma(3", "both = gamma(2",
           COMBINATION),
    Mutant("earlier errors of a branch, slope", "layers.py",
           "(step.norm * slope + error", "(error", COMBINATION),
    Mutant("earlier errors of a branch, constant", "layers.py",
           "(step.norm * constant + error", "(error", COMBINATION),
    Mutant("biases of a branch", "layers.py",
           "(step.norm * shift + step.shift)", "0.0 * (step.shift)", COMBINATION),
    Mutant("norm of a combination", "layers.py", "(kept + rest * own.norm)", "1.0", COMBINATION),
    Mutant("shape of a branch", "layers.py", "output.shape != x.shape", "False",
           "test_peers.py::test_a_branch_that_changes_the_shape_is_refused"),
    Mutant("stored table", "fourier.py", "(stored + gamma", "(gamma",
           "test_layers.py::test_transforms_by_hand"),
    Mutant("stage for real input", "fourier.py",
           "total = twiddle + math.sqrt(2.0) * (1.0 + twiddle) * gamma(5, unit)", "total = 0.0",
           FOURIER),
    Mutant("roots of an odd stage", "fourier.py", "else twiddle + (1.0", "else (1.0", FOURIER),
    Mutant("products of an odd stage", "fourier.py", "gamma(p + 5, unit)", "gamma(p + 2, unit)",
           FOURIER),
    Mutant("conjugates that are kept", "fourier.py", "math.sqrt(2.0) * stages", "stages", FOURIER),
    Mutant("range of compounded errors", "arithmetic.py", "if not 0.0 <= share < 0.5",
           "if share > 1e9", "test_bounds.py::test_arithmetic_by_hand"),
    Mutant("sign of a bound", "step.py", "if not min(bounds) >= 0.0", "if bounds == ()",
           "test_layers.py::test_a_bound_is_a_number_of_at_least_zero"),
    Mutant("underflow of a convolution", "layers.py",
           "constant * UP + lost(operations, norm, arithmetic)", "constant * UP",
           "test_layers.py::test_underflow_is_paid_for"),
    Mutant("underflow of a normalisation", "layers.py", "lost(2**28, norm, profile)", "0.0",
           "test_layers.py::test_underflow_is_paid_for"),
    Mutant("underflow of an average", "layers.py", "lost(2**28 * size**2, 1.0, arithmetic)", "0.0",
           "test_layers.py::test_underflow_is_paid_for"),
    Mutant("halves of pairs", "fourier.py", "math.sqrt(2.0) * (math.prod", "(math.prod",
           "test_layers.py::test_transforms_by_hand"),
    Mutant("discs", "bounds.py", "(diagonal + beside).max(1)", "diagonal.max(1)",
           "test_bounds.py::test_the_eigenvectors_are_not_trusted"),
    Mutant("eigenvectors", "bounds.py", "/ (1.0 - defect * UP)", "",
           "test_bounds.py::test_the_eigenvectors_are_not_trusted"),
    Mutant("error of the Gram matrix", "bounds.py", "4.0 * UNIT * size + lost)",
           "4.0 * UNIT * size)",
           "test_bounds.py::test_the_error_of_the_gram_matrix_is_paid_for"),
    Mutant("label", "table.py", "row.predicted != proof.label[i]", "False", FALSE),
    Mutant("margin", "table.py", "not abs(row.margin - margin) <= tolerance", "False", FALSE),
    Mutant("runner-up", "table.py",
           "not proof.differences[i, row.runner_up] <= margin + 2.0 * tolerance", "False", FALSE),
    Mutant("radius", "table.py", "not row.radius <= radius", "False",
           "test_table.py::test_a_radius_raised_by_a_millionth_is_named"),
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_a_mutant_is_killed(mutant: Mutant, tmp_path: Path) -> None:
    done = run_test_of(mutant, tmp_path, "checker")
    assert done.returncode == 1, done.stdout  # 1: tests ran and failed


def test_every_mutant_still_applies() -> None:
    for mutant in MUTANTS:
        assert mutant.old in source(mutant, "checker").read_text(), mutant.what
