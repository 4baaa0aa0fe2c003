"""Learning and NCCL Inspector in one job, on one GPU that several ranks share.

    DIAPASON_TEST_INSPECTOR=/path/libnccl-profiler-inspector.so \\
        python3 inspector_lab.py --plugin libnccl-tuner-diapason.so [--tool diapason] [--out FOLDER]

Inspector belongs to NCCL and is not part of this project: the variable names a build of it. Its records with and without
the plugin must be equal in number and kind, and the journals of all ranks must agree. What each costs is printed.

Exit status: 0 every check passed, 1 one failed, 77 skipped (says why).
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import statistics  # noqa: E402
import tempfile  # noqa: E402
from collections import Counter  # noqa: E402
from pathlib import Path  # noqa: E402

from learn_lab import Lab, SKIP  # noqa: E402
from mps import Mps  # noqa: E402
from run_pytorch import why_skip  # noqa: E402

VARIABLE = "DIAPASON_TEST_INSPECTOR"
SIZES = (8192, 65536, 524288)  # Inspector leaves out what is smaller than 8 KiB
CALLS = 600                    # fewer than its ring keeps (1024), with those that check sums


def records_of(folder: Path) -> Counter:
    """How many records of each kind one rank has: (collective, bytes, where the time comes from)."""
    found: Counter = Counter()
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if not path.is_file():
            continue
        for line in path.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            perf = record.get("coll_perf") if isinstance(record, dict) else None
            if isinstance(perf, dict):
                found[perf.get("coll"), perf.get("coll_msg_size_bytes"), perf.get("coll_timing_source")] += 1
    return found


class InspectorLab(Lab):
    inspector = ""  # its file

    def dump(self, name: str, rank: int) -> Path:
        return self.work / f"{name}.{rank}.inspector"

    def inspected(self, name: str) -> dict[int, dict[str, str]]:
        """What each rank's Inspector is told."""
        own = {}
        for rank in range(self.options.ranks):
            self.dump(name, rank).mkdir()
            own[rank] = {"NCCL_INSPECTOR_ENABLE": "1", "NCCL_INSPECTOR_DUMP_DIR": str(self.dump(name, rank)),
                         "NCCL_INSPECTOR_DUMP_THREAD_ENABLE": "1",
                         "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS": "20000"}
        return own

    def plain(self, name: str, settings: dict[str, str], inspected: bool, plugin: bool) -> list[dict] | None:
        sizes = ",".join(str(size) for size in SIZES)
        results = self.run(name, "plain", ["--bytes", sizes, "--calls", str(CALLS)], 120, settings,
                           by_rank=self.inspected(name) if inspected else None,
                           without=() if plugin else tuple(range(self.options.ranks)))
        if results:
            self.check(sum(r["wrong"] for r in results) == 0, f"{name}: sums are right")
        return results

    def records(self, name: str) -> list[Counter]:
        return [records_of(self.dump(name, rank)) for rank in range(self.options.ranks)]

    def compare(self, name: str, alone: list[Counter]) -> None:
        """Number and kind of the records, rank by rank."""
        beside = self.records(name)
        self.figures[name] = [sum(one.values()) for one in beside]
        whole = all(sum(one.values()) >= CALLS for one in alone)
        if whole:
            self.check(beside == alone, f"{name}: records {self.figures[name]}, alone {[sum(one.values()) for one in alone]}, "
                                        "the same of every kind")
        else:  # up to 2.30 it dumps only the latest collective now and then
            print(f"  note: alone it has {[sum(one.values()) for one in alone]} records of {CALLS} calls: only kinds compare")
            kinds = {(kind[0], kind[2]) for one in alone for kind in one}
            self.check({(kind[0], kind[2]) for one in beside for kind in one} == kinds and bool(kinds),
                       f"{name}: the same kinds of records as alone, {sorted(kinds)}")

    def together(self) -> None:
        """Learning and Inspector, by both ways to load them."""
        if not self.plain("alone", {"NCCL_PROFILER_PLUGIN": self.inspector}, True, False):
            return
        alone = self.records("alone")
        self.check(all(sum(one.values()) > 0 for one in alone), f"alone: {[sum(one.values()) for one in alone]} records")
        ways = {"chained": {"DIAPASON_PROFILER_CHAIN": self.inspector},
                "replaced": {"NCCL_TUNER_PLUGIN": "", "NCCL_ENV_PLUGIN": str(self.options.plugin),
                             "NCCL_PROFILER_PLUGIN": self.inspector}}
        for name, way in ways.items():
            if not self.plain(name, way, True, True):
                continue
            self.check(self.logged(name, "chained profiler") == self.options.ranks, f"{name}: every rank's log names it")
            self.check(self.logged(name, "learning allreduce") > 0, f"{name}: rank 0 learns")
            self.compare(name, alone)
            self.agree(name)

    def cost(self) -> None:
        """Inspector alone, and passed on by the plugin without a policy; both against neither."""
        quiet = {"DIAPASON_MODE": "static", "DIAPASON_STORE": "", "DIAPASON_JOURNAL": "", "NCCL_DEBUG": "WARN"}
        arms = {"none": ({"NCCL_DEBUG": "WARN"}, False, False),
                "inspector": ({"NCCL_DEBUG": "WARN", "NCCL_PROFILER_PLUGIN": self.inspector}, True, False),
                "beside": (quiet | {"DIAPASON_PROFILER_CHAIN": self.inspector}, True, True)}
        medians: dict[str, dict[int, list[float]]] = {arm: {size: [] for size in SIZES} for arm in arms}
        for round_number in range(self.options.rounds):
            for arm, (settings, inspected, plugin) in arms.items():
                results = self.plain(f"{arm}.{round_number}", settings, inspected, plugin)
                if not results:
                    return
                slowest = [max(times) for times in zip(*(r["times"] for r in results))]
                for i, size in enumerate(SIZES):
                    medians[arm][size].append(statistics.median(slowest[len(SIZES) * 20 + i::len(SIZES)]))
        for size in SIZES:
            figures = {arm: statistics.median(medians[arm][size]) * 1e6 for arm in arms}
            self.figures[f"cost {size}"] = figures
            print(f"  {size} bytes: " + ", ".join(f"{arm} {time:.1f} us" for arm, time in figures.items())
                  + f"; beside/inspector {figures['beside'] / figures['inspector']:.3f}", flush=True)


