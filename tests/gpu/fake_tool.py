#!/usr/bin/env python3
"""Stands in for the tool in the self-test of the labs of whole jobs where the real one would need a GPU: tune and sweep.

Everything else is done by the real one, which FAKE_REAL_TOOL names.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

TUNED = "allreduce,16385,32768,tree,simple,-1,-1,4,-1,-1\n"
CALLS = "allreduce,16385,32768,tree,ll,-1,-1,4,-1,-1\n"
SHOWN = {"contexts": [
    {"collective": "allreduce", "bytes": 16384, "ranks": 4, "configurations": [
        {"algorithm": "ring", "protocol": "ll", "channels": 0, "samples": 3, "failures": 0, "median": 1.0},
        {"algorithm": "tree", "protocol": "ll", "channels": 0, "samples": 3, "failures": 1, "median": 0.5}]},
    {"collective": "allreduce", "bytes": 32768, "ranks": 4, "configurations": [
        {"algorithm": "", "protocol": "", "channels": 0, "samples": 3, "failures": 0, "median": 2.0},
        {"algorithm": "tree", "protocol": "simple", "channels": 1, "samples": 3, "failures": 0, "median": 1.5}]}]}


def main(words: list[str]) -> int:
    if words[0] == "tune":
        before = words[:words.index("--")] if "--" in words else words
        folder = Path(before[before.index("-o") + 1])
        folder.mkdir(parents=True)
        (folder / "policy.conf").write_text(TUNED if "--" in words else CALLS)
        print("tuned")
        return 0
    if words[0] == "sweep":
        return 0
    if words[:2] == ["data", "show"]:
        print(json.dumps(SHOWN))
        return 0
    os.execv(os.environ["FAKE_REAL_TOOL"], [os.environ["FAKE_REAL_TOOL"], *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
