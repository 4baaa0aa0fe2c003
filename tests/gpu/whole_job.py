"""A whole job: one rank of a small PyTorch program, for the labs of whole jobs; it runs without diapason too.

    python3 -m torch.distributed.run --nproc-per-node 4 whole_job.py --kind decode --lab --seconds 20

Kinds: decode, graphs, ddp, fsdp2, tp-dp, moe, resnet, regroup (whole_job_kinds.py). It runs for --iterations or --seconds,
whichever ends first; SIGTERM ends it in order. Rank 0 prints `loss 1.2345` every --print-every iterations and at the end, and
then the iteration time of the slowest rank. --lab makes each rank a host of its own, so that ranks can share one GPU.
--trace FILE records iterations with torch.profiler; every rank writes FILE.RANK.json (kernel_trace.summary).
--arms FILE (job_arms.Plan) makes choices in turns, by pins; it needs the plugin.
"""

from __future__ import annotations

import os
import sys

sys.dont_write_bytecode = True
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, _HERE)

import job_arms  # noqa: E402
import kernel_trace  # noqa: E402

# Modules of this folder must not stand in for others that torch imports.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

import argparse  # noqa: E402
import ctypes  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import signal  # noqa: E402
import statistics  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from datetime import timedelta  # noqa: E402
from pathlib import Path  # noqa: E402

KINDS = ("decode", "graphs", "ddp", "fsdp2", "tp-dp", "moe", "resnet", "regroup")
WAIT_SECONDS = 60  # for other ranks, in the program and in collectives
LOOK_EVERY = 8  # iterations between two looks at whether the job is to end
WARM_UP = 4  # iterations of the profiler before those that it keeps


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--iterations", type=int, default=0, help="0: no limit")
    parser.add_argument("--seconds", type=float, default=0.0, help="0: no limit")
    parser.add_argument("--print-every", type=int, default=50)
    parser.add_argument("--lab", action="store_true", help="each rank is a host of its own; all use GPU 0")
    parser.add_argument("--step", action="store_true", help="call diapason_step() after each iteration")
    parser.add_argument("--trace", type=Path, help="prefix of the files with what torch.profiler has seen")
    parser.add_argument("--trace-after", type=int, default=100, help="iterations before the trace")
    parser.add_argument("--trace-iterations", type=int, default=20)
    parser.add_argument("--arms", type=Path, help="choices to make in turns")
    parser.add_argument("--result", type=Path, help="file for times and losses, as JSON")
    parser.add_argument("--cpu", action="store_true", help="without a GPU, for a trial of this program")
    options = parser.parse_args(arguments)
    if options.iterations < 0 or options.seconds < 0 or options.print_every < 1:
        parser.error("--iterations and --seconds are at least 0, --print-every at least 1")
    if options.trace and (options.trace_after < 0 or options.trace_iterations < 1):
        parser.error("--trace-after is at least 0, --trace-iterations at least 1")
    if not options.iterations and not options.seconds:
        options.seconds = 1e9
    return options


def lab_environment(rank: int) -> dict[str, str]:
    """Read by NCCL when the first communicator is made, so it can be set inside the program."""
    return {"NCCL_HOSTID": f"h{rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "LOCAL_RANK": "0"}


class End:
    """Which iteration is the last: all ranks have to agree, or some wait for a collective for ever.

    Rank 0 announces it in the store, well ahead: no rank leads another by more than two iterations.
    """

    def __init__(self, options: argparse.Namespace, store, rank: int) -> None:
        self.options, self.store, self.rank = options, store, rank
        self.last = options.iterations or None
        self.begin = time.monotonic()
        self.announced = self.passed_on = self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.ask)

    def ask(self, *_: object) -> None:
        self.asked = True

    def reached(self, iteration: int) -> bool:
        if iteration % LOOK_EVERY == 0 and not self.announced:
            self.look(iteration)
        return self.last is not None and iteration >= self.last

    def look(self, iteration: int) -> None:
        """Counters of the store are read by adding 0."""
        if self.rank != 0:
            if self.asked and not self.passed_on:
                self.passed_on = True
                self.store.add("whole_job/asked", 1)
            last = self.store.add("whole_job/end", 0)
            if last:
                self.take(last)
            return
        over = self.options.seconds and time.monotonic() - self.begin >= self.options.seconds
        if over or self.asked or self.store.add("whole_job/asked", 0):
            self.take(self.store.add("whole_job/end", iteration + 3 * LOOK_EVERY))

    def take(self, last: int) -> None:
        self.announced = True
        self.last = last if self.last is None else min(last, self.last)


