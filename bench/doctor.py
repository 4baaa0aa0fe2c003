#!/usr/bin/env python3
"""How long `diapason doctor --no-test` takes: doctor.py FOLDER_OF_THE_PROGRAMS [TIMES]

The whole command on this machine, as a user types it; and the same over a fake machine with eight GPUs and eight adapters.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def measure(what: str, command: list, times: int) -> None:
    taken = []
    for _ in range(times):
        begin = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        taken.append(time.monotonic() - begin)
        if "checklist" not in done.stdout:
            sys.exit(f"{done.stdout}\n{done.stderr}")
    print(f"doctor, {what}: median {statistics.median(taken):.3f} s, worst of {times}: {max(taken):.3f} s")


def main() -> int:
    tool = Path(sys.argv[1]).resolve() / "diapason"
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    measure("this machine", [tool, "doctor", "--no-test"], times)
    with tempfile.TemporaryDirectory() as folder:
        unpack = [sys.executable, ROOT / "tests/doctor/unpack_tree.py", ROOT / "tests/data/hosts/dgx-h100.tree", folder]
        subprocess.run(unpack, check=True, timeout=60)
        measure("files of a machine with eight GPUs", [tool, "doctor", "--root", folder], times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
