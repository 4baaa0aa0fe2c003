"""Where the plugin and the command-line tool are."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path
from typing import Iterator, List, Tuple, Union

PLUGIN = "libnccl-tuner-diapason.so"
TOOL = "diapason"
LONGEST_PATH = 254  # what NCCL keeps of a plugin's name

_PACKAGE = Path(__file__).resolve().parent
_SYSTEM = ("/usr/local/lib", "/usr/lib", "/usr/lib64", "/opt/diapason/lib")


def is_plugin_name(value: str) -> bool:
    """Whether a value of NCCL_TUNER_PLUGIN (or _PROFILER_, _ENV_) means this plugin."""
    name = os.path.basename(value)
    return value == TOOL or (name.startswith(("libnccl-", "librccl-")) and name.endswith("-diapason.so"))


def _prefix() -> Path | None:
    """Where `cmake --install` has put this package: it is in PREFIX/share/diapason/python."""
    parents = list(_PACKAGE.parents)  # Python 3.8 cannot slice them as they are
    return parents[3] if [one.name for one in parents[:3]] == ["python", "diapason", "share"] else None


def _around() -> Iterator[Path]:
    """Folders that hold lib/ and bin/: the wheel's, an installed tree's, a bundle's, a source tree's builds."""
    yield _PACKAGE
    prefix, root = _prefix(), _PACKAGE.parent.parent
    if prefix is not None:
        yield prefix
    elif _PACKAGE.parent.name == "python":
        yield root
        yield root / "build" / "release"


def _libraries_of(folder: Path) -> Iterator[Path]:
    if folder == _prefix():  # as cmake's LIBDIR is on Debian, on Fedora and elsewhere
        yield folder / "lib" / f"{os.uname().machine}-linux-gnu"
        yield folder / "lib64"
    yield folder / "lib"


def _candidates() -> Iterator[Tuple[str, Path]]:
    folder = os.environ.get("DIAPASON_LIB_DIR")
    if folder:
        yield "DIAPASON_LIB_DIR", Path(folder) / PLUGIN
    named = os.environ.get("NCCL_TUNER_PLUGIN", "")
    if is_plugin_name(named) and os.path.isabs(named):
        yield "NCCL_TUNER_PLUGIN", Path(named)
    for folder_around in _around():
        for libraries in _libraries_of(folder_around):
            yield "beside this package", libraries / PLUGIN
    for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if entry:
            yield "LD_LIBRARY_PATH", Path(entry) / PLUGIN
    multiarch = getattr(sys.implementation, "_multiarch", "")
    for entry in ([f"/usr/lib/{multiarch}"] if multiarch else []) + list(_SYSTEM):
        yield "the system", Path(entry) / PLUGIN


def find_plugin() -> str | None:
    for _, path in _candidates():
        if path.is_file():
            return str(path.absolute())
    return None


def is_beside(plugin: str) -> bool:
    """Whether it is the plugin that was built and installed with this package."""
    there = [libraries / PLUGIN for folder in _around() for libraries in _libraries_of(folder)]
    return any(one.is_file() and os.path.samefile(one, plugin) for one in there)


def searched() -> List[str]:
    """The folders find_plugin() looks into, for an error message."""
    return [f"{path.parent} ({why})" for why, path in _candidates()]


def is_elf(path: Union[str, Path]) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def has_plugin_symbols(path: Union[str, Path]) -> bool:
    """Whether the name of a function that only this plugin has is in the file. Nothing is loaded."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(b"diapason_version\0") >= 0
    except (OSError, ValueError):  # ValueError: it is empty
        return False


def find_tool() -> str | None:
    """The compiled tool; never the script of the same name that pip writes, which calls this."""
    places = [folder / "bin" / TOOL for folder in _around()]
    places += [Path(entry) / TOOL for entry in os.environ.get("PATH", "").split(":") if entry]
    for path in places:
        if is_elf(path) and _executable(path):
            return str(path.absolute())
    return None


def _executable(path: Path) -> bool:
    if os.access(path, os.X_OK):
        return True
    if _PACKAGE not in path.parents:
        return False
    try:  # a wheel that was unpacked by hand has lost its permissions
        path.chmod(path.stat().st_mode | 0o111)
    except OSError:
        return False
    return os.access(path, os.X_OK)
