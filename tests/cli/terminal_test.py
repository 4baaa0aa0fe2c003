#!/usr/bin/env python3
"""What a user sees in a terminal: no text behind a progress line, tables within the width, colours.

Every command runs on a pseudo terminal of a given width, and a small model of a terminal (carriage return, erase to
the end of the line, wrapping at the last column) shows the lines of the screen.

    terminal_test.py --tool PATH/diapason [TerminalTest.test_...]
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

TOOL = "diapason"
LIMIT = 300
WIDTHS = (60, 80, 120)
SIM = ("--backend", "sim", "--cluster", "h100x8", "-g", "8")
COUNTED = ("--budget", "1h", "--limit", "20s", "--samples", "60")


def on_terminal(*words: str, columns: int = 80, **environment: str) -> tuple[int, str]:
    """The status of the tool, and everything that it wrote to the terminal, both streams."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE")}
    process = subprocess.Popen([TOOL, *words], stdin=slave, stdout=slave, stderr=slave,
                               env={**clean, "TERM": "xterm", **environment})
    os.close(slave)
    written = b""
    end = time.monotonic() + LIMIT
    try:
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 1)
            if not ready:
                continue
            try:
                part = os.read(master, 65536)
            except OSError:
                break  # the last writer has closed the terminal
            if not part:
                break
            written += part
        else:
            process.kill()
        return process.wait(timeout=LIMIT), written.decode()
    finally:
        os.close(master)


def plain(text: str) -> str:
    return re.sub(r"\033\[[0-9;]*m", "", text)


def screen(text: str, columns: int) -> list[str]:
    """The lines of a terminal after `text`; those that the terminal had to break are joined with a mark."""
    lines: list[list[str]] = [[]]
    at = 0
    text = plain(text)
    i = 0
    while i < len(text):
        if text.startswith("\033[K", i):
            del lines[-1][at:]
            i += 3
            continue
        c = text[i]
        i += 1
        if c == "\n":
            lines.append([])
            at = 0
        elif c == "\r":
            at = 0
        else:
            line = lines[-1]
            line[at : at + 1] = [c]
            at += 1
    del columns
    return ["".join(line).rstrip() for line in lines]


