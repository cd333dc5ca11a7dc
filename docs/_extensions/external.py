"""Prints the addresses outside of the site to which its pages link, each once.

python docs/_extensions/external.py docs/_build/html
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r'(?:href|src)="(https?://[^"#]+)')


def external(site: Path) -> list[str]:
    pages = site.rglob("*.html")
    return sorted({link for page in pages for link in LINK.findall(page.read_text("utf-8"))})


if __name__ == "__main__":
    print(*external(Path(sys.argv[1])), sep="\n")
