"""The programs that type checkers read: the demo, the code of the pages, and what tutorials teach (with `import torch`)."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools import doc_blocks  # noqa: E402


def page_text(page):
    """The Python of a page, in order, that is to run and not to raise."""
    blocks = [b for b in doc_blocks.blocks_of(page) if b.language == "python" and not b.rest]
    return "\n\n".join(f"# line {b.line + 1}\n{b.text}" for b in blocks)


def write(folder):
    """Writes all programs into a folder; their paths."""
    found = []
    for page in doc_blocks.all_pages():
        if "ko" in page.parts:
            continue  # the same code
        text = page_text(page)
        if text.strip():
            found.append((re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix(""))), "import naru as torch, naru\n" + text if "import" not in text.split("# line")[1] else text))
        for block in doc_blocks.blocks_of(page):
            if block.file and block.file.endswith(".py") and not block.hidden:
                name = Path(block.file).stem  # by which others import it, unless another page has one of that name
                found.append((f"{page.stem}_{name}".replace("-", "_") if name in dict(found) else name, block.text))
    found += [(f"seed_{p.stem}", p.read_text()) for p in sorted((ROOT / "tests" / "python" / "seeds").glob("*.py"))]
    paths = []
    for name, text in found:
        paths.append(folder / f"{name}.py")
        paths[-1].write_text(text + "\n")
    return paths
