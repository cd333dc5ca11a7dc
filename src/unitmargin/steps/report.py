"""Report: everything in the run folder to report.html, report.md and report.json."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from unitmargin.certificates.accuracy import HEADLINE_EPSILON
from unitmargin.certificates.exhibits import is_image
from unitmargin.foundation.files import write_json, write_text
from unitmargin.reporting import distance_figures, distances, figures, wording
from unitmargin.reporting.evidence import Evidence, read_evidence
from unitmargin.reporting.gallery import amplification, difference_source, image_source
from unitmargin.reporting.plane import decision_regions
from unitmargin.reporting.summary import summarize
from unitmargin.runs.folder import RunFolder
from unitmargin.runs.recipe import write_recipe

PHRASES = {
    "count": wording.count,
    "epochs": wording.epochs,
    "fixed": wording.fixed,
    "percent": wording.percent,
    "seconds": wording.seconds,
}
"""Numbers to words, as functions of the templates."""


def report_run(folder: RunFolder) -> str:
    """Write report.html, report.md and report.json of a verified run folder.

    report.html is one file that needs no network; report.json holds every number it shows.

    Raises:
        RunError: a file of an earlier step is missing or does not fit the others.
    """
    evidence = read_evidence(folder)
    summary = summarize(evidence)
    content = _content(evidence, summary)
    page = content | {"figures": _figures(evidence, summary), "exhibits": _pictures(evidence)}
    templates = _templates()
    html = templates.get_template("report.html.jinja").render(page)
    markdown = templates.get_template("report.md.jinja").render(content)
    write_json(folder.report_json, summary)
    write_text(folder.report_md, markdown)
    write_text(folder.report_html, html)
    certified = summary["certified_accuracy"][str(HEADLINE_EPSILON)]
    return (
        f"report: clean {summary['clean_accuracy']:.4f}, certified@36/255 {certified:.4f} "
        f"-> {folder.report_html}"
    )


def _content(evidence: Evidence, summary: dict[str, Any]) -> dict[str, Any]:
    return {
        "run": summary,
        "tiles": wording.tiles(summary, HEADLINE_EPSILON),
        "promises": wording.promises(summary),
        "accuracy": wording.accuracy_rows(summary),
        "checks": wording.check_rows(summary),
        "tried": sum(not check.get("skipped") for check in summary["checks"]),
        "layers": wording.layer_rows(summary),
        "tightness": wording.tightness(summary),
        "solver_rows": distances.solver_rows(summary),
        "false_positive_rows": distances.false_positive_rows(summary),
        "unit_gradient": all(
            check["passed"] for check in summary["checks"] if check["name"] == "unit_gradient"
        ),
        "headline": wording.epsilon_name(HEADLINE_EPSILON),
        "recipe": write_recipe(evidence.recipe),
        "gradient_samples": len(evidence.measurements.gradient_norms),
    }


def _figures(evidence: Evidence, summary: dict[str, Any]) -> dict[str, Markup]:
    certificates, measurements = evidence.certificates, evidence.measurements
    radius, right = certificates.radius, certificates.right
    table = {float(key): share for key, share in summary["certified_accuracy"].items()}
    headline = wording.epsilon_name(HEADLINE_EPSILON)
    drawn = {
        "certified": figures.certified_curve(radius, right, table),
        "margins": figures.margin_histogram(certificates.margin, right),
        "gradients": figures.gradient_norm_histogram(measurements.gradient_norms),
        "loss": figures.loss_curve(evidence.history),
        "accuracy": figures.accuracy_curve(evidence.history, headline),
        "scatter": distance_figures.radius_scatter(evidence.searches),
        "ratios": distance_figures.ratio_histogram(evidence.searches),
        "false_positives": distance_figures.false_positive_bars(summary["false_positives"]),
        "plane": "",
    }
    if measurements.plane is not None:
        exhibits = measurements.exhibits
        drawn["plane"] = decision_regions(measurements.plane, evidence.frozen.classes, exhibits)
    return {name: Markup(figure) for name, figure in drawn.items()}


def _pictures(evidence: Evidence) -> list[dict[str, Any]]:
    if not is_image(evidence.frozen.in_shape):
        return []
    return [
        {
            "index": exhibit.index,
            "why": exhibit.why,
            "label": exhibit.label,
            "predicted": exhibit.predicted,
            "other": exhibit.other,
            "mistaken": exhibit.label != exhibit.predicted,
            "radius": wording.fixed(exhibit.radius),
            "distance": None if exhibit.distance is None else wording.fixed(exhibit.distance),
            "original": image_source(exhibit.original),
            "adversarial": image_source(exhibit.adversarial),
            "difference": difference_source(exhibit),
            "factor": amplification(exhibit),
        }
        for exhibit in evidence.measurements.exhibits
    ]


def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("unitmargin.reporting"),
        autoescape=select_autoescape(enabled_extensions=("html.jinja",)),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.globals.update(PHRASES)
    environment.filters["raised"] = wording.raise_powers
    return environment
