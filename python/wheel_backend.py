"""Writes wheels with nothing but the standard library.

It is the build backend (PEP 517 and 660) of pyproject.toml, for the package alone, and the part that
packaging/wheel/build.py shares: the same files give the same wheel, byte for byte.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import os
import re
import sys
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict

HERE = Path(__file__).resolve().parent
FIRST_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest a zip file can say


@dataclass(frozen=True)
class Entry:
    content: bytes
    mode: int = 0o644


def version() -> str:
    text = (HERE / "diapason" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?)"$', text, re.MULTILINE)
    if found is None:
        raise ValueError("diapason/_version.py has no version that Python's tools understand")
    return found.group(1)


def metadata() -> bytes:
    source = (HERE / "diapason" / "__init__.py").read_text(encoding="utf-8")
    return f"""Metadata-Version: 2.1
Name: diapason
Version: {version()}
Summary: A tuning fork for GPU collectives: the tuner plugin for NCCL and RCCL, from Python
License: Apache-2.0
Requires-Python: >=3.8
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: System :: Distributed Computing
Description-Content-Type: text/markdown

{ast.get_docstring(ast.parse(source)) or ""}
""".encode()


def package_files() -> Dict[str, Entry]:
    folder = HERE / "diapason"
    names = sorted(path for path in folder.rglob("*") if path.suffix == ".py" or path.name == "py.typed")
    return {f"diapason/{path.relative_to(folder).as_posix()}": Entry(path.read_bytes()) for path in names}


def _moment() -> tuple:
    """SOURCE_DATE_EPOCH where it is set, as reproducible builds have it."""
    try:
        given = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "")))[:6]
    except (ValueError, OverflowError, OSError):
        return FIRST_TIME
    return max(FIRST_TIME, given) if given[0] < 2108 else FIRST_TIME


def record_hash(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def licences(compiled: bool) -> Dict[str, Entry]:
    """The licence and, for compiled files, the notices of what is linked into them; by name in the dist-info folder."""
    names = ["LICENSE", "THIRD-PARTY-NOTICES.md"] if compiled else ["LICENSE"]
    paths = [HERE.parent / name for name in names]
    return {f"licenses/{path.name}": Entry(path.read_bytes()) for path in paths if path.is_file()}


def write_dist_info(folder: Path) -> Path:
    """What installers leave beside a package, for installations without one: importlib.metadata finds the version."""
    about = folder / f"diapason-{version()}.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_bytes(metadata())
    (about / "INSTALLER").write_bytes(b"cmake\n")
    return about


def write_wheel(folder: Path, platform: str, entries: Dict[str, Entry]) -> Path:
    """The wheel of these files; `platform` is the last part of its tag. Replaces an older one whole."""
    number, tag = version(), f"py3-none-{platform}"
    about = f"diapason-{number}.dist-info"
    pure = "true" if platform == "any" else "false"
    entries = dict(entries)
    entries[f"{about}/METADATA"] = Entry(metadata())
    entries[f"{about}/WHEEL"] = Entry(
        f"Wheel-Version: 1.0\nGenerator: diapason ({number})\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode())
    entries[f"{about}/entry_points.txt"] = Entry(b"[console_scripts]\ndiapason = diapason._tool:main\n")
    entries.update((f"{about}/{name}", entry) for name, entry in licences(platform != "any").items())
    entries = dict(sorted(entries.items()))
    record = f"{about}/RECORD"
    lines = [f"{name},{record_hash(entry.content)},{len(entry.content)}\n" for name, entry in entries.items()]
    entries[record] = Entry("".join(lines + [f"{record},,\n"]).encode())  # the last one, as is the custom
    path = folder / f"diapason-{number}-{tag}.whl"
    unfinished = folder / f"{path.name}.part"
    try:
        with zipfile.ZipFile(unfinished, "w") as archive:
            for name, entry in entries.items():
                info = zipfile.ZipInfo(name, _moment())
                info.create_system = 3  # Unix, or the mode says nothing
                info.external_attr = (0o100000 | entry.mode) << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, entry.content, compresslevel=9)
        unfinished.replace(path)
    finally:
        if unfinished.exists():
            unfinished.unlink()
    return path


# What pip calls.


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    return write_wheel(Path(wheel_directory), "any", package_files()).name


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    link = {"__editable__diapason.pth": Entry(f"{HERE}\n".encode())}
    return write_wheel(Path(wheel_directory), "any", link).name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    base = f"diapason-{version()}"
    files = {name: entry.content for name, entry in package_files().items()}
    for name in ("pyproject.toml", "wheel_backend.py"):
        files[name] = (HERE / name).read_bytes()
    files["PKG-INFO"] = metadata()
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(files.items()):
            info = tarfile.TarInfo(f"{base}/{name}")
            info.size, info.mode = len(content), 0o644
            archive.addfile(info, io.BytesIO(content))
    return f"{base}.tar.gz"


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "--dist-info":
        sys.exit("usage: wheel_backend.py --dist-info FOLDER")
    print(write_dist_info(Path(sys.argv[2])))
