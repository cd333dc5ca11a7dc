"""Links from a page to a file of the repository outside of ``docs/``.

A file that is a page of the site as well is linked to there; any other one is named and no link,
since a site does not hold the repository.
"""

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

PAGES = {
    "CHANGELOG.md": "project/changelog",
    "CONTRIBUTING.md": "project/contributing",
    "SECURITY.md": "project/security",
    "examples/deployment/README.md": "project/other-languages",
}
"""Where a page of the site includes a file of the repository."""


def link_files(app: Sphinx, tree: nodes.document) -> None:
    page = app.env.current_document.docname
    for link in [*tree.findall(addnodes.download_reference), *tree.findall(addnodes.pending_xref)]:
        name = outside(app, page, str(link.get("reftarget", "")))
        if name is None:
            continue
        if name in PAGES:
            uri = app.builder.get_relative_uri(page, PAGES[name])
            link.replace_self(nodes.reference("", "", *link.children, internal=True, refuri=uri))
        else:
            link.replace_self(nodes.inline("", "", *link.children))


def outside(app: Sphinx, page: str, target: str) -> str | None:
    """The name of the file of the repository, outside of docs/, that a link of a page leads to."""
    root = Path(app.srcdir).parent
    folder = (Path(app.srcdir) / page).parent
    for file in (folder / target, folder / f"{target}.md"):
        found = file.resolve()
        inside = found.is_relative_to(app.srcdir) or not found.is_relative_to(root)
        if found.is_file() and not inside:
            return str(found.relative_to(root))
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", link_files)
    return {"parallel_read_safe": True}
