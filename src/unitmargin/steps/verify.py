"""Verify: try to break a frozen network's promises; checks.json, solvers.csv, exit status."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from unitmargin.auditing.audit import Audit, audit
from unitmargin.auditing.finding import Finding, at_most, not_run
from unitmargin.auditing.gradients import UNIT_GRADIENT_TOLERANCE, pair_gradient_norms
from unitmargin.certificates.exhibits import closed_form_reach, is_image, make_exhibits
from unitmargin.certificates.findings import (
    CLOSED_FORM,
    closed_form_finding,
    rounding_finding,
    search_finding,
)
from unitmargin.certificates.plane import PLANE_SHAPE, sample_plane
from unitmargin.certificates.stored import stored_finding
from unitmargin.certificates.tightness import (
    Search,
    describe,
    tightness,
)
from unitmargin.data import Samples
from unitmargin.frozen import FrozenNetwork
from unitmargin.layers.promises import GNP, LIPSCHITZ, SCALING, UPD
from unitmargin.runs.certificates import Certificates
from unitmargin.runs.certified import certified_samples
from unitmargin.runs.findings import Findings
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.lock import PATIENCE
from unitmargin.runs.measurements import Measurements
from unitmargin.runs.provenance import provenance
from unitmargin.runs.recipe import Recipe
from unitmargin.runs.searches import write_searches
from unitmargin.runs.searching import (
    DEFAULT_SOLVERS,
    BoxChoice,
    choose_boxes,
    choose_solvers,
    choose_spaces,
    search_all,
)
from unitmargin.training.processes import joined_processes

GRADIENT_SAMPLES = 256
"""Test samples whose pairwise gradient norms the report draws."""

CLOSED_FORM_SAMPLES = 128
"""Test samples on which the reach of the closed form is measured: each takes about eleven
float64 forward passes."""


def verify(
    frozen: FrozenNetwork,
    samples: Samples,
    stored: Certificates | None = None,
    index: Tensor | None = None,
) -> list[Finding]:
    """Measure every promise of a frozen network on the given samples.

    Args:
        frozen: the deployed network.
        samples: inputs on which gradients are measured and certificates attacked.
        stored: certificates of the same samples, to be compared.
        index: numbers of the samples among the test samples, by which findings name them.

    Cost: a backward pass for each of up to 100 classes, and about 15 float64 forward passes.
    """
    inputs, _ = samples.batch(slice(0, len(samples)))
    figures = audit(frozen.in_float64(), inputs.double())
    findings = [
        at_most(GNP.finding, figures.orthogonality_error, GNP.tolerance),
        at_most(figures.head.finding, figures.head_error, figures.head.tolerance),
    ]
    if figures.signed_distance:
        unit = at_most("unit_gradient", figures.unit_gradient_error, UNIT_GRADIENT_TOLERANCE)
        findings += [unit, closed_form_finding(frozen, inputs, index)]
    else:
        findings += _lower_bound_findings(figures)
    if stored is not None:
        findings.append(stored_finding(frozen, inputs, stored.claims(), index))
    return findings


def _lower_bound_findings(figures: Audit) -> list[Finding]:
    """What is left to check of a network that is 1-Lipschitz and no more."""
    findings = [at_most(LIPSCHITZ.finding, figures.lipschitz_error, LIPSCHITZ.tolerance)]
    if figures.head != UPD:
        words = figures.head.name.replace("_", " ")
        findings.append(not_run(UPD.finding, f"the head promises {words}"))
    layers = sorted({row.kind for row in figures.layers if not row.gnp and row.promise != SCALING})
    reason = "not a signed distance classifier: " + (
        f"{', '.join(layers)} not GNP" if layers else "no UPD head"
    )
    return [*findings, not_run("unit_gradient", reason), not_run(CLOSED_FORM, reason)]


def measure(
    frozen: FrozenNetwork, test: Samples, certificates: Certificates, model_sha256: str
) -> Measurements:
    """What the report shows of a network and its test samples, beside what was found.

    Cost: the gradients of up to 100 classes at 256 samples, and 11 float64 forward passes of 136.
    """
    drawn, _ = test.batch(test.spread(GRADIENT_SAMPLES))
    tried = test.spread(CLOSED_FORM_SAMPLES)
    plane = frozen.in_shape == PLANE_SHAPE
    shown = plane or is_image(frozen.in_shape)
    right, radius = certificates.right, certificates.radius
    exhibits = make_exhibits(frozen, test, radius, right) if shown else ()
    layers = frozen.facts.get("layers") or [
        [row.kind, row.smallest, row.largest] for row in audit(frozen).layers
    ]
    return Measurements(
        model_sha256=model_sha256,
        reach=closed_form_reach(frozen, test.batch(tried)[0], radius[tried]),
        input_range=[float(end) / test.scale for end in test.ends()],
        layers=layers,
        gradient_norms=pair_gradient_norms(frozen.in_float64(), drawn.double()),
        exhibits=list(exhibits),
        plane=sample_plane(frozen, test, exhibits) if plane else None,
    )


def verify_run(
    folder: RunFolder,
    solvers: Sequence[str] = DEFAULT_SOLVERS,
    n_samples: int | None = None,
    box: BoxChoice = "auto",
    rounding: bool = False,
    data: Path | None = None,
    normalised: bool = False,
    whole: Sequence[str] = (),
) -> tuple[str, bool]:
    """Try to break the promises of a run folder; the message, and whether all were kept.

    Of several processes each searches its share of the samples; the first does all else.

    Args:
        folder: a certified run.
        solvers: names of ``SOLVERS``, with options as in ``sphere_tracing:steps=300``; see
            :func:`read_choice`.
        n_samples: test samples to be attacked, spread evenly; default: the recipe's.
        box: "auto" searches without a box, and within [0, 1] where the data lie in it; "off"
            only without, "only" only within.
        rounding: add the rounding attack, thousands of forward passes a sample.
        data: where the data set is, if it has moved since the training.
        normalised: search behind the input normalisation as well, where the paper measures its
            norm rows; see :func:`normalised_space`.
        whole: names of solvers that search all test samples.

    Raises:
        ValueError: an unknown solver or option, fewer than one sample, a box that the data leave,
            no space behind a normalisation where one is asked for.
        RunError: a file of an earlier step is missing, damaged, or of another model or data set.
        LockedError: another process writes into the folder.

    Cost: that of the solvers, for the default at most 90 forward and backward passes a sample and
    box, 22 to 33 on digits and CIFAR-10, of inputs of at most eight entries up to 17 times as many;
    and that of :func:`measure`.
    """
    choices = choose_solvers(solvers)
    recipe = folder.recipe()
    frozen, sha256 = folder.hashed_frozen()
    spaces = choose_spaces(frozen, normalised)
    count = _count(recipe, n_samples)
    certificates = folder.certificates()
    test = certified_samples(folder, frozen, certificates, data)
    boxes = choose_boxes(test, box)
    chosen = test.spread(count)
    inputs, labels = test.batch(chosen)
    folder.require_free()
    everything = test.spread(len(test))
    asked = [
        (space, everything if choice.name in whole else chosen, choice, at)
        for space in spaces
        for at in boxes
        for choice in choices
    ]
    searches = search_all(test, certificates, asked)
    processes = joined_processes()
    if not processes.first:
        processes.wait()
        return "", True
    found = verify(frozen, Samples(inputs, labels), certificates.at(chosen), chosen)
    found.append(search_finding(searches))
    if rounding:
        found.append(rounding_finding(frozen, inputs, chosen))
    findings = _findings(found, searches, len(inputs), sha256)
    measurements = measure(frozen, test, certificates, sha256)
    with folder.hold(PATIENCE):
        write_searches(folder.solvers_file, searches)
        measurements.write(folder.measurements_file)
        findings.write(folder.checks_file)
    processes.wait()
    return _message(folder, findings, searches), findings.passed


def _findings(
    found: Sequence[Finding], searches: Sequence[Search], samples: int, model_sha256: str
) -> Findings:
    """What checks.json says."""
    return Findings(
        passed=not any(row.failed for row in found),
        samples=samples,
        **provenance(),
        model_sha256=model_sha256,
        checks=list(found),
        solvers=[describe(search) for search in searches],
    )


def _count(recipe: Recipe, n_samples: int | None) -> int:
    """How many samples are attacked."""
    count = recipe.verify_samples if n_samples is None else n_samples
    if count < 1:
        raise ValueError(f"samples must be at least 1, got {count}; leave it out for the recipe's")
    return count


def _message(folder: RunFolder, findings: Findings, searches: Sequence[Search]) -> str:
    lines = []
    for search in searches:
        figures = tightness(search)
        ratio = (
            f"certificate / distance {figures.mean:.4f} ± {figures.spread:.4f}, "
            f"smallest {figures.smallest:.4f}; "
        )
        found = f"found {figures.n} of {figures.right}"
        lines.append(f"verify: {search}: {ratio if figures.n else ''}{found}")
    failed = [row for row in findings.checks if row.failed]
    lines += [f"verify: FAILED {row.name}: {row.detail}" for row in failed]
    left_out = [row for row in findings.checks if row.not_run]
    for reason in dict.fromkeys(row.not_run for row in left_out):
        names = ", ".join(row.name for row in left_out if row.not_run == reason)
        lines.append(f"verify: not run {names}: {reason}")
    tried = len(findings.checks) - len(left_out)
    lines.append(
        f"verify: {tried - len(failed)} of {tried} checks passed on {findings.samples} samples "
        f"-> {folder.checks_file}"
    )
    return "\n".join(lines)
