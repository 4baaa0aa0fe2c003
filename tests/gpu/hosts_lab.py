"""A cluster in a box on one GPU: jobs whose ranks run on hosts of their own (tests/cluster), with NCCL over shaped links.

    python3 hosts_lab.py --tool build/release/bin/diapason [--tools DIR] [--parts jobs,pins,pairs,tune] [--limit 300] [--out DIR]

Needs root, PyTorch and a GPU, which the ranks share under MPS. --tools: a folder with `ip`, `tc` and their libraries, for
a machine without iproute2. Hosts box1 to box4 have network, process, mount and host name of their own; links have --rate,
and that of --slow-host has --slow-rate where the part says so. The tool runs with the network of box1.

Parts, in this order, each with a time limit (--limits jobs:110,tune:100):
  jobs   the job by default, and learning over file: (a folder that all hosts see) and tcp:// (served on box1): the journals
         of all hosts must agree; iteration times
  pins   every pair and channel count of every context in turns with the default inside one launch, with all links equal and
         with the slow link: the best fixed choices of both
  pairs  `bench pairs --by-host` with the slow link: must name the slow host
  tune   `diapason tune -- COMMAND` with the slow link (--budget): what it chooses, against `pins` with the slow link
  even   the same with all links equal
One line per finding (JSON); --out has them as hosts_lab.json. Exit status: 0, 1 if something failed, 77 skipped (says why).
--self-test needs neither a GPU nor PyTorch, and no network but that of the hosts: hosts_selftest.py.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import contextlib  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "cluster"))

import enter  # noqa: E402
import group  # noqa: E402
import hosts_tools  # noqa: E402
import job_arms  # noqa: E402
import job_lab  # noqa: E402
import job_rivals  # noqa: E402
import namespaces  # noqa: E402
import policy_file  # noqa: E402
import remains  # noqa: E402
import tune_job_lab  # noqa: E402
from cluster import Cluster  # noqa: E402
from job import run as run_command  # noqa: E402
from job_lab import JobLab, say  # noqa: E402
from mps import Mps  # noqa: E402

PARTS = ("jobs", "pins", "pairs", "tune", "even")
LIMITS = {"jobs": 120.0, "pins": 110.0, "pairs": 45.0, "tune": 130.0, "even": 130.0}
FIRST = "box1"
GPU_SECONDS = 30.0
# A context on the GPU, without PyTorch, which takes longer to import.
GPU_PROBE = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
for name, arguments in (("cuInit", (0,)), ("cuDeviceGet", (ctypes.byref(device), 0)),
                        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), 0)), ("cuCtxSetCurrent", (context,)),
                        ("cuMemAlloc_v2", (ctypes.byref(memory), ctypes.c_size_t(1 << 20)))):
    status = getattr(cuda, name)(*arguments)
    if status:
        sys.exit(f"{name}: error {status}")
"""


class HostsLab(JobLab):
    """Jobs are started on all hosts of the cluster by hosts_launch.py."""

    def __init__(self, cluster: Cluster, rank: list[str], *arguments: object) -> None:
        super().__init__(*arguments)
        self.cluster = cluster
        self.rank = rank  # what a rank runs, before the options of whole_job.py

    def on_all_hosts(self, *command: object) -> list[str]:
        return [sys.executable, str(HERE / "hosts_launch.py"), self.cluster.name, *map(str, command)]

    def job(self, kind: str, *arguments: object) -> list[str]:
        return self.on_all_hosts(*self.rank, "--kind", kind, *arguments)


