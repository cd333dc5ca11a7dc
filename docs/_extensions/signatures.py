"""Signatures as a caller needs them.

Of a solver the name and its options: its problem is made by ``minimal_perturbation``, and its
module is no place to call it from. Of options the types: their rules are said in words.
"""

import inspect
import re
from inspect import Parameter
from typing import TYPE_CHECKING, Any, get_type_hints

from unitmargin.foundation.options import Options

if TYPE_CHECKING:
    from sphinx import addnodes
    from sphinx.application import Sphinx

SOLVERS = "unitmargin.solvers."

PROBLEM = re.compile(r"^\(problem: [^,)]*(?:, \*, )?")

OPTIONAL = re.compile(r"Optional\[([^\[\]]*)\]")


def without_rules(kind: type[Options]) -> str:
    """The fields of options with their types and defaults."""
    types = get_type_hints(kind)
    fields = []
    for name, field in kind.model_fields.items():
        given = field.get_default(call_default_factory=True)
        one = Parameter(name, Parameter.KEYWORD_ONLY, annotation=types[name])
        fields.append(one if field.is_required() else one.replace(default=given))
    shown = OPTIONAL.sub(r"\1 | None", str(inspect.Signature(fields)))
    return re.sub(r"\bunitmargin\.", "~unitmargin.", shown)


def process(
    app: "Sphinx", what: str, name: str, obj: Any, options: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    if inspect.isclass(obj) and issubclass(obj, Options):
        return without_rules(obj), ""
    if name.startswith(SOLVERS) and PROBLEM.match(signature or ""):
        return PROBLEM.sub("(", signature), ""
    return None


def without_module(app: "Sphinx", domain: str, kind: str, content: "addnodes.desc_content") -> None:
    """A solver by its name alone, as it is passed."""
    from sphinx.addnodes import desc_addname, desc_signature

    for line in content.parent.findall(desc_signature):
        if kind == "function" and line.get("module", "").startswith(SOLVERS):
            for module in list(line.findall(desc_addname)):
                line.remove(module)


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("autodoc-process-signature", process)
    app.connect("object-description-transform", without_module)
    return {"parallel_read_safe": True}
