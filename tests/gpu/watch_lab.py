"""`diapason watch`, `proxy dump`, `doctor --pid` and `logs` at a real job: ranks share one GPU, each its own host.

    python3 watch_lab.py --tool diapason [--plugin libnccl-tuner-diapason.so] [--ranks 4] [--out FOLDER]
    python3 watch_lab.py --tool diapason --rounds ras --out FOLDER      # watch_ras.py: under four minutes, FOLDER/ras.json
    python3 watch_lab.py --tool diapason --self-test                    # the part `ras` on ranks that need no GPU

A small allreduce loop runs all the time. What each command prints is printed, and kept in --out. Three rounds: with
names of threads and line-buffered output; as jobs are started without either; and with one rank that stands still, so that the others hang.
The part `ras` is run only where --rounds names it.
Exit status: 0 every check passed, 1 one failed, 77 skipped (says why). Under three minutes.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import contextlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Iterator  # noqa: E402

import group  # noqa: E402
from mps import Mps  # noqa: E402
from run_pytorch import why_skip  # noqa: E402
from watch_ras import ras  # noqa: E402

SKIP = 77
START_SECONDS = 60.0
STEP_SECONDS = 20.0

# SIGUSR2 on a rank makes it stop calling: the others then wait for it.
RANK = r"""
import os, signal, sys, time
import torch
import torch.distributed as dist

halted = False
def halt(*_):
    global halted
    halted = True
signal.signal(signal.SIGUSR2, halt)
torch.cuda.set_device(0)
dist.init_process_group("nccl", init_method="tcp://127.0.0.1:" + sys.argv[1], rank=int(os.environ["RANK"]),
                        world_size=int(os.environ["WORLD_SIZE"]), device_id=torch.device("cuda", 0))
tensor = torch.ones(1 << 20, device="cuda")
peer = torch.ones(1 << 18, device="cuda")
rank, size = dist.get_rank(), dist.get_world_size()
count = 0
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    while halted and time.monotonic() < end:
        time.sleep(0.1)
    dist.all_reduce(tensor)
    work = dist.batch_isend_irecv([dist.P2POp(dist.isend, tensor[: 1 << 18], (rank + 1) % size),
                                   dist.P2POp(dist.irecv, peer, (rank - 1) % size)])
    for request in work:
        request.wait()
    torch.cuda.synchronize()
    tensor.fill_(1)
    count += 1
    if count == 20:
        print("ready", file=sys.stderr, flush=True)
