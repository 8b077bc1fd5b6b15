"""The pages of memory histories and profiles in a headless browser: what they draw is compared with the data."""
import html
import json
import re
import time
from urllib.parse import urlsplit

import naru
import pytest
from browser import BROWSERS_OWN, browse, needs_browser
from naru._device._history_files import ROLES, write_page

pytestmark = needs_browser
MIB = 1 << 20
WIDTHS = (360, 800, 1280)

# Probes that run in the page: the most frequent color around a point, sizes, texts.
PROBE = """
(() => {
  const of = JSON.parse(document.getElementById("asked").textContent), memory = charts.find(c => c.panel.kind === "memory");
  const colour = (chart, x, y) => {
    const scale = window.devicePixelRatio || 1, found = {};
    const pixels = chart.canvas.getContext("2d").getImageData(Math.round(x * scale) - 2, Math.round(y * scale) - 4, 5, 9).data;
    for (let i = 0; i < pixels.length; i += 4) { const key = [pixels[i], pixels[i + 1], pixels[i + 2], pixels[i + 3]].join(); found[key] = (found[key] || 0) + 1; }
    return Object.entries(found).sort((a, b) => b[1] - a[1])[0][0];
  };
  // The texts of a picture: [text, left, right, top].
  const texts = chart => {
    const found = [], prototype = CanvasRenderingContext2D.prototype, plain = prototype.fillText;
    prototype.fillText = function (text, x, y) { const w = this.measureText(text).width; found.push([text, x - w * ({center: 0.5, right: 1}[this.textAlign] || 0), w, y - (this.textBaseline === "middle" ? 6 : 0)]); };
    try { chart.draw(); } finally { prototype.fillText = plain; }
    return found.map(([text, left, w, y]) => [text, left, left + w, y]);
  };
  const told = (chart, ms) => { chart.point(chart.x(ms), chart.y ? chart.y(1) : 60); return chart.info.textContent; };
  const out = {overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth, title: document.title};
  const p = memory.panel, [first, peak] = [axis.of(0), axis.of(p.t[p.peak])];
  out.by_event = [first, Math.abs(axis.ms(peak) - p.t[p.peak]) < 1e-9];
  document.querySelector('[data-axis="by time"]').click();
  look(p.t[p.peak], p.t[p.peak + 1] || whole.to); memory.draw();  // nothing but the peak
  out.colours = of.points.map(bytes => colour(memory, memory.left + memory.width / 2, memory.y(bytes)));
  look(whole.from, whole.to);
  out.texts = texts(memory);
  out.told = of.times.map(ms => told(memory, ms));
  out.peak = document.getElementById("peak").textContent; out.rows = [...document.querySelectorAll("#holders tr")].map(r => [...r.cells].map(c => c.textContent));
  out.blocks = [...document.querySelectorAll("#blocks tr")].slice(1).map(r => [...r.cells].map(c => c.textContent));
  out.legend = [...document.querySelectorAll(".legend li")].map(l => l.textContent);
  out.charts = charts.length; out.spans = charts.filter(c => c.panel.kind === "spans").flatMap(c => c.rows.map(r => [r.track.name, r.track.spans.length]));
  const before = view.to - view.from; memory.canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -200, cancelable: true})); out.zoomed = (view.to - view.from) / before;
  document.querySelector('[data-mode="by block"]').click(); memory.draw();
  look(whole.from, whole.to); charts.forEach(c => c.draw());
  out.block_colours = of.blocks.map(([ms, bytes]) => colour(memory, memory.x(ms), memory.y(bytes)));
  return out;
})()
"""


def looked_at(page, folder, points=(), times=(), blocks=(), widths=WIDTHS, probe=PROBE):
    """What a probe says of a page at each width, and whom the page asked."""
    asked = f'<script type="application/json" id="asked">{json.dumps({"points": list(points), "times": list(times), "blocks": list(blocks)})}</script></body>'
    text = html.escape(page.read_text().replace("</body>", asked))
    frames = "".join(f'<iframe width="{w}" height="700" srcdoc="{text}"></iframe>' for w in widths)
    script = f"""
      const inside = f => {{ try {{ return f.eval({json.dumps(probe)}); }} catch (error) {{ return {{error: error.stack}}; }} }};
      onload = () => {{ document.getElementById("out").textContent = JSON.stringify([...document.querySelectorAll("iframe")].map(f => inside(f.contentWindow))); }};
    """
    outer = folder / "outer.html"
    outer.write_text(f"<!doctype html><meta charset=utf-8><pre id=out></pre>{frames}<script>{script}</script>")
    dom, addresses = browse(outer, folder)
    found = json.loads(html.unescape(re.search(r'<pre id="out">(.*?)</pre>', dom, re.S)[1]))
    assert not any("error" in f for f in found), found
    return found, addresses