class Jobs(tune_job_lab.TuneJobLab):
    def __init__(self, lab: HostsLab, options: argparse.Namespace) -> None:
        super().__init__(lab, options, lab.work / "state")
        self.base = self.own
        self.found: dict[str, dict] = {}  # per state of the links: best choices and gains of `pins`
        self.known: list[job_rivals.Context] | None = None

    def store(self) -> str:
        """At the first host, which serves it; a port that no other launch has had."""
        port = 20000 + os.getpid() % 5000 + len(self.lab.records)
        return f"tcp://{self.lab.cluster.address(FIRST)}:{port}"

    @contextlib.contextmanager
    def links(self, state: str):
        """`equal` or `slow`; what is kept is kept apart."""
        self.own = self.base / state
        self.own.mkdir(parents=True, exist_ok=True)
        if state == "slow":
            self.lab.cluster.set_rate(self.options.slow_host, self.options.slow_rate)
        try:
            yield
        finally:
            self.lab.cluster.set_rate(self.options.slow_host, self.options.rate)

    # Jobs by default and while learning.

    def jobs(self) -> None:
        default = self.plain("default")
        folder = self.lab.work / "store"
        folder.mkdir(mode=0o700)
        for name, store in (("file", f"file:{folder}"), ("tcp", self.store())):
            self.learn(name, store, default)

    def plain(self, name: str) -> float | None:
        result = self.lab.work / f"{name}.result.json"
        if self.command(name, self.lab.job(self.kind, "--seconds", self.options.seconds, "--result", result),
                        self.options.seconds + job_lab.START_SECONDS):
            return None
        ms = json.loads(result.read_text())["ms"]
        self.lab.record(part="jobs", run=name, ms=ms)
        return ms

    def learn(self, name: str, store: str, default: float | None) -> None:
        folder, result = self.lab.work / f"learn.{name}", self.lab.work / f"learn.{name}.result.json"
        document = self.lab.launch(f"learn.{name}", ["--learn", "--learned", self.lab.work / f"learn.{name}.conf", "--store", store, "--journal-dir", folder],
                                   self.lab.job(self.kind, "--seconds", self.options.learn_seconds, "--result", result),
                                   self.options.learn_seconds, {"DIAPASON_JOURNAL_TIMES": "0"})
        if document is None:
            return
        hosts = sorted({path.name.split(".")[1] for path in job_lab.journals(folder)})
        equal = self.lab.check(f"learn.{name}", folder)
        if hosts != self.lab.cluster.hosts():
            self.lab.fail(f"learn.{name}: journals of {', '.join(hosts) or 'no host'}")
        ms = json.loads(result.read_text())["ms"] if result.exists() else None
        learned = bool(document["agreed"].get("agreed")) and "have not come" not in json.dumps(document)
        if not learned:
            self.lab.fail(f"learn.{name}: the ranks did not learn: {document['chosen'].get('text')}")
        say(job_lab.three_lines(document))
        self.lab.record(part="jobs", run=f"learn over {name}", ms=ms, default_ms=default, gain=default / ms if default and ms else None,
                        journals_equal=equal, hosts=hosts, learned=learned)
        job_lab.remove(folder)

    # Fixed choices.

    def contexts(self) -> list[job_rivals.Context]:
        self.known = self.known or super().contexts()
        return self.known

    def pins(self) -> None:
        for state in self.options.links.split(","):
            if self.lab.deadline.left() < self.options.pin_seconds:
                say(f"# pins, {state} links: no time was left")
                return
            with self.links(state):
                super().pins()
                self.take(state)
        if len(self.found) == 2:
            best = {state: found["best"] for state, found in self.found.items()}
            self.lab.record(part="pins", finding="best choice of each context", changes=best["equal"] != best["slow"], **best)

    def take(self, state: str) -> None:
        kept = self.kept("pins.json")
        if kept is None:
            return
        gains = {arm: math.exp(statistics.median(found)) for arm, found in job_arms.log_gains(kept["rounds"], tune_job_lab.BASE).items()}
        ms = statistics.median(one[tune_job_lab.BASE] for one in kept["rounds"]) * 1e3
        self.found[state] = {"best": kept["best"], "gains": gains}
        self.lab.record(part="pins", links=state, default_ms=ms, best=kept["best"],
                        gains={context: gains.get(f"{context} {choice}", 1.0) for context, choice in kept["best"].items()})

    # The slow link by pairs.

    def pairs(self) -> None:
        words = self.lab.on_all_hosts(self.lab.tool, "bench", "pairs", "--by-host", "--backend", self.options.backend,
                                      *self.options.pairs.split())
        with self.links("slow"):
            log = self.lab.work / "pairs.log"
            problem = run_command(words, self.lab.environment(), log, self.lab.deadline.left())
        text = log.read_text(errors="replace")
        say(job_lab.tail(log, 30))
        named = f"outlier: {self.options.slow_host} " in text  # and exit status 1, as for every slow link
        self.lab.record(part="pairs", slow=self.options.slow_host, named=named, problem=None if named else problem)
        if not named:
            self.lab.fail(f"pairs: {self.options.slow_host} is not named ({problem})")

    # Tuning.

    def tune(self) -> None:
        self.tune_with("slow")

    def even(self) -> None:
        self.tune_with("equal")

    def tune_with(self, state: str) -> None:
        with self.links(state):
            target = self.own / "tuned"
            budget = tune_job_lab.seconds_of(self.options.budget)
            name = f"tune.{state}"
            begin = time.monotonic()
            problem = self.command(name, [str(self.options.tuner), "tune", "--budget", self.options.budget, "--store", self.store(), "-o",
                                          str(target), "--", *self.lab.job(self.kind, "--seconds", 3600)], budget + 60)
        say(job_lab.tail(self.lab.work / f"{name}.log", 25))
        policy = self.tuned()
        text = policy.read_text() if policy else ""
        self.lab.record(part="tune", links=state, seconds=time.monotonic() - begin, budget=self.options.budget, problem=problem, policy=text,
                        found=self.judged(state, text))

    def judged(self, state: str, text: str) -> dict[str, dict]:
        """Per context what was tuned, and its share of the gain of the best fixed choice, by `pins`."""
        known = self.found.get(state)
        if known is None:
            return {}
        rows = policy_file.parse_policy(text)
        out = {}
        for context in self.contexts():
            row = policy_file.expected(rows, context.collective, context.most, context.ranks, context.ranks)
            choice = (row.algorithm, row.protocol, row.channels or 0) if row else job_rivals.DEFAULT
            tuned, best = job_rivals.choice_name(choice), known["best"][str(context)]
            gains = [1.0 if one == "default" else known["gains"].get(f"{context} {one}") for one in (tuned, best)]
            out[str(context)] = {"tuned": tuned, "best": best, "of_best": gains[0] / gains[1] if all(gains) else None}
        return out


