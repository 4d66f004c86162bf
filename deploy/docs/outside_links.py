"""A hook of MkDocs: links to files outside docs/, which the site does not have, become their names.

https://www.mkdocs.org/user-guide/configuration/#hooks
"""

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the text of a page; a link that leaves docs/ is its words and the path in the repository."""
    levels = page.file.src_uri.count("/") + 1

    def named(link: re.Match[str]) -> str:
        path = link[2].replace("../", "")
        return f"{link[1]} (`{path}`)" if link[2].count("../") >= levels else link[0]

    return OUTSIDE.sub(named, markdown)
