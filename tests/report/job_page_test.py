#!/usr/bin/env python3
"""The page of a tuned job in a real browser: job_page_test.py JOB_PAGES [--pictures FOLDER]

Exit status 77 where there is no browser.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import browser  # noqa: E402

SKIPPED = 77
CHECKS = (Path(__file__).resolve().parent / "page_checks.js").read_text()
PROGRAM = ""
PICTURES: Path | None = None
PAGES = ("faster", "nothing-to-gain", "not-confirmed", "metric-changed", "undecided", "large", "no-times", "pairs", "empty")


class JobPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([PROGRAM, cls.folder.name], check=True, timeout=600)
        cls.page = browser.Browser()
        cls.page.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.page.__exit__()
        cls.folder.cleanup()

    def setUp(self):
        self.page.resize(1366, 900)
        self.scheme("light")
        self.page.console()

    def tearDown(self):
        self.assertEqual(self.page.console(), [], "the page complained")

    def scheme(self, name: str, media: str = "screen") -> None:
        self.page.cdp("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, name: str) -> None:
        self.page.open(Path(self.folder.name) / f"{name}.html")
        self.page.settle()

    def data(self, name: str) -> dict:
        text = (Path(self.folder.name) / f"{name}.html").read_text()
        return json.loads(re.search(r'id="data" nonce="nonce">(.*?)</script>', text, re.S).group(1))

    def test_axe_finds_nothing(self):
        source = browser.axe_source()
        if not source:
            self.skipTest("axe-core is not installed and cannot be downloaded")
        for name in ("faster", "pairs", "undecided"):
            self.open(name)
            self.page.js(source + "; window.axe = axe;")
            found = self.page.wait_for("axe.run(document, { resultTypes: ['violations'] })")
            self.assertEqual([(one["id"], one["help"], [node["target"] for node in one["nodes"]][:3]) for one in found["violations"]], [], name)

    def text(self, selector: str) -> str:
        return self.page.js("const node = document.querySelector(arguments[0]); return node ? node.innerText : null", selector)

    def parts(self) -> list[dict]:
        return self.page.js(
            "return [...document.querySelectorAll('#iteration .part')].map((one) => "
            "({ setting: one.dataset.setting, part: one.dataset.part, width: Number(one.getAttribute('width')), fill: one.getAttribute('fill') }))"
        )

    def test_the_first_picture_is_the_iteration_in_both_settings(self):
        self.open("faster")
        first = self.page.js("const svg = document.querySelector('main svg'); return svg.closest('section').id")
        self.assertEqual(first, "iteration")
        data = self.data("faster")
        parts = self.parts()
        widths = {name: sum(one["width"] for one in parts if one["setting"] == name) for name in ("library default", "tuned")}
        self.assertAlmostEqual(widths["tuned"] / widths["library default"], data["settings"][1]["us"] / data["settings"][0]["us"], delta=0.01)
        kinds = [one["part"] for one in parts if one["setting"] == "library default"]
        self.assertEqual(kinds, ["compute", "hidden", "0", "1"])
        # A part has one colour in both settings, and parts have different ones.
        colours = {one["part"]: one["fill"] for one in parts}
        self.assertEqual(len({(one["part"], one["fill"]) for one in parts}), len(colours))
        self.assertEqual(len(set(colours.values())), len(colours))
        self.assertEqual(len(self.page.js("return [...document.querySelectorAll('#iteration .error-bar')].map(() => 1)")), 1)
        self.assertIn("1.44 x as fast [1.42, 1.47], in 3 fresh launches", self.text("#lead"))

    def test_everything_that_was_found_is_there(self):
        self.open("faster")
        marks = self.page.js("return [...document.querySelectorAll('#verified .mark')].length")
        self.assertEqual(marks, 4, "three launches that can tell, and all together")
        self.assertIn("cannot tell", self.text("#verified"))
        self.assertIn("One further launch like these", self.text("#verified"))
        tried = self.text("#tried")
        for words in ("allreduce up to 32KiB", "in the policy", "ring", "groups of several calls", "15 % of the collective time"):
            self.assertIn(words, tried)
        launches = self.text("#launches")
        for words in ("look and search", "ended by diapason", "status 1", "launch-3.log"):
            self.assertIn(words, launches)
        result = self.text("#result")
        self.assertIn("2.1234", result)
        self.assertIn("NCCL 2.28.9", result)
        self.assertNotIn("abc", result)

    def test_every_verdict_says_what_it_is(self):
        for name in PAGES[:5]:
            with self.subTest(name):
                self.open(name)
                self.assertEqual(self.text("#result .tag"), name.replace("-", " "))
        self.open("nothing-to-gain")
        self.assertEqual({one["setting"] for one in self.parts()}, {"library default"})
        self.assertIsNone(self.text("#verified"))
        self.assertIsNone(self.text("#result .hero"))
        self.open("not-confirmed")
        tags = self.page.js("return [...document.querySelectorAll('#tried .tag')].map((one) => one.innerText)")
        self.assertNotIn("in the policy", tags)
        self.assertIn("best of the search", tags)

    def test_without_times_the_bars_are_whole(self):
        self.open("no-times")
        self.assertEqual([one["part"] for one in self.parts()], ["compute", "compute"])
        self.assertIn("No call has a GPU time", self.text("#iteration"))

    def test_the_pointer_shows_a_part(self):
        self.open("faster")
        place = self.page.js(
            "const box = document.querySelector('#iteration .part[data-part=\"0\"]').getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]"
        )
        self.page.hover(*place)
        self.assertIn("exposed: allreduce up to 32 KiB", self.text("#tip"))

    def test_pages_are_legible_and_fit_in_any_window(self):
        for name in PAGES:
            for scheme in ("light", "dark"):
                for width in (1366, 390):
                    with self.subTest(page=name, scheme=scheme, width=width):
                        self.page.resize(width, 900)
                        self.scheme(scheme)
                        self.open(name)
                        looked = self.page.js(CHECKS + "; return faintTexts()")
                        self.assertEqual(looked["faint"], [])
                        self.assertGreater(looked["looked"], 5)
                        self.assertEqual(self.page.js(CHECKS + "; return tooWide()"), [])
                        if PICTURES and name in ("faster", "large", "not-confirmed", "empty"):
                            height = self.page.js("return document.documentElement.scrollHeight")
                            self.page.whole_screenshot(PICTURES / f"{name}-{scheme}-{width}.png", 0, min(height, 4000))

    def test_it_prints(self):
        self.open("faster")
        self.scheme("light", "print")
        self.page.settle()
        self.assertEqual(self.page.js("return getComputedStyle(document.getElementById('toc')).display"), "none")
        pdf = self.page.cdp("Page.printToPDF", printBackground=True)["data"]
        self.assertGreater(len(pdf), 10000)

    def test_texts_stay_texts(self):
        self.open("large")
        self.assertEqual(self.page.js("return document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.page.js("return document.querySelectorAll('script').length"), 2)


def main() -> int:
    global PROGRAM, PICTURES
    words = sys.argv[1:]
    if "--pictures" in words:
        at = words.index("--pictures")
        PICTURES = Path(words[at + 1])
        del words[at : at + 2]
    PROGRAM = words.pop(0)
    if browser.missing():
        print(f"skipped: {browser.missing()}")
        return SKIPPED
    return 0 if unittest.main(argv=[sys.argv[0], *words], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
