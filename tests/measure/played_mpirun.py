#!/usr/bin/env python3
"""An mpirun that is played: ranks of the simulated cluster, some of whose configurations misbehave.

PLAYED_FOLDER/plan.json says how: {"tool": ..., "configurations": {"ALGORITHM PROTOCOL": [ACTION, AFTER]},
"failing_launches": [NUMBER, ...]}. Numbers of algorithms and protocols are the protocol's own; ACTION is what happens
with the trial after AFTER others of that configuration: kill (the sweep that has started us, by SIGKILL), hang, die.
Launches are counted from 0; one that fails says so and ends. The files launches, asked and answered in the folder say
what happened; answered has a line for every block that was timed (what becomes a sample).
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ["PLAYED_FOLDER"])


def note(name: str, text: str) -> int:
    """Adds a line; the number of those before it."""
    path = FOLDER / name
    before = len(path.read_text().splitlines()) if path.exists() else 0
    with path.open("a") as file:
        file.write(text + "\n")
    return before


def main() -> int:
    plan = json.loads((FOLDER / "plan.json").read_text())
    sweep = os.getppid()
    if note("launches", str(sweep)) in plan.get("failing_launches", []):
        print("the port is still in use", file=sys.stderr)
        return 1
    ranks = subprocess.Popen([plan["tool"], "@worker", "--backend", "sim", "--cluster", "h100x8", "--ranks", "2", "--limit",
                              "30s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(ranks.stdout.readline(), end="", flush=True)
    for line in sys.stdin:
        words = line.split()
        configuration = " ".join(words[6:8])
        before = [text for text in (FOLDER / "asked").read_text().splitlines() if text == configuration] \
            if (FOLDER / "asked").exists() else []
        note("asked", configuration)
        action, after = plan.get("configurations", {}).get(configuration, ["", 0])
        if action and len(before) >= after:
            if action == "kill":
                os.kill(sweep, signal.SIGKILL)
            if action == "die":
                print("as planned", file=sys.stderr)
                return 1
            time.sleep(600)
        ranks.stdin.write(line)
        ranks.stdin.flush()
        answer = ranks.stdout.readline()
        if words[13] == "0":
            note("answered", configuration)
        print(answer, end="", flush=True)
    ranks.stdin.close()
    return ranks.wait()


if __name__ == "__main__":
    sys.exit(main())
