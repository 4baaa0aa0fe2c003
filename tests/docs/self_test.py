#!/usr/bin/env python3
"""What the documentation's test must find: each case is a page with one fault, or without any."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is written into the source tree
sys.path.insert(0, str(Path(__file__).resolve().parent))
import pages  # noqa: E402
import run  # noqa: E402

PROGRAMS = {"diapason", "export"}


def found(text: str) -> tuple[list[str], list[list[str]], list[str]]:
    commands, wrong = pages.commands("page.md", pages.split(text)[0], PROGRAMS)
    return [each.text for each in commands], [each.output for each in commands], wrong


class Extraction(unittest.TestCase):
    def test_indented_and_fenced(self):
        text = "Text.\n\n    diapason a  # why\n    A=1 diapason b\n\n```sh\nanything c\n```\n\n```toml\ndiapason = 1\n```\n"
        self.assertEqual(found(text)[0], ["diapason a", "A=1 diapason b", "anything c"])

    def test_output_belongs_to_its_prompt(self):
        text = "Text.\n\n    $ diapason a \\\n      --long\n    one\n\n    two\n    $ diapason b\n"
        commands, outputs, wrong = found(text)
        self.assertEqual(commands, ["diapason a --long", "diapason b"])
        self.assertEqual(outputs, [["one", "", "two"], []])
        self.assertEqual(wrong, [])

    def test_output_beside_commands_without_prompt(self):
        self.assertEqual(len(found("Text.\n\n    diapason a\n    what it prints\n")[2]), 1)

    def test_a_command_behind_something_else(self):
        self.assertEqual(len(found("Text.\n\n    # a comment\n    what is this\n    diapason bench\n")[2]), 1)

    def test_a_paragraph_is_no_block(self):
        self.assertEqual(found("- An item\n    diapason a\n")[0], [])

    def test_tool_calls(self):
        self.assertEqual(pages.tool_calls("mpirun -n 2 diapason bench -g 4 > x"), [["bench", "-g", "4"]])
        self.assertEqual(pages.tool_calls("diapason launch -n 2 -- ./a --b"), [["launch", "-n", "2"]])
        self.assertEqual(pages.tool_calls("srun sh -c 'diapason doctor --json > a'"), [["doctor", "--json"]])
        self.assertEqual(pages.tool_calls("./dev run ask --x"), [["ask", "--x"]])
        self.assertEqual(pages.tool_calls("sudo apt purge diapason libdiapason-dev"), [])


class Width(unittest.TestCase):
    WIDE = "word " * 24 + "word"

    def test_running_text_and_lists(self):
        self.assertEqual(len(self.WIDE), 124)
        self.assertEqual(pages.too_wide(f"# T\n\n{self.WIDE}\n"), [3])
        self.assertEqual(pages.too_wide(f"- {self.WIDE}\n"), [1])
        self.assertEqual(pages.too_wide(self.WIDE[:120] + "\n"), [])

    def test_code_tables_and_addresses_may_be_wider(self):
        self.assertEqual(pages.too_wide(f"Text.\n\n    {self.WIDE}\n\n```sh\n{self.WIDE}\n```\n"), [])
        self.assertEqual(pages.too_wide(f"| {self.WIDE} |\n|---|\n"), [])
        self.assertEqual(pages.too_wide(f"https://example.org/{'a' * 120}\n"), [])


class Comparison(unittest.TestCase):
    def test_dots(self):
        self.assertTrue(run.same(["a", "...", "d"], ["a", "b", "c", "d"], False))
        self.assertTrue(run.same(["...", "d"], ["d"], False))
        self.assertTrue(run.same(["a long li..."], ["a long line"], False))
        self.assertFalse(run.same(["a", "...", "d"], ["a", "b"], False))
        self.assertFalse(run.same(["a"], ["a", "b"], False))

    def test_words_only(self):
        self.assertTrue(run.same(["took 1.5 s, 3 rows"], ["took   22.75 s, 14 rows"], True))
        self.assertFalse(run.same(["took 1.5 s"], ["lost 1.5 s"], True))

    def test_patterns(self):
        self.assertTrue(pages.matches("a * c", "a [b] (b) c"))
        self.assertFalse(pages.matches("a.c", "abc"))


if __name__ == "__main__":
    unittest.main()
