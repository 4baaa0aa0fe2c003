"""Learning on a real GPU: several ranks share it, each its own host; see docs/results/README.md for figures.

    python3 learn_lab.py --plugin libnccl-tuner-diapason.so [--tool diapason] [--cases sizes,ddp] [--rewards step,gpu]
                         [--limit SECONDS] [--out FOLDER]

The last lines are the figures: for every case the geometric mean of the best configuration's time over the learned
one's, and the share of epochs for which nothing was agreed on in time. --limit bounds the whole run: a job that would
not end in time is killed, and what was not run is said.

Exit status: 0 every check passed, 1 one failed, 77 skipped (says why). A missed timing bar is printed
and is no failure: timings are not tests.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402

import group  # noqa: E402
from mps import Mps  # noqa: E402
from redis_process import Redis  # noqa: E402
from run_pytorch import why_skip  # noqa: E402

HERE = Path(__file__).resolve().parent
SKIP = 77
SMALL_TO_LARGE = "8192,16384,32768,65536,131072,262144,524288,1048576,2097152"
TRYING = ("trying", "warm-up")
LEAST_TIME = 20  # seconds that a job needs to start and end
BAR = 0.97  # of the best


class Lab:
    def __init__(self, options: argparse.Namespace, work: Path, mps: Mps) -> None:
        self.options, self.work, self.mps = options, work, mps
        self.failures: list[str] = []
        self.summary: list[str] = []
        self.end = time.monotonic() + getattr(options, "limit", 3600.0)
        self.figures: dict = {}

    def finish(self, name: str) -> int:
        """Keeps figures and logs where --out says, removes the working folder; the exit status."""
        out = self.options.out
        if out:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{name}.json").write_text(json.dumps(self.figures, indent=1))
            for path in sorted(self.work.glob("*.stderr")) + sorted(self.work.glob("*.log")):
                if path.stat().st_size > 200000:
                    path.write_bytes(path.read_bytes()[-200000:])
            subprocess.run(["tar", "-C", str(self.work), "-czf", str(out / f"{name}.tar.gz"), "--exclude=*.meet", "."], check=False)
        shutil.rmtree(self.work, ignore_errors=True)
        for line in self.summary:
            print(line)
        for failure in self.failures:
            print(f"FAILED: {failure}")
        return 1 if self.failures else 0

    def check(self, condition: bool, what: str) -> None:
        if not condition:
            self.failures.append(what)
        print(f"  {'fine' if condition else 'FAILED'}: {what}", flush=True)

    def environment(self, rank: int, name: str, settings: dict[str, str], plugin: bool) -> dict[str, str]:
        environment = group.clean_environment() | self.mps.environment | {
            "NCCL_HOSTID": f"h{rank}",
            "NCCL_SOCKET_IFNAME": "lo",
            "NCCL_IB_DISABLE": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "NCCL_DEBUG": "INFO",
            "NCCL_DEBUG_SUBSYS": "INIT,TUNING,ENV",
            "NCCL_DEBUG_FILE": str(self.work / f"{name}.{rank}.log"),
        }
        if plugin:
            environment |= {
                "NCCL_TUNER_PLUGIN": str(self.options.plugin),
                "NCCL_PROFILER_PLUGIN": str(self.options.plugin),
                "DIAPASON_MODE": "learn",
                "NCCL_RAS_ENABLE": "0",  # 2.31 and later learn only so
                "DIAPASON_STORE": "shm",
                "DIAPASON_JOB": f"lab-{os.getpid()}-{name}",
                "DIAPASON_REWARD": "gpu",
                "DIAPASON_JOURNAL": str(self.journal(name, rank)),
                "DIAPASON_JOURNAL_RECORDS": "262144",
            }
        environment |= settings
        return {name: value for name, value in environment.items() if value}  # empty: not set at all

    def journal(self, name: str, rank: int) -> Path:
        return self.work / f"{name}.{rank}.jsonl"

    def run(self, name: str, case: str, arguments: list[str], limit: float, settings: dict[str, str] | None = None,
            by_rank: dict[int, dict[str, str]] | None = None, without: tuple[int, ...] = (),
            meanwhile: Callable[[], None] | None = None) -> list[dict] | None:
        """The case on all ranks; their results, or None where one failed or time ran out."""
        limit = min(limit, self.end - time.monotonic())
        if limit < LEAST_TIME:
            self.summary.append(f"{name}: not run, no time was left")
            return None
        ranks = self.options.ranks
        store = self.work / f"{name}.meet"
        processes = []
        begin = time.monotonic()
        for rank in range(ranks):
            own = (settings or {}) | (by_rank or {}).get(rank, {})
            with open(self.work / f"{name}.{rank}.stderr", "wb") as errors:
                processes.append(subprocess.Popen(
                    [sys.executable, str(HERE / "learn_rank.py"), "--rank", str(rank), "--ranks", str(ranks), "--store",
                     str(store), "--case", case, "--result", str(self.work / f"{name}.{rank}.json"), *arguments],
                    stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                    env=self.environment(rank, name, own, rank not in without)))
        late = False
        if meanwhile:
            threading.Thread(target=meanwhile, daemon=True).start()
        for process in processes:
            try:
                process.wait(max(0.1, limit - (time.monotonic() - begin)))
            except subprocess.TimeoutExpired:
                late = True
                break
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
        results = []
        for rank, process in enumerate(processes):
            path = self.work / f"{name}.{rank}.json"
            if late or process.returncode != 0 or not path.exists():
                tail = (self.work / f"{name}.{rank}.stderr").read_text(errors="replace")[-800:]
                self.check(False, f"{name}: rank {rank} {'ran out of time' if late else f'ended with {process.returncode}'}: {tail}")
                return None
            results.append(json.loads(path.read_text()))
        return results

    def agree(self, name: str, ranks: int | None = None, counted: bool = True) -> None:
        """The journals of all ranks, call by call; `counted`: ranks that learn number the calls of a context."""
        files = [str(self.journal(name, rank)) for rank in range(ranks or self.options.ranks)]
        if self.options.tool:
            done = subprocess.run([self.options.tool, "journal", "check", *files], capture_output=True, text=True, timeout=120)
            print("    " + "\n    ".join((done.stdout + done.stderr).strip().splitlines()[:12]), flush=True)
            self.check(done.returncode == 0, f"{name}: diapason journal check")
        if not counted:
            return
        asked: list[dict] = []
        for path in files:
            last: dict = {}
            for line in Path(path).read_text().splitlines():
                record = json.loads(line)
                if record["type"] == "decision" and "index" in record and not record.get("captured"):
                    band = (record["bytes"] - 1).bit_length()
                    key = (record["comm"], record["collective"], band, record["index"])
                    last[key] = (record["algorithm"], record["protocol"], record["channels"])
            asked.append(last)
        common = set.intersection(*(set(one) for one in asked)) if asked else set()
        differ = [key for key in common if len({one[key] for one in asked}) > 1]
        self.check(not differ and len(common) > 100, f"{name}: {len(common)} calls compared on all ranks, {len(differ)} differ")

    def loss(self, name: str, size: int, times: list[float], default: float) -> float:
        """Share of the first 1000 calls' default time that trying has cost.

        Each configuration that was tried is charged with its own median: single calls have spikes of many
        milliseconds here, with every configuration.
        """
        tried: dict[tuple, list[float]] = {}
        for line in self.journal(name, 0).read_text().splitlines():
            record = json.loads(line)
            if record["type"] == "decision" and record["bytes"] == size and record["reason"] in TRYING:
                index = record.get("index", -1)
                if 0 <= index < min(1000, len(times)):
                    tried.setdefault((record["algorithm"], record["protocol"], record["channels"]), []).append(times[index])
        lost = sum(len(calls) * max(0.0, statistics.median(calls) - default) for calls in tried.values())
        return lost / (default * min(1000, len(times)))

    @staticmethod
    def best_of(rows: dict[str, list[float]]) -> tuple[float, float, str]:
        """The best configuration's time and the learned one's, and which it is.

        The fastest of many noisy medians is faster by luck: it is chosen on one half of the rounds and timed on
        the other, both ways round.
        """
        best, learned, names = [], [], []
        for half in (0, 1):
            chosen = min((statistics.median(values[half::2]), config) for config, values in rows.items() if config != "learned")[1]
            best.append(statistics.median(rows[chosen][1 - half::2]))
            learned.append(statistics.median(rows["learned"][1 - half::2]))
            names.append(chosen)
        return math.sqrt(best[0] * best[1]), math.sqrt(learned[0] * learned[1]), names[0] if names[0] == names[1] else " ".join(names)

    def table(self, name: str, results: list[dict], unit: float) -> dict:
        """Learned against the default and the best of everything, slowest rank, medians of blocks."""
        out = {}
        print(f"  {'bytes':>9} {'default':>9} {'learned':>9} {'best':>9}  best is      of best  x default  samples  trying lost, typical call of the first 1000")
        for size in results[0]["sizes"]:
            rows = {config: [max(one) for one in zip(*(result["sizes"][size]["rows"][config] for result in results))]
                    for config in results[0]["sizes"][size]["rows"]}
            median = {config: statistics.median(values) for config, values in rows.items()}
            best_time, learned_time, best_name = self.best_of(rows)
            learning = [max(one) for one in zip(*(result["sizes"][size]["learning"] for result in results))]
            lost = self.loss(name, int(size), learning, median["default"]) if name.startswith("sizes") else 0.0
            total = statistics.median(learning[:1000]) / median["default"] - 1
            out[size] = {"default_us": median["default"] * unit, "learned_us": median["learned"] * unit, "best_us": best_time * unit,
                         "best": best_name, "of_best": best_time / learned_time, "x_default": median["default"] / median["learned"],
                         "samples": len(rows["learned"]), "lost": lost, "first_1000_against_default": total,
                         "all": {config: value * unit for config, value in median.items()}}
            row = out[size]
            print(f"  {size:>9} {row['default_us']:9.1f} {row['learned_us']:9.1f} {row['best_us']:9.1f}  {row['best']:<11} "
                  f"{row['of_best']:8.3f} {row['x_default']:10.3f} {row['samples']:8d}  {lost:8.2%} {total:+.1%}", flush=True)
            self.check(all(result["sizes"][size]["correct"] for result in results), f"{name}: sums of {size} bytes are right")
        for what in ("of_best", "x_default"):
            values = [row[what] for row in out.values()]
            print(f"  {what}: geometric mean {math.exp(statistics.fmean(map(math.log, values))):.3f}, worst {min(values):.3f}")
        of_best = math.exp(statistics.fmean(math.log(row["of_best"]) for row in out.values()))
        epochs, held = self.epochs(name)
        self.summary.append(f"{name}: {of_best:.3f} of the best, geometric mean of {len(out)} sizes "
                            f"(bar {BAR}: {'reached' if of_best >= BAR else 'missed'}); {held} of {epochs} epochs held")
        return out

    def epochs(self, name: str) -> tuple[int, int]:
        """The agreed epochs of rank 0, and those that were held because nothing was agreed on in time."""
        held: dict[tuple, bool] = {}
        for line in self.journal(name, 0).read_text().splitlines():
            record = json.loads(line)
            if record["type"] != "decision" or record.get("epoch", 0) < 2:
                continue
            key = (record["comm"], record["collective"], (record["bytes"] - 1).bit_length(), record["epoch"])
            held[key] = held.get(key, False) or record["reason"] == "held"
        return len(held), sum(held.values())

    def sizes(self) -> None:
        for reward in self.options.rewards.split(","):
            self.sizes_by(reward)

    def sizes_by(self, reward: str) -> None:
        """The reward is the time of a synchronised call, by diapason_step, or that of the kernel alone."""
        name = f"sizes-{reward}"
        learned = self.work / f"{name}.conf"
        results = self.run(name, "sizes", ["--bytes", SMALL_TO_LARGE, "--calls", "1000", "--rounds", str(self.options.rounds), "--steps",
                                           "1" if reward == "step" else "0"], 200,
                           {"DIAPASON_LEARNED": str(learned), "DIAPASON_REWARD": reward})
        if results:
            self.figures[name] = self.table(name, results, 1e6)
            self.agree(name)
            self.check(learned.exists(), "what was learned is a policy")
            if learned.exists():
                print(learned.read_text())
                shutil.copy(learned, self.options.out / "learned.conf") if self.options.out else None

    def overlap(self) -> None:
        for size, bar in (("131072", "1.2 x the default"), ("1048576", "0.97 of the best")):
            name = f"overlap{size}"
            results = self.run(name, "overlap", ["--bytes", size, "--calls", "1000", "--rounds", str(self.options.rounds)], 150,
                               {"DIAPASON_REWARD": "step"})
            if results:
                print(f"  bar: {bar}")
                self.figures[name] = self.table(name, results, 1e6)
                self.agree(name)

    def ddp(self) -> None:
        for name, steps in (("ddp", "1"), ("ddp-pattern", "0")):
            plain = self.run(name + "-without", "ddp", ["--calls", "600", "--steps", "0"], 100, without=tuple(range(self.options.ranks)))
            with_it = self.run(name, "ddp", ["--calls", "1500", "--steps", steps], 120, {"DIAPASON_REWARD": "auto"})
            if not plain or not with_it:
                return
            for what, results in (("without", plain), ("with", with_it)):
                self.check(len({(r["weights"], r["norm"]) for r in results}) == 1, f"{name} {what}: all ranks have the same weights")
                self.check(results[0]["losses"][-1] < 0.9 * results[0]["losses"][0], f"{name} {what}: the loss falls")
            before = [max(one) for one in zip(*(r["times"] for r in plain))][100:]
            first = [max(one) for one in zip(*(r["times"] for r in with_it))][:100]
            after = [max(one) for one in zip(*(r["times"] for r in with_it))][-500:]
            row = {"without_us": statistics.median(before) * 1e6, "first_100_us": statistics.median(first) * 1e6,
                   "last_500_us": statistics.median(after) * 1e6}
            self.figures[name] = row
            print(f"  {name}: iteration without {row['without_us']:.0f} us, first 100 {row['first_100_us']:.0f} us, last 500 "
                  f"{row['last_500_us']:.0f} us: {row['without_us'] / row['last_500_us']:.3f} x", flush=True)
            self.agree(name)

    def attacks(self) -> None:
        results = self.run("graph", "graph", ["--bytes", "65536", "--calls", "500"], 90)
        if results:
            self.check(sum(r["wrong"] for r in results) == 0, "graph: every replay and eager call is right")
            self.agree("graph")
        results = self.run("nonblocking", "plain", ["--bytes", "8192,65536", "--calls", "800"], 90,
                           {"TORCH_NCCL_USE_COMM_NONBLOCKING": "1"})
        if results:
            self.check(sum(r["wrong"] for r in results) == 0, "nonblocking: sums are right")
            self.agree("nonblocking")
        results = self.run("simulate", "simulate", ["--bytes", "8192,65536", "--calls", "800"], 90)
        if results:
            self.check(results[1]["asked"] > 50, f"simulate: {results[1]['asked']} groups simulated on rank 1")
            self.check(sum(r["wrong"] for r in results) == 0, "simulate: sums are right")
            self.agree("simulate")
        results = self.run("missing", "plain", ["--bytes", "8192", "--calls", "200"], 90, {"DIAPASON_JOIN_LIMIT": "3"}, without=(1,))
        if results:
            self.check(sum(r["wrong"] for r in results) == 0, "missing: one rank without the plugin, sums are right")
            self.nothing_tried("missing", (0, 2, 3))
        stores = {rank: {"DIAPASON_STORE": f"file:{self.work}/store{rank % 2}"} for rank in range(self.options.ranks)}
        for rank in range(2):
            (self.work / f"store{rank}").mkdir()
        results = self.run("apart", "plain", ["--bytes", "8192", "--calls", "200"], 90, {"DIAPASON_JOIN_LIMIT": "3"}, by_rank=stores)
        if results:
            self.check(sum(r["wrong"] for r in results) == 0, "apart: two stores that do not see each other, sums are right")
            self.nothing_tried("apart", tuple(range(self.options.ranks)))
        gone = self.work / "gone"
        gone.mkdir()
        results = self.run("emptied", "emptied", ["--bytes", "65536", "--calls", "2000", "--remove", str(gone)], 100,
                           {"DIAPASON_STORE": f"file:{gone}", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"})
        if results:
            print(f"  {[(r['calls'], r['error'][:100]) for r in results]}")
            self.check(any(r["error"] for r in results), "emptied: ranks ended with an error")
            self.agree("emptied")

    def logged(self, name: str, text: str) -> int:
        """On how many ranks NCCL's log has this text."""
        return sum(1 for rank in range(self.options.ranks)
                   if text in (self.work / f"{name}.{rank}.log").read_text(errors="replace"))

    def journal_lines(self, name: str) -> int:
        path = self.journal(name, 0)
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def safety(self) -> None:
        """Ways in which ranks could differ, and a store that goes away: with the real library."""
        self.simulated_then_sent()
        self.unreadable_policy()
        if not self.options.redis:
            print("  skipped: a paused Redis; --redis names no redis-server")
            return
        self.paused_redis("paused", pause=6, patience=60)
        self.paused_redis("stopped", pause=25, patience=4)

    def simulated_then_sent(self) -> None:
        name = "sent"
        results = self.run(name, "simulate", ["--bytes", "8192,65536", "--calls", "1500", "--send", "1"], 90)
        if not results:
            return
        self.check(results[1]["asked"] > 100 and results[1]["sent"] == results[1]["asked"],
                   f"sent: {results[1]['asked']} simulated groups on rank 1, each followed by a message to itself")
        self.check(sum(r["wrong"] for r in results) == 0, "sent: sums are right")
        self.check(self.logged(name, "differently") == 0, "sent: no rank was found to count or to run differently")
        self.agree(name)

    def unreadable_policy(self) -> None:
        name = "unreadable"
        policy = self.work / "all.conf"
        policy.write_text("allreduce,0,1073741824,tree,simple,-1,-1,-1,-1,-1\n")
        by_rank = {rank: {"DIAPASON_POLICY": str(policy)} for rank in range(self.options.ranks)}
        by_rank[2] = {"DIAPASON_POLICY": "/nonexistent/policy.conf"}
        results = self.run(name, "plain", ["--bytes", "8192,1048576", "--calls", "300"], 60,
                           {"DIAPASON_MODE": "static", "DIAPASON_STORE": ""}, by_rank=by_rank)
        if results:
            self.check(sum(r["wrong"] for r in results) == 0, "unreadable: one rank cannot read its policy, sums are right")
            self.check(self.logged(name, "policy=refused") == self.options.ranks, "unreadable: every rank's log says why")
            self.nothing_tried(name, tuple(range(self.options.ranks)))

    def paused_redis(self, name: str, pause: float, patience: int) -> None:
        """Redis is stopped in the middle of learning: shorter than the patience, or longer."""
        with Redis(self.options.redis, self.work) as redis:
            def stop_and_go() -> None:
                redis.pause_when(lambda: self.journal_lines(name) > 1200, pause, limit=60)

            results = self.run(name, "until_error", ["--bytes", "8192,65536", "--calls", "6000"], 120,
                               {"DIAPASON_STORE": redis.url, "DIAPASON_STORE_PATIENCE": str(patience),
                                "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}, meanwhile=stop_and_go)
            if not results:
                return
            self.check(redis.paused, f"{name}: Redis was stopped for {pause} s while ranks learned")
        print(f"  {name}: {[(r['calls'], round(r['longest'], 1), r['error'][:60]) for r in results]}")
        self.check(sum(r["wrong"] for r in results) == 0, f"{name}: sums are right")
        if pause < patience:
            self.check(all(not r["error"] for r in results), f"{name}: the job waited, and went on")
        else:
            self.check(any(r["error"] for r in results), f"{name}: the job ended with an error")
            worst = max(r["longest"] for r in results if r["error"])
            self.check(worst < patience + 60, f"{name}: the last call took {worst:.1f} s")
        self.agree(name)

    def nothing_tried(self, name: str, ranks: tuple[int, ...]) -> None:
        applied = sum(1 for rank in ranks for line in self.journal(name, rank).read_text().splitlines()
                      if '"type":"decision"' in line and '"applied":true' in line)
        self.check(applied == 0, f"{name}: the library decided alone on every rank")

    def ras(self) -> None:
        """From 2.31 on a RAS client may change the events of a running job: nothing is learned unless it is off."""
        results = self.run("ras", "plain", ["--bytes", "8192", "--calls", "600"], 60, {"NCCL_RAS_ENABLE": ""})
        if not results:
            return
        versions = re.search(r"NCCL version 2\.(\d+)", (self.work / "ras.0.log").read_text(errors="replace"))
        if not versions or int(versions[1]) < 31:
            print("  skipped: this NCCL is older than 2.31")
            return
        self.check(self.logged("ras", "NCCL_RAS_ENABLE=0 on all ranks") == 1, "ras: rank 0's log says why")
        self.nothing_tried("ras", tuple(range(self.options.ranks)))

    def one_variable(self) -> None:
        results = self.run("env", "plain", ["--bytes", "8192", "--calls", "300"], 60,
                           {"NCCL_TUNER_PLUGIN": "", "NCCL_PROFILER_PLUGIN": "", "NCCL_ENV_PLUGIN": str(self.options.plugin)})
        if results:
            self.agree("env")


def main() -> int:
    parser = argparse.ArgumentParser(description="Learning inside PyTorch jobs on one GPU")
    parser.add_argument("--plugin", type=Path, required=True)
    parser.add_argument("--tool", help="diapason, for `journal check`")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--cases", default="sizes,overlap,ddp,attacks,safety,ras,one_variable")
    parser.add_argument("--rewards", default="step,gpu", help="of the case sizes")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for everything")
    parser.add_argument("--redis", default=shutil.which("redis-server"), help="the program")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    options.plugin = options.plugin.resolve()
    reason = why_skip(options.plugin)
    if reason:
        print(f"skipped: {reason}")
        return SKIP
    work = Path(tempfile.mkdtemp(prefix="learn-"))
    with Mps() as mps:
        print(mps.note, flush=True)
        lab = Lab(options, work, mps)
        for case in options.cases.split(","):
            print(f"== {case}", flush=True)
            getattr(lab, case)()
    return lab.finish("learn")


if __name__ == "__main__":
    sys.exit(main())
