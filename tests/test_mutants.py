"""T15: each term of the bound, removed from a copy of the package, makes a named test fail."""

from pathlib import Path

import pytest
from mutants import ROOT, Mutant, run_test_of, source

BY_HAND = "frozen/test_rounding.py::test_bounds_of_one_layer_by_hand"
CONVOLUTION = "frozen/test_rounding.py::test_bounds_of_a_convolution_by_hand"
FFT = "frozen/test_transforms.py::test_an_fft_pays_for_each_of_its_stages"
SLACK = "certificates/test_certify.py::test_the_slack_is_subtracted_before_the_division"
COMBINATION = "frozen/test_layer_rounding.py::test_a_combination_by_hand"
SQUARED = "frozen/test_spectral.py::test_the_squared_residual_is_reached"
GRAM = "frozen/test_spectral.py::test_the_error_of_the_gram_matrix_is_paid_for"
RANDOM = "frozen/test_spectral.py::test_t1_bounds_of_random_matrices_hold_exactly"
DENSE, CONVOLVED = "frozen/dense.py", "frozen/convolution.py"
COMBINED, CERTIFICATE = "frozen/combination.py", "certificates/certify.py"
ROUNDING, SPECTRAL = "frozen/rounding.py", "frozen/spectral.py"
TRANSFORMS = "frozen/transforms.py"

