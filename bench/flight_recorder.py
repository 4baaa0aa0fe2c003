#!/usr/bin/env python3
"""How long `diapason logs` takes for the flight recorder dumps of a large job.

    flight_recorder.py FOLDER_OF_THE_PROGRAMS [RANKS [ENTRIES [json|pickle]]]

Each rank has ENTRIES entries of five groups with Python frames; one rank stopped before its last call. Prints
seconds, throughput and memory, and fails if that rank is not the one that is named.
"""
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def entries(count: int) -> list:
    frames = [{"name": f"function_{i}", "filename": f"/opt/train/module_{i}.py", "line": 100 + i} for i in range(8)]
    result = []
    for i in range(count):
        group = i % 5
        result.append({
            "frames": frames, "record_id": 5000 + i, "pg_id": group, "process_group": [str(group), f"group_{group}"],
            "collective_seq_id": 1000 + i // 5, "p2p_seq_id": 0, "op_id": 1000 + i // 5,
            "profiling_name": "nccl:all_reduce", "time_created_ns": 1700000000000000000 + i,
            "input_sizes": [[4096, 128]], "input_dtypes": ["BFloat16"], "output_sizes": [[4096, 128]],
            "output_dtypes": ["BFloat16"], "state": "completed" if i + 1 < count else "scheduled",
            "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": i + 1 < count,
            "timeout_ms": 600000, "is_p2p": False})
    return result


def main() -> None:
    programs = Path(sys.argv[1])
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    form = sys.argv[4] if len(sys.argv) > 4 else "json"
    members = str(list(range(ranks)))
    config = {str(group): {"name": str(group), "desc": f"group_{group}", "ranks": members} for group in range(5)}
    late = ranks // 3
    with tempfile.TemporaryDirectory() as folder:
        texts = []
        for made in (entries(count), entries(count)[:-1]):
            dump = {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": made}
            texts.append(json.dumps(dump).encode() if form == "json" else pickle.dumps(dump, 2))
        for rank in range(ranks):
            (Path(folder) / f"nccl_trace_rank_{rank}").write_bytes(texts[1 if rank == late else 0])
        start = time.monotonic()
        ran = subprocess.run([programs / "diapason", "logs", folder, "--section", "findings"], capture_output=True,
                             text=True, check=False)
        seconds = time.monotonic() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    memory = used.ru_maxrss / 1024
    processor = used.ru_utime + used.ru_stime
    if f"Rank {late} is the root" not in ran.stdout:
        sys.exit("the late rank is not named: " + ran.stdout + ran.stderr)
    mib = ranks * len(texts[0]) / 2**20
    print(f"{ranks} dumps ({form}) of {count} entries, {mib:.0f} MiB: {processor:.1f} s of CPU time, {seconds:.1f} s in "
          f"all, {memory:.0f} MiB resident")


if __name__ == "__main__":
    main()
