"""Stands in for torchrun and whole_job.py in the self-test of the labs of whole jobs: the same options, no torch, no GPU.

    fake_whole_job.py --program played_program --kind decode --lab --iterations 100 ...

The job is one of played_program's, in simulated time; its trace is what that program knows to be true.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

import job_arms  # noqa: E402
import policy_file  # noqa: E402

KINDS = {"decode": "decode", "graphs": "replays", "ddp": "ddp", "fsdp2": "fsdp", "tp-dp": "two", "moe": "two", "resnet": "ddp",
         "regroup": "comes-and-goes"}
RANKS = 4
PER_SECOND = 400  # iterations that stand for a second of the job
PACE = "30"  # real microseconds between two calls
# How many times as fast an iteration is with a row that matches 32 KiB, and with the policy of the plugin.
FASTER = {("tree", "simple"): 1.5, ("tree", "ll"): 1.2, ("ring", "ll"): 1.0, ("ring", "simple"): 0.8}
ONE_CHANNEL, TUNED, NOISE = 0.9, 1.48, 0.01


def trace_of(truth: dict, options: argparse.Namespace) -> dict:
    hidden = truth["collective_us"] - truth["exposed_us"]
    return {"rank": truth["rank"], "iterations": options.trace_iterations, "split": True, "collective_kernels": 1, "other_kernels": 1,
            "collective_us": truth["collective_us"], "exposed_us": truth["exposed_us"], "hidden_us": hidden, "compute_us": 0.0,
            "iteration_us": truth["iteration_us"], "host_iteration_us": truth["iteration_us"], "untraced_iteration_us": truth["iteration_us"],
            "started_ns": 1 << 62, "window_ns": [0, 1 << 62]}


def speed_of(text: str | None) -> float:
    """By the rows of a policy; None: that of the plugin."""
    row = policy_file.expected(policy_file.parse_policy(text or ""), "allreduce", 32768, RANKS, RANKS)
    return TUNED if text is None else FASTER[(row.algorithm, row.protocol)] * (ONE_CHANNEL if row.channels == 1 else 1) if row else 1.0


def launch() -> dict:
    """The result of a whole launch, by the policy that was set for it."""
    path = os.environ.get("DIAPASON_POLICY")
    return {"ms": 10 / speed_of(Path(path).read_text() if path else "") * random.Random(path).lognormvariate(0, NOISE)}


def turns(plan: job_arms.Plan, rounds: int) -> dict:
    """The result of a job with --arms: a simple law instead of iterations."""
    noise = random.Random(plan.seed)
    times = []
    for iteration in range(rounds * (plan.block + plan.skip) * len(plan.arms)):
        times.append(0.01 / speed_of(plan.arms[plan.place(iteration)[1]]) * noise.lognormvariate(0, NOISE))
    return {"times": times, "pins": {name: [0, 0] for name in plan.arms}}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--kind", choices=sorted(KINDS))
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--lab", action="store_true")
    parser.add_argument("--step", action="store_true")
    parser.add_argument("--trace")
    parser.add_argument("--trace-after", type=int)
    parser.add_argument("--trace-iterations", type=int)
    parser.add_argument("--result", type=Path)
    parser.add_argument("--arms", type=Path)
    options = parser.parse_args()
    iterations = options.iterations or int(PER_SECOND * min(options.seconds, 10))
    if os.environ.get("FAKE_FAULT") == "fail":
        print("fake: cannot go on", file=sys.stderr)
        return 3
    if options.arms:
        options.result.write_text(json.dumps(turns(job_arms.Plan.read(options.arms), 12)))
        return 0
    if options.result and options.kind == "graphs":
        options.result.write_text(json.dumps(launch()))
        return 0
    with tempfile.TemporaryDirectory(prefix="fake-whole-job-") as folder:
        truth = Path(folder) / "truth"
        done = subprocess.run([options.program, "--ranks", str(RANKS), "--iterations", str(iterations), "--pace", PACE, "--print-every", "50",
                               "--truth", str(truth), KINDS[options.kind]], stdin=subprocess.DEVNULL, timeout=600)
        if done.returncode == 0 and options.trace and os.environ.get("FAKE_FAULT") != "no-trace":
            for rank in range(RANKS):
                known = json.loads(Path(f"{truth}.{rank}").read_text()) | {"rank": rank}
                Path(f"{options.trace}.{rank}.json").write_text(json.dumps(trace_of(known, options)))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
