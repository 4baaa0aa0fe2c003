"""Part `ras` of watch_lab.py: does `diapason watch --job` name the rank that the others wait for, and no other?

Ranks of one job are stopped (SIGSTOP), made late (they sleep before a collective) and killed, one at a time; a rank has
to be named within ten seconds. Between these, the job is watched while it is healthy, and no rank may be blamed. One job
has its ranks in PID namespaces of their own. No MPS: a client of it that is killed can take the others with it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import group

NAMED_SECONDS = 10.0
HEALTHY_SECONDS = 5.0
START_SECONDS = 90.0
RECOVER_SECONDS = 30.0
FAKE_SECONDS = 300.0  # every limit of the self-test: it may run on a busy machine
BLAME = {"behind", "differ", "unresponsive", "stopped", "gone"}
SPACES = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
STEPS = ("healthy", "stopped", "healthy", "late", "healthy", "stopped", "healthy", "late", "healthy", "killed")

# SIGUSR2: late, for a minute or until SIGUSR1.
RANK = r"""
import os, signal, sys, time
import torch
import torch.distributed as dist

late_until = 0.0
def late(*_):
    global late_until
    late_until = time.monotonic() + 60
def go_on(*_):
    global late_until
    late_until = 0.0
signal.signal(signal.SIGUSR2, late)
signal.signal(signal.SIGUSR1, go_on)
torch.cuda.set_device(0)
dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]),
                        device_id=torch.device("cuda", 0))
tensor = torch.ones(1 << 18, device="cuda")
end = time.monotonic() + float(sys.argv[1])
count = 0
while time.monotonic() < end:
    while time.monotonic() < late_until:
        time.sleep(0.1)
    dist.all_reduce(tensor)
    torch.cuda.synchronize()
    tensor.fill_(1)
    time.sleep(0.02)
    count += 1
    if count == 20:
        print("ready", file=sys.stderr, flush=True)
"""

# Without a GPU: counts in files take the place of NCCL's, and every rank answers as RAS does.
FAKE = r"""
import json, mmap, os, signal, socket, sys, threading, time
from pathlib import Path

folder, rank, size = Path(os.environ["FAKE_FOLDER"]), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
library = folder / "libnccl.so.2"
library.write_bytes(b"x" * 4096)
with open(library, "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
(folder / f"pid.{rank}").write_text(str(os.getpid()))
late_until = 0.0
def late(*_):
    global late_until
    late_until = time.monotonic() + 60
def go_on(*_):
    global late_until
    late_until = 0.0
signal.signal(signal.SIGUSR2, late)
signal.signal(signal.SIGUSR1, go_on)
def read(name):
    for _ in range(100):
        try:
            return int((folder / name).read_text())
        except (OSError, ValueError):
            time.sleep(0.01)
    return 0
def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "TZX"
    except OSError:
        return False
def answer():
    ranks, missing = [], []
    for r in range(size):
        about = {"rank": r, "host": "127.0.0.1", "pid": read(f"pid.{r}"), "cuda_dev": 0, "nvml_dev": 0}
        if runs(about["pid"]):
            status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
            ranks.append(about | {"status": status, "collective_counts": {"AllReduce": read(f"count.{r}")}})
        else:
            missing.append(about | {"status": {"unresponsive": True, "considered_dead": False}})
    return json.dumps({"nccl_version": "2.28.9+cuda13.0", "communicators_count": 1, "communicators": [
        {"hash": "0xfade", "size": size, "ranks": ranks, "missing_ranks": missing}],
        "ras": {"collection_time_sec": 0.001, "timeouts_count": 0}}) + "\n"
def serve(client):
    with client, client.makefile("rwb") as lines:
        for line in lines:
            status = line.strip() == b"VERBOSE STATUS"
            lines.write((answer() if status else "SERVER PROTOCOL 2\n" if line.startswith(b"CLIENT") else "OK\n").encode())
            lines.flush()
            if status:
                return
def quietly(client):
    try:
        serve(client)
    except OSError:
        pass
def listen():
    host, port = os.environ["NCCL_RAS_ADDR"].rsplit(":", 1)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, int(port)))
        listener.listen(64)
        while True:
            threading.Thread(target=quietly, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=listen, daemon=True).start()
end = time.monotonic() + float(sys.argv[1])
count = 0
def tell(value):
    (folder / f"new.{rank}").write_text(str(value))
    (folder / f"new.{rank}").rename(folder / f"count.{rank}")
