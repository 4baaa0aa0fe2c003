"""The wheel and examples/pytorch_train.py on one GPU: several ranks share it, with and without diapason.

    python3 tests/gpu/pytorch_example.py [--wheel FILE] [--out DIR]

Installs the wheel into a folder of its own, trains the same model without diapason, learning, and with what was
learned, in rounds, and compares: losses, weights, what each rank has loaded, the journals of all ranks.
Exit status: 0 every check passed, 1 one failed, 77 skipped (says why). Timings are printed and are no tests.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import signal  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import zipfile  # noqa: E402
from pathlib import Path  # noqa: E402

import group  # noqa: E402
import job  # noqa: E402
import nccl_log  # noqa: E402
import run_pytorch  # noqa: E402
import stats  # noqa: E402
from mps import Mps  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SKIP = 77
PLUGIN = "libnccl-tuner-diapason.so"
RUN_SECONDS = 200.0  # one job; what takes longer hangs
ENOUGH_SECONDS = 40.0  # less than this is left: no further round
BLOCK = 25  # iterations of one value of the interval
EARLY, EARLY_SHARE = 50, 0.01  # the first losses may differ by this share: sums are added up in another order
LATE_SHARE, LATE_ABSOLUTE = 0.15, 0.02  # of the last tenth's mean; small differences grow

say = run_pytorch.say


class Lab:
    def __init__(self, options: argparse.Namespace, work: Path, deadline: group.Deadline) -> None:
        self.options, self.work, self.deadline = options, work, deadline
        self.target = work / "installed"
        self.failures: list[str] = []
        self.results: dict[str, dict] = {}
        self.figures: dict = {}

    def check(self, condition: bool, what: str) -> bool:
        if not condition:
            self.failures.append(what)
        say(f"  {'fine' if condition else 'FAILED'}: {what}")
        return condition

    # The package.

    def install(self) -> bool:
        """With pip as a user would, without it by hand: what is in a wheel lies as it is installed."""
        wheel = self.options.wheel
        try:
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                                   "--disable-pip-version-check", "--target", str(self.target), str(wheel)],
                                  capture_output=True, text=True, timeout=120)
            problem = done.stderr.strip()[-300:] if done.returncode != 0 else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = str(error)
        if problem:
            shutil.rmtree(self.target, ignore_errors=True)
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(self.target)
        say(f"{wheel.name}: {'unpacked, pip says: ' + problem if problem else 'installed by pip'}")
        done = self.tool("--version")
        return self.check(done.returncode == 0, f"python -m diapason --version says {(done.stdout or done.stderr).strip()[:200]}")

    def environment(self) -> dict[str, str]:
        before = os.environ.get("PYTHONPATH")
        return group.clean_environment() | {"PYTHONPATH": str(self.target) + (f":{before}" if before else ""),
                                            "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}

    def tool(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-m", "diapason", *arguments], capture_output=True, text=True, timeout=120,
                              env=self.environment(), cwd=self.work)

    # The jobs.

    def train(self, name: str, arguments: list[str], mps: Mps, limit: float = RUN_SECONDS) -> dict | None:
        """One job; its result, or None where it failed, which is then on record."""
        result = self.work / f"{name}.json"
        environment = self.environment() | mps.environment | {
            "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,TUNING,ENV", "NCCL_DEBUG_FILE": str(self.work / f"{name}.nccl.%p"),
        }
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc_per_node", str(self.options.ranks),
                   "--master_addr", "127.0.0.1", "--master_port", str(job.free_port()), str(self.options.example),
                   "--share-gpu", "--backend", "nccl", "--iterations", str(self.options.iterations), "--bucket-mb",
                   str(self.options.bucket_mb), "--timeout", "90", "--result", str(result), *arguments]
        begin = time.monotonic()
        output = self.work / f"{name}.out"
        problem = job.run(command, environment, output, self.deadline.limit(limit))
        text = output.read_text(errors="replace")
        say(f"\n== {name}  ({time.monotonic() - begin:.1f} s)")
        if problem is None:
            say("\n".join(f"    {line}" for line in text.splitlines()[-25:]))
        else:
            say("\n".join(f"    {line}" for line in text.splitlines()[-60:]))
            self.check(False, f"{name}: {problem}")
            return None
        try:
            found = json.loads(result.read_text())
        except (OSError, ValueError) as error:
            self.check(False, f"{name}: no result: {error}")
            return None
        self.results[name] = found
        self.training_is_right(name, found)
        return found

    def training_is_right(self, name: str, found: dict) -> None:
        losses = found["losses"]
        self.check(all(math.isfinite(loss) for loss in losses), f"{name}: every loss is a number")
        self.check(len(set(found["weights"])) == 1, f"{name}: all ranks have the same weights")
        self.check(statistics.fmean(losses[-50:]) < 0.7 * losses[0], f"{name}: the loss falls, {losses[0]:.3f} to {losses[-1]:.3f}")

    def plugin_is_there(self, name: str, found: dict) -> None:
        """On every rank, by the program's own verification and by NCCL's log."""
        seen = found["verification"] or {}
        ranks = self.options.ranks
        self.check(seen.get("ok", False) and seen.get("loaded") == ranks and seen.get("exact", False),
                   f"{name}: verify() found the plugin on {seen.get('loaded')} of {ranks} ranks, version {seen.get('version')}, NCCL "
                   f"{seen.get('library_version')}, problems: {seen.get('problems') or 'none'}")
        path = str(seen.get("plugin"))
        self.check(os.path.realpath(path) == os.path.realpath(self.target / "diapason/lib" / PLUGIN), f"{name}: it is the wheel's: {path}")
        loaded = self.loaded_by_nccl(name)
        self.check(len(loaded) == ranks and all(one and one[0].endswith(PLUGIN) for one in loaded),
                   f"{name}: NCCL's log says so on {sum(1 for one in loaded if one)} of {ranks} ranks")

    def loaded_by_nccl(self, name: str) -> list[list[str]]:
        """For each rank's log the tuner plugins it names."""
        return [nccl_log.parse_file(path).loaded for path in sorted(self.work.glob(f"{name}.nccl.*"))]

    def journals_agree(self, name: str) -> None:
        files = sorted(map(str, self.work.glob(f"{name}.journal.*")))
        self.check(len(files) == self.options.ranks, f"{name}: {len(files)} journals of {self.options.ranks} ranks")
        if files:
            done = self.tool("journal", "check", *files)
            say("    " + "\n    ".join((done.stdout + done.stderr).strip().splitlines()[:8]))
            self.check(done.returncode == 0, f"{name}: all ranks chose the same, call by call (diapason journal check)")

    # The comparison.

    def round(self, number: int, mps: Mps) -> bool:
        """Without, learning, and with what was learned; every second round begins with learning."""
        learned = self.work / f"learned{number}.conf"
        arms = {
            "none": ["--mode", "none"],
            "learn": ["--mode", "learn", "--learned", str(learned)],
            "learned": ["--mode", "static", "--policy", str(learned)],
        }
        for arm in ("none", "learn", "learned") if number % 2 else ("learn", "learned", "none"):
            name = f"{arm}{number}"
            if arm == "learned" and not learned.exists():
                say(f"\n== {name}: nothing was learned, so there is nothing to run")
                continue
            journal = [] if arm == "none" else ["--journal", str(self.work / f"{name}.journal.%p")]
            found = self.train(name, arms[arm] + journal, mps)
            if found is None:
                return False
            if arm == "none":
                self.check(not any(self.loaded_by_nccl(name)), f"{name}: NCCL's log names no tuner plugin")
                continue
            self.plugin_is_there(name, found)
            self.journals_agree(name)
            if arm == "learn" and learned.exists():
                done = self.tool("policy", "check", str(learned))
                self.check(done.returncode == 0, f"{name}: what was learned is a policy: {(done.stdout + done.stderr).strip()[-200:]}")
        return True

    def same_losses(self) -> None:
        """Against the first run without diapason; two runs without show what chance does."""
        base = self.results.get("none1")
        if base is None:
            return
        say("\n== losses against none1")
        for name, found in self.results.items():
            if name == "none1":
                continue
            early = max(abs(a - b) / a for a, b in zip(base["losses"][:EARLY], found["losses"][:EARLY]))
            tenth = max(1, len(base["losses"]) // 10)
            late, other = (statistics.fmean(one["losses"][-tenth:]) for one in (base, found))
            self.check(early <= EARLY_SHARE and abs(late - other) <= LATE_SHARE * late + LATE_ABSOLUTE,
                       f"{name}: the first {EARLY} differ by at most {early:.2%}, the last tenth is {other:.4f} and was {late:.4f}")

    @staticmethod
    def blocks(found: dict) -> list[float]:
        """Medians of blocks of the last third, when learning has settled."""
        times = found["times"][-(len(found["times"]) // 3):]
        return [statistics.median(times[i:i + BLOCK]) for i in range(0, len(times) - BLOCK + 1, BLOCK)]

    def timings(self) -> None:
        say(f"\n== iteration, slowest rank, last third, median [95 % of blocks of {BLOCK}]; x: as fast as none of the same round")
        for name, found in self.results.items():
            values = self.blocks(found)
            if not values:
                continue
            median = stats.bootstrap(values)
            row = {"median_us": median.estimate * 1e6, "low_us": median.low * 1e6, "high_us": median.high * 1e6,
                   "first_us": statistics.median(found["times"][20:20 + max(20, len(found["times"]) // 10)]) * 1e6}
            text = f"  {name:<10} {row['median_us']:8.0f} us [{row['low_us']:.0f}, {row['high_us']:.0f}], first tenth {row['first_us']:.0f} us"
            base = self.results.get("none" + name[-1])
            if base is not None and not name.startswith("none"):
                pairs = list(zip(self.blocks(base), values))
                gain = stats.speedup([a for a, _ in pairs], [b for _, b in pairs])
                row["x"] = gain.as_dict()
                text += f"  {gain.estimate:.3f} x [{gain.low:.3f}, {gain.high:.3f}]"
            self.figures[name] = row
            say(text)
        if "none2" in self.figures:
            ratio = self.figures["none1"]["median_us"] / self.figures["none2"]["median_us"]
            say(f"  none1 against none2: {ratio:.3f} x: what two launches of the same differ by; no interval above knows it")


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The wheel and the PyTorch example on one shared GPU")
    parser.add_argument("--wheel", type=Path, help="default: the one in wheel/ or out/wheel/ beside tests/")
    parser.add_argument("--example", type=Path, default=ROOT / "examples/pytorch_train.py")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=1500)
    parser.add_argument("--bucket-mb", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, help="folder for pytorch_example.json and logs.tar.gz")
    parser.add_argument("--time-limit", type=float, default=480.0, help="seconds for everything")
    options = parser.parse_args()
    if options.wheel is None:
        found = sorted(path for folder in ("wheel", "out/wheel") for path in (ROOT / folder).glob("diapason-*.whl"))
        options.wheel = found[0] if found else None
    if options.iterations < 200 or options.rounds < 1 or options.ranks < 2:
        parser.error("--iterations at least 200, --rounds at least 1, --ranks at least 2")
    return options


def why_skip(options: argparse.Namespace) -> str | None:
    if options.wheel is None or not options.wheel.is_file():
        return "no wheel; make one with ./dev wheel, or pass --wheel"
    if not options.example.is_file():
        return f"no example {options.example}"
    return run_pytorch.why_skip(options.wheel)  # is there a torch with NCCL and a GPU?


def run(options: argparse.Namespace, deadline: group.Deadline) -> int:
    work = Path(tempfile.mkdtemp(prefix="pytorch-example-"))
    lab = Lab(options, work, deadline)
    try:
        if lab.install():
            with Mps() as mps:
                say(mps.note)
                for number in range(1, options.rounds + 1):
                    if deadline.left() < ENOUGH_SECONDS:
                        say(f"note: the time limit allowed {number - 1} of {options.rounds} rounds")
                        break
                    if not lab.round(number, mps):
                        break
        if not lab.results and not lab.failures:
            lab.check(False, "nothing was run")
        lab.same_losses()
        lab.timings()
    finally:
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "pytorch_example.json").write_text(json.dumps(
                {"failures": lab.failures, "figures": lab.figures, "results": lab.results}))
            shutil.rmtree(lab.target, ignore_errors=True)
            subprocess.run(["tar", "-C", str(work), "-czf", str(options.out / "logs.tar.gz"), "."], check=False, timeout=60)
        shutil.rmtree(work, ignore_errors=True)
    say("")
    for failure in lab.failures:
        say(f"FAIL: {failure}")
    if not lab.failures:
        say("all checks passed")
    return 1 if lab.failures else 0


def main() -> int:
    options = options_of()
    try:
        run_pytorch.catch_signals(options.time_limit)
        reason = why_skip(options)
        if reason:
            say(f"SKIP: {reason}")
            return SKIP
        return run(options, group.Deadline(options.time_limit))
    except run_pytorch.Interrupted as signal_:
        name = signal.Signals(signal_.number).name
        say("FAIL: the time limit is over" if name == "SIGALRM" else f"FAIL: interrupted by {name}")
        return 1 if name == "SIGALRM" else 128 + signal_.number


if __name__ == "__main__":
    sys.exit(main())
