#!/usr/bin/env python3
"""Size and first paint of the page of `diapason report`: report.py FOLDER_OF_THE_PROGRAMS [TIMES]

A small store (one collective, four configurations) and a large one (more figures than a page takes), both made here. First
paint is what the browser's own performance interface says, from the start of the navigation, with nothing cached.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/report"))
import browser  # noqa: E402
import stores  # noqa: E402

PAINT = "return performance.getEntriesByType('paint').filter((one) => one.name === 'first-contentful-paint').map((one) => one.startTime)[0]"


def first_paint(page: browser.Browser, path: Path) -> float:
    page.open(path)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        painted = page.js(PAINT)
        if painted is not None:
            return painted
        time.sleep(0.02)
    sys.exit("the browser painted nothing in 20 s")


def main() -> int:
    reason = browser.missing()
    if reason:
        sys.exit(reason)
    tool = Path(sys.argv[1]).resolve() / "diapason"
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        stores.small(at / "small.db")
        cells = stores.big(at / "big.db")
        for name, what in (("small", "34 figures"), ("big", f"{cells} figures")):
            page = at / f"{name}.html"
            begin = time.monotonic()
            command = [tool, "report", at / f"{name}.db", "-o", page, "--no-doctor"]
            subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)
            written = time.monotonic() - begin
            with browser.Browser() as window:
                first_paint(window, page)
                taken = [first_paint(window, page) for _ in range(times)]
            print(
                f"report of {what}: {page.stat().st_size / 1000:.0f} kB, written in {written:.2f} s, "
                f"first paint median {statistics.median(taken):.0f} ms, worst of {times}: {max(taken):.0f} ms"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
