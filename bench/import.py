#!/usr/bin/env python3
"""How long 10 000 rows take to import: import.py FOLDER_OF_THE_PROGRAMS [ROWS]

A grid as people have it (algorithm, protocol, channels, sizes, repeats), five times into a new store; the time is that of the
whole command.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> int:
    tool = Path(sys.argv[1]).resolve() / "diapason"
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open(folder / "grid.csv", "w") as grid:
            grid.write("collective,num_nodes,num_gpus,size_bytes,algo,proto,nchannels,repeat,busbw_ip\n")
            for i in range(rows):
                size, config, repeat = 1024 << (i // 3 % 18), i // 54, i % 3
                grid.write(f"all_reduce,{1 + config // 1024},8,{size},{('RING', 'TREE')[config % 2]},"
                           f"{('LL', 'LL128', 'SIMPLE')[config // 2 % 3]},{1 + config // 6 % 64},{repeat + 1},"
                           f"{0.5 + (i * 7919 % 10007) / 31:.2f}\n")
        times = []
        for turn in range(5):
            begin = time.monotonic()
            done = subprocess.run([tool, "data", "import", folder / "grid.csv", "--library", "rccl", "--store",
                                   folder / f"{turn}.db"], capture_output=True, text=True, timeout=60)
            times.append(time.monotonic() - begin)
            if str(rows) not in done.stdout.replace(" ", ""):
                print(done.stdout, done.stderr, sep="\n")
                return 1
    print(f"import of {rows} rows: median {statistics.median(times):.2f} s, worst of {len(times)}: {max(times):.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
