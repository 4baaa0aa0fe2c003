"""Stores with known content, for the tests and the benchmark of `diapason report`.

Written with Python's own SQLite by the layout that src/dataset/schema.h has, so that they can hold what no command of ours
would write. Times come from plain formulas: a test can work out what the page has to show.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KIB = 1024


def schema() -> list[str]:
    """The statements of schema.h: literals that stand side by side are one text."""
    text = (ROOT / "src/dataset/schema.h").read_text()
    body = text[text.index("kSchema[]") :]
    statements = []
    for entry in re.findall(r'\{"\w+",\s*((?:"[^"]*"\s*)+)\}', body):
        statements.append("".join(re.findall(r'"([^"]*)"', entry)))
    return statements


def machine(**given) -> dict:
    known = {
        "library": "nccl",
        "library_version": "2.28.9",
        "gpu": "4x NVIDIA H200",
        "driver": "570.86.15",
        "topology": "1 node of 4 ranks",
        "hosts": "node0",
        "tool": "diapason test",
        "simulated": 0,
        "environment": "NCCL_SOCKET_IFNAME=eth0",
    }
    return known | given


def point(**given) -> dict:
    known = {
        "kind": 0,
        "collective": "allreduce",
        "bytes": KIB,
        "nodes": 1,
        "ranks": 4,
        "type": "f32",
        "reduce": "sum",
        "root": -1,
        "in_place": 0,
        "algorithm": "",
        "protocol": "",
        "channels": 0,
        "segment_bytes": 0,
        "environment": "",
        "workload": "",
    }
    return known | given


class Store:
    def __init__(self, path: Path):
        Path(path).unlink(missing_ok=True)
        self.database = sqlite3.connect(path)
        for statement in schema():
            self.database.execute(statement)
        self.database.execute("INSERT INTO meta VALUES('created_by', 'a test'), ('created', '0')")
        self.database.execute(f"PRAGMA application_id={0x44696170}")
        self.database.execute("PRAGMA user_version=1")
        self.machines: dict = {}
        self.points: dict = {}

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.database.commit()
        self.database.close()

    def _insert(self, table: str, row: dict) -> int:
        marks = ",".join("?" * len(row))
        return self.database.execute(f"INSERT INTO {table}({','.join(row)}) VALUES({marks})", list(row.values())).lastrowid

    def _once(self, table: str, known: dict, row: dict) -> int:
        key = tuple(row.values())
        if key not in known:
            known[key] = self._insert(table, row)
        return known[key]

    def run(self, name: str, source: str, where: dict, started: float = 1794700000.0, origin: str = "") -> int:
        place = self._once("machine", self.machines, where)
        row = {"name": name, "source": source, "origin": origin or f"diapason {source}", "started": started, "state": 1, "plan": "", "machine": place}
        return self._insert("run", row)

    def sample(self, run: int, what: dict, round_: int, seconds: float | None, outcome: int = 0, note: str = "") -> None:
        row = {"run": run, "point": self._once("point", self.points, what), "round": round_, "seconds": seconds, "coarse": 0.0, "iterations": 10}
        self._insert("sample", row | {"wrong": 0 if outcome == 0 else -1, "outcome": outcome, "note": note, "at": 1794700000.0 + round_})


# name -> (algorithm, protocol, channels, what it takes of the default's time)
SMALL_CONFIGS = [("", "", 0, 1.0), ("ring", "simple", 2, 1.25), ("tree", "ll", 0, 0.8), ("tree", "simple", 4, 0.9)]
SMALL_SIZES = [KIB * 4**i for i in range(6)]
SAMPLES = 12
ROUNDS = 10


def small_time(bytes_: int) -> float:
    """Of the default in seconds."""
    return 20e-6 + bytes_ / 20e9


def wobble(round_: int, step: int = 7) -> float:
    """Between 0.99 and 1.01; another step is another order."""
    return 1 + 0.01 * ((round_ * step) % 11 - 5) / 5


def small(path: Path) -> None:
    """One allreduce: a search, a verification in which tree/ll is 1.25 times as fast up to 64 KiB and the rest is left alone."""
    with Store(path) as store:
        sweep = store.run("sweep-1", "sweep", machine())
        for bytes_ in SMALL_SIZES:
            for algorithm, protocol, channels, share in SMALL_CONFIGS:
                what = point(bytes=bytes_, algorithm=algorithm, protocol=protocol, channels=channels)
                for round_ in range(SAMPLES):
                    # From 256 KiB on nothing can be told apart.
                    scale = share if bytes_ <= 64 * KIB else 1 + (share - 1) * 0.001
                    store.sample(sweep, what, round_, small_time(bytes_) * scale * wobble(round_))
            store.sample(sweep, point(bytes=bytes_, algorithm="nvls", protocol="simple"), 0, None, 4, "no NVLink SHARP on this machine")
        store.sample(sweep, point(bytes=KIB, algorithm="tree", protocol="ll128"), 0, None, 2, "no answer within 20 s")
        verify = store.run("verify-1", "verify", machine(), 1794700600.0)
        for bytes_ in SMALL_SIZES:
            for round_ in range(ROUNDS):
                store.sample(verify, point(bytes=bytes_), round_, small_time(bytes_) * wobble(round_))
                if bytes_ <= 64 * KIB:
                    store.sample(verify, point(bytes=bytes_, algorithm="tree", protocol="ll"), round_, small_time(bytes_) * wobble(round_, 3) / 1.25)
            step = point(kind=1, bytes=4 * KIB * KIB, workload="ddp: 4 x allreduce 4MiB, 20 ms of compute")
        for round_ in range(ROUNDS):
            store.sample(verify, step, round_, 25e-3 * wobble(round_))
            store.sample(verify, step | {"environment": "DIAPASON_POLICY=policy.conf"}, round_, 25e-3 * wobble(round_, 3) / 1.1)


def tried(path: Path) -> None:
    """Three collectives as `tune` leaves them: faster, no difference, much slower, and too few rounds."""
    with Store(path) as store:
        verify = store.run("verify-1", "verify", machine())
        for collective in ("allgather", "allreduce", "reducescatter"):
            for channels, (bytes_, gain, rounds) in enumerate([(KIB, 1.25, 10), (16 * KIB, 1.0, 10), (256 * KIB, 0.56, 10), (KIB * KIB, 1.5, 4)], 28):
                what = point(collective=collective, bytes=bytes_, reduce="" if collective == "allgather" else "sum")
                for round_ in range(rounds):
                    store.sample(verify, what, round_, 1e-3 * wobble(round_))
                    store.sample(verify, what | {"algorithm": "ring", "protocol": "simple", "channels": channels}, round_, 1e-3 / gain * wobble(round_, 3))


def two_libraries(path: Path) -> None:
    """A library that gains 20 at 1 KiB, and another that gains 1.25: nobody wants their mean. The other was verified later."""
    with Store(path) as store:
        for at, (library, version, gpu, gain) in enumerate([("nccl", "2.28.9", "H200", 20), ("rccl", "2.22.3", "MI300X", 1.25)]):
            where = machine(library=library, library_version=version, gpu=gpu)
            sweep = store.run(f"sweep-{library}", "sweep", where, 1794700000.0 + at)
            verify = store.run(f"verify-{library}", "verify", where, 1794700600.0 + at)
            for bytes_ in (KIB, 4 * KIB):
                tuned = point(bytes=bytes_, algorithm="tree", protocol="ll")
                share = gain if bytes_ == KIB else 1.5
                for round_ in range(ROUNDS):
                    for run in (sweep, verify) if bytes_ == KIB else (sweep,):
                        store.sample(run, point(bytes=bytes_), round_, 1e-3 * wobble(round_))
                        store.sample(run, tuned, round_, 1e-3 / share * wobble(round_, 3))


EXACT_POLICY = """# diapason: version=1 library=nccl
allreduce,1024,1024,tree,ll,-1,1,4,-1,-1
"""

TRIED_POLICY = """# diapason: version=1 library=nccl
allreduce,0,4095,ring,simple,28,1,4,-1,-1
"""

POLICY = """# diapason: version=1 library=nccl origin="a test"
# learned: 1.250 x as fast as the default
allreduce,0,131071,tree,ll,-1,1,4,-1,-1
allgather,0,4096,ring,ll,-1,2,16,-1,-1
"""

BIG_COLLECTIVES = ["allgather", "allreduce", "broadcast", "reduce", "reducescatter", "alltoall"]
BIG_SHAPES = [(1, 4), (1, 8), (2, 16), (4, 32)]


def big(path: Path, samples: int = 2) -> int:
    """More cells than a page takes; returns how many."""
    configs = [("", "", 0)]
    for algorithm in ["tree", "ring", "nvls", "collnetdirect", "pat"]:
        for protocol in ["ll", "ll128", "simple"]:
            for channels in [0, 1, 2, 4, 8, 16, 32]:
                configs.append((algorithm, protocol, channels))
    cells = 0
    with Store(path) as store:
        for c, collective in enumerate(BIG_COLLECTIVES):
            for nodes, ranks in BIG_SHAPES:
                run = store.run(f"sweep-{collective}-{ranks}", "sweep", machine())
                for i in range(20):
                    bytes_ = KIB << i
                    for k, (algorithm, protocol, channels) in enumerate(configs):
                        reduce = "sum" if "reduce" in collective else ""
                        what = point(collective=collective, nodes=nodes, ranks=ranks, bytes=bytes_, reduce=reduce, algorithm=algorithm, protocol=protocol, channels=channels)
                        share = 0.7 + ((k * 37 + i * 11 + c * 5) % 97) / 97 * 1.5 if k else 1.0
                        for round_ in range(samples):
                            store.sample(run, what, round_, small_time(bytes_) * share * wobble(round_))
                        cells += 1
    return cells


EVIL = "</script><script>window.hurt=1</script><img src=x onerror=window.hurt=1>\"'`&\u2028${1}"


def simulated(path: Path) -> None:
    with Store(path) as store:
        run = store.run("sim-1", "sweep", machine(simulated=1))
        for round_ in range(SAMPLES):
            store.sample(run, point(), round_, 1e-5 * wobble(round_))


def hostile(path: Path) -> None:
    """Names and notes that try to get out of where they stand."""
    with Store(path) as store:
        store.database.text_factory = bytes
        bad = "=HYPERLINK(\"http://x\")" + EVIL
        where = machine(library_version=EVIL, gpu=EVIL, driver=EVIL, topology=EVIL, hosts=EVIL, tool=EVIL, environment=f"NCCL_{EVIL}={EVIL}")
        run = store.run(EVIL, "sweep", where, origin=EVIL)
        for bytes_ in (KIB, 4 * KIB):
            for round_ in range(6):
                store.sample(run, point(bytes=bytes_), round_, 1e-5 * wobble(round_))
                store.sample(run, point(bytes=bytes_, environment=bad), round_, 5e-6 * wobble(round_))
                store.sample(run, point(kind=1, bytes=bytes_, workload=EVIL), round_, 1e-2 * wobble(round_))
            store.sample(run, point(bytes=bytes_, algorithm="ring", protocol="ll"), 0, None, 3, EVIL + "\0\x01 after a NUL")
        # Bytes that are no UTF-8, in a text column.
        row = store.database.execute("SELECT id FROM run LIMIT 1").fetchone()[0]
        store.database.execute("UPDATE run SET origin=CAST(x'ff3c2f7363726970743ec328f0' AS TEXT) WHERE id=?", [row])