def visible_folders(options: argparse.Namespace, mps: Mps) -> list[str]:
    """What the hosts must see though it may lie below a folder that each has for itself."""
    folders = {str(options.tool.parent.parent), sys.prefix, sys.base_prefix, *(path for path in sys.path if path.startswith("/"))}
    if mps.environment:
        folders.add(str(Path(mps.environment["CUDA_MPS_PIPE_DIRECTORY"]).parent))
    return sorted(os.path.realpath(path) for path in folders if os.path.isdir(path) and path != "/usr")


def gpu_problem(cluster: Cluster, environment: dict[str, str]) -> str | None:
    """None if a process on a host can use the GPU."""
    try:
        done = cluster.run(FIRST, [sys.executable, "-c", GPU_PROBE], timeout=GPU_SECONDS, env=group.clean_environment() | environment)
    except subprocess.TimeoutExpired:
        return f"no answer in {GPU_SECONDS:.0f} s"
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]


def start(options: argparse.Namespace, mps: Mps, stack: contextlib.ExitStack) -> tuple[Cluster, dict[str, str]] | None:
    """Hosts on which the GPU can be used: under MPS with a /dev/shm of each host, else with the machine's, else without MPS."""
    attempts = [(False, mps.environment), (True, mps.environment)] if mps.environment else []
    for shared_memory, environment in [*attempts, (False, {})]:
        cluster = Cluster.up(f"lab{os.getpid()}", options.hosts, rate=options.rate, owner=remains.owner(os.getpid()),
                             visible=visible_folders(options, mps), with_ssh=False, shared_memory=shared_memory)
        problem = None if options.no_gpu else gpu_problem(cluster, environment)
        how = f"{'MPS' if environment else 'no MPS'}, {'one /dev/shm for all hosts' if shared_memory else 'a /dev/shm of each host'}"
        say(json.dumps({"part": "start", "hosts": cluster.hosts(), "rate": options.rate, "how": how, "problem": problem}))
        if problem is None:
            stack.callback(cluster.down)
            return cluster, environment
        cluster.down()
    return None


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", type=Path, required=True, help="the diapason program, of a bundle or a build")
    parser.add_argument("--tools", type=Path, help="folder with ip, tc and their libraries")
    parser.add_argument("--parts", default="jobs,pins,pairs,tune")
    parser.add_argument("--kind", default="decode", choices=sorted(job_lab.TURN))
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="10gbit")
    parser.add_argument("--slow-rate", default="1gbit")
    parser.add_argument("--slow-host", default="box3")
    parser.add_argument("--seconds", type=float, default=6.0, help="of the job by default")
    parser.add_argument("--learn-seconds", type=float, default=15.0)
    parser.add_argument("--pin-seconds", type=float, default=15.0, help="of each launch with all pins")
    parser.add_argument("--links", default="equal,slow", choices=("equal,slow", "equal", "slow"), help="of pins")
    parser.add_argument("--channels", default="0,1,2", help="channel counts to pin; 0: the library's own")
    parser.add_argument("--budget", default="75s", help="of `diapason tune -- COMMAND`")
    parser.add_argument("--backend", default="nccl", help="of `bench pairs`")
    parser.add_argument("--pairs", default="-b 4M -n 5 --rounds 3", help="further options of `bench pairs`")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for everything")
    parser.add_argument("--limits", default="", help="seconds for single parts, such as jobs:90,tune:200")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--no-gpu", action="store_true", help="hosts need no GPU, for a trial with --rank")
    parser.add_argument("--rank", default="", help="program of a rank instead of whole_job.py, which takes its options")
    parser.add_argument("--tuner", type=Path, help="for a trial: the program whose `tune` runs instead of the tool's")
    parser.add_argument("--start-seconds", type=float, default=job_lab.START_SECONDS, help="of a launch, beside its iterations")
    options = parser.parse_args(arguments)
    wanted = options.parts.split(",")
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"--parts: no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    options.parts = [part for part in PARTS if part in wanted]
    options.limits = LIMITS | {name: float(value) for name, value in (one.split(":") for one in options.limits.split(",") if one)}
    options.tool = options.tool.resolve()
    options.tuner = options.tuner or options.tool
    job_lab.START_SECONDS = options.start_seconds
    options.step, options.metric = False, ""
    return options


