r"""Numbered equations are targets, and their numbers in the text are links.

An equation is numbered by ``\tag{7}`` in a formula, or by ``(7)`` at the end of a line of a block
that is set as it is typed. Its label is ``equation-PAGE-7``, which docstrings cite.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

TAG = re.compile(r"\\tag\{([^}]+)\}")

LINE_END = re.compile(r" \((C?\d+'?(?:, C?\d+'?)*)\)\s*$", re.MULTILINE)

CITED = re.compile(r"\((C?\d+'?)\)")


def numbers(node: nodes.Element) -> list[str]:
    """The numbers of the equations in a formula or a block."""
    found = (TAG if isinstance(node, nodes.math_block) else LINE_END).findall(node.astext())
    return [number for group in found for number in group.split(", ")]


def displayed(tree: nodes.document) -> Iterator[nodes.Element]:
    yield from tree.findall(nodes.math_block)
    yield from (block for block in tree.findall(nodes.literal_block) if _typed(block))


def _typed(block: nodes.literal_block) -> bool:
    """Whether a block is indented text and no code of a language."""
    return block.get("language") in (None, "default", "none")


def identifier(number: str) -> str:
    return f"equation-{number.lower().replace(chr(39), '-prime')}"


def number_equations(app: Sphinx, tree: nodes.document) -> None:
    page = app.env.current_document.docname
    labels = app.env.domains.standard_domain
    known = set()
    for node in list(displayed(tree)):
        found = numbers(node)
        if not found:
            continue
        if isinstance(node, nodes.literal_block):
            node["language"], node["force"] = "text", True
        else:
            set_lines(node)
        target = nodes.target("", "", ids=[identifier(number) for number in found])
        node.parent.insert(node.parent.index(node), target)
        for number in found:
            known.add(number)
            label = f"equation-{page}-{number.lower()}"
            labels.anonlabels[label] = page, identifier(number)
            labels.labels[label] = page, identifier(number), f"({number})"
    if known:
        link_numbers(tree, known)


def set_lines(formula: nodes.math_block) -> None:
    """A formula of several lines with one number, which is set as such."""
    text = formula.astext()
    lines = TAG.sub("", text).strip()
    if r"\\" in lines:
        (tag,) = TAG.finditer(text)
        formula.children = []
        formula += nodes.Text(rf"\[\begin{{gathered}} {lines} \end{{gathered}} {tag[0]}\]")
        formula["no-wrap"] = True


def link_numbers(tree: nodes.document, known: set[str]) -> None:
    """Numbers in running text lead to their equation on the same page."""
    for text in list(tree.findall(nodes.Text)):
        if _is_plain(text) and CITED.search(text):
            parts: list[nodes.Node] = []
            at = 0
            for found in CITED.finditer(text):
                if found[1] in known:
                    link = nodes.reference("", found[0], internal=True, refid=identifier(found[1]))
                    parts += [nodes.Text(text[at : found.start()]), link]
                    at = found.end()
            text.parent.replace(text, [*parts, nodes.Text(text[at:])])


def _is_plain(text: nodes.Text) -> bool:
    kinds = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.reference,
             nodes.title)  # fmt: skip
    above = text.parent
    while above is not None and not isinstance(above, nodes.document):
        if isinstance(above, kinds):
            return False
        above = above.parent
    return True


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", number_equations)
    return {"parallel_read_safe": True}
