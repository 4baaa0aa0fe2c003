"""One rank of a PyTorch job that learns. Runs one case and writes what it saw to a JSON file."""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

import argparse  # noqa: E402
import ctypes  # noqa: E402
import json  # noqa: E402
import random  # noqa: E402
import time  # noqa: E402
from datetime import timedelta  # noqa: E402
from pathlib import Path  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

KEEP = -1
TREE, RING = 0, 1
LL, SIMPLE = 0, 2
# What one communicator of this lab can run; -1/-1/0 is the library's own choice.
CONFIGS = [(a, p, c) for a, p in ((TREE, LL), (TREE, SIMPLE), (RING, LL), (RING, SIMPLE)) for c in (0, 1, 2)]
DEFAULT = (KEEP, KEEP, 0)


class Plugin:
    """What the plugin in this process offers to programs; does nothing where there is none."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libnccl-tuner-diapason.so", mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        except OSError:
            self.library = None

    def pin(self, config: tuple[int, int, int]) -> None:
        if self.library and self.library.diapason_pin(*config) != 0:
            raise ValueError(f"pin {config}")

    def unpin(self) -> None:
        if self.library:
            self.library.diapason_unpin()

    def step(self) -> None:
        if self.library:
            self.library.diapason_step()


class Rank:
    def __init__(self, options: argparse.Namespace) -> None:
        self.rank, self.ranks = options.rank, options.ranks
        self.seconds = options.seconds
        torch.cuda.set_device(0)
        self.device = torch.device("cuda", 0)
        dist.init_process_group(
            "nccl",
            init_method=f"file://{options.store}",
            rank=options.rank,
            world_size=options.ranks,
            timeout=timedelta(seconds=60),
        )
        first = torch.ones(1, device=self.device)
        dist.all_reduce(first)
        torch.cuda.synchronize()
        self.plugin = Plugin()

    def timed(self, data: torch.Tensor) -> float:
        start = time.perf_counter()
        dist.all_reduce(data)
        torch.cuda.synchronize()
        return time.perf_counter() - start

    def right(self, count: int) -> bool:
        """Whether a sum comes out exactly."""
        data = ((torch.arange(count, device=self.device) * (self.rank + 3)) % 251).float()
        dist.all_reduce(data)
        want = sum(((torch.arange(count, device=self.device) * (r + 3)) % 251).float() for r in range(self.ranks))
        return bool(torch.equal(data, want))


def shuffled(order: random.Random) -> list[tuple[str, tuple[int, int, int] | None]]:
    """What is compared, in the order of one round: what ran before changes a call's time. All ranks draw the same."""
    compared = [("learned", None), ("default", DEFAULT)] + [(f"{a}/{p}/{c}", (a, p, c)) for a, p, c in CONFIGS]
    order.shuffle(compared)
    return compared


