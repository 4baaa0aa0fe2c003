"""Stands in for whole_job.py on one host in the self-test of hosts_lab.py: no torch, no GPU.

    fake_host_rank.py --played PROGRAM --rank-program PROGRAM --kind decode --seconds 5 ...

While learning, and by default, every rank makes calls of a library that is played (tests/run/played_rank). Where a job has
to have iterations, all its ranks run on the first host (tests/played/played_program), and the others end at once.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
from pathlib import Path  # noqa: E402

HERE = Path(__file__).resolve().parent
CALLS = 2000
LIMIT = 600
WITH_ITERATIONS = ("observe", "tune", "static", "compare")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--played", required=True)
    parser.add_argument("--rank-program", required=True)
    parser.add_argument("--boards", type=Path, required=True, help="a folder that all hosts share")
    parser.add_argument("--result", type=Path)
    parser.add_argument("--arms", type=Path)
    options, rest = parser.parse_known_args()
    first = os.environ["RANK"] == "0"
    if os.environ.get("FAKE_FAULT") == f"rank {os.environ['RANK']}":
        print("fake: cannot go on", file=sys.stderr)
        return 3
    if options.arms or os.environ.get("DIAPASON_MODE") in WITH_ITERATIONS:
        more = [*(["--result", str(options.result)] if options.result else []), *(["--arms", str(options.arms)] if options.arms else [])]
        words = [sys.executable, str(HERE / "fake_whole_job.py"), "--program", options.played, *rest, *more]
        return subprocess.run(words, timeout=LIMIT).returncode if first else 0
    board = options.boards / os.environ["MASTER_PORT"]
    done = subprocess.run([options.rank_program, str(board), "--calls", str(CALLS)], stdin=subprocess.DEVNULL, timeout=LIMIT)
    if first and options.result:
        options.result.write_text(json.dumps({"ms": 10.0}))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
