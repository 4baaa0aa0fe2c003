"""A launcher for hosts_lab.py: CLUSTER COMMAND... runs a command on every host of a cluster of tests/cluster, one rank each.

Ranks get the variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) and what NCCL needs where
hosts share one GPU. The first rank that fails ends the others; SIGTERM and SIGINT are passed on. The exit status is that
of the first rank that failed, which is named with its host.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import os  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import subprocess  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent / "cluster"))

from cluster import Cluster  # noqa: E402

GRACE_SECONDS = 20.0  # for ranks that were asked to end


def free_port(address: str) -> int:
    """Of the first host, whose network this program has."""
    with socket.socket() as one:
        one.bind((address, 0))
        return one.getsockname()[1]


def environment(rank: int, ranks: int, host: str, address: str, port: int) -> dict[str, str]:
    return os.environ | {
        "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": address,
        "MASTER_PORT": str(port), "NCCL_HOSTID": host, "NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "1",
        "GLOO_SOCKET_IFNAME": "eth0",
    }


class Ranks:
    def __init__(self, cluster: Cluster, command: list[str]) -> None:
        self.hosts = cluster.hosts()
        first = cluster.address(self.hosts[0])
        port = free_port(first)
        self.processes = [cluster.start(host, command, env=environment(rank, len(self.hosts), host, first, port))
                          for rank, host in enumerate(self.hosts)]

    def signal(self, number: int) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)

    def wait(self) -> int:
        """Until all have ended, or one has failed."""
        while True:
            states = [process.poll() for process in self.processes]
            for rank, state in enumerate(states):
                if state not in (None, 0):
                    print(f"hosts_launch: rank {rank} on {self.hosts[rank]} ended with status {state}", file=sys.stderr, flush=True)
                    return state if 0 < state < 256 else 1
            if None not in states:
                return 0
            time.sleep(0.05)

    def end(self) -> None:
        self.signal(signal.SIGTERM)
        limit = time.monotonic() + GRACE_SECONDS
        for process in self.processes:
            try:
                process.wait(max(0.0, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def main(words: list[str]) -> int:
    if len(words) < 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    ranks = Ranks(Cluster(words[0]), words[1:])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ranks.signal(signal.SIGTERM))
    try:
        return ranks.wait()
    finally:
        ranks.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
