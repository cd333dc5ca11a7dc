"""Report: everything in the run folder to report.html, report.md and report.json."""

from typing import Any

from markupsafe import Markup

from unitmargin.certificates.accuracy import HEADLINE_EPSILON
from unitmargin.certificates.epsilons import epsilon_name
from unitmargin.certificates.exhibits import is_image
from unitmargin.foundation.files import file_sha256, write_json, write_text
from unitmargin.reporting import classes, coverage, figures, wording
from unitmargin.reporting.coverage_figure import coverage_figure
from unitmargin.reporting.markdown import units_text
from unitmargin.reporting.pages import render
from unitmargin.reporting.plane import decision_regions
from unitmargin.reporting.summary import Evidence, read_evidence, summarize
from unitmargin.reporting.titles import titles
from unitmargin.runs.folder import HTML_SHA256, MD_SHA256, RunFolder
from unitmargin.runs.recipe import write_recipe


def report_run(folder: RunFolder) -> str:
    """Write report.html, report.md and report.json of a verified run folder.

    report.html is one file that needs no network; report.json holds every number it shows, and the
    hashes of both pages.

    Raises:
        RunError: a file of an earlier step is missing or does not fit the others.
        LockedError: another process writes into the folder.
    """
    evidence = read_evidence(folder)
    summary, measurements = summarize(evidence), evidence.measurements
    content = {
        "run": summary,
        "units_text": units_text(evidence.frozen),
        "tiles": wording.tiles(summary),
        "titles": titles(summary),
        "promises": wording.promises(summary),
        "checks": wording.check_rows(summary),
        "tightness": wording.tightness(summary),
        "headline": epsilon_name(summary["headline_epsilon"]),
        "trained_at": _trained_at(evidence),
        "coverage_about": coverage.ABOUT,
        "coverage_choice": coverage.CHOICE,
        "coverage_advice": coverage.ADVICE,
        "class_rows": classes.shown_classes(summary["by_class"]),
        "mistakes_meaning": classes.MEANING,
        "recipe": write_recipe(evidence.recipe.placeless()),
        "gradient_norms": measurements.gradient_norms,
        "input_range": measurements.input_range,
        "exhibits": measurements.exhibits if is_image(evidence.frozen.in_shape) else [],
        "figures": _figures(evidence, summary),
    }
    html, markdown = (render(f"report.{kind}.jinja", content) for kind in ("html", "md"))
    with folder.hold():
        write_text(folder.report_md, markdown)
        write_text(folder.report_html, html)
        pages = {HTML_SHA256: folder.report_html, MD_SHA256: folder.report_md}
        hashes = {key: file_sha256(page) for key, page in pages.items()}
        write_json(folder.report_json, summary | hashes)
    epsilon = summary["headline_epsilon"]
    share = summary["certified_accuracy"][str(epsilon)]
    return (
        f"report: clean {summary['clean_accuracy']:.4f}, certified@{epsilon_name(epsilon)} "
        f"{share:.4f} -> {folder.report_html}"
    )


def _figures(evidence: Evidence, summary: dict[str, Any]) -> dict[str, Markup]:
    certificates, measurements = evidence.certificates, evidence.measurements
    radius, right = certificates.radius, certificates.right
    table = {float(key): share for key, share in summary["certified_accuracy"].items()}
    drawn = {
        "certified": figures.certified_curve(radius, right, table),
        "coverage": coverage_figure(
            summary["coverage_curve"], summary["samples"], summary["choices"]
        ),
        "margins": figures.margin_histogram(certificates.margin, right),
        "gradients": figures.gradient_norm_histogram(
            measurements.gradient_norms, summary["signed_distance"]
        ),
        "loss": figures.loss_curve(evidence.history),
        "accuracy": figures.accuracy_curve(evidence.history, _trained_at(evidence)),
        "scatter": figures.radius_scatter(evidence.searches),
        "ratios": figures.ratio_histogram(evidence.searches),
        "false_positives": figures.false_positive_bars(summary["false_positives"]),
        "plane": "",
    }
    if measurements.plane is not None:
        exhibits = measurements.exhibits
        drawn["plane"] = decision_regions(measurements.plane, evidence.frozen.classes, exhibits)
    return {name: Markup(figure) for name, figure in drawn.items()}


def _trained_at(evidence: Evidence) -> str:
    """The radius at which a training measures itself, the same in all units, as a text."""
    pixels = HEADLINE_EPSILON in evidence.epsilons.table
    return epsilon_name(HEADLINE_EPSILON) if pixels else f"{HEADLINE_EPSILON:.3g}"
