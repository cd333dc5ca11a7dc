"""Pages: the templates of this room, filled with content, numbers in its words."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from unitmargin.certificates.epsilons import epsilon_name
from unitmargin.reporting import gallery, statistics, wording
from unitmargin.reporting.markdown import plain_text

PHRASES = (
    epsilon_name, wording.calls, wording.count, wording.epochs, wording.fixed, wording.percent,
    wording.radius, wording.seconds, wording.singular_value, wording.spread,
    statistics.interval, statistics.signed,
    gallery.amplification, gallery.difference_source, gallery.image_source, gallery.shown_range,
)  # fmt: skip
"""Numbers to words and tensors to pictures, as functions of the templates."""


def render(template: str, content: Mapping[str, Any]) -> str:
    """The text of a template; of a page in HTML, all that is filled in is escaped."""
    environment = Environment(
        loader=PackageLoader("unitmargin.reporting"),
        autoescape=select_autoescape(enabled_extensions=("html.jinja",)),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.globals.update({phrase.__name__: phrase for phrase in PHRASES})
    environment.filters["plain"] = plain_text
    environment.filters["raised"] = wording.raise_powers
    return environment.get_template(template).render(content)
