"""The words of a report: numbers as text, and the rows and sentences both documents share.

``run`` is the table made by :func:`unitmargin.reporting.summary.summarize`.
"""

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from markupsafe import Markup, escape

from unitmargin.certificates.epsilons import epsilon_name

CLOSED_FORM, SOLVERS = "closed_form_outside_radius", "solvers_outside_radius"

CHECKS = {
    "orthogonality": ("Every singular value of every layer is 1", "≤"),
    "upd": ("The head's rows are 1 apart, pair by pair", "≤"),
    "unit_gradient": ("The gradient between any two logits has norm 1", "≤"),
    "orthonormal_head": ("The head's rows are orthonormal", "≤"),
    "unit_rows": ("The head's rows have norm 1", "≤"),
    "lipschitz": ("No layer that only promises to be 1-Lipschitz has a norm above 1", "≤"),
    CLOSED_FORM: ("Every closed-form adversarial point lies outside its radius (ratio)", "≥"),
    SOLVERS: ("Every adversarial point of a solver lies outside its radius (ratio)", "≥"),
    "stored_certificates": ("Certificates computed again agree with the stored ones", "≤"),
}
"""Title and direction of the known checks; another one is shown under its own name."""

PROMISES = (
    (
        "Certificate",
        "No input closer to a sample than its certified radius has another label.",
        "Smallest distance / radius of an adversarial point",
        (CLOSED_FORM, SOLVERS),
    ),
    (
        "Unitary gradient",
        "Between any two classes, the difference of the logits has a gradient of norm one almost "
        "everywhere, so that a margin can be read as a distance.",
        "Largest deviation",
        ("unit_gradient",),
    ),
    (
        "Unitary pair difference",
        "The rows of the output layer are all exactly one apart, so that one scale serves every "
        "pair of classes.",
        "Largest deviation",
        ("upd",),
    ),
    (
        "Orthogonal layers",
        "No layer stretches or shrinks a gradient: every singular value is one.",
        "Largest deviation",
        ("orthogonality",),
    ),
)
"""Title, sentence, what is measured, and by which checks, the smallest of which is shown."""

LOWER_BOUNDS = (
    (
        "Lower bounds",
        "This network is 1-Lipschitz and not a signed distance classifier: gradients may shrink on "
        "their way, so a certified radius is a lower bound of the distance and no more.",
        "Smallest distance / radius of a point that a solver found",
        (SOLVERS,),
    ),
    (
        "Orthogonal layers",
        "No layer stretches a gradient: every singular value is one, of layers that grow for "
        "distances alone; residuals combine two paths with weights that add up to one.",
        "Largest deviation",
        ("orthogonality",),
    ),
)
"""The promises of a network without unit gradients."""

SMALLEST_FIXED = 1e-3
"""Below this, three decimals show at most one digit."""

NEAR_ONE = 1e-3
"""A number closer to 1 is written as its deviation, which is what a promise is about."""

TWO_DIGITS, ALL_DIGITS = (Context(prec=count, rounding=ROUND_FLOOR) for count in (2, 400))
"""Rounding down, of the longest numbers behind the point."""

NO_NUMBER = "none"
DIGITS, POWERS = "−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"


def percent(share: float | None) -> str:
    """A share as a percentage with two decimals.

    >>> percent(0.97214), percent(None)
    ('97.21%', 'none')
    """
    return NO_NUMBER if share is None else f"{share:.2%}"


def fixed(value: float | None) -> str:
    """A radius or distance with three decimals; a power of ten where they would not show it.

    >>> fixed(0.6481), fixed(0.00004), fixed(None)
    ('0.648', '4.0 × 10⁻⁵', 'none')
    """
    return scientific(value) if value is None or abs(value) < SMALLEST_FIXED else f"{value:.3f}"


def radius(value: float) -> str:
    """The certified radius of one sample as :func:`fixed` has it, rounded down: a larger one was
    not proved.

    >>> radius(1.08262), radius(0.57), radius(0.00009999)
    ('1.082', '0.570', '9.9 × 10⁻⁵')
    """
    exact = Decimal(repr(value))
    if value < SMALLEST_FIXED:
        return scientific(float(TWO_DIGITS.create_decimal(exact)))
    return f"{exact.quantize(Decimal('0.001'), context=ALL_DIGITS)}"


def spread(mean: float | None, deviation: float | None) -> str:
    """A mean with its standard deviation.

    >>> spread(0.9529, 0.0561)
    '0.953 ± 0.056'
    """
    return NO_NUMBER if mean is None or deviation is None else f"{mean:.3f} ± {deviation:.3f}"


def singular_value(value: float) -> str:
    """Nine decimals: float32 weights deviate in the eighth.

    >>> singular_value(1.0), singular_value(0.99999994)
    ('1', '0.999999940')
    """
    return "1" if value == 1.0 else f"{value:.9f}"


def calls(mean: float | None) -> str:
    """A mean number of passes.

    >>> calls(31.25), calls(None)
    ('31.25', 'none')
    """
    return NO_NUMBER if mean is None else f"{mean:.4g}"


def count(number: int) -> str:
    """A whole number with its thousands marked.

    >>> count(10000)
    '10,000'
    """
    return f"{number:,}"


