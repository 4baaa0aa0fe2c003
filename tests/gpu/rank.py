"""One rank of a PyTorch job that does what its parent says.

Reads one command a line on stdin and answers each with one JSON line on the file that was stdout:
  check COUNTS        COUNTS: comma-separated element counts; all_reduce of float32, compared exactly
  time BYTES CALLS    one timing block; answers the seconds of each call
  quit                leaves the process group and ends
The first line it writes, once its communicator works, is {"ready": true, ...}.
"""

from __future__ import annotations

import os
import sys

# Nothing of torch's may pick up this folder's modules by their plain names (stats, group).
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]

# Libraries print to file 1 as they like; so the answers get a file of their own, and 1 becomes stderr.
_answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
os.dup2(2, 1)

import argparse  # noqa: E402
import ctypes  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402
import signal  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
from datetime import timedelta  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

WARM_UP_CALLS = 2
MODULUS = 65521  # prime; MODULUS * ranks stays below 2**24 up to 256 ranks, so float32 sums are exact


def answer(record: dict) -> None:
    _answers.write(json.dumps(record) + "\n")
    _answers.flush()


class Rank:
    def __init__(self, rank: int, ranks: int, store: str, backend: str) -> None:
        self.rank, self.ranks = rank, ranks
        self.cuda = backend == "nccl"
        self.device = torch.device("cuda", 0) if self.cuda else torch.device("cpu")
        self.buffers: dict[int, torch.Tensor] = {}
        if self.cuda:
            torch.cuda.set_device(self.device)
        # A file as the meeting point: many groups start at once, and a port picked beforehand can be
        # taken by another group's sockets before it is used.
        dist.init_process_group(
            backend,
            init_method=f"file://{store}",
            rank=rank,
            world_size=ranks,
            timeout=timedelta(seconds=120),
        )

    def synchronize(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def pattern(self, rank: int, count: int) -> torch.Tensor:
        """Whole numbers that differ by element and by rank, on the CPU."""
        index = torch.arange(count, dtype=torch.int64)
        return (index * (2 * rank + 3) + 40503 * rank + 1) % MODULUS

    def check_one(self, count: int) -> dict | None:
        """None if the sum is right, else the first wrong element."""
        data = self.pattern(self.rank, count).to(torch.float32).to(self.device)
        dist.all_reduce(data)
        self.synchronize()
        # The plain sum on the CPU shares no code with the library under test.
        want = sum(self.pattern(rank, count) for rank in range(self.ranks)).to(torch.float32)
        got = data.cpu()
        if torch.equal(got, want):
            return None
        wrong = (got != want).nonzero().flatten()
        first = int(wrong[0])
        return {
            "count": count,
            "wrong": int(wrong.numel()),
            "index": first,
            "got": repr(float(got[first])),  # text: JSON has no NaN
            "want": repr(float(want[first])),
        }

    def check(self, counts: list[int]) -> dict:
        bad = [problem for problem in map(self.check_one, counts) if problem]
        return {"checked": len(counts), "bad": bad}

    def buffer(self, nbytes: int) -> torch.Tensor:
        # Zeros stay zeros however often they are summed in place; the transfer does not see values.
        if nbytes not in self.buffers:
            self.buffers[nbytes] = torch.zeros(nbytes // 4, dtype=torch.float32, device=self.device)
        return self.buffers[nbytes]

    def time(self, nbytes: int, calls: int) -> dict:
        data = self.buffer(nbytes)
        seconds = []
        gc.disable()  # a collection in one rank would be charged to the collective
        try:
            for call in range(WARM_UP_CALLS + calls):
                start = time.perf_counter()
                dist.all_reduce(data)
                self.synchronize()
                stop = time.perf_counter()
                if call >= WARM_UP_CALLS:
                    seconds.append(stop - start)
        finally:
            gc.enable()
        return {"seconds": seconds}

    def pin(self, algorithm: int, protocol: int, channels: int, count: int) -> dict:
        """One all_reduce with a pinned configuration, through the plugin that NCCL has loaded."""
        # NOLOAD: it must be in the process already, whatever path NCCL found it by.
        plugin = ctypes.CDLL("libnccl-tuner-diapason.so", mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        if plugin.diapason_pin(algorithm, protocol, channels) != 0:
            raise RuntimeError("diapason_pin refused its arguments")
        bad = self.check([count])["bad"]
        asked, applied = ctypes.c_ulonglong(), ctypes.c_ulonglong()
        plugin.diapason_pin_counts(ctypes.byref(asked), ctypes.byref(applied))
        plugin.diapason_unpin()
        return {"bad": bad, "asked": asked.value, "applied": applied.value}

    def obey(self, words: list[str]) -> dict:
        if words[0] == "pin":
            return self.pin(*map(int, words[1:5]))
        if words[0] == "check":
            return self.check([int(count) for count in words[1].split(",")])
        if words[0] == "time":
            return self.time(int(words[1]), int(words[2]))
        raise ValueError(f"unknown command {words[0]!r}")

    def about(self) -> dict:
        about = {"ready": True, "pid": os.getpid(), "torch": torch.__version__}
        if self.cuda:
            version = torch.cuda.nccl.version()
            about["nccl"] = ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
            about["device"] = torch.cuda.get_device_name(self.device)
        return about


def serve(rank: Rank) -> None:
    # The communicator is made at the first call; ready must mean that it is there.
    problem = rank.check_one(1)
    if problem:
        raise RuntimeError(f"the first all_reduce gave a wrong sum: {problem}")
    answer(rank.about())
    while True:
        line = sys.stdin.readline()
        words = line.split()
        # End of input: the parent is gone, so nobody waits for this rank any more.
        if not line or words == ["quit"]:
            return
        if words:
            answer(rank.obey(words))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--store", required=True, help="a file that does not exist yet")
    parser.add_argument("--backend", default="nccl", help="gloo: try this program without a GPU")
    options = parser.parse_args()
    # Ctrl-C reaches the whole foreground group; the parent alone decides how ranks end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)  # 16 ranks with a thread pool each would disturb what is timed
    try:
        serve(Rank(options.rank, options.ranks, options.store, options.backend))
        dist.destroy_process_group()
    except Exception as error:  # whatever it was, the parent must hear of it at once
        traceback.print_exc()
        answer({"error": f"{type(error).__name__}: {error}"})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