def self_test() -> int:
    """The reader of records, on both formats of a line; needs neither a GPU nor Inspector."""
    with tempfile.TemporaryDirectory() as folder:
        perf = {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 8192, "coll_timing_source": "kernel_gpu"}
        lines = [{"header": {"rank": 0}, "metadata": {}, "coll_perf": perf}, {"coll_perf": perf | {"coll_sn": 2}},
                 {"dump_stats": {"coll_records": 2}}, {"p2p_perf": {"p2p": "Send"}}, ["no record"]]
        Path(folder, "host-pid1.log").write_text("\n".join(json.dumps(line) for line in lines) + "\n{cut")
        found = records_of(Path(folder))
    fine = found == Counter({("AllReduce", 8192, "kernel_gpu"): 2}) and not records_of(Path("/nonexistent"))
    print("self test: " + ("fine" if fine else f"FAILED: {found}"))
    return 0 if fine else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="Learning beside NCCL Inspector on one GPU")
    parser.add_argument("--plugin", type=Path)
    parser.add_argument("--tool", help="diapason, for `journal check`")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3, help="of the measurement of costs")
    parser.add_argument("--cases", default="together,cost")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not options.plugin:
        parser.error("--plugin is needed")
    options.plugin = options.plugin.resolve()
    inspector = os.environ.get(VARIABLE, "")
    reason = (f"{VARIABLE} names no build of NCCL Inspector" if not Path(inspector).is_file() else why_skip(options.plugin))
    if reason:
        print(f"skipped: {reason}")
        return SKIP
    work = Path(tempfile.mkdtemp(prefix="inspector-"))
    with Mps() as mps:
        print(mps.note, flush=True)
        lab = InspectorLab(options, work, mps)
        lab.inspector = str(Path(inspector).resolve())
        for case in options.cases.split(","):
            print(f"== {case}", flush=True)
            getattr(lab, case)()
    return lab.finish("inspector")


if __name__ == "__main__":
    sys.exit(main())
