"""Stands in for rank.py in the self-test: same protocol, no torch, no GPU.

It plays NCCL and the plugin too: writes the log lines and the journal that the environment asks for.
FAKE_FAULT="GROUP:FAULT" makes the named group misbehave (GROUP as in 'verify-policy').
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

import policy_file

SPEEDUP = 1.5  # of the group 'policy', where its policy has a row
NOISE = 0.01


def library_choice(nbytes: int) -> tuple[str, str, int]:
    if nbytes <= 4096:
        return "tree", "ll", 1
    return ("ring", "ll", 2) if nbytes <= 65536 else ("ring", "simple", 2)


class FakeRank:
    def __init__(self, options: argparse.Namespace) -> None:
        self.rank, self.ranks = options.rank, options.ranks
        group = Path(options.store).stem
        where, _, fault = os.environ.get("FAKE_FAULT", "").partition(":")
        self.fault = fault if where == group else ""
        # str seeds are stable between runs, unlike hash()
        self.rng = random.Random(f"{group}.{self.rank}")
        policy = os.environ.get("DIAPASON_POLICY")
        self.rows = policy_file.parse_policy(Path(policy).read_text()) if policy else []
        self.log_path = os.environ.get("NCCL_DEBUG_FILE")
        self.journal_path = os.environ.get("DIAPASON_JOURNAL", "").replace("%p", str(os.getpid()))
        plugin = os.environ.get("NCCL_TUNER_PLUGIN")
        if plugin and "/" not in plugin:
            plugin = f"{os.environ['LD_LIBRARY_PATH'].split(':')[0]}/libnccl-tuner-{plugin}.so"
        if plugin and self.fault != "not-loaded":
            self.log("TUNER/Plugin: Using diapason (v5)")
            self.log(f"Successfully loaded external tuner plugin {plugin}")
        self.log("Connected all trees")

    def log(self, text: str) -> None:
        if self.log_path:
            with open(self.log_path, "a", encoding="utf-8") as file:
                file.write(f"node:{os.getpid()}:{os.getpid()} [0] NCCL INFO {text}\n")

    def row(self, nbytes: int) -> policy_file.Row | None:
        return policy_file.expected(self.rows, "allreduce", nbytes, self.ranks, self.ranks)

    def collective(self, nbytes: int) -> None:
        algorithm, protocol, channels = library_choice(nbytes)
        row = self.row(nbytes)
        if row:
            algorithm, protocol = row.algorithm or algorithm, row.protocol or protocol
            channels = min(channels, row.channels or channels)
            record = {
                "type": "decision",
                "collective": "allreduce",
                "bytes": nbytes,
                "algorithm": algorithm,
                "protocol": protocol,
                "channels": row.channels or 0,
                "line": row.line,
                "reason": "policy",
                "applied": True,
            }
            if self.fault == "journal-line":
                record["line"] += 1
            with open(self.journal_path, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        if self.fault == "other-algorithm" and nbytes == 131072:
            algorithm = "collnet_chain"
        if self.rank == 0:
            self.log(
                f"AllReduce: {nbytes} Bytes -> Algo {algorithm.upper()} proto {protocol.upper()} "
                f"channel{{Lo..Hi}}={{0..{channels - 1}}}"
            )

    def check(self, counts: list[int]) -> dict:
        if self.journal_path or self.log_path:
            for count in counts:
                self.collective(4 * count)
        wrong = {"count": counts[-1], "wrong": 1, "index": 0, "got": "1.0", "want": "2.0"}
        return {"checked": len(counts), "bad": [wrong] if self.fault == "wrong-sum" else []}

    def pin(self, algorithm: int, protocol: int, channels: int, count: int) -> dict:
        known = algorithm < 2
        name = ["tree", "ring"][algorithm] if known else "ring"
        if self.fault == "pin-ignored":
            name = "collnet_chain"
        self.log(
            f"AllReduce: {4 * count} Bytes -> Algo {name.upper()} "
            f"proto {['LL', 'LL128', 'SIMPLE'][protocol]} channel{{Lo..Hi}}={{0..{max(channels, 1) - 1}}}"
        )
        return {"bad": [], "asked": 1, "applied": 1 if known else 0}

    def time(self, nbytes: int, calls: int) -> dict:
        seconds = 7e-5 + nbytes * 5e-10
        if self.row(nbytes):
            seconds /= SPEEDUP
        return {"seconds": [seconds * self.rng.lognormvariate(0, NOISE) for _ in range(calls)]}

    def obey(self, words: list[str]) -> dict:
        if self.rank == 1 and self.fault == "hang":
            time.sleep(60)
        if self.rank == 1 and self.fault == "die":
            print("fake: cannot go on", file=sys.stderr, flush=True)
            os._exit(3)
        if self.rank == 1 and self.fault == "error":
            return {"error": "RuntimeError: fake"}
        if words[0] == "pin":
            return self.pin(*map(int, words[1:5]))
        if words[0] == "check":
            return self.check([int(count) for count in words[1].split(",")])
        return self.time(int(words[1]), int(words[2]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--store")
    rank = FakeRank(parser.parse_args())
    print(json.dumps({"ready": True, "torch": "fake", "nccl": "fake", "device": "fake"}), flush=True)
    for line in sys.stdin:
        if line.split() == ["quit"]:
            break
        print(json.dumps(rank.obey(line.split())), flush=True)
    if rank.fault == "stubborn":
        time.sleep(60)


if __name__ == "__main__":
    main()
