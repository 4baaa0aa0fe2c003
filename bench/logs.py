#!/usr/bin/env python3
"""How fast `diapason logs` reads: logs.py FOLDER_OF_THE_PROGRAMS [MIB [TURNS]]

Three logs of that size (1024 MiB unless told), written to a temporary folder and deleted afterwards:
  job    what a training job writes: nine lines in ten are the program's own, the rest NCCL's at level INFO
  coll   NCCL_DEBUG_SUBSYS=INIT,COLL,TUNING: almost every line is read in full
  info   a real log of 2.29, repeated for 512 ranks on 64 hosts
Each is read TURNS times (5 unless told), in turn with `grep -c NCCL` and `wc -l` on the same file. Printed are medians, and the
most memory that a reading took.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = 512
FIXTURE = Path(__file__).resolve().parent.parent / "tests/data/logs/h100_ring.log"


def prefix(rank: int) -> str:
    return f"node{rank // 8:03d}:{4000 + rank}:{5000 + rank} [{rank % 8}] NCCL INFO "


def start() -> list[str]:
    lines = []
    for state in ("START", "COMPLETE"):
        for rank in range(RANKS):
            lines.append(f"{prefix(rank)}ncclCommInitRank comm 0x55{rank:06x} rank {rank} nranks {RANKS} cudaDev {rank % 8} "
                         f"nvmlDev {rank % 8} busId {0x1000 * (1 + rank % 8):x} commId 0xfeedbeef - Init {state}\n")
    return lines


def job(turn: int) -> list[str]:
    lines = []
    for step in range(2000):
        rank = (turn * 2000 + step) % RANKS
        if step % 10 == 0:
            lines.append(f"{prefix(rank)}Channel {step % 24:02d}/0 : {rank}[{rank % 8}] -> {(rank + 1) % RANKS}[{(rank + 1) % 8}] "
                         f"via P2P/CUMEM\n")
        else:
            lines.append(f"[default{rank % 8}]:2025-11-15 19:40:{step % 60:02d},123 INFO train iteration {turn * 2000 + step} | "
                         f"consumed samples: {step * 512} | elapsed time per iteration (ms): {4100 + step % 97}.{step % 10} | "
                         f"loss: 2.{step:04d} | grad norm: 0.{step % 1000:03d}\n")
    return lines


def coll(turn: int) -> list[str]:
    lines = []
    for step in range(500):
        number = turn * 500 + step
        for rank in ((number * 2) % RANKS, (number * 2 + 1) % RANKS):
            lines.append(f"{prefix(rank)}AllReduce: opCount {number // 256:x} sendbuff 0x7f12{rank:08x} recvbuff 0x7f12{rank:08x} "
                         f"count 8388608 datatype 7 op 0 root 0 comm 0x55{rank:06x} [nranks={RANKS}] stream 0x560{rank:06x}\n")
            lines.append(f"{prefix(rank)}AllReduce: {1024 << number % 20} Bytes -> Algo RING proto SIMPLE "
                         f"channel{{Lo..Hi}}={{0..{1 + number % 24}}}\n")
    return lines


def info(turn: int) -> list[str]:
    text = FIXTURE.read_text(errors="replace")
    lines = []
    for rank in range(turn % RANKS, turn % RANKS + 8):
        lines.append(text.replace("38dcf168f605:1359:", f"node{rank % RANKS // 8:03d}:{4000 + rank % RANKS}:"))
    return lines


def write(path: Path, make, size: int) -> None:
    with open(path, "w") as log:
        log.writelines(start())
        turn = 0
        while log.tell() < size:
            log.writelines(make(turn))
            turn += 1


def run(command: list) -> tuple[float, int]:
    """Seconds, and the most KiB that were resident."""
    begin = time.monotonic()
    # Into a file: grep stops at its first match where the output is /dev/null.
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 3, 4):
        sys.exit(f"{command[0]} ended with {child.returncode}")
    return seconds, usage.ru_maxrss


def main() -> int:
    tool = Path(sys.argv[1]).resolve() / "diapason"
    size = (int(sys.argv[2]) if len(sys.argv) > 2 else 1024) << 20
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    worst_speed, worst_memory = float("inf"), 0
    with tempfile.TemporaryDirectory(prefix="diapason-logs-") as name:
        for kind, make in (("job", job), ("coll", coll), ("info", info)):
            path = Path(name) / f"{kind}.log"
            write(path, make, size)
            length = path.stat().st_size
            commands = {"diapason logs": [tool, "logs", path], "grep -c NCCL": ["grep", "-c", "NCCL", path], "wc -l": ["wc", "-l", path]}
            seconds: dict[str, list[float]] = {name: [] for name in commands}
            memory = 0
            for _ in range(turns):
                for what, command in commands.items():
                    took, peak = run(command)
                    seconds[what].append(took)
                    if what == "diapason logs":
                        memory = max(memory, peak)
            path.unlink()
            speeds = {what: length / statistics.median(times) / 1e6 for what, times in seconds.items()}
            print(f"{kind:5} {length >> 20} MiB: " + ", ".join(f"{what} {speed:.0f} MB/s" for what, speed in speeds.items())
                  + f"; {memory / 1024:.1f} MiB resident", flush=True)
            worst_speed = min(worst_speed, speeds["diapason logs"])
            worst_memory = max(worst_memory, memory)
    print(f"worst: {worst_speed:.0f} MB/s (at least 200 wanted), {worst_memory / 1024:.1f} MiB (less than 64 wanted)")
    return 0 if worst_speed >= 200 and worst_memory < 64 * 1024 else 1


if __name__ == "__main__":
    sys.exit(main())
