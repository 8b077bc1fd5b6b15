"""The page of a memory history, in a headless browser: what its script draws, its figures, and that it asks for nothing from outside."""
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from urllib.parse import urlsplit

import naru
import pytest

MIB = 1 << 20
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no headless browser (Debian: apt install chromium), so the page of a memory history is not looked at"
)


# Whom the browser itself asks at its start (no answer is let in).
BROWSERS_OWN = {"update.googleapis.com", "clients2.google.com", "accounts.google.com"}


def browse(page, folder, *arguments):
    """Runs the browser on a file; (standard output, the network requests that its log of events shows)."""
    log = folder / "net.json"
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-default-apps", "--disable-sync", "--disable-extensions", "--window-size=1000,900",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", *arguments, page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": str(folder), "LD_PRELOAD": ""})
    assert done.returncode == 0, done.stderr
    return done.stdout, requested(log)


def requested(log):
    """The addresses that the network stack was asked for, of a page or by it."""
    text = log.read_text(errors="replace")
    return set(re.findall(r'"url":\s*"((?:https?|wss?)://[^"]+)"', text))


class Tree(HTMLParser):
    """Texts by element id, cells by row of the table, and the attributes of every element."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.ids, self.rows, self.open, self.title = [], {}, [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in ("meta", "link", "br", "img"):
            self.open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for tag, name in self.open:
            if name:
                self.ids[name] = self.ids.get(name, "") + data
        if self.open and self.open[-1][0] == "title":
            self.title += data
        if self.open and self.open[-1][0] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A history of 8 MiB, then 2 more, then the 8 given back; and its page, as the browser left it."""
    folder = tmp_path_factory.mktemp("page")
    with naru.memory_history("cuda:0") as history:
        big = naru.ones(2 * MIB, device="cuda:0")
        naru.cuda.synchronize()
        kept = [naru.zeros(MIB // 4, device="cuda:0") for _ in range(2)]
        naru.cuda.synchronize()
        del big
    assert len(kept) == 2
    page = history.page(folder / "memory.html")
    dom, addresses = browse(page, folder, "--dump-dom")
    return history, page, Tree(dom), addresses


def numbers(path):
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


def test_the_timeline_is_drawn_from_the_events(recorded):
    history, _, tree, _ = recorded
    paths = {attributes["class"]: attributes["d"] for tag, attributes in tree.elements if tag == "path"}
    assert set(paths) == {"a", "r"}
    top = max(max(e["allocated"], e["reserved"]) for e in history.events)
    drawn = numbers(paths["a"])[1:-1]  # between the corners of the area: two points an event
    assert len(drawn) == 2 * len(history.events)
    for event, (_, y) in zip(history.events, drawn[::2]):
        assert abs(y - (295 - 285 * event["allocated"] / top)) < 0.01
    across = [x for x, _ in drawn]
    assert across == sorted(across) and abs(across[-1] - 1000) < 0.01
    heights = [y for _, y in numbers(paths["r"])]
    for event, y in zip(history.events, heights[::2]):
        assert abs(y - (295 - 285 * event["reserved"] / top)) < 0.01
    # Up by 8 MiB and twice by 1, down by 8: the second point is lower on the page (less) than the highest.
    assert min(y for _, y in drawn) < drawn[-1][1]


def test_the_table_names_the_largest_holders_by_line_with_their_figures(recorded):
    history, _, tree, _ = recorded
    assert tree.rows[0] == ["line and operator", "most at one time", "allocations"]
    first, second = tree.rows[1][0], tree.rows[2][0]
    assert re.search(r"test_memory_page\.py:\d+", first) and "ones" in first and tree.rows[1][1:] == ["8.00 MiB", "1"]
    assert re.search(r"test_memory_page\.py:\d+", second) and "zeros" in second and tree.rows[2][1:] == ["2.00 MiB", "2"]
    assert len(tree.rows) - 1 == min(20, len(history.holders()))
    peak = max(e["allocated"] for e in history.events)
    assert tree.ids["peak"] == f"{peak / MIB:.2f} MiB" and peak >= 10 * MIB
    assert tree.title == "naru: memory of cuda:0"


def test_pointing_at_the_timeline_tells_the_bytes_at_that_time(recorded, tmp_path):
    """The handler of the mouse is called as the browser would, by a script put behind the page's own."""
    history, page, _, _ = recorded
    move = """<script>
      const last = new MouseEvent("mousemove"); Object.defineProperty(last, "offsetX", {value: svg.clientWidth}); svg.onmousemove(last);
    </script></html>"""
    moved = tmp_path / "moved.html"
    moved.write_text(page.read_text().replace("</html>", move))
    dom, _ = browse(moved, tmp_path, "--dump-dom")
    bytes_at_the_end = history.events[-1]["allocated"] / MIB
    assert f"{bytes_at_the_end:.2f} MiB in tensors." in Tree(dom).ids["at"]


def test_the_page_asks_for_nothing_from_outside(recorded, tmp_path):
    _, page, tree, addresses = recorded
    for tag, attributes in tree.elements:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base"), (tag, attributes)
        assert not {"src", "href", "srcset", "data", "action"} & set(attributes), (tag, attributes)
    assert {urlsplit(a).hostname for a in addresses} <= BROWSERS_OWN, addresses
    # The check can fail: a page that does ask is seen.
    asking = tmp_path / "asking.html"
    asking.write_text(page.read_text().replace("<h1>", '<img src="http://127.0.0.1:9/x.png"><h1>'))
    _, seen = browse(asking, tmp_path, "--dump-dom")
    assert "http://127.0.0.1:9/x.png" in seen


def test_it_is_a_picture_with_both_colours(recorded, tmp_path):
    """A screenshot: the timeline's blue and red are really on the screen."""
    matplotlib_image = pytest.importorskip("matplotlib.image", reason="matplotlib, which reads the screenshot, is not installed")
    _, page, _, _ = recorded
    picture = tmp_path / "page.png"
    browse(page, tmp_path, f"--screenshot={picture}")
    pixels = (matplotlib_image.imread(picture)[..., :3] * 255).astype(int)
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    assert ((blue > 200) & (red < 180) & (green > 150)).sum() > 10_000  # the area, at 60 % over white
    assert ((red > 180) & (green < 140) & (blue < 140)).sum() > 300  # the line