"""


class Job:
    """The ranks of one round; each with its own log, output and error file."""

    def __init__(self, lab: "Lab", name: str, seconds: float, environment: dict[str, str], wrapper: list[str]) -> None:
        self.folder = lab.out / name
        self.folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.processes: list[subprocess.Popen] = []
        try:
            for rank in range(lab.options.ranks):
                variables = group.clean_environment() | lab.mps.environment | {
                    "RANK": str(rank), "WORLD_SIZE": str(lab.options.ranks), "LOCAL_RANK": "0",
                    "NCCL_HOSTID": f"h{rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1",
                    "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "NCCL_PROXY_DUMP_SIGNAL": "10",
                    "NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(self.folder / f"nccl.{rank}.log"),
                } | environment
                if lab.options.plugin:
                    variables |= {"NCCL_TUNER_PLUGIN": str(lab.options.plugin),
                                  "NCCL_PROFILER_PLUGIN": str(lab.options.plugin),
                                  "DIAPASON_JOURNAL": str(self.folder / "journal.%p.jsonl")}
                with open(self.folder / f"out.{rank}.log", "wb") as out, \
                        open(self.folder / f"err.{rank}.log", "wb") as err:
                    self.processes.append(subprocess.Popen(
                        [*wrapper, sys.executable, "-c", RANK, str(port), str(seconds)], env=variables,
                        stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True))
        except BaseException:
            self.end()
            raise

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def wait_until_ready(self) -> bool:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if all(b"ready" in (self.folder / f"err.{rank}.log").read_bytes() for rank in range(len(self.processes))):
                return True
            if any(process.poll() is not None for process in self.processes):
                return False
            time.sleep(0.2)
        return False

    def end(self) -> None:
        with group.uninterrupted():
            for process in self.processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            for process in self.processes:
                process.wait()


class Lab:
    def __init__(self, options: argparse.Namespace, out: Path) -> None:
        self.options, self.out, self.mps = options, out, Mps()
        self.failures: list[str] = []

    def check(self, condition: bool, what: str) -> None:
        if not condition:
            self.failures.append(what)
        print(f"  {'fine' if condition else 'FAILED'}: {what}", flush=True)

    def tool(self, name: str, folder: Path, *arguments: object) -> tuple[int, str]:
        """Runs a command with a limit; prints and keeps what it says."""
        command = [str(self.options.tool), *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=STEP_SECONDS,
                                  stdin=subprocess.DEVNULL)
            status, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            status, out, err = -1, (late.stdout or b"").decode(errors="replace"), "it took too long"
        text = f"$ diapason {' '.join(command[1:])}\n{out}{err}[exit {status}]\n"
        (folder / f"{name}.txt").write_text(text)
        print(text if len(text) < 6000 else text[:6000] + "...\n", flush=True)
        return status, out

    @contextlib.contextmanager
    def job(self, name: str, seconds: float, environment: dict[str, str], wrapper: list[str]) -> Iterator[Job | None]:
        print(f"== {name}", flush=True)
        job = Job(self, name, seconds, environment, wrapper)
        try:
            ready = job.wait_until_ready()
            self.check(ready, f"{name}: the ranks run")
            if not ready:
                for rank in range(len(job.processes)):
                    print((job.folder / f"err.{rank}.log").read_text(errors="replace")[-1500:], flush=True)
            yield job if ready else None
        finally:
            job.end()


def named(lab: Lab) -> None:
    wrapper = ["stdbuf", "-oL"] if shutil.which("stdbuf") else []
    with lab.job("named", 60, {"NCCL_SET_THREAD_NAME": "1"}, wrapper) as job:
        if job is None:
            return
        status, out = lab.tool("watch", job.folder, "watch", job.pids[0], "--count", 3, "--json")
        looks = [json.loads(line) for line in out.splitlines()]
        lab.check(status == 0 and len(looks) == 4, "watch --json: three looks and the end")
        if len(looks) == 4:
            process = looks[2]["processes"][0]
            lab.check(process["progress_threads"] > 0 and process["progress_cpu"] > 0, "a progress thread that works")
            if lab.options.plugin:
                lab.check(process.get("journal", {}).get("operations_per_s", 0) > 0, "operations from the journal")
        lab.tool("watch_text", job.folder, "watch", job.pids[0], "--count", 1)
        lab.tool("watch_all", job.folder, "watch", *job.pids, "--count", 1)
        if shutil.which("perf"):
            lab.tool("profile", job.folder, "watch", job.pids[0], "--profile", "2s")
        status, out = lab.tool("dump", job.folder, "proxy", "dump", job.pids[0], "--again", "1s")
        lab.check(status in (0, 3) and ("in flight" in out or not wrapper), "proxy dump: an answer")
        lab.tool("doctor", job.folder, "doctor", "--pid", job.pids[0])
        lab.tool("logs", job.folder, "logs", *sorted(job.folder.glob("nccl.*.log")))
        lab.check(all(process.poll() is None for process in job.processes), "the ranks still run")


def plain(lab: Lab) -> None:
    with lab.job("plain", 50, {}, []) as job:
        if job is None:
            return
        _, out = lab.tool("watch", job.folder, "watch", job.pids[0], "--count", 1)
        lab.check("NCCL_SET_THREAD_NAME=1" in out, "watch says that threads have no names")
        status, _ = lab.tool("dump", job.folder, "proxy", "dump", job.pids[0], "--timeout", "2s")
        lab.check(status in (0, 3), "proxy dump without names: no error")
        status, out = lab.tool("fill", job.folder, "proxy", "dump", job.pids[0], "--fill", "--timeout", "15s")
        lab.check("in flight" in out, "proxy dump --fill: an answer")
        lab.check(all(process.poll() is None for process in job.processes), "the ranks still run")


def hanging(lab: Lab) -> None:
    wrapper = ["stdbuf", "-oL"] if shutil.which("stdbuf") else []
    with lab.job("hanging", 60, {"NCCL_SET_THREAD_NAME": "1"}, wrapper) as job:
        if job is None:
            return
        last = len(job.processes) - 1
        os.kill(job.pids[last], signal.SIGUSR2)
        time.sleep(2)  # the others come to the call in which they wait
        for rank in range(len(job.processes)):
            status, out = lab.tool(f"dump.{rank}", job.folder, "proxy", "dump", job.pids[rank], "--again", "1s")
            if wrapper and rank != last:
                lab.check("the same in both dumps" in out or "both dumps are empty" in out, f"rank {rank}: it stands still")
        lab.tool("watch", job.folder, "watch", *job.pids, "--count", 1)
        outputs = sorted(job.folder.glob("out.*.log"))
        lab.tool("logs", job.folder, "logs", *outputs, *sorted(job.folder.glob("nccl.*.log")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, type=Path)
    parser.add_argument("--plugin", type=Path)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", default="named,plain,hanging")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    options.tool = options.tool.resolve()
    options.plugin = options.plugin.resolve() if options.plugin else None
    if options.self_test:
        options.rounds = "ras"
    elif reason := why_skip(options.plugin or options.tool):
        print(f"skipped: {reason}")
        return SKIP
    with contextlib.ExitStack() as stack:
        out = options.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="watch-lab-")))
        out.mkdir(parents=True, exist_ok=True)
        rounds = {"named": named, "plain": plain, "hanging": hanging}
        lab = Lab(options, out.resolve())
        for name in options.rounds.split(","):
            if name == "ras":
                lab.failures += ras(options.tool, lab.out, options.ranks, options.self_test)
                continue
            # A daemon whose clients were killed refuses the next ones for a while: each round has its own.
            with Mps() as mps:
                print(mps.note, flush=True)
                lab.mps = mps
                rounds[name](lab)
    print("failed: " + "; ".join(lab.failures) if lab.failures else "every check passed")
    return 1 if lab.failures else 0


if __name__ == "__main__":
    sys.exit(main())
