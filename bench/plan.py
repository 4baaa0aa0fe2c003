#!/usr/bin/env python3
"""From measurements to a policy that is run: does it hold what it promises?

    plan.py FOLDER_OF_THE_PROGRAMS [TURNS]

Sweeps all_reduce and all_gather over Gloo and over Open MPI on this machine, plans a policy from each, and runs it:
`diapason bench --policy` takes default and policy in turns; for Open MPI a loop written by hand runs under mpirun with
the rules file and without it, in turns.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = "1K:4M:x4"
RANKS = "4"
LIMIT = 600
LOOP = {1024: 1000, 16384: 400, 65536: 200, 262144: 60, 1048576: 20, 4194304: 6}


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                "OMPI_MCA_plm_rsh_agent": "/bin/false", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    tool = str(folder / "diapason")

    def run(*command: str) -> str:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT, env=environment).stdout

    with tempfile.TemporaryDirectory() as scratch:
        for backend in ("gloo", "mpi"):
            store, policy = f"{scratch}/{backend}.db", f"{scratch}/{backend}.conf"
            run(tool, "sweep", "all_reduce", "all_gather", "--backend", backend, "-g", RANKS, "--sizes", SIZES,
                "--most", "8", "--store", store, "-q")
            print(f"== {backend}, {RANKS} ranks on this machine: the plan")
            print(run(tool, "plan", "--data", store, "-o", policy).replace(scratch + "/", ""))
            print(f"== {backend}: run against the library's own choice, in turns")
            print(run(tool, "bench", "all_reduce", "all_gather", "--backend", backend, "-g", RANKS, "-b", "1K", "-e", "4M",
                      "-f", "4", "--policy", policy, "--rounds", "15"), flush=True)
        rules = f"{scratch}/rules.txt"
        run(tool, "plan", "--data", f"{scratch}/mpi.db", "--collective", "all_reduce", "--format", "openmpi-rules",
            "-o", rules)
        print(f"== mpirun -n {RANKS}, all_reduce: a loop written by hand, without and with the rules file, us a call")
        with_rules = ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_dynamic_rules_filename", rules)
        for size, calls in LOOP.items():
            times = {(): [], with_rules: []}
            for turn in range(turns):
                for options in sorted(times, key=len, reverse=turn % 2 == 1):
                    text = run("mpirun", "-n", RANKS, *options, str(folder / "bench_loop"), str(size), str(calls), "5")
                    times[options].append(statistics.median(float(line) for line in text.split()))
            ratios = [a / b for a, b in zip(times[()], times[with_rules])]
            print(f"  {size:8d} bytes: without {statistics.median(times[()]):10.2f}  with "
                  f"{statistics.median(times[with_rules]):10.2f}  gain {statistics.median(ratios):.3f} "
                  f"[{min(ratios):.3f}, {max(ratios):.3f}]", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