def meet(store, name: str, ranks: int) -> None:
    """All ranks are here. Not by a collective, which would be one of the job's calls."""
    if store.add(f"whole_job/{name}", 1) == ranks:
        store.set(f"whole_job/{name}/all", "1")
    store.wait([f"whole_job/{name}/all"], timedelta(seconds=WAIT_SECONDS))


class Trace:
    """torch.profiler over some iterations; what it has seen is written after the job's last iteration."""

    def __init__(self, options: argparse.Namespace, torch, store, rank: int, ranks: int) -> None:
        self.options, self.torch, self.store, self.rank, self.ranks = options, torch, store, rank, ranks
        self.first = options.trace_after + WARM_UP
        self.end = self.first + options.trace_iterations
        self.profiler = None
        self.started_ns = 0
        self.window_ns = [0, 0]

    def before(self, iteration: int) -> None:
        if iteration == self.options.trace_after:
            self.started_ns = time.time_ns()
            kinds = self.torch.profiler.ProfilerActivity
            self.profiler = self.torch.profiler.profile(
                activities=[kinds.CPU if self.options.cpu else kinds.CUDA],
                schedule=self.torch.profiler.schedule(wait=0, warmup=WARM_UP, active=self.options.trace_iterations, repeat=1))
            self.profiler.start()
            meet(self.store, "trace", self.ranks)
        if iteration == self.first:
            meet(self.store, "record", self.ranks)
            self.window_ns[0] = time.time_ns()

    def after(self, iteration: int) -> None:
        """`iteration` has ended, with all that it did on the GPU."""
        if not self.options.trace_after <= iteration < self.end:
            return
        if iteration == self.end - 1:
            self.window_ns[1] = time.time_ns()
        self.profiler.step()
        if iteration == self.end - 1:
            meet(self.store, "traced", self.ranks)

    def write(self, times: list[float]) -> None:
        path = Path(f"{self.options.trace}.{self.rank}.json")
        if self.profiler is None or not self.window_ns[1]:
            path.write_text(json.dumps({"rank": self.rank, "error": f"the job ended after {len(times)} iterations, before the trace did"}))
            return
        self.profiler.stop()
        with tempfile.TemporaryDirectory(prefix="whole-job-trace-") as folder:
            raw = Path(folder) / "trace.json"
            self.profiler.export_chrome_trace(str(raw))
            seen = kernel_trace.read(raw)
        found = kernel_trace.summary(seen, self.options.trace_iterations)
        Path(f"{self.options.trace}.{self.rank}.intervals.json").write_text(json.dumps(kernel_trace.intervals(seen)))
        found |= {"rank": self.rank, "started_ns": self.started_ns, "window_ns": self.window_ns,
                  "host_iteration_us": 1e6 * statistics.median(times[self.first:self.end]),
                  "untraced_iteration_us": 1e6 * statistics.median(times[self.options.trace_after // 2:self.options.trace_after] or [0.0])}
        path.write_text(json.dumps(found))


def plugin_step(wanted: bool):
    """The plugin's diapason_step(), if it is wanted and the plugin is loaded."""
    if not wanted:
        return None
    try:
        return ctypes.CDLL("libnccl-tuner-diapason.so", mode=os.RTLD_NOW | os.RTLD_NOLOAD).diapason_step
    except OSError:
        print("whole_job: --step: the plugin is not loaded", file=sys.stderr, flush=True)
        return None


def typical(times: list[float]) -> float:
    """The median of the last third: what comes before is warm-up, or learning."""
    return statistics.median(times[-max(1, len(times) // 3):])


def install_arms(options: argparse.Namespace, torch, dist, job) -> "job_arms.Arms | None":
    if not options.arms:
        return None
    arms = job_arms.Arms(job_arms.Plan.read(options.arms), job_arms.Plugin())
    arms.install(dist)
    model = getattr(job, "model", None)
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        model.register_comm_hook(None, job_arms.hook_of(dist, model))
    return arms


def conclude(options: argparse.Namespace, store, rank: int, ranks: int, times: list[float], losses: list[list[float]], **more: object) -> None:
    """Rank 0 says how long an iteration took on the slowest rank; through the store, not by a collective."""
    store.set(f"whole_job/times/{rank}", json.dumps([round(one, 7) for one in times]))
    if rank != 0:
        return
    store.wait([f"whole_job/times/{one}" for one in range(ranks)], timedelta(seconds=WAIT_SECONDS))
    by_rank = [json.loads(store.get(f"whole_job/times/{one}")) for one in range(ranks)]
    slowest = [max(one) for one in zip(*by_rank)]
    text = f"{len(slowest)} iterations, {typical(slowest) * 1e3:.3f} ms (slowest rank, median of the last third)" if slowest else "no iterations"
    print(f"{options.kind}: {text}", flush=True)
    if options.result:
        options.result.write_text(json.dumps({"kind": options.kind, "iterations": len(slowest), "ranks": ranks, "losses": losses,
                                              "ms": typical(slowest) * 1e3 if slowest else None, "times": slowest, **more}))


def load_kinds():
    """By its path: this folder is not on the way on which torch looks for modules."""
    spec = importlib.util.spec_from_file_location("whole_job_kinds", os.path.join(_HERE, "whole_job_kinds.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.KINDS


def run(options: argparse.Namespace, torch, dist, device) -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    torch.manual_seed(1)
    job = load_kinds()[options.kind](device)
    arms = install_arms(options, torch, dist, job)
    end = End(options, store, rank)
    trace = Trace(options, torch, store, rank, ranks) if options.trace else None
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    step = None
    times: list[float] = []
    losses: list[list[float]] = []
    loss = None
    while not end.reached(len(times)):
        iteration = len(times)
        if trace:
            trace.before(iteration)
        if arms:
            arms.before(iteration)
        begin = time.perf_counter()
        loss = job.step()
        wait()
        times.append(time.perf_counter() - begin)
        if iteration == 0:
            step = plugin_step(options.step)
        if step:
            step()
        if trace:
            trace.after(iteration)
        if rank == 0 and len(times) % options.print_every == 0:
            losses.append([len(times), loss.item()])
            print(f"loss {losses[-1][1]:.6f}", flush=True)
    if rank == 0 and loss is not None and len(times) % options.print_every:
        losses.append([len(times), loss.item()])
        print(f"loss {losses[-1][1]:.6f}", flush=True)
    if trace:
        trace.write(times)
    conclude(options, store, rank, ranks, times, losses, pins=arms.counts if arms else {})
    if hasattr(job, "close"):
        loss = None
        job.close()
    meet(store, "done", ranks)  # rank 0 may be the one that has the store


def main() -> int:
    options = options_of(sys.argv[1:])
    rank = int(os.environ.get("RANK", "0"))
    if options.lab:
        os.environ.update(lab_environment(rank))
    import torch
    import torch.distributed as dist

    limit = timedelta(seconds=WAIT_SECONDS)
    if options.cpu:
        device = torch.device("cpu")
        torch.set_num_threads(1)
        dist.init_process_group("gloo", timeout=limit)
    else:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        dist.init_process_group("nccl", timeout=limit, device_id=device)
    run(options, torch, dist, device)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
