#!/usr/bin/env python3
"""Draws the pictures of the documentation from runs of the tool: make.py --tool PATH/diapason

The report is of public measurements (RCCL on MI355X), the terminal shows the simulated cluster: both are the same on
every machine.
"""

from __future__ import annotations

import argparse
import base64
import html
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/report"))
import browser  # noqa: E402

LIMIT = 600
MOST_BYTES = 200 * 1000
SIMULATE = ("simulate", "h100x8", "--sizes", "4K:64M:x4")
MEASURED = ROOT / "tests/data/measurements/mi355x_allreduce_1n_2n.csv"
COLOURS = {"32": "#6fdba0", "31": "#ff9b94", "33": "#f0bf62", "2": "#a1adba"}


def run(tool: str, *words: str) -> str:
    """What the tool prints, with colours."""
    clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return subprocess.run([tool, *words], capture_output=True, text=True, timeout=LIMIT, check=True, env={**clean, "CLICOLOR_FORCE": "1"}).stdout


def terminal(lines: list[str], path: Path) -> None:
    """A terminal with these lines as an SVG."""
    width = max(len(re.sub(r"\033\[[0-9;]*m", "", line)) for line in lines)
    rows = []
    for at, line in enumerate(lines):
        spans, colour = [], ""
        for part in re.split(r"(\033\[[0-9;]*m)", line):
            code = re.fullmatch(r"\033\[([0-9;]*)m", part)
            if code:
                colour = COLOURS.get(code[1], "")
            elif part:
                fill = f' fill="{colour}"' if colour else ""
                spans.append(f"<tspan{fill}>{html.escape(part)}</tspan>")
        rows.append(f'<text x="16" y="{32 + 19 * at}" xml:space="preserve">{"".join(spans)}</text>')
    size = (width * 7.83 + 34, 19 * len(lines) + 36)
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]:.0f}" height="{size[1]}" font-family="monospace" font-size="13" fill="#e7ecf1">'
                    f'<rect width="100%" height="100%" rx="8" fill="#0e1217"/>{"".join(rows)}</svg>\n')


def report(page: Path, section: str, path: Path) -> None:
    """A section of the page as a PNG."""
    with browser.Browser(width=900, height=800) as shown:
        shown.open(page)
        shown.settle()
        box = shown.js("const box = document.getElementById(arguments[0]).getBoundingClientRect(); return [box.left + scrollX, box.top + scrollY, box.width, box.height]", section)
        clip = {"x": box[0] - 8, "y": box[1] - 8, "width": box[2] + 16, "height": box[3] + 16, "scale": 1}
        got = shown.cdp("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    path.write_bytes(base64.b64decode(got["data"]))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default="diapason")
    tool = str(Path(parser.parse_args().tool).resolve())
    if reason := browser.missing():
        print(f"no pictures: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="diapason-pictures-") as folder:
        page = Path(folder) / "report.html"
        store = str(Path(folder) / "measured.db")
        terminal(["$ diapason " + " ".join(SIMULATE), *run(tool, *SIMULATE).splitlines()], HERE / "simulate.svg")
        run(tool, "data", "import", str(MEASURED), "--library", "rccl", "--store", store)
        run(tool, "report", store, "--no-doctor", "--title", "RCCL: allreduce, MI355X", "-o", str(page))
        report(page, "picture", HERE / "report.png")
        report(page, "map", HERE / "map.png")
    for path in sorted(HERE.glob("*.png")) + sorted(HERE.glob("*.svg")):
        if path.stat().st_size > MOST_BYTES:
            print(f"{path} is larger than {MOST_BYTES} bytes", file=sys.stderr)
            return 1
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
