#!/usr/bin/env python3
"""A small transformer, trained by DistributedDataParallel, that learns while it trains which configuration of
its collectives makes the iteration shorter.

    torchrun --nproc-per-node 8 examples/pytorch_train.py --learned learned.conf
    torchrun --nproc-per-node 4 examples/pytorch_train.py --share-gpu       # several ranks on one GPU
    torchrun --nproc-per-node 2 examples/pytorch_train.py --backend gloo    # no GPU: it trains, and tunes nothing

What diapason needs are the lines marked (1) to (4). Everything else is an ordinary training program.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from datetime import timedelta
from pathlib import Path

WARM_UP = 20  # iterations that connect, allocate and compile; in no figure


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small DDP training that learns how to communicate while it runs.")
    parser.add_argument("--iterations", type=int, default=1500)
    parser.add_argument("--mode", choices=("learn", "static", "observe", "none"), default="learn",
                        help="none: without diapason, for comparison")
    parser.add_argument("--policy", help="policy file to apply (static) or to choose from (learn)")
    parser.add_argument("--learned", help="file for what is learned; the next job starts from it")
    parser.add_argument("--journal", help="file for every decision; %%p becomes the process id")
    parser.add_argument("--backend", choices=("auto", "nccl", "gloo"), default="auto")
    parser.add_argument("--share-gpu", action="store_true", help="all ranks of this host on one GPU, to try it on one box")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16, help="sequences per rank")
    parser.add_argument("--bucket-mb", type=float, default=1.0, help="size of DDP's buckets, each one all_reduce")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=120, help="seconds until a collective that hangs ends the job")
    parser.add_argument("--result", type=Path, help="file for rank 0's figures, as JSON")
    options = parser.parse_args()
    if options.iterations < 2 * WARM_UP or options.width % 4 or options.width < 4:
        parser.error(f"--iterations at least {2 * WARM_UP}, --width a multiple of 4")
    return options


# Before torch, which takes seconds or is not there: --help and a wrong option need none.
OPTIONS = options_of() if __name__ == "__main__" else None

try:
    import torch
    import torch.distributed as dist
    from torch import nn
except ImportError as error:
    sys.exit(f"this example needs PyTorch: {error}")
try:
    import diapason
except ImportError:
    diapason = None  # the program trains all the same


class Model(nn.Module):
    """Reads tokens, says the next one."""

    def __init__(self, words: int, length: int, width: int, layers: int) -> None:
        super().__init__()
        self.token = nn.Embedding(words, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)
        self.register_buffer("mask", torch.triu(torch.full((length, length), float("-inf")), diagonal=1))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.token(tokens) + self.place, mask=self.mask))


class Sequences:
    """Synthetic text: each sequence goes on by one of a few rules, which the model has to find out."""

    WORDS, LENGTH = 64, 64

    def __init__(self, batch: int, seed: int, device: torch.device) -> None:
        self.batch, self.device = batch, device
        self.generator = torch.Generator().manual_seed(seed)  # on the CPU: the same on every machine

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        start = torch.randint(self.WORDS, (self.batch, 1), generator=self.generator)
        stride = torch.randint(1, 8, (self.batch, 1), generator=self.generator)
        tokens = (start + stride * torch.arange(self.LENGTH + 1)) % self.WORDS
        tokens = tokens.to(self.device)
        return tokens[:, :-1], tokens[:, 1:]


def choose_backend(options: argparse.Namespace, local_rank: int, local_ranks: int) -> tuple[str, torch.device]:
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    nccl = gpus > 0 and dist.is_nccl_available()
    if options.backend == "gloo" or (options.backend == "auto" and not nccl):
        return "gloo", torch.device("cpu")
    if not nccl:
        sys.exit("--backend nccl: this PyTorch has no NCCL, or there is no GPU")
    if local_ranks > gpus and not options.share_gpu:
        sys.exit(f"{local_ranks} ranks and {gpus} GPU(s): start fewer, or let them share one with --share-gpu")
    if options.share_gpu:
        # NCCL refuses two ranks of one host on one GPU: each becomes a host of its own, over the loopback network.
        os.environ["NCCL_HOSTID"] = f"share-{os.environ.get('RANK', '0')}"
        os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
        os.environ.setdefault("NCCL_IB_DISABLE", "1")
    device = torch.device("cuda", 0 if options.share_gpu else local_rank)
    torch.cuda.set_device(device)
    return "nccl", device


def start(options: argparse.Namespace, say) -> tuple[torch.device, object]:
    """Creates the process group; returns the device, and what was verified."""
    backend, device = choose_backend(options, int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    tuned = backend == "nccl" and options.mode != "none" and diapason is not None
    if tuned:
        # (1) Before the process group is created.
        setup = diapason.init(mode=options.mode, policy=options.policy, learned=options.learned, journal=options.journal)
        say(str(setup))
    elif backend != "nccl":
        say(f"backend {backend} on the CPU: there is nothing to tune here. The plugin works in NCCL and RCCL, on GPUs")
    elif diapason is None:
        say("the package diapason is not installed: training without it")
    limit = timedelta(seconds=options.timeout)
    if "RANK" in os.environ:
        dist.init_process_group(backend, timeout=limit)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, timeout=limit)
    if options.share_gpu and backend == "nccl" and "CUDA_MPS_PIPE_DIRECTORY" not in os.environ:
        say("no MPS: ranks that share a GPU take turns, and every collective costs milliseconds. Start nvidia-cuda-mps-control -d")
    if not tuned:
        return device, None
    # (2) Is it really there, the same on every rank, and are sums right? Ends the job where not.
    verification = diapason.verify(timeout=options.timeout)
    say(str(verification))
    return device, verification


def train(options: argparse.Namespace, device: torch.device, say) -> tuple[list[float], list[float], nn.Module]:
    """The seconds and the loss of every iteration on this rank, and the model."""
    torch.manual_seed(options.seed)  # the same weights on every rank
    model = Model(Sequences.WORDS, Sequences.LENGTH, options.width, options.layers).to(device)
    parallel = nn.parallel.DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None,
                                                   bucket_cap_mb=options.bucket_mb, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=1e-3)
    data = Sequences(options.batch, options.seed * 1000 + dist.get_rank(), device)
    parameters = sum(one.numel() for one in model.parameters())
    say(f"{dist.get_world_size()} ranks, {parameters / 1e6:.3g} M parameters, {4 * parameters / 1e6:.3g} MB of gradients in buckets of "
        f"{options.bucket_mb:g} MB")
    times, losses = [], []
    for iteration in range(options.iterations):
        begin = time.perf_counter()
        tokens, following = data.next()
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(parallel(tokens).flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())  # waits for the GPU, so that the time is the iteration's
        if diapason is not None:
            diapason.step()  # (3) Once per iteration, on every rank; has no effect unless the job learns.
        times.append(time.perf_counter() - begin)
        if iteration % max(1, options.iterations // 5) == 0:
            say(f"iteration {iteration}: loss {losses[-1]:.4f}, {times[-1] * 1e3:.2f} ms")
    return times, losses, model


def collect(times: list[float], losses: list[float], model: nn.Module, device: torch.device) -> dict:
    """The slowest rank's times, the mean loss, and a sum of the weights of every rank."""
    slowest = torch.tensor(times, dtype=torch.float32, device=device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    mean = torch.tensor(losses, dtype=torch.float32, device=device)
    dist.all_reduce(mean)
    weights = sum(one.detach().double().abs().sum() for one in model.parameters()).reshape(1)
    everyone = [torch.zeros_like(weights) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, weights)
    return {"times": slowest.tolist(), "losses": (mean / dist.get_world_size()).tolist(), "weights": [one.item() for one in everyone]}


def part(times: list[float]) -> str:
    ordered = sorted(times)
    low, high = ordered[len(ordered) // 10], ordered[len(ordered) * 9 // 10]
    return f"{statistics.median(ordered) * 1e3:.3f} ms (80 % are from {low * 1e3:.3f} to {high * 1e3:.3f})"


def tell(options: argparse.Namespace, found: dict, tuned: bool, say) -> None:
    times = found["times"][WARM_UP:]
    first, last = times[:max(1, len(times) // 10)], times[-max(1, len(times) // 3):]
    say(f"loss {found['losses'][0]:.4f} -> {found['losses'][-1]:.4f}; weights are {'' if len(set(found['weights'])) == 1 else 'NOT '}the same "
        "on every rank")
    say(f"iteration, slowest rank: first {len(first)}: {part(first)}; last {len(last)}: {part(last)}")
    if not options.learned or not tuned:
        return
    rows = []
    try:
        rows = [line for line in Path(options.learned).read_text(encoding="utf-8").splitlines() if line and not line.startswith("# diapason")]
    except OSError:
        pass
    say(f"learned, in {options.learned}:" if rows else "nothing was learned that beats the library's own choice by a margin")
    for line in rows:
        say(f"  {line}")


def main(options: argparse.Namespace) -> int:
    first = os.environ.get("RANK", "0") == "0"

    def say(text: str) -> None:
        if first:
            print(text, flush=True)

    device, verification = start(options, say)
    found = collect(*train(options, device, say), device)
    dist.destroy_process_group()  # here rank 0 writes what was learned
    tell(options, found, verification is not None, say)
    if first and options.result:
        found.update(backend="nccl" if device.type == "cuda" else "gloo", torch=torch.__version__, mode=options.mode,
                     verification=dataclasses.asdict(verification) if verification else None,
                     device=torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU")
        options.result.write_text(json.dumps(found), encoding="utf-8")
    if diapason is not None:
        diapason.cleanup()  # (4) Takes the variables back; only matters if this process goes on.
    return 0 if len(set(found["weights"])) == 1 else 1


if __name__ == "__main__":
    sys.exit(main(OPTIONS))
