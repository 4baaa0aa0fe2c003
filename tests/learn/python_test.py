"""The Python package, without a plugin in the process and with one. Usage: python_test.py PLUGIN"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import diapason  # noqa: E402


def refuses(*arguments: object) -> bool:
    try:
        diapason.report(*arguments)
    except ValueError:
        return True
    return False


def main() -> int:
    assert not diapason.available() and diapason.version() is None
    for _ in range(200):
        diapason.step()
    assert diapason.report("allreduce", 4096, 1.0) is False

    ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)  # as the collective library does
    assert diapason.available()
    assert diapason.version() == (Path(__file__).resolve().parents[2] / "VERSION").read_text().strip()
    diapason.step()
    assert diapason.report("All_Reduce", 4096, 1.0) is False, "nobody learns here"
    assert refuses("allreduse", 4096, 1.0) and refuses("allreduce", 4096, -1.0) and refuses("allreduce", -1, 1.0)
    assert refuses("allreduce", 4096, float("nan"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