class TerminalTest(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = tempfile.TemporaryDirectory(prefix="diapason-terminal-")
        self.addCleanup(self.scratch.cleanup)

    def path(self, name: str) -> str:
        return str(Path(self.scratch.name) / name)

    def store(self) -> str:
        path = self.path("sweep.db")
        if not Path(path).exists():
            subprocess.run([TOOL, "sweep", "allreduce", *SIM, "--sizes", "64K,1M", "--samples", "6", "--store", path, "-q"],
                           capture_output=True, check=True, timeout=LIMIT)
        return path

    def test_nothing_is_printed_behind_a_progress_line(self) -> None:
        for words, first in [
            (("tune", "allreduce", *SIM, "--sizes", "64K,1M", *COUNTED, "-o", self.path("tuned")), "library  "),
            (("sweep", "allreduce", *SIM, "--sizes", "64K,1M", "--samples", "6"), "# "),
        ]:
            with self.subTest(words[0]):
                status, text = on_terminal(*words, columns=120)
                self.assertEqual(status, 0, text)
                self.assertIn("\r\033[K[", text, "no progress was drawn")
                lines = [line for line in screen(text, 120) if line]
                self.assertTrue(lines[0].startswith(first), lines[0])
                for line in lines:
                    self.assertNotRegex(line, r"\[[#.]{24}\]", "a progress line is left, or text stands behind it")
                # Text is written at the beginning of a line that is erased.
                for part in re.findall(r"(\[[#.]{24}\][^\r\n]*)(.)", text, re.S):
                    self.assertEqual(part[1], "\r", part)

    def tables(self, tune: bool = False):
        """Commands whose tables are wider than 80 columns, and a value of theirs that has to stay whole."""
        if tune:
            yield ("tune", "allreduce", *SIM, "--sizes", "64K", *COUNTED, "-q", "-o", self.path("tuned")), r"\d\.\d\d x"
        yield ("sweep", "allreduce", *SIM, "--sizes", "64K,1M", "--samples", "6", "-q"), r"\d\.\d\d x"
        yield ("bench", "allreduce", *SIM, "--sizes", "64K,1M", "--rounds", "6"), r"\b1048576\b"
        yield ("data", "show", self.store()), r"\d\.\d\d x"
        yield ("simulate", "h100x8", "--sizes", "64K,1M"), r"\b1\.41\b"
        yield ("settings",), r"DIAPASON_POLICY\b"

    def test_tables_fit_the_width(self) -> None:
        for words, value in self.tables(tune=True):
            for columns in WIDTHS:
                with self.subTest(f"{words[0]} {columns}"):
                    status, text = on_terminal(*words, columns=columns)
                    self.assertEqual(status, 0, text)
                    rows = self.rows(words[0], screen(text, columns))
                    self.assertTrue(rows)
                    for row in rows:
                        self.assertLessEqual(len(row), columns, row)
                    self.assertRegex("\n".join(rows), value)

    @staticmethod
    def rows(command: str, lines: list[str]) -> list[str]:
        """The lines of tables: of bench all that are no remark, else those of paragraphs that have columns."""
        if command == "bench":
            return [line for line in lines if line and not line.startswith("# ")] + [line for line in lines if "busbw" in line and "#wrong" in line] + [line for line in lines if "no room" in line]
        found = []
        for paragraph in "\n".join(lines).split("\n\n"):
            block = paragraph.splitlines()
            heads = [i for i, line in enumerate(block) if re.search(r"\S  +(gain|busbw|usable|source|value|verdict|version|speed-up|samples)", line)]
            if heads:
                found += [line for line in block[heads[0] :] if not re.match(r"(geometric|every sample|diapason)", line)]
        return found

    def test_nothing_is_left_out_without_a_terminal(self) -> None:
        for words, _ in self.tables():
            done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=LIMIT, check=True)
            self.assertNotIn("no room for", done.stdout)
            self.assertNotIn("\033", done.stdout)

    def test_colours(self) -> None:
        show = ("data", "show", self.store())
        self.assertIn("\033[32m", on_terminal(*show)[1])
        self.assertNotIn("\033[3", on_terminal(*show, NO_COLOR="1")[1])
        self.assertNotIn("\033[3", on_terminal(*show, TERM="dumb")[1])
        self.assertNotIn("\033[3", on_terminal(*show, NO_COLOR="1", CLICOLOR_FORCE="1")[1])
        for force, coloured in (("1", True), ("0", False), ("", False)):
            done = subprocess.run([TOOL, *show], capture_output=True, text=True, timeout=LIMIT, check=True,
                                  env={**os.environ, "CLICOLOR_FORCE": force, "NO_COLOR": ""})
            self.assertEqual("\033[32m" in done.stdout, coloured, force)

    def test_markdown_and_csv_have_the_tables_alone(self) -> None:
        for words, _ in self.tables():
            with self.subTest(words[0]):
                if words[0] == "settings":
                    continue  # has a page of its own in Markdown
                done = subprocess.run([TOOL, *words, "--format", "csv"], capture_output=True, text=True, timeout=LIMIT, check=True)
                for block in done.stdout.strip().split("\n\n"):
                    rows = self.csv(block)
                    self.assertGreater(len(rows), 1, done.stdout)
                    self.assertEqual({len(row) for row in rows}, {len(rows[0])}, block)
                done = subprocess.run([TOOL, *words, "--format", "markdown"], capture_output=True, text=True, timeout=LIMIT, check=True)
                for line in done.stdout.splitlines():
                    self.assertRegex(line, r"^(\|.*\|)?$")
        # On a terminal they are the same.
        show = ("data", "show", self.store(), "--format", "csv")
        done = subprocess.run([TOOL, *show], capture_output=True, text=True, timeout=LIMIT, check=True)
        self.assertEqual(on_terminal(*show, columns=40)[1].replace("\r\n", "\n"), done.stdout)
        done = subprocess.run([TOOL, *show, "--json"], capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--json and --format cannot be used together", done.stderr)

    @staticmethod
    def csv(text: str) -> list[list[str]]:
        import csv as reader
        return list(reader.reader(text.splitlines()))

    def test_help_and_version(self) -> None:
        def of(*words: str) -> str:
            return subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=LIMIT, check=True).stdout

        self.assertEqual(of("help"), of("--help"))
        self.assertEqual(of("help", "tune"), of("tune", "--help"))
        self.assertEqual(of("help", "env", "check"), of("env", "check", "--help"))
        self.assertEqual(of("-V"), of("--version"))
        done = subprocess.run([TOOL, "help", "tnue"], capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown command 'tnue'; did you mean 'tune'?", done.stderr)
        examples = of("--help").split("Examples:\n")[1].splitlines()
        commands = [line.strip() for line in examples if re.match(r"  \S", line)]
        self.assertTrue(commands[0].startswith("diapason tune -- "), commands)
        self.assertTrue(commands[1].startswith("diapason run --policy "), commands)

    def test_reversed_sizes(self) -> None:
        for words in (("-b", "4M", "-e", "1K"), ("--sizes", "4M:1K")):
            done = subprocess.run([TOOL, "bench", *SIM, *words], capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("'4M:1K' is reversed", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_completion_of_variables(self) -> None:
        """bash itself, with its own COMP_WORDS, offers the names of the catalogue."""
        script = ('source <("$1" completion bash); shift; COMP_WORDS=(diapason "$@"); COMP_CWORD=$#; COMPREPLY=(); '
                  '_diapason 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", TOOL, "knobs", "NCCL_IB_T"], capture_output=True, text=True,
                              timeout=LIMIT, check=True)
        self.assertEqual(sorted(done.stdout.split()), ["NCCL_IB_TC", "NCCL_IB_TIMEOUT"])
        done = subprocess.run(["bash", "-c", script, "bash", TOOL, "help", "swe"], capture_output=True, text=True, timeout=LIMIT,
                              check=True)
        self.assertEqual(done.stdout.split(), ["sweep"])
        zsh = subprocess.run([TOOL, "completion", "zsh"], capture_output=True, text=True, timeout=LIMIT, check=True).stdout
        self.assertRegex(zsh.split("_diapason_knobs() {")[1].split("\n}\n")[0], r"'\*:WORD:\([^)]*\bNCCL_IB_TIMEOUT\b[^)]*\)'")
        fish = subprocess.run([TOOL, "completion", "fish"], capture_output=True, text=True, timeout=LIMIT, check=True).stdout
        self.assertRegex(fish, r"complete -c diapason -n '__diapason_at .*knobs.*' .*-a '[^']*\bNCCL_IB_TIMEOUT\b")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default="diapason")
    given, rest = parser.parse_known_args()
    TOOL = given.tool
    unittest.main(argv=[sys.argv[0], *rest])
