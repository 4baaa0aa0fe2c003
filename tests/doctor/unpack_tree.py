#!/usr/bin/env python3
"""Makes a folder that looks like a machine from a text of a few lines (tests/data/hosts).

    unpack_tree.py FILE FOLDER
"""

from __future__ import annotations

import shutil
import struct
import sys
from pathlib import Path


def expanded(path: Path) -> list[str]:
    """The lines of a file, with includes put in and loops written out."""
    lines: list[str] = []
    rounds: list[dict[str, str]] = [{}]
    block: list[str] = []

    def finish() -> None:
        for names in rounds:
            for line in block:
                for name, value in names.items():
                    line = line.replace(f"<{name}>", value)
                lines.append(line)
        block.clear()

    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("include "):
            lines += expanded(path.parent / line.split()[1])
        elif line.startswith("@"):
            finish()
            lists = [(word.split("=", 1)[0], word.split("=", 1)[1].split(",")) for word in line.split()[1:]]
            if line.startswith("@pairs"):
                (a, firsts), (b, seconds) = lists
                rounds = [{a: x, b: y} for x in firsts for y in seconds if x != y]
            else:
                count = len(lists[0][1]) if lists else 1
                rounds = [{name: values[i] for name, values in lists} for i in range(count)]
        else:
            block.append(line)
    finish()
    return lines


def elf(text: str) -> bytes:
    """A shared library with nothing in it but what tells what it is."""
    keys = {"soname": "", "symbols": "", "text": "", "needed": "", "rpath": "", "runpath": ""}
    for part in text.split(";"):
        name, value = part.strip().split("=", 1)
        keys[name] = value
    parts = {name: [word.strip() for word in value.split(",") if word.strip()] for name, value in keys.items()}
    names = b"\0"
    dynamic = b""
    for tag, key in ((1, "needed"), (14, "soname"), (15, "rpath"), (29, "runpath")):
        for word in parts[key]:
            dynamic += struct.pack("<QQ", tag, len(names))
            names += word.encode() + b"\0"
    dynamic += struct.pack("<QQ", 0, 0)
    for word in parts["symbols"]:
        names += word.encode() + b"\0"
    data = b"\0" + b"".join(word.replace("\\n", "\n").encode() + b"\0" for word in parts["text"])
    sections = [("", b""), (".dynstr", names), (".dynamic", dynamic), (".rodata", data)]
    titles = b"\0.dynstr\0.dynamic\0.rodata\0.shstrtab\0"
    sections.append((".shstrtab", titles))
    body = b""
    table = b""
    for name, content in sections:
        offset = titles.index(b"\0" + name.encode() + b"\0") + 1 if name else 0
        kind = 1 if name else 0
        table += struct.pack("<IIQQQQIIQQ", offset, kind, 0, 0, 64 + len(body), len(content), 0, 0, 1, 0)
        body += content
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 56, 0, 64, len(sections), 4)
    return head + body + table


def place(root: Path, path: str) -> Path:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def unpack(source: Path, root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for line in expanded(source):
        path, _, rest = line.partition(" ")
        if path == "delete":
            target = root / rest.lstrip("/")
            shutil.rmtree(target) if target.is_dir() else target.unlink()
            continue
        kind, _, value = rest.partition(" ")
        target = place(root, path)
        if kind == "/":
            target.mkdir(exist_ok=True)
        elif kind == "->":
            target.symlink_to(value)
        elif kind == "=":
            target.write_text(value.replace("\\n", "\n").replace("\\t", "\t") + "\n", encoding="utf-8")
        elif kind == "elf":
            target.write_bytes(elf(value))
        elif kind == "bytes":
            size, *places = value.split()
            content = bytearray(int(size))
            for at, data in (word.split(":") for word in places):
                content[int(at, 16) : int(at, 16) + len(data) // 2] = bytes.fromhex(data)
            target.write_bytes(content)
        else:
            sys.exit(f"{source}: cannot read '{line}'")


if __name__ == "__main__":
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
