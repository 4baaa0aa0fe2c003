"""`ip` and `tc` for a machine without iproute2: from a folder with the two programs and the libraries that they need.

Programs of the lab run them by name: `use` puts wrappers before everything else in PATH. The libraries are for these two
alone. The machine's own C library serves them, unless the folder has a loader (ld-linux*) that belongs to its own.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

PROGRAMS = ("ip", "tc")
# Belong together with the loader: a machine's loader does not start programs with another C library.
C_LIBRARY = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libresolv.so", "libutil.so", "ld-linux")


def wrapper(program: Path, loader: Path | None, libraries: Path) -> str:
    run = [str(loader), "--library-path", str(libraries)] if loader else ["env", f"LD_LIBRARY_PATH={libraries}"]
    return f'#!/bin/sh\nexec {shlex.join([*run, str(program)])} "$@"\n'


def use(tools: Path, folder: Path) -> None:
    """Makes wrappers in `folder`, which must be seen by all hosts, and changes PATH of this process."""
    missing = [name for name in PROGRAMS if not (tools / name).is_file()]
    if missing:
        raise FileNotFoundError(f"{tools} has no {' and no '.join(missing)}")
    loader = next((path for path in sorted(tools.glob("ld-linux*")) if path.is_file()), None)
    programs, libraries = folder / "bin", folder / "lib"
    programs.mkdir(parents=True)
    libraries.mkdir()
    for path in tools.iterdir():
        if ".so" in path.name and (loader or not path.name.startswith(C_LIBRARY)):
            (libraries / path.name).symlink_to(path.resolve())
    for name in PROGRAMS:
        source = tools / name
        if not os.access(source, os.X_OK):
            source.chmod(source.stat().st_mode | 0o755)
        (programs / name).write_text(wrapper(source.resolve(), loader.resolve() if loader else None, libraries))
        (programs / name).chmod(0o755)
    os.environ["PATH"] = f"{programs}:{os.environ.get('PATH', '/usr/bin:/bin')}"