def epochs(number: int) -> str:
    """A number of epochs, in words.

    >>> epochs(1), epochs(60)
    ('1 epoch', '60 epochs')
    """
    return f"{count(number)} epoch{'' if number == 1 else 's'}"


def seconds(value: float) -> str:
    """A duration in the unit that fits it.

    >>> seconds(0.0413), seconds(75.0), seconds(7260.0)
    ('0.041 s', '1.2 min', '2.0 h')
    """
    if value < 60.0:
        return f"{value:.2g} s"
    return f"{value / 60:.1f} min" if value < 3600.0 else f"{value / 3600:.1f} h"


NOT_FINITE = {math.inf: "∞", -math.inf: "−∞"}


def scientific(value: float | None) -> str:
    """A number of any size, short: a small one, or what it lacks to 1, with its power of ten.

    >>> scientific(3.94e-08), scientific(1.0000001), scientific(0.25)
    ('3.9 × 10⁻⁸', '1 + 1.0 × 10⁻⁷', '0.25')
    """
    if value is None:
        return NO_NUMBER
    if not math.isfinite(value):
        return NOT_FINITE.get(value, "not a number")
    if 0.0 < abs(value - 1.0) < NEAR_ONE:
        return f"1 {'+' if value > 1.0 else '−'} {scientific(abs(value - 1.0))}"
    if value == 0.0 or 1e-2 <= abs(value) < 1e4:
        return f"{value:.6g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa} × {power_of_ten(int(exponent))}"


def bound(value: float) -> str:
    """An upper bound with two digits, rounded up.

    >>> bound(3.14e-12), bound(0.1201), bound(0.0)
    ('3.2 × 10⁻¹²', '0.13', '0')
    """
    if value == 0.0 or not math.isfinite(value):
        return scientific(value)
    exact = Decimal(value)
    digits = Decimal(1).scaleb(exact.adjusted() - 1)
    return scientific(float(exact.quantize(digits, ROUND_CEILING)))


def raise_powers(text: str) -> Markup:
    """The text as HTML, its powers raised by the page: superscript letters are too small to read.

    >>> raise_powers("10⁻⁸ < 1")
    Markup('10<sup>−8</sup> &lt; 1')
    """
    lowered = re.sub(f"[{POWERS}]+", lambda match: f"<sup>{match[0]}</sup>", str(escape(text)))
    return Markup(lowered.translate(str.maketrans(POWERS, DIGITS)))


def power_of_ten(exponent: int) -> str:
    """Ten to a whole power, its exponent in superscript characters.

    >>> power_of_ten(-8)
    '10⁻⁸'
    """
    return "10" + str(exponent).replace("-", "−").translate(str.maketrans(DIGITS, POWERS))


def tiles(run: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The headline numbers: name, value and a note on each."""
    certified = run["certified_accuracy"]
    median, mean = fixed(run["median_certified_radius"]), fixed(run["mean_certified_radius"])
    if run["signed_distance"]:
        error = scientific(run["unit_gradient_error"])
        gradient = ("Unit-gradient error", error, "largest deviation from norm 1")
    else:
        gradient = ("Certificates", "lower bounds", "not a signed distance classifier")
    return [
        ("Clean accuracy", f"{run['clean_accuracy']:.1%}", "of all test samples"),
        *(
            (
                f"Certified at {epsilon_name(epsilon)}",
                f"{certified[str(epsilon)]:.1%}",
                f"right, and constant within ε = {epsilon:.4g}",
            )
            for epsilon in dict.fromkeys((run["headline_epsilon"], run["second_epsilon"]))
        ),
        ("Median certified radius", median, f"of the right predictions; mean {mean}"),
        gradient,
        ("Training", seconds(run["seconds_total"]), epochs(run["epochs"])),
    ]


def promises(run: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """The promises: title, sentence, what was measured, and its value."""
    measured = {row["name"]: row["value"] for row in run["checks"]}
    made = PROMISES if run["signed_distance"] else LOWER_BOUNDS
    shown = []
    for title, sentence, measure, names in made:
        values = [value for name in names if (value := measured.get(name)) is not None]
        shown.append((title, sentence, measure, scientific(min(values, default=None))))
    return shown


def check_rows(run: dict[str, Any]) -> list[dict[str, Any]]:
    """The checks with titles, and numbers as text."""
    rows = []
    for check in run["checks"]:
        title, sign = CHECKS.get(check["name"], (check["name"].replace("_", " "), ""))
        if check["not_run"]:
            words = {"value": "", "bound": "", "result": "not run"}
        else:
            bound = f"{sign} {scientific(check['bound'])}".strip()
            result = "passed" if check["passed"] else "failed"
            words = {"value": scientific(check["value"]), "bound": bound, "result": result}
        detail = check["detail"] or check["not_run"]
        rows.append(check | words | {"title": title, "detail": detail})
    return rows


def tightness(run: dict[str, Any]) -> str:
    """How close the closed form comes to the certified radius, in one or two sentences."""
    found = (
        f"On {count(run['attacked_samples'])} test samples, the closed form and a search further "
        f"along its ray found another label for {run['flipped_share']:.1%}."
    )
    ratio = run["median_distance_ratio"]
    if ratio is None:
        return found
    return (
        f"{found} In the median that point lies at {ratio:.4f} times the certified radius; at a "
        "ratio of 1 the certificate is the exact distance to the decision boundary."
    )
