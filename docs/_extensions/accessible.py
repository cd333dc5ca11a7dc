"""HTML that a screen reader and a keyboard can use, where Sphinx's own cannot be."""

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

LINES = {
    "<dl>": '<span class="signature-lines">',
    "</dl>": "</span>",
    "<dd>": '<span class="signature-line">',
    "</dd>": "</span>",
}
"""Tags of a signature of several lines, which Sphinx writes as a list of definitions of nothing."""


class AccessibleTranslator(HTML5Translator):
    """As Sphinx's, but that tables are scrolled by keys, and headings have a level."""

    def visit_title(self, node: nodes.title) -> None:
        begins = len(self.body)
        super().visit_title(node)
        self.replace(begins, {'role="heading"': 'role="heading" aria-level="2"'})

    def starttag(
        self, node: nodes.Element | dict[str, Any], tagname: str, *rest: Any, **attributes: Any
    ) -> str:
        if isinstance(node, nodes.container) and "table-wrapper" in node["classes"]:
            attributes["tabindex"] = "0"
        return str(super().starttag(node, tagname, *rest, **attributes))

    def visit_desc_parameterlist(self, node: addnodes.desc_parameterlist) -> None:
        self.signature_begins = len(self.body)
        super().visit_desc_parameterlist(node)

    def depart_desc_parameterlist(self, node: addnodes.desc_parameterlist) -> None:
        super().depart_desc_parameterlist(node)
        self.replace(self.signature_begins, LINES)

    def replace(self, begins: int, others: dict[str, str]) -> None:
        """Replace text in what was written from a place on."""
        for place in range(begins, len(self.body)):
            for theirs, ours in others.items():
                self.body[place] = self.body[place].replace(theirs, ours)


def scroll_by_keys(app: Sphinx, page: str, template: str, context: Any, tree: Any) -> None:
    """Blocks of code, whoever wrote them, take the focus."""
    if "body" in context:
        context["body"] = context["body"].replace("<pre>", '<pre tabindex="0">')


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", scroll_by_keys)
    app.set_translator("html", AccessibleTranslator)
    return {"parallel_read_safe": True}