def sizes(rank: Rank, options: argparse.Namespace) -> dict:
    """Synchronised calls of one size after the other; then the exhaustive comparison, by pins."""
    out: dict = {"sizes": {}}
    order = random.Random(1)
    for size in options.bytes:
        data = torch.zeros(size // 4, device=rank.device)
        learning = []
        for _ in range(options.calls):
            learning.append(rank.timed(data))
            if options.steps:  # a synchronised call is this program's iteration
                rank.plugin.step()
        correct = rank.right(size // 4)
        rows: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for name, config in shuffled(order):
                rank.plugin.unpin() if config is None else rank.plugin.pin(config)
                rank.timed(data)
                rows.setdefault(name, []).extend(rank.timed(data) for _ in range(4))
        rank.plugin.unpin()
        out["sizes"][size] = {"learning": learning, "rows": rows, "correct": correct}
    return out


class Overlap:
    """Buckets that are reduced while the next ones are computed, as a training step does."""

    def __init__(self, rank: Rank, buckets: int, size: int, work: int) -> None:
        self.rank = rank
        self.data = [torch.zeros(size // 4, device=rank.device) for _ in range(buckets)]
        self.a = torch.randn(work, work, device=rank.device)
        self.b = torch.randn(work, work, device=rank.device)

    def run(self) -> float:
        start = time.perf_counter()
        waits = []
        for data in self.data:
            torch.mm(self.a, self.b)
            waits.append(dist.all_reduce(data, async_op=True))
        for wait in waits:
            wait.wait()
        torch.cuda.synchronize()
        return time.perf_counter() - start


def overlap(rank: Rank, options: argparse.Namespace) -> dict:
    out: dict = {"sizes": {}}
    order = random.Random(1)
    for size in options.bytes:
        loop = Overlap(rank, 6, size, options.work)
        learning = []
        for _ in range(options.calls):
            learning.append(loop.run())
            rank.plugin.step()
        rows: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for name, config in shuffled(order):
                rank.plugin.unpin() if config is None else rank.plugin.pin(config)
                loop.run()
                rows.setdefault(name, []).extend(loop.run() for _ in range(3))
        rank.plugin.unpin()
        out["sizes"][size] = {"learning": learning, "rows": rows, "correct": rank.right(size // 4)}
    return out


def ddp(rank: Rank, options: argparse.Namespace) -> dict:
    """A small model, trained by DistributedDataParallel."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[layer for _ in range(6) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())])
    model = torch.nn.Sequential(model, torch.nn.Linear(256, 1)).to(rank.device)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=0.26)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator(device="cpu").manual_seed(100 + rank.rank)
    inputs = torch.randn(64, 256, generator=generator).to(rank.device)
    targets = inputs[:, :8].sum(dim=1, keepdim=True) / 8
    times, losses = [], []
    for _ in range(options.calls):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if options.steps:
            rank.plugin.step()
        times.append(time.perf_counter() - start)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()]).double()
    return {"times": times, "losses": losses[:: max(1, len(losses) // 50)], "weights": float(weights.sum()),
            "norm": float(weights.norm())}


def plain(rank: Rank, options: argparse.Namespace) -> dict:
    """Calls of a few sizes in turn; the sums are compared."""
    times, wrong = [], 0
    data = [torch.zeros(size // 4, device=rank.device) for size in options.bytes]
    for n in range(options.calls):
        times.append(rank.timed(data[n % len(data)]))
        if n % 50 == 49:
            wrong += 0 if rank.right(options.bytes[n % len(data)] // 4) else 1
    return {"times": times, "wrong": wrong}


def graph(rank: Rank, options: argparse.Namespace) -> dict:
    """A captured graph whose replay is pending on one rank only while eager calls are made."""
    size = options.bytes[0]
    data = torch.zeros(size // 4, device=rank.device)
    for _ in range(40):
        rank.timed(data)
    captured = torch.ones(size // 4, device=rank.device)
    stream = torch.cuda.Stream()
    plan = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        dist.all_reduce(captured)
    torch.cuda.synchronize()
    with torch.cuda.graph(plan, stream=stream):
        dist.all_reduce(captured)
    wrong = 0
    for n in range(options.calls):
        if n % 5 == 0:
            captured.fill_(1.0)
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                if rank.rank == 0:
                    torch.cuda._sleep(2000000)  # the replay is late here, and only here
                plan.replay()
            rank.timed(data)
            torch.cuda.synchronize()
            wrong += 0 if bool((captured == rank.ranks).all()) else 1
        else:
            rank.timed(data)
    return {"wrong": wrong}


def simulate(rank: Rank, options: argparse.Namespace) -> dict:
    """ncclGroupSimulateEnd on one rank now and then: questions that are never launched.

    With --send 1 a message of that rank to itself follows at once: a kernel of the same communicator that must not
    be taken for the launch of the simulated call.
    """
    backend = dist.distributed_c10d._get_default_group()._get_backend(rank.device)
    comm = ctypes.c_void_p(backend._comm_ptr())
    nccl = ctypes.CDLL("libnccl.so.2")
    data = [torch.zeros(size // 4, device=rank.device) for size in options.bytes]
    here, there = torch.ones(64, device=rank.device), torch.zeros(64, device=rank.device)
    asked = wrong = sent = 0

    def send_to_self() -> bool:
        there.zero_()
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        peer, count = ctypes.c_int(rank.rank), ctypes.c_size_t(here.numel())
        nccl.ncclGroupStart()
        nccl.ncclSend(ctypes.c_void_p(here.data_ptr()), count, 7, peer, comm, stream)
        nccl.ncclRecv(ctypes.c_void_p(there.data_ptr()), count, 7, peer, comm, stream)
        done = nccl.ncclGroupEnd() == 0
        torch.cuda.synchronize()
        return done and bool(torch.equal(here, there))

    for n in range(options.calls):
        if rank.rank == 1 and n % 7 == 3:
            one = data[(n // 7) % len(data)]
            info = (ctypes.c_ubyte * 64)()
            ctypes.memmove(info, (ctypes.c_size_t * 1)(32), 8)
            ctypes.c_uint.from_buffer(info, 8).value = 0x74685283
            ctypes.c_uint.from_buffer(info, 12).value = 22800
            pointer = ctypes.c_void_p(one.data_ptr())
            nccl.ncclGroupStart()
            nccl.ncclAllReduce(pointer, pointer, ctypes.c_size_t(one.numel()), 7, 0, comm,
                               ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
            asked += 1 if nccl.ncclGroupSimulateEnd(ctypes.byref(info)) == 0 else 0
            if options.send:
                sent += 1 if send_to_self() else 0
        rank.timed(data[n % len(data)])
        if n % 50 == 49:
            wrong += 0 if rank.right(options.bytes[0] // 4) else 1
    return {"wrong": wrong, "asked": asked, "sent": sent}


def until_error(rank: Rank, options: argparse.Namespace) -> dict:
    """Calls until one fails, or all are made; says how long the last one took."""
    data = [torch.zeros(size // 4, device=rank.device) for size in options.bytes]
    longest, wrong, start = 0.0, 0, time.perf_counter()
    for n in range(options.calls):
        begin = time.perf_counter()
        try:
            rank.timed(data[n % len(data)])
            if n % 100 == 99:
                wrong += 0 if rank.right(options.bytes[n % len(data)] // 4) else 1
        except Exception as error:  # noqa: BLE001
            return {"error": str(error)[:400], "calls": n, "wrong": wrong, "longest": time.perf_counter() - begin}
        longest = max(longest, time.perf_counter() - begin)
    return {"error": "", "calls": options.calls, "wrong": wrong, "longest": longest,
            "seconds": time.perf_counter() - start}


def emptied(rank: Rank, options: argparse.Namespace) -> dict:
    """Somebody removes the store while the job runs: every rank must end with an error, not hang."""
    import shutil

    data = torch.zeros(options.bytes[0] // 4, device=rank.device)
    for n in range(options.calls):
        if rank.rank == 2 and n == options.calls // 4:
            shutil.rmtree(options.remove, ignore_errors=True)
        try:
            rank.timed(data)
        except Exception as error:  # noqa: BLE001
            return {"error": str(error)[:400], "calls": n}
    return {"error": "", "calls": options.calls}


CASES = {one.__name__: one for one in (sizes, overlap, ddp, plain, graph, simulate, emptied, until_error)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--store")
    parser.add_argument("--case", choices=sorted(CASES))
    parser.add_argument("--result", type=Path)
    parser.add_argument("--bytes", type=lambda text: [int(one) for one in text.split(",")], default=[8192])
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--work", type=int, default=512)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--remove", default="")
    parser.add_argument("--send", type=int, default=0)
    options = parser.parse_args()
    rank = Rank(options)
    result = CASES[options.case](rank, options)
    result["torch"] = torch.__version__
    result["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    options.result.write_text(json.dumps(result))
    if result.get("error"):
        os._exit(0)  # the communicator is broken: nothing is waited for
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
