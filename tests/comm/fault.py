#!/usr/bin/env python3
"""What happens to the others when a rank dies, hangs, never comes or is started wrongly.

    fault.py --victim PROGRAM [--diapason PROGRAM] [--filter TEXT] [--jobs N] [--only BACKEND]

Every case starts ranks of tests/comm/victim.cc, each with its own steps, does something to them,
and looks at what every step of every survivor said and how long it took. The promise: an error
within the limit and five seconds (and what a loaded machine adds), which names the operation, its number, its size and the missing
ranks.
"""
import argparse
import concurrent.futures
import re
import shutil
import subprocess
import sys
import time

import fault_attack  # noqa: F401: registers its cases
import fault_ranks  # noqa: F401
import fault_start  # noqa: F401
from fault_job import (ALL_REDUCE, CASES, MIB4, PATIENT, SHORT, Failure, Process, Programs, case,
                       check, clean_environment, expect_error, missing)


@case("launcher")
def under_the_launcher():
    """diapason launch: one rank dies, the others get their error, the job fails."""
    command = [Programs.diapason, "launch", "-n", "3", "--", "sh", "-c",
               f'if [ "$RANK" = 2 ]; then steps="create kill"; else '
               f'steps="create sleep=500 all_reduce={MIB4} destroy"; fi; '
               f'exec {Programs.victim} --backend gloo --limit {int(PATIENT * 1000)} $steps']
    process = Process(command, clean_environment())
    try:
        status = process.end()
        check(status != 0, "the launcher says that all went well")
    finally:
        process.kill()


def mpirun(*ranks):
    """One program per rank, each with its own steps."""
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
    for number, steps in enumerate(ranks):
        command += ([":"] if number else []) + ["-n", "1", Programs.victim, "--backend", "mpi",
                                                "--limit", str(int(SHORT * 1000))] + steps.split()
    return Process(command, clean_environment())


# The launcher is quicker than we are with a killed rank: it ends the others as it sees the signal.
@case("mpi", "mpi_killed", "create sleep=300 kill", [])
@case("mpi", "mpi_sleeps", "create sleep=600000", ALL_REDUCE)
@case("mpi", "mpi_stopped", "create stop", ALL_REDUCE)
@case("mpi", "mpi_never_created", "sleep=600000", [])
def under_mpi(last, words):
    """Open MPI ends the whole job; our message comes before."""
    waits = f"create all_reduce={MIB4} destroy"
    start = time.monotonic()
    process = mpirun(waits, waits, last)
    try:
        status = process.end()
        check(status != 0, f"mpirun says that all went well: {process.steps}")
        text = process.stderr()
        for word in words:
            check(re.search(word, text), f"no '{word}' in what the job said within "
                                         f"{time.monotonic() - start:.1f} s: {text}")
    finally:
        process.kill()


def threads(*ranks, backend="sim"):
    command = [Programs.victim, "--threads", "--backend", backend, "--limit",
               str(int(SHORT * 1000))]
    for number, steps in enumerate(ranks):
        command += (["/"] if number else []) + steps.split()
    return Process(command, clean_environment())


@case("sim")
def sim_rank_never_arrives():
    waits = f"create all_reduce={MIB4} destroy"
    process = threads(waits, waits, "create last destroy")
    try:
        check(process.end() == 0, process.stderr())
        for rank in (0, 1):
            mine = {s["step"]: s for s in reversed(process.steps) if s["rank"] == rank}
            expect_error(mine, f"all_reduce={MIB4}", ALL_REDUCE + missing(2), who=f"rank {rank}")
    finally:
        process.kill()


@case("sim")
def sim_rank_never_created():
    process = threads("create", "create", "last")
    try:
        check(process.end() == 0, process.stderr())
        creates = [s for s in process.steps if s["step"] == "create"]
        check(len(creates) == 2, str(process.steps))
        for create in creates:
            expect_error({"create": create}, "create", missing(2), who="sim")
    finally:
        process.kill()


def run(name, function):
    start = time.monotonic()
    try:
        function()
        problem = None
    except Failure as failure:
        problem = str(failure)
    except Exception as error:  # a case must not take the others with it
        problem = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - start
    print(f"{'FAIL' if problem else 'ok  '} {seconds:5.1f} s  {name}"
          + (f": {problem}" if problem else ""), flush=True)
    return problem is None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--victim", required=True)
    parser.add_argument("--diapason")
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--only", choices=["gloo", "mpi", "sim", "launcher"])
    options = parser.parse_args()
    Programs.victim = options.victim
    Programs.diapason = options.diapason
    if options.only == "mpi" and not shutil.which("mpirun"):
        print("skipped: no mpirun on this machine")
        return 77
    needed = "gloo" if options.only == "launcher" else options.only
    if needed and subprocess.run([options.victim, "--probe", needed], check=False).returncode == 77:
        return 77
    chosen = [(name, function) for backend, name, function in CASES
              if options.filter in name and options.only in (None, backend)
              and (backend != "mpi" or shutil.which("mpirun"))
              and (backend != "launcher" or options.diapason)]
    # Most of the time is spent waiting for a limit: several at once.
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda one: run(*one), chosen))
    print(f"fault: {len(results)} cases, {results.count(False)} failures")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())