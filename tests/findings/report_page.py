#!/usr/bin/env python3
# In a browser, the page of a run tells the run's time, samples to the end of a long phase, values under the pointer, and zooms; it is one picture.
import csv
import html
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import Absent, Failed, Training, one_line, tell  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
# Points at the last bar of the first time line, then drags over the second quarter of the picture, and notes what the page shows.
PROBE = """<script>
const bars = document.querySelectorAll('[data-label]');
const bar = bars[bars.length - 1];
const svg = bar.closest('svg[tabindex]');
const ticks = () => [...svg.querySelectorAll('.ticks text')].map((word) => +word.textContent);
const at = (element, type, x, y) => element.dispatchEvent(
    new PointerEvent(type, {bubbles: true, button: 0, clientX: x, clientY: y}));
const box = svg.getBoundingClientRect();
const seen = {all: ticks()};
at(bar.querySelector('path'), 'pointermove', box.left + 9, box.top + 9);
seen.tip = document.querySelector('.tip').textContent;
at(svg, 'pointerdown', box.left + box.width / 4, box.top + 60);
at(svg, 'pointermove', box.left + box.width / 3, box.top + 60);
at(svg, 'pointerup', box.left + box.width / 2, box.top + 60);
seen.zoomed = ticks();
svg.dispatchEvent(new MouseEvent('dblclick', {bubbles: true}));
seen.again = ticks();
const curve = [...document.querySelectorAll('svg[tabindex]')].find((picture) => picture.querySelector('.line'));
const place = curve.getBoundingClientRect();
at(curve, 'pointermove', place.left + place.width / 2, place.top + place.height / 2);
seen.read = document.querySelector('.tip').textContent;
document.body.append(Object.assign(document.createElement('pre'), {id: 'seen', textContent: JSON.stringify(seen)}));
</script>"""


def find_browser():
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    raise Absent(f"no browser ({', '.join(BROWSERS)})")


def browse(browser, folder, *arguments):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/browser",
               *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if ended.returncode:
        raise Failed(f"{browser} exits {ended.returncode}: {one_line(ended.stderr)[-300:]}")
    return ended.stdout


def text_of(markup):
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def find_complaint(training, browser):
    folder = training.folder
    training.write_run("run.json", epochs=150, freeze={"alpha": 0.5, "start_epoch": 130, "interval_epochs": 10})
    ended = training.train("--out", "run")
    if ended.returncode:
        return "", f"train exits {ended.returncode}: {one_line(ended.stderr)}"
    ended = training.run("report", "run", "--out", "page.html", "--json")
    if ended.returncode:
        return "", f"report exits {ended.returncode}: {one_line(ended.stderr)}"
    run = json.loads(ended.stdout)["runs"][0]
    page = (folder / "page.html").read_text()
    if re.search(r"https?://(?!www\.w3\.org/)", page):
        return "", "the page names something outside"
    (folder / "probed.html").write_text(page.replace("</body>", PROBE + "</body>"))
    shown = browse(browser, folder, "--window-size=1100,900", "--dump-dom", f"file://{folder}/probed.html")

    seconds = f"{(run['training_ns'] + run['transitions_ns']) / 1e9:,.3f} s"
    tile = re.search(r'<div class="tile"><span>run: time</span><b>([^<]*)</b>', shown)
    if not tile or tile[1] != seconds:
        return "", f"the tile of the time reads {tile and tile[1]}, the run took {seconds}"

    phase = run["phases"][0]
    end = phase["first_step"] + phase["steps"]
    lines = (folder / "run/phase-0/measured.csv").read_text().splitlines()[1:]
    steps = sorted({int(row["step"]) for row in csv.DictReader(lines)})
    sentence = re.search(r"(\d+) sampled steps, one in (\d+) from step (\d+) to step (\d+)", text_of(shown))
    if not sentence:
        return "", "the page does not say which steps are sampled"
    if [int(part) for part in sentence.groups()] != [len(steps), steps[1] - steps[0], steps[0], steps[-1]]:
        return "", f"the page says `{sentence[0]}`, measured.csv has {len(steps)} from {steps[0]} to {steps[-1]}"
    if end - steps[-1] > 2 * (steps[1] - steps[0]):
        return "", f"samples end at step {steps[-1]} of a phase of {end}"

    seen = re.search(r'<pre id="seen">(.*?)</pre>', shown, re.S)
    if not seen:
        return "", "the page's script does not run"
    seen = json.loads(html.unescape(seen[1]))
    if not re.fullmatch(r"\S+ on device ?\d \(\w+\): [\d.]+ to [\d.]+ ms, [\d.]+ ms", seen["tip"]):
        return "", f"a bar under the pointer tells `{seen['tip']}`"
    if not 0 < seen["zoomed"][-1] - seen["zoomed"][0] < (seen["all"][-1] - seen["all"][0]) / 2:
        return "", f"dragging shows {seen['zoomed']} of {seen['all']}"
    if seen["again"] != seen["all"]:
        return "", f"a double click shows {seen['again']}, expected {seen['all']}"
    if not re.search(r"measured: [\d.]+\nrun, predicted: [\d.]+", seen["read"]):
        return "", f"curves under the pointer tell `{seen['read']}`"
    for file in re.findall(r'<a href="([^"]*)"', shown):
        if not (folder / file).exists():
            return "", f"the page links to {file}, which is not there"
    if 'href="run/phase-0/trace.json"' not in shown:
        return "", "no link to the trace of the first phase"

    browse(browser, folder, "--window-size=1100,2400", f"--screenshot={folder}/page.png", f"file://{folder}/page.html")
    picture = (folder / "page.png").read_bytes()
    if struct.unpack(">II", picture[16:24]) != (1100, 2400) or len(picture) < 60_000:
        return "", f"the picture of the page has {len(picture)} bytes"
    return f"time {seconds}; {sentence[0]} of {end}; zoomed to {seen['zoomed'][0]}..{seen['zoomed'][-1]} ms; a picture of {len(picture)} bytes", ""


def check():
    browser = find_browser()
    with tempfile.TemporaryDirectory() as name:
        return find_complaint(Training(name), browser)


sys.exit(tell("report_page", check))
