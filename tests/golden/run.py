#!/usr/bin/env python3
"""Golden tests: commands as a user types them, and what they must print.

A *.golden file holds blocks of
    $ COMMAND              (a shell command; `diapason` is the tool under test)
    expected output        (standard output and error together)
    [exit N]               (when not 0)
ended by a line `---`; lines that start with '#' before a '$' are comments. Commands run in the
repository's root with no DIAPASON_ and NCCL_ variables set.

    run.py --tool PATH FILE...            compare
    run.py --tool PATH --update FILE...   write what the tool prints now; read the diff before committing
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def blocks(text: str) -> list[tuple[str, list[str], str]]:
    """(comments, command lines, expected) of each block."""
    result = []
    comments: list[str] = []
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        if not lines[i].startswith("$ "):
            comments.append(lines[i])
            i += 1
            continue
        commands = []
        while i < len(lines) and lines[i].startswith("$ "):
            commands.append(lines[i][2:])
            i += 1
        expected = []
        while i < len(lines) and lines[i] != "---":
            expected.append(lines[i])
            i += 1
        i += 1
        result.append(("\n".join(comments), commands, "\n".join(expected)))
        comments = []
    return result


def environment(tool: Path, work: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DIAPASON_", "NCCL_"))}
    # Leaks of the tool are looked for by other tests; here the printed text counts.
    kept["PATH"] = f"{tool.parent}:{kept['PATH']}"
    kept["TMP"] = work
    return kept


def run(commands: list[str], tool: Path, work: str) -> str:
    done = subprocess.run(
        ["bash", "-c", "\n".join(commands)],
        cwd=ROOT,
        env=environment(tool, work),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
    )
    text = done.stdout.decode(errors="replace")
    # Where the tree and the build are is nobody's business.
    text = text.replace(str(tool.parent.parent), "BUILD").replace(work, "TMP").replace(str(ROOT), "ROOT")
    text = "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n"))
    if done.returncode != 0:
        text += f"\n[exit {done.returncode}]"
    return text.lstrip("\n")


def check(path: Path, tool: Path, update: bool) -> int:
    failures = 0
    written = []
    with tempfile.TemporaryDirectory(prefix="diapason-golden-") as work:
        for comments, commands, expected in blocks(path.read_text(encoding="utf-8")):
            actual = run(commands, tool, work)
            if update:
                head = comments + "\n" if comments else ""
                written.append(head + "".join(f"$ {c}\n" for c in commands) + actual + "\n---\n")
            elif actual != expected:
                failures += 1
                print(f"{path.name}: $ {' ; '.join(commands)}")
                lines = difflib.unified_diff(
                    expected.splitlines(), actual.splitlines(), "expected", "printed", lineterm=""
                )
                print("\n".join(lines))
    if update:
        path.write_text("".join(written), encoding="utf-8")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    failures = sum(check(path, options.tool.resolve(), options.update) for path in options.files)
    print(f"{failures} of the commands print something else than expected" if failures else "all as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
