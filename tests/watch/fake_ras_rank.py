"""A process that looks like a rank to `diapason watch`: it has a file named libnccl.so.2 mapped, and listens where
NCCL's RAS does, beside the other ranks and jobs of this host.

    fake_ras_rank.py FOLDER RANK

FOLDER/state.json says what is answered, and is read again for every question:
  format   "json" or "text"
  commas   false: as NCCL 2.28, which leaves one out
  mode     "whole", "cut", "garbage", "huge", "silent", "slow"
  ranks    [{"rank", "base", "per_s", "missing"}]: AllReduce calls launched, base + per_s * seconds; "missing" is
           "unresponsive", "dead", "left" or "". "pid" and "host" replace what the rank itself reports
  copies   number of communicators that have these ranks
  listen   false: no RAS, as with NCCL_RAS_ENABLE=0; read at the start
FOLDER/pid.RANK is the process number in its own namespace.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import sys
import threading
import time
from pathlib import Path

COLLECTIVES = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")


def described(folder: Path) -> dict:
    state = json.loads((folder / "state.json").read_text())
    for rank in state["ranks"]:
        rank.setdefault("host", "127.0.0.1")
        if "pid" not in rank:
            rank["pid"] = int((folder / f"pid.{rank['rank']}").read_text())
        rank["count"] = int(rank["base"] + rank.get("per_s", 0) * time.monotonic())
    return state


def as_json(state: dict) -> str:
    present, missing = [], []
    for rank in state["ranks"]:
        about = {"rank": rank["rank"], "host": rank["host"], "pid": rank["pid"], "cuda_dev": 0, "nvml_dev": 0}
        if rank.get("missing"):
            about["status"] = {"unresponsive": rank["missing"] != "left", "considered_dead": rank["missing"] == "dead"}
            text = json.dumps(about, indent=1)
            missing.append(text if state.get("commas", True) else text.replace('"nvml_dev": 0,', '"nvml_dev": 0'))
            continue
        about["status"] = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                           "abort_flag": False}
        about["collective_counts"] = {name: rank["count"] if name == "AllReduce" else 0 for name in COLLECTIVES}
        present.append(json.dumps(about, indent=1))
    copies = []
    for copy in range(state.get("copies", 1)):
        copies.append(f'{{ "hash": "{state.get("hash", "0x8a1c00ff")}{copy or ""}", "secondary_hash": "0x1:0x2",\n'
                      f' "size": {len(state["ranks"])}, "ranks_count": {len(present)},\n'
                      f' "missing_ranks_count": {len(missing)}, "ranks": [\n' + ",\n".join(present) +
                      '\n ],\n "missing_ranks": [\n' + ",\n".join(missing) + "\n ] }")
    return ('{\n "nccl_version": "' + state.get("version", "2.30.7+cuda13.0") +
            f'",\n "communicators_count": {len(copies)},\n "communicators": [\n' + ",\n".join(copies) +
            '\n ],\n "ras": { "collection_time_sec": 0.002, "timeouts_count": 0 }\n}\n')


def as_text(state: dict) -> str:
    size = len(state["ranks"])
    text = ("NCCL version 2.26.2+cuda12.8 compiled with CUDA 12.8\nCUDA runtime version 12080, driver version 13000\n\n"
            "Job summary\n===========\n\nCommunicators... (0.00s)\n=============\n\n"
            "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
            "    #  in group  per comm  per node  per comm  in group\n"
            f"    0         1         1  {size:8}  {size:8}  {size:8}   RUNNING      OK\n\nErrors\n======\n\n")
    place = "GPU 0 managed by process {pid} on node {host}\n"
    gone = [rank for rank in state["ranks"] if rank.get("missing")]
    if gone:
        text += f"#0-0 (000000008a1c00ff) INCOMPLETE\n  Missing communicator data from {len(gone)} rank\n"
        text += "".join(f"  Rank {rank['rank']} -- " + place.format(**rank) for rank in gone) + "\n"
    text += "Warnings\n========\n\n"
    groups: dict[int, list[dict]] = {}
    for rank in state["ranks"]:
        if not rank.get("missing"):
            groups.setdefault(rank["count"], []).append(rank)
    if len(groups) > 1:
        text += "#0-0 (000000008a1c00ff) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
        for count, members in groups.items():
            launched = f"launched up to operation {count}"
            if len(members) > 1:
                text += f"  {len(members)} ranks have {launched}\n"
            if len(members) == 1 or len(members) * 2 < size:
                for rank in members:
                    text += f"  Rank {rank['rank']}" + ("" if len(members) > 1 else f" has {launched}")
                    text += " -- " + place.format(**rank)
        text += "\n"
    return text


def serve(folder: Path, client: socket.socket) -> None:
    with client, client.makefile("rwb") as lines:
        def say(text: str) -> None:
            lines.write(text.encode())
            lines.flush()

        wanted = "text"
        for line in lines:
            command = line.decode(errors="replace").strip().lower()
            state = described(folder)
            if command.startswith("client protocol"):
                if state.get("mode") == "silent":
                    continue
                say("SERVER PROTOCOL 2\n" if state.get("mode") != "garbage" else "220 mail ready\n")
            elif command.startswith("timeout"):
                say("OK\n")
            elif command.startswith("set format"):
                known = state.get("format", "json") == "json"
                wanted = "json" if known else "text"
                say("OK\n" if known else f"ERROR: Unknown command {command}\n")
            elif command == "verbose status":
                answer = as_json(state) if wanted == "json" else as_text(state)
                mode = state.get("mode", "whole")
                if mode == "cut":
                    answer = answer[: len(answer) * 2 // 3]
                if mode == "huge":
                    for _ in range(80):
                        say(" " * (1 << 20))
                if mode == "slow":
                    for start in range(0, len(answer), 200):
                        say(answer[start:start + 200])
                        time.sleep(0.02)
                else:
                    say(answer)
                return


def serve_quietly(folder: Path, client: socket.socket) -> None:
    try:
        serve(folder, client)
    except OSError:
        pass  # the client left


def main() -> None:
    folder, rank = Path(sys.argv[1]), sys.argv[2]
    with open(folder / "libnccl.so.2", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    host, port = os.environ["NCCL_RAS_ADDR"].rsplit(":", 1)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, int(port)))
        if json.loads((folder / "state.json").read_text()).get("listen", True):
            listener.listen(64)
        (folder / f"pid.{rank}").write_text(str(os.getpid()))
        (folder / f"ready.{rank}").touch()
        while not json.loads((folder / "state.json").read_text()).get("listen", True):
            time.sleep(60)
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve_quietly, args=(folder, client), daemon=True).start()
    mapped.close()


main()
