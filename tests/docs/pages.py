"""Reads the documentation: its code blocks, the commands in them, inline code, headings and links."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

try:
    import tomllib
except ImportError:
    print(f"skipped: Python {sys.version.split()[0]} cannot read TOML; 3.11 can")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Fenced blocks that say they are something else hold no commands.
OTHER_LANGUAGES = {"c", "cpp", "c++", "python", "toml", "json", "csv", "ini", "cmake", "html"}


@dataclass
class Block:
    line: int  # of its first line, from 1
    lines: list[str]
    language: str = ""


@dataclass
class Command:
    page: str
    line: int
    text: str
    block: int  # commands of one block share a shell
    output: list[str] = field(default_factory=list)  # what the page shows below it


def pages(root: Path = ROOT) -> list[Path]:
    """Every page that is tested, README first."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def name_of(path: Path, root: Path = ROOT) -> str:
    return str(path.relative_to(root))


def split(text: str) -> tuple[list[Block], list[tuple[int, str]]]:
    """The code blocks of a page, and its other lines with their numbers."""
    blocks: list[Block] = []
    prose: list[tuple[int, str]] = []
    lines = text.splitlines()
    may_begin = True  # an indented block cannot begin inside a paragraph
    i = 0
    while i < len(lines):
        line = lines[i]
        fence = re.match(r" {0,3}(```+|~~~+)\s*(\S*)", line)
        if fence:
            end = i + 1
            while end < len(lines) and not lines[end].lstrip().startswith(fence[1]):
                end += 1
            blocks.append(Block(i + 2, lines[i + 1 : end], fence[2].lower()))
            i, may_begin = end + 1, True
            continue
        if may_begin and line.startswith("    ") and line.strip():
            end = i
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            blocks.append(Block(i + 1, textwrap.dedent("\n".join(lines[i:end])).split("\n")))
            i, may_begin = end, True
            continue
        prose.append((i + 1, line))
        may_begin = not line.strip() or line.startswith("#")
        i += 1
    return blocks, prose


def paragraphs(prose: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Lines that belong together, since code spans and links go over their ends; of a table each row."""
    found: list[tuple[int, str]] = []
    last = -1
    for number, line in prose:
        if found and line.strip() and number == last + 1 and not re.match(r"[|#]|\s*([-*]|\d+\.)\s", line):
            found[-1] = (found[-1][0], found[-1][1] + " " + line.strip())
            last = number
        else:
            found.append((number, line))
            last = number if line.strip() else -1
    return found


def too_wide(text: str, columns: int = 120) -> list[int]:
    """Numbers of the lines of running text that are wider than so many columns. Code blocks, tables and a
    line that has no blank to break it at may be."""
    return [
        number
        for number, line in split(text)[1]
        if len(line) > columns and not line.lstrip().startswith("|") and " " in line.strip()
    ]


def first_word(line: str) -> str:
    """The program a line would start: the first word behind NAME=VALUE assignments."""
    rest = line.strip()
    while match := re.match(r"[A-Za-z_][A-Za-z_0-9]*=(\"[^\"]*\"|'[^']*'|\$\([^)]*\)|\S)*\s*", rest):
        rest = rest[match.end() :]
    return rest.split()[0] if rest.split() else ""


def is_command(line: str, programs: set[str]) -> bool:
    word = first_word(line)
    return word in programs or bool(re.match(r"(\./|build/release/bin/)[\w.-]", word))


def uncommented(text: str) -> str:
    """The command without the comment behind it."""
    return re.sub(r"\s+#\s.*$", "", text)


def commands(page: str, blocks: list[Block], programs: set[str]) -> tuple[list[Command], list[str]]:
    """The commands of a page in order, and what is wrong with how they are written."""
    found: list[Command] = []
    wrong: list[str] = []
    for number, block in enumerate(blocks):
        if block.language in OTHER_LANGUAGES:
            continue
        prompts = any(line.startswith("$ ") for line in block.lines)
        shell = block.language in {"sh", "bash", "shell"}
        begins = next((each for each in block.lines if each.strip() and not each.startswith("#")), "")
        if not prompts and not shell and not is_command(begins, programs):
            for i, line in enumerate(block.lines):
                if re.match(r"diapason [a-z]+( |$)", line):
                    wrong.append(f"{page}:{block.line + i}: '{line}' looks like a command in a block of something else")
            continue
        current: Command | None = None
        prompted = False  # the last command had a '$ ': what follows is its output
        i = 0
        while i < len(block.lines):
            at, line = block.line + i, block.lines[i]
            i += 1
            prompt = line.startswith("$ ")
            if not prompt and prompted and current is not None:
                current.output.append(line)
                continue
            if not line.strip() or line.startswith("#"):
                continue
            if not prompt and not shell and not is_command(line, programs):
                wrong.append(
                    f"{page}:{at}: '{line.strip()}' stands beside commands and is none: put '$ ' before the "
                    "commands, or the output into a block of its own"
                )
                continue
            text = line[2:] if prompt else line
            while text.endswith("\\") and i < len(block.lines):
                text = text[:-1].rstrip() + " " + block.lines[i].strip()
                i += 1
            current = Command(page, at, uncommented(text.strip()), number)
            prompted = prompt
            found.append(current)
    return found, wrong


def load(path: Path, programs: set[str], root: Path = ROOT) -> tuple[list[Command], list[str]]:
    blocks, _ = split(path.read_text(encoding="utf-8"))
    return commands(name_of(path, root), blocks, programs)


class Declared:
    """tests/docs/commands.toml: everything that is not simply run."""

    def __init__(self, path: Path = HERE / "commands.toml"):
        with path.open("rb") as file:
            self.all = tomllib.load(file)
        self.programs = set(self.all["programs"])
        self.stand_ins: dict[str, str] = self.all.get("stand_in", {})
        self.pages: dict[str, dict] = self.all.get("page", {})
        self.rules: list[dict] = self.all.get("command", [])

    def of(self, command: Command) -> dict:
        """The first rule that speaks of this command."""
        for rule in self.rules:
            if rule.get("page", command.page) == command.page and matches(rule["match"], command.text):
                return rule
        return {}


def matches(pattern: str, text: str) -> bool:
    """`*` stands for anything; nothing else is special."""
    expression = ".*".join(re.escape(each) for each in pattern.split("*"))
    return re.fullmatch(expression, text, re.DOTALL) is not None


def words(text: str) -> list[str]:
    """The words of a shell command, as well as they can be told."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";|&()<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def tool_calls(text: str) -> list[list[str]]:
    """Every call of the tool in a command: its words behind `diapason`, as far as they are its own."""
    if first_word(text) in {"sudo", "apt", "apt-get", "dpkg", "pip", "docker", "podman", "cmake", "git", "man"}:
        return []  # there it is the name of a package, an image or a page
    calls: list[list[str]] = []
    current: list[str] | None = None
    inner: list[str] = []
    previous = ""
    for word in words(text):
        if word == "diapason" or word.endswith("/bin/diapason") or (previous == "./dev" and word == "run"):
            current = []
            calls.append(current)
        elif current is not None and (word == "--" or re.fullmatch(r"[;|&()<>]+|[0-9]?>.*", word)):
            current = None
        elif current is not None:
            current.append(word)
        if "diapason " in word and (" " in word.strip()):
            inner.append(word)
        previous = word
    for each in inner:
        calls += tool_calls(each) if each != text else []
    return calls
