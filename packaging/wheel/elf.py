"""What a compiled file needs of the system: read from the file itself, so that no tool must be there."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

MACHINES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 243: "riscv64"}
_DYNAMIC, _VERNEED = 6, 0x6FFFFFFE
_DT_NEEDED = 1
_WEAK = 2  # a version that may be missing


class ElfError(ValueError):
    """The file is no 64-bit little-endian ELF file, or is damaged."""


@dataclass(frozen=True)
class Needs:
    machine: str
    libraries: List[str]  # DT_NEEDED, in order
    versions: Dict[str, List[str]] = field(default_factory=dict)  # library -> symbol versions

    def glibc(self) -> Tuple[int, int]:
        """The oldest glibc that has every symbol, (2, 5) at least: older ones are of no interest."""
        found = [(2, 5)]
        for names in self.versions.values():
            for name in names:
                parts = name[len("GLIBC_"):].split(".") if name.startswith("GLIBC_") else []
                if len(parts) >= 2 and all(part.isdigit() for part in parts):
                    found.append((int(parts[0]), int(parts[1])))
        return max(found)


class _File:
    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ElfError(f"{path} is no 64-bit ELF file")
        header = struct.unpack_from("<HHIQQQIHHHHHH", self.data, 16)
        self.machine = header[1]
        offset, size, count = header[5], header[10], header[11]
        # name, type, flags, address, offset, size, link, info, alignment, entry size
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, offset + i * size) for i in range(count)]

    def of_type(self, kind: int) -> Iterator[tuple]:
        return (section for section in self.sections if section[1] == kind)

    def text(self, strings: int, offset: int) -> str:
        begin = self.sections[strings][4] + offset
        return self.data[begin:self.data.index(b"\0", begin)].decode()


def read(path: Path) -> Needs:
    try:
        file = _File(path)
        libraries = []
        for section in file.of_type(_DYNAMIC):
            for i in range(section[5] // 16):
                tag, value = struct.unpack_from("<qQ", file.data, section[4] + i * 16)
                if tag == 0:
                    break
                if tag == _DT_NEEDED:
                    libraries.append(file.text(section[6], value))
        if not libraries:
            raise ElfError(f"{path} names no libraries: it is static, or its section table is gone")
        versions: Dict[str, List[str]] = {}
        for section in file.of_type(_VERNEED):
            at = section[4]
            for _ in range(section[7]):
                _, count, name, first, following = struct.unpack_from("<HHIII", file.data, at)
                entry, names = at + first, versions.setdefault(file.text(section[6], name), [])
                for _ in range(count):
                    _, flags, _, version, after = struct.unpack_from("<IHHII", file.data, entry)
                    if not flags & _WEAK:
                        names.append(file.text(section[6], version))
                    entry += after
                at += following
        return Needs(MACHINES.get(file.machine, f"machine{file.machine}"), libraries, versions)
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        if isinstance(error, ElfError):
            raise
        raise ElfError(f"{path} is damaged: {error}") from None