def run(options: argparse.Namespace, deadline: group.Deadline) -> int:
    with contextlib.ExitStack() as stack:
        wrappers = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hosts-tools-")))
        if options.tools:
            hosts_tools.use(options.tools, wrappers / "used")
        if reason := namespaces.why_not(with_ssh=False):
            say(f"SKIP: {reason}")
            return job_lab.SKIP
        mps = stack.enter_context(Mps())
        say(mps.note)
        started = start(options, mps, stack)
        if started is None:
            say("FAILED: no host can use the GPU")
            return 1
        cluster, environment = started
        return run_parts(options, deadline, cluster, environment)


def run_parts(options: argparse.Namespace, deadline: group.Deadline, cluster: Cluster, environment: dict[str, str]) -> int:
    rank = options.rank.split() or [sys.executable, str(HERE / "whole_job.py")]
    # From here on the tool, and what it starts and serves, is on the first host for everyone who asks.
    namespaces.join(enter.pid_of(cluster.folder, FIRST), ("net", "uts"))
    work = Path(cluster.shared) / "work"
    work.mkdir()
    lab = HostsLab(cluster, rank, options.tool, work, deadline, environment, options.hosts)
    jobs = Jobs(lab, options)
    try:
        for part in options.parts:
            if deadline.left() < 15:
                lab.fail(f"{part}: not run, no time was left")
                continue
            say(f"== {part}, {deadline.left():.0f} s left")
            lab.deadline = group.Deadline(deadline.limit(options.limits[part]))
            try:
                getattr(jobs, part)()
            except (OSError, RuntimeError, ValueError, KeyError, LookupError) as error:
                lab.fail(f"{part}: {type(error).__name__}: {error}")
    finally:
        lab.keep(options.out.resolve() if options.out else None, "hosts_lab")
        if options.out:
            shutil.copytree(jobs.base, options.out / "state", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.db", "*.jsonl", "journals"))
    for failure in lab.failures:
        say(f"FAILED: {failure.splitlines()[0]}")
    return 1 if lab.failures else 0


def main(arguments: list[str]) -> int:
    if "--self-test" in arguments:
        rest = [word for word in arguments if word != "--self-test"]
        return subprocess.run([sys.executable, str(HERE / "hosts_selftest.py"), *rest], check=False).returncode
    options = options_of(arguments)
    if options.no_gpu:
        return run(options, group.Deadline(options.limit))
    return job_lab.run_limited(options, run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