MUTANTS = [
    Mutant("head bias", ROUNDING, "incoming.constant + bias_sums", "incoming.constant", BY_HAND),
    Mutant("rounding of the head, slope", ROUNDING,
           "relative * norm_sums * incoming.slope * UP", "0.0 * norm_sums", BY_HAND),
    Mutant("rounding of the head, constant", ROUNDING,
           "relative * (norm_sums * incoming.constant + bias_sums)", "0.0 * norm_sums", BY_HAND),
    Mutant("roundings of bias and difference", ROUNDING,
           "HEAD_ROUNDINGS = 3", "HEAD_ROUNDINGS = 1", BY_HAND),
    Mutant("hidden bias", DENSE,
           "terms = incoming * own.absolute + Affine(own.bias)",
           "terms = incoming * own.absolute", BY_HAND),
    Mutant("absolute norm", DENSE,
           "terms = incoming * own.absolute +", "terms =", BY_HAND),
    Mutant("rounding of the hidden bias", DENSE,
           "gamma(arithmetic.length(self.size[1]) + 1, arithmetic.unit)",
           "gamma(arithmetic.length(self.size[1]), arithmetic.unit)", BY_HAND),
    Mutant("errors before the head", ROUNDING,
           "beta=(beta + distances * error.slope)", "beta=beta", BY_HAND),
    Mutant("bias in the norm", "layers/contract.py",
           "constants.norm + Affine(constants.bias) + error) * UP", "constants.norm + error) * UP",
           "frozen/test_rounding.py::test_norms_cover_the_activations"),
    Mutant("earlier errors", ROUNDING, "total * own.norm + row.error", "row.error",
           "frozen/test_rounding.py::test_errors_of_all_layers_add_up"),
    Mutant("first transform", CONVOLVED,
           "incoming * (turn * own.norm) +", "", CONVOLUTION),
    Mutant("products of a convolution", CONVOLVED,
           "turned * (sums * own.absolute)", "Affine()", CONVOLUTION),
    Mutant("bias of a convolution", CONVOLVED,
           "Affine(own.bias) * gamma(length + BIAS_ROUNDINGS, unit)", "Affine()",
           CONVOLUTION),
    Mutant("roundings of the bias of a convolution", CONVOLVED,
           "BIAS_ROUNDINGS = 3", "BIAS_ROUNDINGS = 1", CONVOLUTION),
    Mutant("difference of the complex products", CONVOLVED,
           "gamma(length + 1, unit)  #", "gamma(length, unit)  #", CONVOLUTION),
    Mutant("second transform", CONVOLVED, "error + summed * turn", "error", CONVOLUTION),
    Mutant("table of the transform", TRANSFORMS,
           "math.sqrt(2.0 * pixels) * stored + ", "", CONVOLUTION),
    Mutant("stage for real input", TRANSFORMS,
           "*_primes(transform.map_size[1]), 2]", "*_primes(transform.map_size[1])]", FFT),
    Mutant("scaling of the FFT", TRANSFORMS,
           " + gamma(SCALING_ROUNDINGS, unit)", "", FFT),
    Mutant("output of a float64 layer", "frozen/weighted.py",
           "error + output * arithmetic.unit", "error",
           "frozen/test_rounding.py::test_layers_in_float64_round_their_output"),
    Mutant("roundings of an average", "layers/average_pool.py",
           "gamma(entries + POOL_ROUNDINGS, arithmetic.unit)", "0.0",
           "frozen/test_layer_rounding.py::test_an_average_by_hand"),
    Mutant("norm of a combination", COMBINED,
           "(share + (1.0 - share) * math.prod(inner.norm for inner in branch)) * UP", "1.0",
           COMBINATION),
    Mutant("errors of a branch", COMBINED, "total * rest + paths", "paths", COMBINATION),
    Mutant("earlier errors of a branch", COMBINED,
           "(total * own.norm + row.error)", "row.error", COMBINATION),
    Mutant("norms in a branch", COMBINED, "            norm = row.output\n", "", COMBINATION),
    Mutant("roundings of a combination", COMBINED,
           "+ paths * gamma(COMBINATION_ROUNDINGS, arithmetic.unit)", "", COMBINATION),
    Mutant("rounding of one minus the share", COMBINED,
           "COMBINATION_ROUNDINGS = 3", "COMBINATION_ROUNDINGS = 2", COMBINATION),
    Mutant("shape of a branch", COMBINED, "output.shape != x.shape", "False",
           "frozen/test_combination.py::test_a_branch_that_changes_the_shape_is_refused"),
    Mutant("changes inside a branch", "frozen/proof.py",
           "tensor.detach().clone() for tensor in network.buffers()",
           "tensor.detach() for tensor in network.buffers()",
           "frozen/test_layer_rounding.py::test_changes_inside_a_branch_reach_every_profile"),
    Mutant("normalisation", "layers/normalize.py",
           "Affine(slope=gamma(2, arithmetic.unit))", "Affine()",
           "frozen/test_rounding.py::test_the_normalisation_pays_two_roundings"),
    Mutant("second evaluation", CERTIFICATE, "slack = 2.0 *", "slack = 1.0 *", SLACK),
    Mutant("slope in the radius", CERTIFICATE,
           "pair + beta * bounds.input_scale", "pair", SLACK),
    Mutant("scale of the input", CERTIFICATE,
           "beta * bounds.input_scale) /", "beta) /", SLACK),
    Mutant("rounding down", CERTIFICATE, "DOWN = 1.0 - 2.0**-40", "DOWN = 1.0", SLACK),
    Mutant("overflow", CERTIFICATE,
           "torch.where(largest < bounds.limit, radius, torch.zeros_like(radius))", "radius",
           "certificates/test_certify.py::test_nothing_is_claimed_near_overflow"),
    Mutant("all classes", CERTIFICATE,
           "radius = radii.min(1).values", "radius = radii.gather(1, runner_up[:, None])[:, 0]",
           "certificates/test_certify.py::test_the_nearest_class_need_not_be_the_runner_up"),
    Mutant("residual", SPECTRAL, "(rest + _frobenius(residual)", "(rest", RANDOM),
    Mutant("residual of (3')", SPECTRAL, "(rest + norm", "(rest", SQUARED),
    Mutant("error of G in (3)", SPECTRAL,
           "_frobenius(residual) + error) * UP", "_frobenius(residual)) * UP", GRAM),
    Mutant("error of G in (3')", SPECTRAL, "norm + error) * UP", "norm) * UP", GRAM),
    Mutant("error of G in (4)", SPECTRAL, "trace + 2.0 * error", "trace", GRAM),
    Mutant("imaginary parts in (5)", CONVOLVED,
           "self.pairs.double().abs().sum(1)", "self.pairs.double()[:, 0].abs()",
           "frozen/test_spectral.py::test_t1_convolutions_against_their_jacobian"),
    Mutant("a factorisation that failed", SPECTRAL,
           "cholesky_ex(shifted).info == 0", "cholesky_ex(shifted).info >= 0",
           "frozen/test_spectral.py::test_a_guess_that_is_too_small_is_not_believed"),
    Mutant("denormal bounds", SPECTRAL,
           "DENORMAL = SMALLEST_NORMAL[torch.float64]", "DENORMAL = 0.0",
           "frozen/test_spectral.py::test_t2_adversarial_weights"),
    Mutant("scale of a Normalize layer", "layers/normalize.py",
           "LayerConstants(self.norm() * UP)", "LayerConstants(self.norm() * (1 - 2.0**-40))",
           "frozen/test_spectral.py::test_the_normalisation_is_rounded_up"),
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_a_mutant_is_killed(mutant: Mutant, tmp_path: Path) -> None:
    done = run_test_of(mutant, tmp_path)
    assert done.returncode == 1, done.stdout  # 1: tests ran and failed


def test_every_mutant_is_listed_in_the_documentation() -> None:
    text = (ROOT / "docs" / "soundness.md").read_text()
    for mutant in MUTANTS:
        assert mutant.old in source(mutant).read_text()
        assert f"| {mutant.what} | `{mutant.module}` | `{mutant.test.split('::')[1]}` |" in text