def rgb(text):
    return ",".join(str(int(text[i : i + 2], 16)) for i in (1, 3, 5)) + ",255"


def colours(page):
    listed = dict(re.findall(r'\["([a-z ]+)", "(#[0-9a-f]{6})"\]', page.read_text()))
    assert set(listed) == set(ROLES)
    return {role: rgb(colour) for role, colour in listed.items()}


class Block(naru.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = naru.nn.Linear(256, 1024), naru.nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A few steps of training, and the page as the browser shows it at three widths."""
    folder = tmp_path_factory.mktemp("page")
    with naru.memory_history("cuda:0") as history:
        kept = naru.ones(MIB, device="cuda:0")
        naru.cuda.synchronize()
        model = naru.nn.Sequential(Block(), Block()).to("cuda:0")
        optimizer = naru.optim.Adam(model.parameters())
        for _ in range(3):
            loss = model(naru.randn(512, 256, device="cuda:0")).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        history.mark("the end")
        del kept
    page = history.page(folder / "memory.html")
    events = [e for e in history.events if e["seconds"] > 0]
    peak = max(range(len(events)), key=lambda i: events[i]["allocated"])
    held = dict.fromkeys(ROLES, 0)
    for event in history.events[: history.events.index(events[peak]) + 1]:
        held[event["role"]] += event["bytes"]
    # The middle of each band of the stack at the peak.
    points, base = [], 0
    for role in ROLES:
        points.append(base + held[role] / 2)
        base += held[role]
    run = history.run()["panels"][0]
    first = next(row for row in run["events"] if row[1] == 4 * MIB)
    blocks = [((first[0] + run["events"][-1][0]) / 2, first[6] + 2 * MIB)]
    # Between the peak and the next event, since converting to a pixel and back rounds.
    times = [(events[peak]["seconds"] + events[peak + 1]["seconds"]) / 2 * 1e3, run["events"][-1][0] + 1]
    found, addresses = looked_at(page, folder, points, times, blocks)
    return history, page, events[peak], held, found, addresses


def test_what_is_drawn_is_what_was_held_by_what_it_was_for_at_three_widths(recorded):
    _, page, _, held, found, _ = recorded
    wanted = colours(page)
    shown = [role for role in ROLES if held[role] > MIB]  # bands high enough to sample a pixel's color
    assert {"parameter", "optimizer state", "gradient", "activation", "other"} >= set(shown) >= {"parameter", "optimizer state", "activation", "other"}
    for at_width in found:
        drawn = dict(zip(ROLES, at_width["colours"]))
        assert {role: drawn[role] for role in shown} == {role: wanted[role] for role in shown}
        assert at_width["block_colours"] == [wanted["other"]]  # `kept`, at its address in memory
        assert at_width["overflow"] <= 0, "the page is wider than the screen"
        assert at_width["legend"] == ["cache", *reversed(ROLES)]
        assert 0 < at_width["zoomed"] < 1
        assert at_width["by_event"] == [0, True]


def test_axes_have_units_steps_are_marked_and_no_text_hides_another_at_three_widths(recorded):
    for width, at_width in zip(WIDTHS, recorded[4]):
        texts = at_width["texts"]
        words = [text for text, *_ in texts]
        assert {"0", "peak " + at_width["peak"]} < set(words) and any(w.startswith("step ") for w in words)
        assert all(re.fullmatch(r"0|step \d|the end|peak .*|-?[\d.]+ (bytes|[KMG]iB|s|ms|µs)", word) for word in words), words
        assert sum(word.endswith("iB") for word in words) > 1 and sum(word.endswith("s") for word in words) > 1
        for i, (text, left, right, top) in enumerate(texts):
            assert left >= 0 and right <= width, text
            hidden = [other[0] for other in texts[:i] if abs(other[3] - top) < 11 and left < other[2] and other[1] < right]
            assert hidden == [], (width, text, hidden)


def test_the_figures_of_the_page_are_those_of_the_history(recorded):
    history, _, peak, held, found, _ = recorded
    one = found[0]
    assert one["peak"] == f"{peak['allocated'] / MIB:.2f} MiB" and one["title"] == "naru: memory of cuda:0"
    assert one["told"][0].startswith("At ") and f"{peak['allocated'] / MIB:.2f} MiB in tensors." in one["told"][0]
    for role in ROLES:
        if held[role] >= MIB:
            assert f"{role} {held[role] / MIB:.2f} MiB" in one["told"][0]
    assert f"{history.events[-1]['allocated'] / MIB:.2f} MiB in tensors." in one["told"][1]
    # The greatest holders, by line.
    name, most, count = history.holders()[0]
    assert one["rows"][0] == ["line and operator", "most at one time", "allocations", "kind"]
    assert one["rows"][1][:3] == [one["rows"][1][0], f"{most / MIB:.2f} MiB", str(count)] and one["rows"][1][0].startswith(name)
    # What was held at the peak: modules and parameter names.
    assert any(row[1] == "activation" and row[2] == "Sequential.1" for row in one["blocks"])
    assert any(row[0].startswith("Sequential.0.up.weight") and row[1] == "parameter" for row in one["blocks"])
    assert any(row[0].startswith("exp_avg of Sequential.1.") and row[1] == "optimizer state" for row in one["blocks"])


def test_the_page_asks_for_nothing_from_outside(recorded, tmp_path):
    _, page, _, _, _, addresses = recorded
    assert not re.search(r"<(?:link|img|object|embed|base)\b|\bsrc=|@import|https?://", page.read_text())
    assert all(urlsplit(a).hostname.endswith(BROWSERS_OWN) for a in addresses), addresses
    # Make sure that the check can fail: a page that does make a request is detected.
    asking = tmp_path / "asking.html"
    asking.write_text(page.read_text().replace("<h1 ", '<img src="http://127.0.0.1:9/x.png"><h1 '))
    assert "http://127.0.0.1:9/x.png" in browse(asking, tmp_path)[1]


def test_two_runs_stand_on_one_page_with_what_grew_and_a_profile_has_a_timeline(tmp_path):
    def run(n, name):
        with naru.memory_history("cuda:0", name) as history:
            x = naru.ones(n, device="cuda:0")
            naru.cuda.synchronize()
            del x
            time.sleep(0.01)
            history.mark("behind all allocations")
        return history

    before = run(MIB, "before").save(tmp_path / "before.json")
    page = naru.memory_history.compare(tmp_path / "both.html", before, run(3 * MIB, "after"))
    found, _ = looked_at(page, tmp_path, widths=(800,))
    assert found[0]["charts"] == 2 and found[0]["rows"][0] == ["line and operator", "before", "after", "grew by"]
    assert found[0]["rows"][1][1:] == ["4.00 MiB", "12.00 MiB", "+8.00 MiB"]
    assert "behind all allocations" in [text for text, *_ in found[0]["texts"]]
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="no file of memory_history.save"):
        naru.memory_history.compare(tmp_path / "no.html", tmp_path / "other.json")

    with naru.profiler.profile(profile_memory=True) as profile:
        x = naru.ones(1000, device="cuda:0")
        ((x + 1) * 2).sum().item()
    profile.export_page(tmp_path / "profile.html")
    found, _ = looked_at(tmp_path / "profile.html", tmp_path, widths=(800,))
    spans = dict(found[0]["spans"])
    assert spans["python"] == 5 and spans["cuda:0 stream 0"] == sum(k.device == "cuda:0" for k in profile._kernels) > 0


# For a page with very many events: the canvas calls of one frame of each kind, and the text shown for single events and blocks.
COUNTING = """
(() => {
  const of = JSON.parse(document.getElementById("asked").textContent), chart = charts[0], p = chart.panel, prototype = CanvasRenderingContext2D.prototype; let asked = 0;
  for (const act of ["fillRect", "strokeRect", "lineTo", "moveTo", "arc", "fill", "stroke", "fillText", "drawImage", "putImageData"]) {
    const plain = prototype[act]; prototype[act] = function (...all) { asked++; return plain.apply(this, all); };
  }
  const drawn = () => { asked = 0; chart.draw(); return asked; };
  const out = {width: chart.width, height: chart.bottom - chart.roof, events: p.n, blocks: p.blocks.length, by_kind: drawn()};
  out.highest = chart.columns().filter(e => e >= 0).map(e => p.total[e]);
  out.told = of.times.map(ms => { chart.point(chart.x(ms), 60); return chart.info.firstChild.textContent.split(": ")[1]; });
  chart.by_block = true; out.by_block = drawn();
  const top = chart.y(of.points[0]), full = chart.canvas.getContext("2d").getImageData(chart.left + 6, Math.ceil(top) + 1, Math.floor(chart.width) - 18, Math.floor(chart.bottom - top) - 2).data;
  out.looked = full.length / 4; out.empty = 0; for (let i = 3; i < full.length; i += 4) out.empty += full[i] === 0;
  out.found = of.blocks.map(i => {
    const b = p.blocks[i]; look(b.begin - 2, b.end + 2); chart.draw();
    return [told_of(b), chart.told((b.from + Math.min(b.to, end)) / 2, chart.y(b.offset + b.bytes / 2))].map(t => t.map(x => x.textContent ?? x).join(""));
  });
  return out;
})()
"""


def test_of_100_000_events_no_more_is_drawn_than_the_page_is_wide_and_each_is_found(tmp_path):
    slots, unit, spikes = 200, 65536, {5_000: 10, 25_001: 20, 44_999: 30}
    places = [{"line": f"train.py:{i}", "op": "add", "role": role, "name": "", "within": "", "backward": False, "stack": []} for i, role in enumerate(ROLES)]
    events, blocks, total = [], [], 0

    def changed(number, size, slot):
        nonlocal total
        total += size
        events.append([len(events) * 0.01, size, number, total, 0, number % len(ROLES), slot * unit])
        if size > 0:
            blocks.append(number)

    # Blocks that are adjacent without gaps, the oldest freed for each new one; and three that live for one event.
    for number in range(50_100):
        if number >= slots:
            changed(number - slots, -unit, number % slots)
        changed(number, unit, number % slots)
        if number in spikes:
            changed(10**6 + number, unit * spikes[number], slots)
            changed(10**6 + number, -unit * spikes[number], slots)
    assert len(events) > 100_000
    page = write_page(tmp_path / "large.html", "large", [{"name": "", "panels": [{"kind": "memory", "device": "cuda:0", "places": places, "events": events, "steps": []}]}])
    some, chosen = range(slots, len(events), 199), range(0, len(blocks), 1_111)
    (one,), _ = looked_at(page, tmp_path, [slots * unit], [events[i][0] + 0.005 for i in some], chosen, (1280,), COUNTING)
    assert one["events"] == len(events) and one["blocks"] == len(blocks)
    # By kind, a picture is drawn as lines from column to column; by block, as all visibly large blocks and one image of the rest.
    assert 0 < one["by_kind"] < 40 * one["width"]
    assert 0 < one["by_block"] < one["width"] * one["height"] / 32
    # No peak and no block is lost, however short: where memory was full, no pixel is empty.
    assert {(slots + more) * unit for more in spikes.values()} < set(one["highest"]) and len(one["highest"]) <= one["width"] + 1
    assert one["empty"] == 0 and one["looked"] > 10_000
    # Each event and each block can be selected with the pointer.
    assert one["told"] == [f"{events[i][3] / MIB:.2f} MiB in tensors." for i in some]
    assert all(wanted == told and f", {ROLES[blocks[i] % len(ROLES)]}" in told for (wanted, told), i in zip(one["found"], chosen))


DEVICES_DRAWN = """(() => ({charts: charts.map(c => c.panel.device), cards: [...document.querySelectorAll("#cards > div")].map(c => c.textContent.split(":")[0])}))()"""


def test_a_device_on_which_nothing_was_allocated_has_a_card_and_no_chart(tmp_path):
    with naru.virtual("cuda", count=2), naru.memory_history(["cuda:0", "cuda:1"]) as history:
        (naru.ones(300, device="cuda:1") * 2).sum().item()
    history.page(tmp_path / "page.html")
    (found,) = looked_at(tmp_path / "page.html", tmp_path, widths=(800,), probe=DEVICES_DRAWN)[0]
    assert found["charts"] == ["cuda:1"] and found["cards"] == ["cuda", "cuda"]
