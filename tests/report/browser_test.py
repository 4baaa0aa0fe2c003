#!/usr/bin/env python3
"""The page of `diapason report` in a real browser: browser_test.py --tool PATH [TEST...]

Exit status 77 where there is no browser.
"""

from __future__ import annotations

import base64
import csv
import io
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parent))
import browser  # noqa: E402
import stores  # noqa: E402

SKIPPED = 77
ROOT = Path(__file__).resolve().parents[2]
CHECKS = (Path(__file__).resolve().parent / "page_checks.js").read_text()
TOOL = "diapason"
MOST_BYTES = 1500000


def report(output: Path, *arguments) -> None:
    command = [TOOL, "report", *map(str, arguments), "-o", str(output), "--no-doctor"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")


def time_text(microseconds: float) -> str:
    return f"{microseconds:.4g}".ljust(5, "0") + " µs" if microseconds < 100 else f"{microseconds:.4g} µs"


class Files:
    """What all tests look at, made once."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        at = Path(self.folder.name)
        self.policy = at / "policy.conf"
        self.policy.write_text(stores.POLICY)
        stores.small(at / "small.db")
        stores.hostile(at / "hostile.db")
        stores.simulated(at / "simulated.db")
        journals = sorted((ROOT / "tests/data/journals").glob("learn.*.jsonl"))
        self.small = at / "small.html"
        report(self.small, at / "small.db", *journals, "--policy", self.policy)
        self.hostile = at / "hostile.html"
        report(self.hostile, at / "hostile.db", "--title", stores.EVIL)
        stores.tried(at / "tried.db")
        self.tried = at / "tried.html"
        report(self.tried, at / "tried.db")
        (at / "tried.conf").write_text(stores.TRIED_POLICY)
        self.kept = at / "kept.html"
        report(self.kept, at / "tried.db", "--policy", at / "tried.conf")
        self.simulated = at / "simulated.html"
        report(self.simulated, at / "simulated.db")
        stores.two_libraries(at / "two.db")
        self.two = at / "two.html"
        (at / "exact.conf").write_text(stores.EXACT_POLICY)
        report(self.two, at / "two.db", "--policy", at / "exact.conf")
        self.few = at / "few.html"
        report(self.few, ROOT / "tests/data/measurements/mi355x_allreduce_1n_2n.csv")
        self.apart = at / "apart.html"
        report(self.apart, *sorted((ROOT / "tests/data/journals").glob("disagree.*.jsonl")))


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = Files()
        cls.page = browser.Browser()
        cls.page.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.page.__exit__()
        cls.files.folder.cleanup()

    def setUp(self):
        self.page.resize(1366, 900)
        self.scheme("light")
        self.page.console()

    def tearDown(self):
        self.assertEqual(self.page.console(), [], "the page complained")

    def scheme(self, name: str) -> None:
        self.page.cdp("Emulation.setEmulatedMedia", media="screen", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, path: Path) -> None:
        self.page.open(path)
        self.page.settle()

    def marks(self, section: str) -> dict[str, int]:
        """How many marks each series of a section has."""
        counted: dict[str, int] = {}
        for name in self.page.js(f"return [...document.querySelectorAll('#{section} .mark')].map((one) => one.dataset.series)"):
            counted[name] = counted.get(name, 0) + 1
        return counted

    def press(self, selector: str, text: str) -> None:
        """Clicks the button with this text as a person would: at its place on the screen."""
        place = self.page.js(
            """const button = [...document.querySelectorAll(arguments[0])].find((one) => one.textContent.trim() === arguments[1]);
            if (!button) return null;
            button.scrollIntoView({ block: 'center', behavior: 'instant' });
            const box = button.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];""",
            selector,
            text,
        )
        self.assertIsNotNone(place, f"no button '{text}'")
        self.page.settle()
        self.page.click(*place)

    def point_at(self, selector: str) -> str:
        """Moves the pointer onto an element, and returns what the tooltip says; empty where there is none."""
        place = self.page.js(
            """const node = document.querySelector(arguments[0]);
            node.scrollIntoView({ block: 'center', behavior: 'instant' });
            const box = node.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];""",
            selector,
        )
        self.page.settle()
        self.page.hover(*place)
        return self.tooltip()

    def tooltip(self) -> str:
        return self.page.js("const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.innerText.replace(/\\s+/g, ' ')")

    def config(self, text: str) -> int:
        return self.page.js("return JSON.parse(document.getElementById('data').textContent).configs.findIndex((one) => one[0] === arguments[0])", text)

    def test_draws_what_the_data_say(self):
        self.open(self.files.small)
        sections = self.page.js("return [...document.querySelectorAll('main > section')].map((one) => one.id)")
        self.assertEqual(sections, ["picture", "map", "use", "summary", "gains", "curves", "spread", "progress", "regret", "iterations", "learning", "trust", "failures", "machine", "raw"])
        links = self.page.js("return [...document.querySelectorAll('#toc a')].map((one) => one.getAttribute('href').slice(1))")
        self.assertEqual(links, sections)
        tree = f"c{self.config('tree/ll')}"
        sizes = len(stores.SMALL_SIZES)
        self.assertEqual(self.marks("curves"), {"verified-tuned": sizes, "verified-default": sizes, "c0": sizes, tree: sizes})
        self.assertEqual(self.marks("gains"), {"gain": 4})
        self.assertEqual(self.marks("regret"), {"default": sizes, "chosen": sizes})
        self.assertEqual(self.page.js("return document.querySelectorAll('#iterations .mark').length"), 2)
        self.assertEqual(self.page.js("return document.querySelectorAll('#gains .error-bar').length"), 4)
        self.assertEqual(self.page.js("return [...document.querySelectorAll('#failures tbody')].map((one) => one.rows.length)"), [1, 1])
        summary = self.page.js("return document.getElementById('summary').innerText")
        self.assertIn("1.25×", summary)
        self.assertIn("nccl 2.28.9", summary)
        self.assertIn("415 in 2 runs", summary)
        self.assertEqual(self.page.js("return document.getElementById('simulated')"), None)

    def test_hover_tells_configuration_median_interval_and_samples(self):
        self.open(self.files.small)
        text = self.point_at("#curves .mark[data-series='verified-tuned'][data-x='1024']")
        times = sorted(stores.small_time(1024) * stores.wobble(i, 3) / 1.25 * 1e6 for i in range(stores.ROUNDS))
        self.assertIn("1 KiB, time", text)
        self.assertIn("tuned, verification: tree/ll", text)
        self.assertIn(time_text(statistics.median(times)), text)
        # Of ten, the interval of the median reaches from the second to the last.
        self.assertIn(f"[{time_text(times[1])[:-3]}, {time_text(times[9])[:-3]}] n = 10", text)
        self.page.hover(5, 5)
        self.assertEqual(self.tooltip(), "")
        gain = self.point_at("#gains .mark[data-x='1024']")
        self.assertIn("1 KiB: tree/ll", gain)
        self.assertIn("n = 10", gain)
        self.assertIn("faster", gain)
        lost = self.point_at("#regret .mark[data-series='default'][data-x='1024']")
        self.assertIn("best: tree/ll", lost)
        self.assertIn("library default +25 %", lost)
        tied = self.point_at("#regret .mark[data-series='default'][data-x='262144']")
        self.assertIn("tie", tied)

    def test_the_map_shows_rows_and_reasons(self):
        self.open(self.files.small)
        text = self.point_at(f"#map .segment[data-config='{self.config('tree/ll')}']")
        self.assertIn("allreduce,0,131071,tree,ll,-1,1,4,-1,-1", text)
        self.assertIn("line 3", text)
        self.assertIn("0 to below 128 KiB", text)
        self.assertIn("verified", text)
        self.assertIn("64 KiB 1.2", text)
        self.assertEqual(self.page.js("return document.querySelector('#map .segment[data-config=\"0\"]').getAttribute('fill')"), "url(#hatch)")
        labels = self.page.js("return [...document.querySelectorAll('#map text.row')].map((one) => one.textContent)")
        self.assertEqual(labels, ["allreduce, 4 ranks on 1 node, f32 sum", "allgather, 16 ranks on 2 nodes (not measured)"])
        # Without the policy: what the data support.
        self.page.js("const list = document.querySelector('#map select'); list.value = '1'; list.dispatchEvent(new Event('change'))")
        self.assertEqual(self.page.js("return document.querySelectorAll('#map .segment').length"), 2)

    def test_filters_and_toggles_change_what_is_drawn(self):
        self.open(self.files.small)
        self.press("#curves .segments button", "All tried")
        self.assertEqual(sum(self.marks("curves").values()), 6 * len(stores.SMALL_SIZES))
        ring = f"c{self.config('ring/simple, 2 channels')}"
        self.page.js("const list = document.querySelectorAll('#curves select')[0]; list.value = 'ring'; list.dispatchEvent(new Event('change'))")
        self.assertEqual(set(self.marks("curves")), {"verified-tuned", "verified-default", "c0", ring})
        self.press("#curves .segments button", "Verification")
        self.assertEqual(set(self.marks("curves")), {"verified-tuned", "verified-default"})
        self.press("#curves .chip", "library default, verification")
        self.assertEqual(set(self.marks("curves")), {"verified-tuned"})
        self.press("#curves .chip", "library default, verification")
        self.press("#curves .segments button", "Bus bandwidth")
        self.assertIn("Bus bandwidth, GB/s", self.page.js("return document.querySelector('#curves svg').textContent"))
        text = self.point_at("#curves .mark[data-series='verified-default'][data-x='1024']")
        times = [stores.small_time(1024) * stores.wobble(i) for i in range(stores.ROUNDS)]
        self.assertIn(f"{1.5 * 1024 / statistics.median(times) / 1e9:.3g} GB/s", text)

    def test_keys_do_what_the_pointer_does(self):
        self.open(self.files.small)
        self.page.js("document.querySelector('#curves svg').focus()")
        self.page.key("ArrowRight", 39)
        self.assertIn("1 KiB, time", self.tooltip())
        self.page.key("ArrowRight", 39)
        self.assertIn("4 KiB, time", self.tooltip())
        self.page.key("Escape", 27)
        self.assertEqual(self.tooltip(), "")
        self.page.js("document.querySelector('#map .segment').focus()")
        self.page.settle()
        self.assertIn("tree/ll", self.tooltip())
        reached = self.page.js("return [...document.querySelectorAll('button, select, input, a[href]')].every((one) => one.tabIndex >= 0)")
        self.assertTrue(reached)

    def download(self) -> list[dict]:
        for old in self.page.downloads.iterdir():
            old.unlink()
        self.press("#raw button", "Download as CSV")
        target = self.page.downloads / "diapason-report.csv"
        end = time.monotonic() + 600
        while not target.exists():
            self.assertLess(time.monotonic(), end, "nothing was downloaded")
            time.sleep(0.05)
        return list(csv.DictReader(io.StringIO(target.read_text())))

    def test_csv_has_all_figures(self):
        self.open(self.files.small)
        rows = self.download()
        sizes = len(stores.SMALL_SIZES)
        self.assertEqual(len(rows), 4 * sizes + sizes + 4 + 2)
        one = [row for row in rows if row["source"] == "search" and row["algorithm"] == "tree" and row["protocol"] == "simple" and row["bytes"] == "1024"]
        self.assertEqual(len(one), 1)
        times = [stores.small_time(1024) * 0.9 * stores.wobble(i) * 1e6 for i in range(stores.SAMPLES)]
        self.assertAlmostEqual(float(one[0]["median_us"]), statistics.median(times), delta=2e-4 * times[0])
        self.assertEqual((one[0]["channels"], one[0]["samples"], one[0]["ranks"], one[0]["library_version"]), ("4", "12", "4", "2.28.9"))
        self.assertAlmostEqual(float(one[0]["gain"]), 1 / 0.9, delta=1e-3)
        # What is filtered out is not in the file.
        self.page.js("const field = document.querySelector('#raw input'); field.value = 'tree/ll 64'; field.dispatchEvent(new Event('input'))")
        self.assertEqual({(row["protocol"], row["bytes"]) for row in self.download()}, {("ll", "65536")})

    def test_tables_sort(self):
        self.open(self.files.small)
        read = "return [...document.querySelectorAll('#gains tbody tr')].map((one) => one.cells[0].textContent)"
        self.press("#gains th button", "Size")
        up = self.page.js(read)
        self.assertEqual((up[0], up[-1]), ("1 KiB", "1 MiB"))
        self.press("#gains th button", "Size")
        self.assertEqual(self.page.js(read), up[::-1])
        self.assertEqual(self.page.js("return document.querySelector('#gains th').getAttribute('aria-sort')"), "descending")

    def test_light_and_dark_can_be_read(self):
        seen = {}
        for name in ("light", "dark"):
            self.scheme(name)
            self.open(self.files.small)
            self.page.js("for (const one of document.querySelectorAll('details')) one.open = true")
            seen[name] = self.page.js("return getComputedStyle(document.body).backgroundColor")
            found = self.page.js(CHECKS + "return faintTexts()")
            self.assertGreater(found["looked"], 300)
            self.assertEqual(found["faint"], [], name)
        self.assertNotEqual(seen["light"], seen["dark"])
        self.press("button#theme", "Light")
        self.assertEqual(self.page.js("return getComputedStyle(document.body).backgroundColor"), seen["light"])

    def test_nothing_is_wider_than_the_window(self):
        for path in (self.files.small, self.files.hostile):
            for width in (390, 1366):
                self.page.resize(width, 800)
                self.open(path)
                self.page.js("for (const one of document.querySelectorAll('details')) one.open = true")
                self.page.settle()
                self.assertLessEqual(self.page.js("return document.documentElement.scrollWidth"), width)
                self.assertEqual(self.page.js(CHECKS + "return tooWide()"), [], f"{path.name} at {width}")

    def test_verdicts_are_not_cut_off(self):
        """Tables fit where there is room for them; on a phone at least the verdict can be seen without scrolling."""
        for path in (self.files.tried, self.files.kept, self.files.small):
            for width in (390, 1280, 1366):
                self.page.resize(width, 800)
                self.open(path)
                found = self.page.js(
                    """return [...document.querySelectorAll('#gains .scroll, #regret .scroll, #iterations .scroll')].map((box) => ({
                      room: box.clientWidth, needs: box.scrollWidth, right: box.getBoundingClientRect().right,
                      tags: [...box.querySelectorAll('.tag')].map((one) => [one.textContent, one.getBoundingClientRect().right]) }))"""
                )
                where = f"{path.name} at {width}"
                self.assertGreater(len(found[0]["tags"]), 0, where)
                for text, right in found[0]["tags"]:
                    self.assertLess(right, found[0]["right"], f"{where}: {text}")
                if width >= 1280:
                    for table in found:
                        self.assertLessEqual(table["needs"], table["room"], where)
        verdicts = "return [...document.querySelectorAll('#gains .tag')].map((one) => one.textContent)"
        self.open(self.files.tried)
        self.assertEqual(set(self.page.js(verdicts)), {"faster", "slower", "no difference", "too few rounds"})

    def test_what_the_policy_does_not_run_is_not_kept(self):
        self.open(self.files.kept)
        summary = self.page.js("return document.getElementById('summary').innerText")
        self.assertIn("1.25×", summary)
        self.assertNotIn("0.56", summary)
        self.assertIn("of 12 cases, 4 sizes in each of 3 contexts measured (search or verification) are left to the library; at 11 of them a change was verified and not kept", summary)
        self.assertIn("over all 12 cases, 4 sizes in each of 3 contexts measured", summary)
        table = self.page.js("return [...document.querySelectorAll('#gains tbody tr')].map((row) => row.innerText)")
        self.assertEqual(sum("not kept" in row for row in table), 11)
        self.assertTrue(any("not kept" in row and "0.56" in row for row in table))
        neutral = self.page.js(
            """const tag = [...document.querySelectorAll('#gains tbody .tag')].find((one) => one.textContent === 'not kept');
            return [tag.className.trim(), document.querySelector("#gains .mark[data-x='262144']").getAttribute('stroke'),
              getComputedStyle(document.documentElement).getPropertyValue('--muted').trim()]"""
        )
        self.assertEqual(neutral[0], "tag")
        self.assertEqual(neutral[1], neutral[2])
        self.assertIn("not kept: the policy leaves this size to the library", self.point_at("#gains .mark[data-x='262144']"))

    def test_nothing_is_fetched(self):
        self.open(self.files.small)
        self.assertEqual(self.page.js("return performance.getEntriesByType('resource').map((one) => one.name)"), [])
        # Nor could it be: the page forbids it to itself.
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(1)
            address = f"http://127.0.0.1:{server.getsockname()[1]}/"
            self.page.js("const picture = new Image(); picture.src = arguments[0]; fetch(arguments[0]).catch(() => 0)", address)
            with self.assertRaises(TimeoutError):
                server.accept()
        self.assertTrue(all("Content Security Policy" in line for line in self.page.console()))

    def test_hostile_texts_stay_texts(self):
        self.open(self.files.hostile)
        self.page.js("for (const one of document.querySelectorAll('details')) one.open = true")
        self.assertIsNone(self.page.js("return window.hurt"))
        self.assertEqual(self.page.js("return [document.querySelectorAll('img').length, document.querySelectorAll('script').length]"), [0, 2])
        # A line separator is shown, not obeyed.
        shown = stores.EVIL.replace("\u2028", "\\u2028")
        self.assertEqual(self.page.js("return document.querySelector('h1').textContent"), shown)
        self.assertIn("</script>", self.page.js("return document.getElementById('failures').innerText"))
        self.assertIn("\ufffd</script>", self.page.js("return document.getElementById('machine').innerText"))
        self.assertIn("onerror", self.point_at("#curves .mark"))
        self.assertTrue(any(row["environment"].startswith("'=HYPERLINK") for row in self.download()))
        self.assertIsNone(self.page.js("return window.hurt"))

    def test_simulated_is_called_so(self):
        self.open(self.files.simulated)
        self.assertIn("SIMULATED", self.page.js("return document.getElementById('simulated').innerText"))
        self.assertIn("Simulated", self.page.js("return document.getElementById('lead').innerText"))
        self.assertIn("SIMULATED", self.page.js("return document.getElementById('curves').innerText"))

    def text(self, where: str) -> str:
        return self.page.js("return document.querySelector(arguments[0]).innerText.replace(/\\s+/g, ' ')", where)

    def test_libraries_are_not_pooled(self):
        self.open(self.files.two)
        summary = self.text("#summary")
        self.assertIn("With nccl 2.28.9", summary)
        self.assertIn("20.02×", self.text("#summary .hero"))
        self.assertIn("rccl 2.22.3, MI300X: 1.25× verified", summary)
        self.assertNotIn("fresh", self.text("body"))

    def test_a_row_for_one_size_can_be_seen_and_hovered(self):
        self.open(self.files.two)
        segment = f"#map .segment[data-config='{self.config('tree/ll')}']"
        self.assertGreaterEqual(self.page.js("return document.querySelector(arguments[0]).getBoundingClientRect().width", segment), 8)
        self.assertIn("exactly 1 KiB", self.point_at(segment))

    def test_names_of_files_without_their_folders(self):
        self.open(self.files.two)
        for where in ("#map", "#regret .legend"):
            self.assertIn("exact.conf", self.text(where))
            self.assertNotIn("/exact.conf", self.text(where))
        self.assertTrue(self.page.js("return document.querySelector('#map .note[title]').title").endswith("/exact.conf"))

    def test_regret_has_one_unit(self):
        self.open(self.files.two)
        shown = self.page.js("return [...document.querySelectorAll('#regret tbody tr')].map((row) => row.cells[4].innerText)")
        self.assertTrue(any("20.04×" in one for one in shown), shown)
        self.assertFalse(any("%" in one for one in shown), shown)

    def test_the_legend_has_the_lines_of_the_plot(self):
        self.open(self.files.small)
        dashes = self.page.js(
            """return ['c0', 'verified-default'].map((id) => [document.querySelector(`#curves .series[data-series="${id}"] path`), document.querySelector(`#curves .chip[data-series="${id}"] line`)]
              .map((one) => one.getAttribute('stroke-dasharray')))"""
        )
        self.assertEqual(dashes, [["5 4", "5 4"], [None, None]])
        self.open(self.files.kept)
        self.assertIsNotNone(self.page.js("return document.querySelector('#curves .chip[data-series=\"verified-tried\"] circle')"))

    def test_few_samples_have_no_interval(self):
        self.open(self.files.few)
        hero = self.text("#summary .hero")
        self.assertIn("not verified", hero)
        self.assertIn("no 95 % interval: fewer than six samples a size", self.text("#summary .card-notes"))
        self.assertNotIn("95 %:", self.text("#summary") + self.text("#lead"))
        self.assertIn("range of 3 samples", self.text("#summary"))

    def test_refusals_are_folded(self):
        self.open(self.files.small)
        self.assertEqual(self.page.js("return [...document.querySelectorAll('#failures details')].map((one) => one.open)"), [False])
        self.assertIn("hang", self.text("#failures table"))
        self.page.js("document.querySelector('#failures details').open = true")
        self.assertIn("6 sizes, 1 KiB to 1 MiB", self.text("#failures details"))

    def test_ranks_that_chose_differently_are_in_the_summary(self):
        self.open(self.files.apart)
        self.assertIn("Not the same", self.text("#summary .alarm"))
        self.assertIn("4 ranks, 4 calls: the ranks chose differently for 2 of them", self.text("#summary .card-notes"))
        self.assertIn("chose differently", self.text("#lead"))
        gap = self.page.js(
            """return Math.min(...[...document.querySelectorAll('#learning .findings li')].map((one) => one.children[1].getBoundingClientRect().left - one.children[0].getBoundingClientRect().right))"""
        )
        self.assertGreaterEqual(gap, 8)

    def test_what_is_cut_says_so(self):
        self.page.resize(390, 800)
        self.open(self.files.small)
        states = self.page.js(
            """return [...document.querySelectorAll('#gains .scroll-frame, #regret .scroll-frame')].map((one) =>
              [one.firstChild.scrollWidth > one.firstChild.clientWidth + 2, one.classList.contains('cut'), getComputedStyle(one.nextSibling).display !== 'none'])"""
        )
        self.assertIn([True, True, True], states)
        self.assertTrue(all(len(set(one)) == 1 for one in states), states)

    def test_it_prints(self):
        self.scheme("dark")
        self.open(self.files.small)
        pdf = self.page.cdp("Page.printToPDF", printBackground=True)["data"]
        self.assertGreater(len(pdf), 20000)
        self.page.cdp("Emulation.setEmulatedMedia", media="print")
        shown = self.page.js("return ['#toc', '#curves .controls'].map((one) => getComputedStyle(document.querySelector(one)).display)")
        self.assertEqual(shown, ["none", "none"])
        # Legends stay, with their colours.
        for legend in ("#curves .legend", "#map .legend", "#picture .keys"):
            look = "const node = document.querySelector(arguments[0]); return [getComputedStyle(node).display, getComputedStyle(node.querySelector('i, svg')).printColorAdjust, node.getBoundingClientRect().height > 0]"
            self.assertEqual(self.page.js(look, legend), ["flex", "exact", True], legend)
        self.assertEqual(self.page.js("return getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")

    def test_opens_with_the_picture_and_how_to_use_it(self):
        self.open(self.files.small)
        sizes = len(stores.SMALL_SIZES)
        self.assertEqual(self.marks("picture"), {"picture-default": sizes, "picture-tuned": sizes})
        self.assertEqual(self.page.js("return document.querySelectorAll('#picture .area').length"), sizes - 1)
        self.assertEqual(self.page.js("return [...document.querySelectorAll('#picture .note-text')].map((one) => one.textContent)"), ["1.25×"] * 4)
        self.assertIn("Verified: both took turns", self.text("#picture"))
        self.assertIn("tuned, verified", self.text("#picture .keys"))
        lines = self.page.js("return [...document.querySelectorAll('#use pre')].map((one) => one.textContent)")
        self.assertEqual(lines, [str(self.files.policy), f"diapason run --policy {self.files.policy} -- COMMAND"])
        # The title has the host and the day.
        self.assertRegex(self.page.js("return document.title"), r"^NCCL: allreduce, node0, \d{4}-\d\d-\d\d$")
        self.open(self.files.few)
        self.assertIn("not verified", self.text("#picture"))
        self.assertIn("not verified", self.text("#lead"))
        self.assertIsNone(self.page.js("return document.getElementById('use')"))

    def test_lines_are_copied(self):
        self.open(self.files.small)
        self.page.js("window.copied = []; navigator.clipboard.writeText = (text) => { window.copied.push(text); return Promise.resolve(); }")
        self.press("#use .line:last-of-type .copy", "Copy")
        self.page.settle()
        self.assertEqual(self.page.js("return window.copied"), [f"diapason run --policy {self.files.policy} -- COMMAND"])
        self.assertEqual(self.text("#use .line:last-of-type .copy"), "Copied")

    def test_distribution_and_history(self):
        self.open(self.files.small)
        self.assertEqual(self.page.js("return document.querySelectorAll('#spread .spread').length"), 2 * len(stores.SMALL_SIZES))
        text = self.point_at("#spread .spread[data-config='0']")
        times = sorted(stores.small_time(1024) * stores.wobble(i) * 1e6 for i in range(stores.ROUNDS))
        for part in ("1 KiB: library default", f"fastest {time_text(times[0])}", f"slowest {time_text(times[-1])}", "n = 10, verification"):
            self.assertIn(part, text)
        self.assertRegex(self.text("#progress [data-role=best]"), r"^1\.\d\d× was found after .* in the search\.$")

    def drag(self, selector: str, start: float, end: float) -> None:
        """From one share of the width of an element to another."""
        box = self.page.js("const node = document.querySelector(arguments[0]); node.scrollIntoView({ block: 'center', behavior: 'instant' }); const box = node.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]", selector)
        self.page.settle()
        x = [box[0] + box[2] * share for share in (start, end)]
        y = box[1] + box[3] / 2
        for kind, at in (("mousePressed", x[0]), ("mouseMoved", (x[0] + x[1]) / 2), ("mouseMoved", x[1]), ("mouseReleased", x[1])):
            self.page.cdp("Input.dispatchMouseEvent", type=kind, x=at, y=y, button="left", buttons=1, clickCount=1)
        self.page.settle()

    def test_the_link_has_the_view(self):
        self.open(self.files.small)
        sizes = len(stores.SMALL_SIZES)
        self.drag("#picture svg", 0.02, 0.6)
        shown = self.marks("picture")["picture-tuned"]
        self.assertLess(shown, sizes)
        self.assertGreater(shown, 1)
        self.press("#curves .segments button", "Bus bandwidth")
        self.press("#curves .segments button", "All tried")
        self.press("#curves .chip", "library default, search")
        self.press("button#theme", "Dark")
        self.press("#toc a", "Regret")
        link = self.page.js("return location.href")
        marks = self.marks("curves")
        self.page.js("location.href = 'about:blank'")
        self.page._call("POST", "/url", {"url": link})
        self.page.settle()
        self.assertEqual(self.marks("picture")["picture-tuned"], shown)
        self.assertEqual(self.marks("curves"), marks)
        self.assertIn("Bus bandwidth, GB/s", self.text("#curves .plot"))
        self.assertEqual(self.page.js("return document.documentElement.dataset.theme"), "dark")
        self.assertLess(abs(self.page.js("return document.getElementById('regret').getBoundingClientRect().top")), 200)
        self.press("#picture .tool", "Whole range")
        self.assertEqual(self.marks("picture")["picture-tuned"], sizes)
        self.assertNotIn("zoom.picture", self.page.js("return location.hash"))
        # Keys zoom as well; nonsense in a link does no harm.
        self.page.js("document.querySelector('#picture svg').focus()")
        self.page.cdp("Input.dispatchKeyEvent", type="keyDown", key="+", text="+")
        self.page.settle()
        self.assertLess(self.marks("picture")["picture-tuned"], sizes)
        self.page.js("location.href = 'about:blank'")
        self.page._call("POST", "/url", {"url": self.files.small.resolve().as_uri() + "#context=99&zoom.picture=x~y&metric=<b>&map=-7&%E0%A4%A&hidden=%00"})
        self.page.settle()
        self.assertEqual(self.marks("picture")["picture-tuned"], sizes)

    def saved(self, section: str, kind: str) -> bytes:
        for old in self.page.downloads.iterdir():
            old.unlink()
        self.press(f"#{section} .tool", kind)
        end = time.monotonic() + 600
        while not (found := list(self.page.downloads.glob("*." + kind.lower()))):
            self.assertLess(time.monotonic(), end, "nothing was downloaded")
            time.sleep(0.05)
        return found[0].read_bytes()

    def test_pictures_are_saved(self):
        self.open(self.files.small)
        for name in ("picture", "map", "spread"):
            svg = ElementTree.fromstring(self.saved(name, "SVG"))
            self.assertTrue(svg.tag.endswith("svg"))
            # Its colours are in it, not in the page.
            used = {node.get("fill") for node in svg.iter()} | {node.get("stroke") for node in svg.iter()}
            self.assertFalse([one for one in used if one and "var(" in one and "soft" not in one and "line" not in one and "surface" not in one], used)
            self.assertTrue(any(one and one.startswith("rgb") for one in used))
            png = self.saved(name, "PNG")
            self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
            width, height = struct.unpack(">II", png[16:24])
            shown = self.page.js("return document.querySelector(arguments[0]).getAttribute('viewBox').split(' ').map(Number)", f"#{name} .plot svg, #{name} .map svg")
            self.assertEqual([width, height], [2 * shown[2], 2 * shown[3]])
            # Not an empty sheet: the picture has many different rows.
            colours = self.page.js(
                """const done = atob(arguments[0]); return new Set(done).size""", base64.b64encode(png).decode())
            self.assertGreater(colours, 100)

    def test_variants_differ_in_more_than_shade(self):
        self.open(self.files.few)
        self.press("#curves .segments button", "All tried")
        looks = self.page.js(
            """const configs = JSON.parse(document.getElementById('data').textContent).configs;
            return [...document.querySelectorAll('#curves .series')].filter((one) => /^c[1-9]/.test(one.dataset.series)).map((one) => {
              const config = configs[Number(one.dataset.series.slice(1))];
              const path = one.querySelector('path:not(.mark)'), mark = one.querySelector('.mark');
              return [config[1] + '/' + config[2], [path && path.getAttribute('stroke-dasharray'), mark.tagName, (mark.getAttribute('d') || '').split('L').length, path && path.getAttribute('stroke')].join()]; })""")
        families: dict[str, list[str]] = {}
        for family, look in looks:
            families.setdefault(family, []).append(look)
        several = [one for one in families.values() if len(one) > 1]
        self.assertTrue(several)
        for looks in several:
            self.assertEqual(len(looks), len(set(looks)), looks)
            self.assertGreater(len({look.rsplit(",", 1)[0] for look in looks}), 1, "only the shade differs")

    def test_the_terminal_writes_the_same_digits(self):
        at = Path(self.files.folder.name)
        done = subprocess.run([TOOL, "data", "show", at / "small.db", "--all", "--format", "csv"], stdout=subprocess.PIPE, text=True, timeout=600, check=True)
        terminal = set(re.findall(r"\b\d+\.?\d* (?:us|ms)\b", done.stdout))
        self.open(self.files.small)
        page = self.page.js(
            """const table = document.querySelector('#raw table'); for (let more = document.querySelector('#raw .more'); !more.hidden;) more.click();
            return [...table.tBodies[0].rows].filter((row) => row.cells[0].textContent === 'search' && !/library default|tree.ll/.test(row.textContent)).map((row) => [...row.cells].map((one) => one.textContent).find((text) => /^[\\d.]+ (µs|ms) /.test(text)))""")
        # The terminal counts the samples of the verification with those of the search: others than these two have none.
        self.assertGreater(len(page), 8)
        for text in page:
            value, unit = text.split(" ")[:2]
            self.assertIn(f"{value} {unit.replace('µ', 'u')}", terminal)
        # And the same sentence.
        again = at / "again.html"
        done = subprocess.run([TOOL, "report", at / "small.db", "--policy", self.files.policy, "-o", again, "--no-doctor"], stdout=subprocess.PIPE, text=True, timeout=600, check=True)
        self.open(again)
        self.assertEqual(done.stdout.splitlines()[1], self.page.js("return document.getElementById('lead').textContent"))

    def test_axe_finds_nothing(self):
        source = browser.axe_source()
        if not source:
            self.skipTest("axe-core is not installed and cannot be downloaded")
        for path, name in ((self.files.small, "light"), (self.files.small, "dark"), (self.files.apart, "light")):
            self.scheme(name)
            self.open(path)
            self.page.js("for (const one of document.querySelectorAll('details')) one.open = true")
            self.page.js(source + "; window.axe = axe;")
            found = self.page.wait_for("axe.run(document, { resultTypes: ['violations'] })")
            self.assertEqual([(one["id"], one["help"], [node["target"] for node in one["nodes"]][:3]) for one in found["violations"]], [], f"{path.name} {name}")

    def test_a_large_store_stays_small(self):
        at = Path(self.files.folder.name)
        cells = stores.big(at / "big.db")
        report(at / "big.html", at / "big.db")
        self.assertLess((at / "big.html").stat().st_size, MOST_BYTES)
        self.open(at / "big.html")
        text = self.page.js("return document.getElementById('summary').innerText")
        self.assertRegex(text, f"\\d+ of {cells} figures are not in this file")
        # Another context is another picture.
        before = self.page.js("return document.querySelector('#curves svg').innerHTML.length")
        self.page.js("const list = document.querySelector('#curves [data-role=context] select'); list.value = 'reduce'; list.dispatchEvent(new Event('change'))")
        self.page.settle()
        self.assertIn("reduce, ", self.page.js("return document.querySelector('#curves [data-role=count]').textContent"))
        self.assertNotEqual(self.page.js("return document.querySelector('#curves svg').innerHTML.length"), before)
        self.assertEqual(self.page.js("return document.querySelector('#regret select').value"), "reduce")


if __name__ == "__main__":
    if "--tool" in sys.argv:
        at = sys.argv.index("--tool")
        TOOL = str(Path(sys.argv[at + 1]).resolve())
        del sys.argv[at : at + 2]
    reason = browser.missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    unittest.main()
