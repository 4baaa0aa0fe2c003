#!/usr/bin/env python3
"""Makes the wheel of the Python package from a finished build, with nothing but the standard library.

    python3 packaging/wheel/build.py build/release [-o out/wheel] [--no-tool]

The wheel holds the package (python/diapason), the plugin and the command-line tool. Its name says what the
compiled files really need: manylinux_X_Y where they use nothing but glibc X.Y, else linux_MACHINE, which
indexes do not take. The same files give the same wheel, byte for byte.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Dict, List, Tuple  # noqa: E402

import elf  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import wheel_backend  # noqa: E402
from wheel_backend import Entry  # noqa: E402

PLUGIN, TOOL = "libnccl-tuner-diapason.so", "diapason"
RECORDER = "libdiapason-mpi-recorder.so"  # which the tool preloads into MPI programs
LARGEST = 12 << 20
# Parts of glibc; other libraries that a file needs may be missing on other systems.
GLIBC = re.compile(r"(libc|libm|libdl|librt|libpthread|libutil)\.so\.\d+|ld-linux[-\w]*\.so\.\d+")


class BuildError(Exception):
    """The wheel cannot be made; the text says why."""


def say(text: str) -> None:
    print(f"wheel: {text}", file=sys.stderr, flush=True)


def check_version() -> None:
    found = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    if wheel_backend.version() != found:
        raise BuildError(f"python/diapason/_version.py says {wheel_backend.version()}, and VERSION {found}")


def stripped(path: Path, folder: Path) -> Path:
    """A copy without symbols for debuggers; the file itself where there is no strip."""
    copy = folder / path.name
    shutil.copyfile(path, copy)
    try:
        subprocess.run(["strip", "--strip-unneeded", str(copy)], check=True, capture_output=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        say(f"{path.name} is not stripped: {error}")
        shutil.copyfile(path, copy)
    return copy


def platform_of(files: Dict[str, elf.Needs]) -> Tuple[str, List[str]]:
    """The tag's last part, and why it is not a manylinux one."""
    machines = {needs.machine for needs in files.values()}
    if len(machines) != 1:
        raise BuildError(f"files for different machines: {sorted(machines)}")
    strange = [f"{name} needs {library}" for name, needs in sorted(files.items()) for library in needs.libraries
               if not GLIBC.fullmatch(library)]
    machine = machines.pop()
    if strange:
        return f"linux_{machine}", strange
    major, minor = max(needs.glibc() for needs in files.values())
    return f"manylinux_{major}_{minor}_{machine}", []


def compiled_files(build: Path, tool: bool, folder: Path) -> Tuple[Dict[str, Entry], Dict[str, elf.Needs]]:
    wanted = {f"diapason/lib/{PLUGIN}": build / "lib" / PLUGIN}
    if tool:
        wanted[f"diapason/bin/{TOOL}"] = build / "bin" / TOOL
        wanted[f"diapason/lib/{RECORDER}"] = build / "lib" / RECORDER
    entries, needs = {}, {}
    for name, path in wanted.items():
        if not path.is_file():
            raise BuildError(f"there is no {path}; build first (./dev build)" + ("" if path.name == PLUGIN else ", or pass --no-tool"))
        needs[path.name] = elf.read(path)
        entries[name] = Entry(stripped(path.resolve(), folder).read_bytes(), 0o755)
    return entries, needs


def make(build: Path, output: Path, tool: bool) -> Path:
    check_version()
    with tempfile.TemporaryDirectory(prefix="diapason-wheel-") as folder:
        compiled, needs = compiled_files(build, tool, Path(folder))
        platform, reasons = platform_of(needs)
        path = wheel_backend.write_wheel(Path(folder), platform, {**wheel_backend.package_files(), **compiled})
        size = path.stat().st_size
        if size > LARGEST:
            raise BuildError(f"the wheel has {size >> 20} MiB, and {LARGEST >> 20} MiB is the most; --no-tool leaves the tool out")
        output.mkdir(parents=True, exist_ok=True)
        for old in output.glob("diapason-*.whl"):  # pip would see two and take one
            old.unlink()
        path = Path(shutil.move(str(path), str(output / path.name)))
    for name, one in needs.items():
        say(f"{name}: {one.machine}, glibc {'.'.join(map(str, one.glibc()))}, {', '.join(one.libraries)}")
    for reason in reasons:
        say(f"not a manylinux wheel: {reason}")
    say(f"{size / 1e6:.1f} MB")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes the wheel of the Python package from a finished build.")
    parser.add_argument("build", type=Path, nargs="?", default=ROOT / "build/release", help="the build folder (build/release)")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "out/wheel", help="folder for the wheel (out/wheel)")
    parser.add_argument("--no-tool", action="store_true", help="leave the command-line tool out")
    options = parser.parse_args()
    try:
        print(make(options.build, options.output, not options.no_tool))
    except (BuildError, ValueError, OSError) as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
