#!/usr/bin/env python3
"""`diapason bench` against a loop written by hand over Open MPI: do both say the same?

    loop.py FOLDER_OF_THE_PROGRAMS [TURNS]

Both run in turns, so that drift hits both alike; each turn gives the median of its rounds. Printed are the medians over
the turns and of the paired ratios, with the lowest and the highest turn.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SIZES = (1024, 16384, 262144, 4194304)
CALLS = {1024: 2000, 16384: 1000, 262144: 200, 4194304: 20}
ROUNDS = 15
LIMIT = 120


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                "OMPI_MCA_plm_rsh_agent": "/bin/false"}

    def run(*command: str) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT, env=environment).stdout

    print(f"all_reduce of f32, Open MPI, 2 ranks, us a call; {turns} turns of {ROUNDS} rounds")
    worst = 0.0
    for size in SIZES:
        ours, loop, ratios = [], [], []
        for turn in range(turns):
            def measure_ours() -> float:
                text = run(str(folder / "diapason"), "bench", "--backend", "mpi", "-g", "2", "-b", str(size), "-e", str(size),
                           "-n", str(CALLS[size]), "--rounds", str(ROUNDS), "--json", "--link", "1")
                return json.loads(text)["rows"][0]["out_of_place"]["median_us"]

            def measure_loop() -> float:
                text = run("mpirun", "-n", "2", str(folder / "bench_loop"), str(size), str(CALLS[size]), str(ROUNDS))
                return statistics.median(float(line) for line in text.split())

            first, second = (measure_ours, measure_loop) if turn % 2 == 0 else (measure_loop, measure_ours)
            a, b = first(), second()
            mine, other = (a, b) if turn % 2 == 0 else (b, a)
            ours.append(mine)
            loop.append(other)
            ratios.append(mine / other)
        ratio = statistics.median(ratios)
        worst = max(worst, abs(ratio - 1))
        print(f"  {size:8d} bytes: loop {statistics.median(loop):9.3f}  diapason bench {statistics.median(ours):9.3f}"
              f"  ratio {ratio:.3f} [{min(ratios):.3f}, {max(ratios):.3f}]", flush=True)
    print(f"largest difference: {worst * 100:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