tell(0)
while time.monotonic() < end:
    while time.monotonic() < late_until:
        time.sleep(0.1)
    count += 1
    tell(count)
    while any(read(f"count.{r}") < count for r in range(size)) and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.02)
    if count == 5:
        print("ready", file=sys.stderr, flush=True)
"""


@dataclass
class Step:
    """One step of the lab, as it is written to ras.json."""

    job: str
    kind: str
    rank: int | None = None  # the one that something was done to
    fine: bool = False
    seconds: float | None = None  # until it was named
    verdict: str = ""
    note: str = ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RasJob:
    def __init__(self, out: Path, name: str, ranks: int, spaces: bool, fake: bool, environment: dict[str, str]) -> None:
        self.name, self.folder, self.fake = name, out / name, fake
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.processes: list[subprocess.Popen] = []
        self.pids: list[int] = []
        port, ras = free_port(), free_port()
        try:
            for rank in range(ranks):
                variables = group.clean_environment() | {
                    "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port), "NCCL_HOSTID": f"h{rank}", "NCCL_SOCKET_IFNAME": "lo",
                    "NCCL_IB_DISABLE": "1", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                } | environment
                if fake:
                    variables |= {"FAKE_FOLDER": str(self.folder), "NCCL_RAS_ADDR": f"127.0.0.1:{ras}"}
                with open(self.folder / f"out.{rank}.log", "wb") as out_file, \
                        open(self.folder / f"err.{rank}.log", "wb") as err_file:
                    self.processes.append(subprocess.Popen(
                        [*(SPACES if spaces else []), sys.executable, "-c", FAKE if fake else RANK,
                         str(6 * FAKE_SECONDS if fake else 400)], env=variables,
                        stdin=subprocess.DEVNULL, stdout=out_file, stderr=err_file, start_new_session=True))
            self.ready = self.wait_until_ready()
            if self.ready:
                self.pids = [self.inner(process.pid) if spaces else process.pid for process in self.processes]
        except BaseException:
            self.end()
            raise

    @staticmethod
    def inner(pid: int) -> int:
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def wait_until_ready(self) -> bool:
        end = time.monotonic() + (FAKE_SECONDS if self.fake else START_SECONDS)
        while time.monotonic() < end:
            logs = [(self.folder / f"err.{rank}.log").read_bytes() for rank in range(len(self.processes))]
            if all(b"ready" in log for log in logs):
                return True
            if any(process.poll() is not None for process in self.processes):
                break
            time.sleep(0.2)
        for rank in range(len(self.processes)):
            print((self.folder / f"err.{rank}.log").read_text(errors="replace")[-1500:], flush=True)
        return False

    def end(self) -> None:
        with group.uninterrupted():
            for pid in self.pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for process in self.processes:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for process in self.processes:
                process.wait()


class Watch:
    """`diapason watch --job` beside the job: its verdicts as they come."""

    def __init__(self, tool: Path, pid: int, log: Path) -> None:
        self.log = log.open("wb")
        self.process = subprocess.Popen([str(tool), "watch", "--job", str(pid), "--json", "--interval", "500ms"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.pending = b""

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_) -> None:
        with group.uninterrupted():
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.log.close()

    def next(self, end: float) -> dict | None:
        """The next verdict; None at the end of the time or of the command."""
        while True:
            line, newline, rest = self.pending.partition(b"\n")
            if newline:
                self.pending = rest
                self.log.write(line + b"\n")
                try:
                    look = json.loads(line)
                except ValueError:
                    continue
                verdict = look.get("verdict") or look.get("ras", {}).get("verdict")
                if verdict:
                    return verdict
                continue
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            data = self.process.stdout.read()
            if not data:
                return None
            self.pending += data

    def until(self, seconds: float, wanted) -> dict | None:
        end = time.monotonic() + seconds
        while verdict := self.next(end):
            if wanted(verdict):
                return verdict
        return None


def healthy(watch: Watch, job: RasJob, step: Step) -> None:
    if job.fake:  # a rank that gets no CPU is behind, and is blamed rightly
        step.fine = watch.until(FAKE_SECONDS, lambda verdict: verdict["kind"] == "advance") is not None
        return
    end = time.monotonic() + HEALTHY_SECONDS
    seen: list[str] = []
    while verdict := watch.next(end):
        seen.append(verdict["kind"])
        step.verdict = verdict["text"]
        if verdict["kind"] in BLAME:
            break
    step.fine = "advance" in seen and not BLAME & set(seen)
    step.note = f"{len(seen)} verdicts"


def trouble(watch: Watch, job: RasJob, step: Step) -> None:
    recover = FAKE_SECONDS if job.fake else RECOVER_SECONDS
    limit = FAKE_SECONDS if job.fake else NAMED_SECONDS
    if not watch.until(recover, lambda verdict: verdict["kind"] == "advance"):
        step.note = "the job did not advance before"
        return
    pid = job.pids[step.rank]
    start = time.monotonic()
    os.kill(pid, {"stopped": signal.SIGSTOP, "late": signal.SIGUSR2, "killed": signal.SIGKILL}[step.kind])
    try:
        def named(verdict: dict) -> bool:
            blamed = verdict["kind"] in BLAME or (verdict["kind"] == "ended" and bool(verdict["ranks"]))
            return blamed and (not job.fake or verdict["ranks"] == [step.rank])

        verdict = watch.until(limit, named)
        step.seconds = round(time.monotonic() - start, 2)
        if verdict:
            step.verdict = verdict["text"]
            step.fine = verdict["ranks"] == [step.rank] and step.seconds <= limit
        else:
            step.note = "no rank was named"
    finally:
        if step.kind != "killed":
            os.kill(pid, signal.SIGCONT if step.kind == "stopped" else signal.SIGUSR1)
    if step.kind != "killed" and not watch.until(recover, lambda verdict: verdict["kind"] == "advance"):
        step.fine, step.note = False, "the job did not go on afterwards"


def run_job(tool: Path, job: RasJob, steps: tuple[str, ...], results: list[Step]) -> None:
    for number, kind in enumerate(steps):
        step = Step(job.name, kind, None if kind == "healthy" else (number // 2 + 1) % len(job.pids))
        # One of the others is asked for: a stopped process cannot say which job is its own.
        pid = job.pids[0 if step.rank != 0 else 1]
        with Watch(tool, pid, job.folder / f"watch.{number}.{kind}.jsonl") as watch:
            healthy(watch, job, step) if kind == "healthy" else trouble(watch, job, step)
        results.append(step)
        what = kind if step.rank is None else f"rank {step.rank} {kind}"
        took = "" if step.seconds is None else f" after {step.seconds} s"
        print(f"  {'fine' if step.fine else 'FAILED'}: {job.name}: {what}{took}: {step.verdict} {step.note}".rstrip(),
              flush=True)


def spaces_possible() -> bool:
    try:
        return subprocess.run([*SPACES, "true"], capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def ras(tool: Path, out: Path, ranks: int, fake: bool) -> list[str]:
    """Runs the part; the failures. What was seen goes to ras.json."""
    results: list[Step] = []
    failures: list[str] = []
    begun = time.monotonic()
    # By default PyTorch ends the other ranks soon after one has died; without, they wait for it.
    kinds = [("plain", False, {})]
    if spaces_possible() and not fake:
        kinds.append(("namespaces", True, {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}))
    elif not fake:
        failures.append("PID namespaces are not permitted here")
    for name, spaces, environment in kinds:
        print(f"== ras, {name}", flush=True)
        job = RasJob(out, name, ranks, spaces, fake, environment)
        try:
            if job.ready:
                run_job(tool, job, ("healthy", "stopped", "late", "killed") if fake else STEPS, results)
            else:
                failures.append(f"{name}: the ranks do not run")
        finally:
            job.end()
    tries = [step for step in results if step.kind != "healthy"]
    calm = [step for step in results if step.kind == "healthy"]
    summary = {"tries": len(tries), "named": sum(step.fine for step in tries), "healthy": len(calm),
               "not_blamed": sum(step.fine for step in calm), "slowest_s": max((s.seconds or 0 for s in tries), default=0),
               "seconds": round(time.monotonic() - begun, 1), "fake": fake, "steps": [asdict(step) for step in results]}
    (out / "ras.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(f"named {summary['named']} of {summary['tries']} (slowest {summary['slowest_s']} s); blamed in "
          f"{len(calm) - summary['not_blamed']} of {len(calm)} healthy runs; {summary['seconds']} s", flush=True)
    return failures + [f"{step.job}: {step.kind} {step.note or step.verdict}" for step in results if not step.fine]
