"""How Sphinx builds the site (./run docs): pages of Markdown (MyST), Furo's look, a reference from docstrings."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs"
sys.path[:0] = [str(ROOT / "python"), str(ROOT)]

from naru.version import __version__  # noqa: E402

project, author, release = "naru", "naru's authors", str(__version__)
project_copyright = "naru's authors; Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
myst_enable_extensions = ["strikethrough"]
html_theme = "furo"
html_title = "naru"
html_show_sphinx = False
html_copy_source = False
templates_path = ["_templates"]
exclude_patterns = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/languages.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
autodoc_member_order = "alphabetical"
autodoc_typehints = "none"
# Names that the bindings' signatures use are no documents of ours to link to; what shows output has no language.
suppress_warnings = ["ref.python", "misc.highlighting_failure", "myst.strikethrough"]


def plain(text: str) -> str:
    """Prose of a docstring as reStructuredText: what is in backquotes is code, and nothing else means anything."""
    parts = re.split(r"`+([^`]+)`+", text)
    return "".join(
        f" ``{p.strip()}`` " if i % 2 else re.sub(r"([*|_\\])", r"\\\1", p) for i, p in enumerate(parts)
    ).replace("  ", " ")


def docstring(app, what, name, obj, options, lines):
    """Docstrings are plain text with examples; sections (Args:, Raises:) are Napoleon's, which comes behind this."""
    found, example = [], False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        indent = line[: len(line) - len(line.lstrip())]
        if example or not line.strip():
            found.append(line)
        elif re.match(r"[A-Za-z_]\w*\(.*\)( -> .*)?$", line):
            found.append(f"``{line}``")  # a further signature
        else:
            found.append(indent + plain(line.strip()).strip())
    lines[:] = found


def languages(app, page, template, context, doctree):
    """The page in the other language, where there is one; else that language's first page."""
    korean = page.startswith("ko/") or page == "ko"
    other = page.removeprefix("ko/") if korean else f"ko/{page}"
    have = app.env.found_docs
    context["language"] = "ko" if korean else "en"
    context["korean"] = korean
    # The contents of the page's language alone: the Korean part is the last one of index.md.
    before, *parts = context["furo_navigation_tree"].split('<p class="caption"')
    context["furo_navigation_tree"] = before + "".join(
        '<p class="caption"' + p for p in (parts[-1:] if korean else parts[:-1])
    )
    context["other_page"] = other if other in have else "index" if korean else "ko/index"


def setup(app):
    app.connect("autodoc-process-docstring", docstring, priority=100)
    app.connect("html-page-context", languages, priority=900)  # behind the theme's
    return {"parallel_read_safe": True}
