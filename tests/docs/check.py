#!/usr/bin/env python3
"""Checks what the documentation says without running its commands.

    check.py --tool PATH/bin/diapason

Links and anchors, pages that no index names, lines over 120 columns, commands and options that do not exist (also in running
text and tables), settings, files of the source tree, ./dev's words, and declarations of
tests/docs/commands.toml that no command needs any more.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is written into the source tree
sys.path.insert(0, str(Path(__file__).resolve().parent))
from pages import ROOT, Command, Declared, load, matches, name_of, pages, paragraphs, split, too_wide, tool_calls  # noqa: E402

TOOL = Path()
FORBIDDEN = {
    "TODO": "say what is, or nothing",
}


@cache
def help_of(path: tuple[str, ...]) -> str | None:
    done = subprocess.run([TOOL, *path, "--help"], capture_output=True, text=True, timeout=600, check=False)
    return done.stdout if done.returncode == 0 else None


@cache
def options_of(path: tuple[str, ...]) -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", help_of(path) or ""))


@cache
def commands_of(path: tuple[str, ...]) -> frozenset[str]:
    named = re.findall(r"^  ([a-z][a-z-]*)(?:  |$)", help_of(path) or "", re.M)
    return frozenset(each for each in named if help_of((*path, each)) != help_of(path))


@cache
def all_options() -> frozenset[str]:
    found: set[str] = set(options_of(()))
    for command in commands_of(()):
        found |= options_of((command,))
        for inner in commands_of((command,)):
            found |= options_of((command, inner))
    return frozenset(found)


def wrong_call(words: list[str]) -> str:
    """What is wrong with the words behind `diapason`, or nothing."""
    path: tuple[str, ...] = ()
    rest = [each for each in words if each]
    while rest and len(path) < 2 and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
        if help_of((*path, rest[0])) is None:
            break
        path = (*path, rest.pop(0))
    if not path and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
        return f"there is no command '{rest[0]}'"
    known = options_of(path)
    for word in rest:
        option = word.split("=", 1)[0]
        if re.fullmatch(r"--?[A-Za-z][\w-]*", option) and option not in known:
            return f"`diapason {' '.join(path)}` has no option {option}"
    return ""


def anchors(path: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them from headings."""
    found: set[str] = set()
    for _, line in split(path.read_text(encoding="utf-8"))[1]:
        if heading := re.match(r"#+\s+(.*)", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            found.add(re.sub(r"\s", "-", re.sub(r"[^\w\- ]", "", text.strip())))
    return found


class Checks:
    def __init__(self, declared: Declared):
        self.declared = declared
        self.settings = set(re.findall(r"DIAPASON_\w+", json.dumps(self.tool_settings())))
        self.dev = (ROOT / "dev").read_text(encoding="utf-8")
        self.links: dict[str, set[str]] = {}
        self.failures = 0

    @staticmethod
    def tool_settings() -> object:
        return json.loads(subprocess.run([TOOL, "settings", "--json"], capture_output=True, check=True).stdout)

    def fail(self, page: str, line: int, text: str) -> None:
        self.failures += 1
        print(f"FAILED {page}:{line}: {text}")

    def link(self, path: Path, line: int, target: str) -> None:
        page = name_of(path)
        if re.match(r"[a-z]+:", target):
            return
        file, _, anchor = target.partition("#")
        to = (path.parent / file).resolve() if file else path
        if not to.exists():
            self.fail(page, line, f"the link to {target} leads nowhere")
            return
        if anchor and anchor not in anchors(to):
            self.fail(page, line, f"{file or page} has no heading #{anchor}; there are {', '.join(sorted(anchors(to)))}")
        if to.is_relative_to(ROOT):
            self.links.setdefault(page, set()).add(name_of(to))

    def code(self, page: str, line: int, text: str) -> None:
        """A `code span` in running text."""
        first = text.split()[0] if text.split() else ""
        if " --" in text and first in commands_of(()):
            text = f"diapason {text}"  # `bench --policy`, as people say it
        for words in tool_calls(text) if text.startswith(("diapason ", "./dev run")) else []:
            if wrong := wrong_call(words):
                self.fail(page, line, f"`{text}`: {wrong}")
        if text.startswith("-") and (option := re.match(r"--?[A-Za-z][\w-]*", text)):
            if option[0] not in all_options() and option[0] not in self.declared.all["foreign_options"]:
                self.fail(page, line, f"no command has the option {option[0]}; one of another program belongs into foreign_options")
        if words := re.match(r"\./dev ([a-z]+)(?: ([a-z-]+))?", text):
            self.dev_words(page, line, words[1], words[2] or "")
        if re.fullmatch(r"(src|tests|docs|bench|examples|include|python|targets|clusters|cmake)/[\w./*-]+", text):
            if not list(ROOT.glob(text.rstrip("/"))):
                self.fail(page, line, f"there is no {text}")

    def dev_words(self, page: str, line: int, word: str, name: str) -> None:
        if not re.search(rf"^  {word}[) |]", self.dev, re.M):
            self.fail(page, line, f"./dev knows no '{word}'")
        if word == "bench" and name and not re.search(rf"^    {re.escape(name)}\)", self.dev, re.M):
            self.fail(page, line, f"./dev bench knows no '{name}'")

    def width(self, path: Path) -> None:
        for number in too_wide(path.read_text(encoding="utf-8")):
            self.fail(name_of(path), number, "a line of running text is wider than 120 columns")

    def page(self, path: Path) -> list[Command]:
        page = name_of(path)
        self.width(path)
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            for word, what in FORBIDDEN.items():
                if word in line:
                    self.fail(page, number, f"'{word}': {what}")
            for name in re.findall(r"\bDIAPASON_[A-Z0-9_]*[A-Z0-9]\b", line):
                if name not in self.settings and name not in self.declared.all["other_variables"]:
                    self.fail(page, number, f"there is no setting {name}")
        for number, line in paragraphs(split(text)[1]):
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                self.link(path, number, target)
            for span in re.findall(r"`([^`]+)`", line):
                self.code(page, number, span)
        commands, wrong = load(path, self.declared.programs)
        for each in wrong:
            self.failures += 1
            print(f"FAILED {each}")
        for command in commands:
            for words in tool_calls(command.text):
                if problem := wrong_call(words):
                    self.fail(page, command.line, f"{command.text}: {problem}")
        return commands

    def reach(self, all_pages: list[Path]) -> None:
        """Every page can be reached from the README, and the index names it."""
        index = self.links.get("docs/README.md", set())
        for path in all_pages[1:]:
            if name_of(path) in index or name_of(path) == "docs/README.md":
                continue
            folder = name_of(path.parent / "README.md")  # an index of its own, which the index names
            if folder not in index or name_of(path) not in self.links.get(folder, set()):
                self.fail(name_of(path), 1, "docs/README.md does not name this page")
        if "docs/README.md" not in self.links.get("README.md", set()):
            self.fail("README.md", 1, "it does not lead to docs/README.md")

    def declarations(self, commands: list[Command], all_pages: list[Path]) -> None:
        """Whatever commands.toml declares is needed by some command."""
        where = "tests/docs/commands.toml"
        used: set[int] = set()
        for command in commands:
            rule = self.declared.of(command)
            if rule:
                used.add(id(rule))
        for rule in self.declared.rules:
            if id(rule) not in used:
                hidden = any(
                    rule.get("page", each.page) == each.page and matches(rule["match"], each.text) for each in commands
                )
                why = "an earlier rule speaks for it" if hidden else "no command is like that"
                self.fail(where, 1, f"the rule for '{rule['match']}' is never used: {why}")
            if set(rule) - {"page", "match", "run", "add", "skip", "status", "output", "needs"}:
                self.fail(where, 1, f"the rule for '{rule['match']}' has an unknown key")
            if set(rule) <= {"page", "match"}:
                self.fail(where, 1, f"the rule for '{rule['match']}' says nothing")
            for words in tool_calls(rule.get("run", "")):
                if wrong := wrong_call(words):
                    self.fail(where, 1, f"`{rule['run']}`: {wrong}")
        names = {name_of(each) for each in all_pages}
        everything = "\n".join(each.text + "\n" + self.declared.of(each).get("run", "") for each in commands)
        for page, entry in self.declared.pages.items():
            if page not in names:
                self.fail(where, 1, f"there is no page {page}")
            of_page = "\n".join(each.text + self.declared.of(each).get("run", "") for each in commands if each.page == page)
            for old in entry.get("replace", {}):
                if old not in of_page:
                    self.fail(where, 1, f"{page}: '{old}' is replaced, and stands in no command")
        for name in self.declared.stand_ins:
            if name.removeprefix("./") not in everything:
                self.fail(where, 1, f"nobody needs the stand-in '{name}'")


def main() -> int:
    global TOOL
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=Path, required=True)
    TOOL = parser.parse_args().tool.resolve()
    checks = Checks(Declared())
    all_pages = pages()
    commands: list[Command] = []
    for path in all_pages:
        commands += checks.page(path)
    for number, line in split((ROOT / "src/README.md").read_text(encoding="utf-8"))[1]:
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            checks.link(ROOT / "src/README.md", number, target)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        if (ROOT / name).exists():
            checks.width(ROOT / name)
    checks.reach(all_pages)
    checks.declarations(commands, all_pages)
    print(f"{len(all_pages)} pages, {len(commands)} commands: {checks.failures} failures")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
