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
TRANSFORMS, ARITHMETIC = "frozen/transforms.py", "layers/arithmetic.py"
NUMBERS, EXTREMES = "layers/test_arithmetic.py", "frozen/test_extremes.py"
ROUNDED_UP = f"{NUMBERS}::test_sums_and_products_of_bounds_are_rounded_up"
UNDERFLOW = f"{EXTREMES}::test_underflow_of_a_convolution_by_hand"
INSIDE = f"{EXTREMES}::test_sums_of_a_transform_do_not_overflow_before_a_small_factor"

MUTANTS = [
    Mutant("head bias", ROUNDING, "_times(norm_sums, incoming.constant) + bias_sums",
           "_times(norm_sums, incoming.constant)", BY_HAND),
    Mutant("rounding of the head, slope", ROUNDING,
           "_times(_times(norm_sums, incoming.slope), relative)", "0.0 * norm_sums", BY_HAND),
    Mutant("rounding of the head, constant", ROUNDING,
           "_times(_times(norm_sums, incoming.constant) + bias_sums, relative)", "0.0 * norm_sums",
           BY_HAND),
    Mutant("roundings of bias and difference", ROUNDING,
           "HEAD_ROUNDINGS = 3", "HEAD_ROUNDINGS = 1", BY_HAND),
    Mutant("hidden bias", DENSE,
           "terms = incoming * constants.absolute + Affine(constants.bias)",
           "terms = incoming * constants.absolute", BY_HAND),
    Mutant("absolute norm", DENSE,
           "terms = incoming * constants.absolute +", "terms =", BY_HAND),
    Mutant("rounding of the hidden bias", DENSE,
           "gamma(inputs + 1, arithmetic.unit)",
           "gamma(inputs, arithmetic.unit)", BY_HAND),
    Mutant("errors before the head", ROUNDING,
           "beta=(beta + _times(distances, error.slope))", "beta=beta", BY_HAND),
    Mutant("bias in the norm", "layers/contract.py",
           "constants.norm + Affine(constants.bias) + error) * UP", "constants.norm + error) * UP",
           "frozen/test_rounding.py::test_norms_cover_the_activations"),
    Mutant("earlier errors", ROUNDING, "total * own.norm + row.error", "row.error",
           "frozen/test_rounding.py::test_errors_of_all_layers_add_up"),
    Mutant("first transform", CONVOLVED,
           "(incoming * turn + lost) * constants.norm +", "", CONVOLUTION),
    Mutant("products of a convolution", CONVOLVED,
           "turned * (sums * constants.absolute)", "Affine()", CONVOLUTION),
    Mutant("bias of a convolution", CONVOLVED,
           "Affine(constants.bias) * gamma(inputs + BIAS_ROUNDINGS, unit)", "Affine()",
           CONVOLUTION),
    Mutant("roundings of the bias of a convolution", CONVOLVED,
           "BIAS_ROUNDINGS = 3", "BIAS_ROUNDINGS = 1", CONVOLUTION),
    Mutant("difference of the complex products", CONVOLVED,
           "gamma(inputs + 1, unit)  #", "gamma(inputs, unit)  #", CONVOLUTION),
    Mutant("second transform", CONVOLVED, "error + summed * turn", "error", CONVOLUTION),
    Mutant("table of the transform", TRANSFORMS,
           "math.sqrt(2.0 * pixels) * stored + ", "", CONVOLUTION),
    Mutant("stage for real input", TRANSFORMS,
           "sum(stages, _signed_stage(REAL_ROUNDINGS, unit))", "sum(stages)", FFT),
    Mutant("scaling of the FFT", TRANSFORMS,
           "halves + scaling + halves * scaling", "halves", FFT),
    Mutant("roundings of an average", "layers/average_pool.py",
           "gamma(entries + POOL_ROUNDINGS, arithmetic.unit)", "0.0",
           "frozen/test_layer_rounding.py::test_an_average_by_hand"),
    Mutant("norm of a combination", COMBINED,
           "(share + product_up(1.0 - share, inner)) * UP", "1.0",
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
           "incoming * gamma(2, arithmetic.unit) + lost", "lost",
           "frozen/test_rounding.py::test_the_normalisation_pays_two_roundings"),
    Mutant("second evaluation", CERTIFICATE, "slack = 2.0 *", "slack = 1.0 *", SLACK),
    Mutant("slope in the radius", CERTIFICATE,
           "pair + beta * bounds.input_scale", "pair", SLACK),
    Mutant("scale of the input", CERTIFICATE,
           "beta * bounds.input_scale + SMALLEST", "beta + SMALLEST", SLACK),
    Mutant("rounding down", CERTIFICATE, "DOWN = 1.0 - 2.0**-40", "DOWN = 1.0", SLACK),
    Mutant("overflow", CERTIFICATE,
           "(largest < bounds.limit) & (radius", "(radius",
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
           "product_up(self.norm(), UP)", "self.norm() * (1 - 2.0**-40)",
           "frozen/test_spectral.py::test_the_normalisation_is_rounded_up"),
    Mutant("range of compounded errors", ARITHMETIC, "if not 0.0 <= share <= 0.5", "if share > 1e9",
           f"{NUMBERS}::test_errors_beyond_their_range_are_refused"),
    Mutant("sign of a bound", ARITHMETIC, "if not value >= 0.0", "if value == 0.5",
           f"{EXTREMES}::test_a_bound_is_a_number_of_at_least_zero"),
    Mutant("sums of squares of many entries", ARITHMETIC,
           " * (1.0 + gamma(wide.shape[1] + 8))", "",
           f"{NUMBERS}::test_norms_of_millions_of_entries_pay_for_their_sum"),
    Mutant("squares that underflow or overflow", ARITHMETIC,
           "divisors = torch.where(largest > 0,", "divisors = largest = torch.where(largest < 0,",
           f"{NUMBERS}::test_norms_of_rows_of_any_magnitude"),
    Mutant("products of bounds that underflow", ARITHMETIC,
           "math.nextafter(one * other, math.inf)", "one * other", ROUNDED_UP),
    Mutant("sums of bounds", ARITHMETIC,
           "math.nextafter(one + other, math.inf)", "one + other", ROUNDED_UP),
    Mutant("Lipschitz bounds that underflow", ROUNDING,
           "lipschitz=_times(distances, product)", "lipschitz=distances * product",
           f"{EXTREMES}::test_a_lipschitz_bound_that_underflows_is_not_zero"),
    Mutant("slopes that underflow", CERTIFICATE, " + SMALLEST) / DOWN", ") / DOWN",
           f"{EXTREMES}::test_a_slope_that_underflows_is_not_lost"),
    Mutant("denormal radii", CERTIFICATE, "& (radius >= SMALLEST)", "& (radius >= 0)",
           f"{EXTREMES}::test_no_radius_is_denormal"),
    Mutant("numbers of the head", ROUNDING,
           "largest = incoming * float(norm_sums.max()) +", "largest =",
           f"{EXTREMES}::test_products_of_the_head_do_not_overflow_inside_a_ball"),
    Mutant("input of a layer", "layers/contract.py",
           "largest + incoming + output", "largest + output",
           f"{EXTREMES}::test_inputs_of_a_layer_count_as_its_output_does"),
    Mutant("numbers inside a transform", CONVOLVED,
           "largest * inside_a_transform(pixels)", "largest", INSIDE),
    Mutant("numbers of the first transform", CONVOLVED,
           "largest = turned + turned * constants", "largest = turned * constants", INSIDE),
    Mutant("numbers before a large deviation", "layers/normalize.py",
           "largest = raw + raw + output", "largest = output",
           f"{EXTREMES}::test_differences_of_a_normalisation_do_not_overflow"),
    Mutant("underflow of a normalisation", "layers/normalize.py",
           "arithmetic.unit) + lost)", "arithmetic.unit))",
           f"{EXTREMES}::test_what_a_normalisation_loses_is_passed_on"),
    Mutant("underflow before a small deviation", "layers/normalize.py",
           " * (1.0 + constants.norm)", "",
           f"{EXTREMES}::test_what_a_difference_loses_is_divided_by_the_deviation"),
    Mutant("underflow of normalised inputs", "frozen/proof.py", "gamma(2)) + lost)", "gamma(2)))",
           f"{EXTREMES}::test_what_a_normalisation_loses_is_passed_on"),
    Mutant("underflow of the first transform", CONVOLVED,
           "(incoming * turn + lost)", "(incoming * turn)", UNDERFLOW),
    Mutant("roundings of what the first transform loses", CONVOLVED,
           "incoming * (1.0 + turn) + lost", "incoming * (1.0 + turn)", UNDERFLOW),
    Mutant("underflow of the second transform", CONVOLVED,
           " + underflow_of_transform(pixels, outputs, arithmetic)", "",
           f"{EXTREMES}::test_underflow_of_what_follows_a_transform"),
    Mutant("underflow of the products of a convolution", CONVOLVED,
           "error + arithmetic.underflow(2 * inputs, pixels * outputs)", "error",
           f"{EXTREMES}::test_underflow_of_what_follows_a_transform"),
    Mutant("underflow of an average", "layers/average_pool.py",
           " + arithmetic.underflow(entries, ENTRIES)", "",
           f"{EXTREMES}::test_what_an_average_loses_is_paid_for"),
    Mutant("underflow of a layer of its own", "layers/contract.py",
           "arithmetic.underflow(1, ENTRIES) if relative else Affine()", "Affine()",
           f"{EXTREMES}::test_a_layer_that_rounds_pays_for_underflow_too"),
    Mutant("roots of an odd stage", TRANSFORMS, "(twiddle + sums)", "sums", FFT),
    Mutant("products of an odd stage", TRANSFORMS,
           "RADIX_ROUNDINGS = 5", "RADIX_ROUNDINGS = 2", FFT),
    Mutant("additions before the real stage", TRANSFORMS,
           "REAL_ROUNDINGS = 5", "REAL_ROUNDINGS = 4", FFT),
    Mutant("conjugates that are kept", TRANSFORMS, "math.sqrt(2.0) * total", "total", FFT),
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
