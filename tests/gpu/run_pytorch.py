"""Real-client proof: PyTorch's all_reduce with the diapason tuner plugin, one GPU shared by several ranks.

Exit status: 0 all correctness checks passed, 1 one failed, 77 skipped (says why). A missed timing bar
is printed and is no failure: timings are not tests.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True  # leave no __pycache__ in the source tree

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import tarfile  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

import group  # noqa: E402
import pinning  # noqa: E402
import policy_file  # noqa: E402
import report  # noqa: E402
import timing  # noqa: E402
import verify  # noqa: E402
from mps import Mps  # noqa: E402

HERE = Path(__file__).resolve().parent
SKIP = 77
# In a process of its own: this one must never hold a CUDA context, it would not be MPS's client.
PROBE = """
import json
try:
    import torch
except Exception as error:
    print(json.dumps({"skip": f"no torch ({error})"}))
else:
    if not torch.cuda.is_available():
        print(json.dumps({"skip": "no CUDA GPU"}))
    elif not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        print(json.dumps({"skip": "this torch has no NCCL"}))
    else:
        print(json.dumps({}))
"""


class Interrupted(BaseException):
    """A signal came; not an Exception, so that nothing on the way swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def say(text: str) -> None:
    print(text, flush=True)


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PyTorch's all_reduce with the diapason tuner plugin")
    parser.add_argument("--plugin", type=Path, help="libnccl-tuner-diapason.so")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--blocks", type=int, default=40, help="timing rounds; 0: correctness only")
    parser.add_argument("--policy", type=Path, default=HERE / "lab_4ranks.conf")
    parser.add_argument("--out", type=Path, help="folder for pytorch.json and logs.tar.gz")
    parser.add_argument("--seed", type=int, default=1, help="of the order of groups")
    parser.add_argument("--time-limit", type=float, default=480.0, help="seconds for everything")
    parser.add_argument("--self-test", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.plugin is None and not options.self_test:
        parser.error("--plugin is needed")
    if options.ranks < 2 or options.blocks < 0:
        parser.error("--ranks at least 2, --blocks at least 0")
    return options


def why_skip(plugin: Path) -> str | None:
    if not plugin.is_file():
        return f"no plugin file {plugin}"
    try:
        done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, timeout=150, text=True)
        return json.loads(done.stdout.splitlines()[-1]).get("skip")
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return f"torch could not be tried ({error})"


def catch_signals(seconds: float) -> None:
    """Signals and the time limit become an exception, so that every 'finally' runs."""

    def handler(number: int, _: object) -> None:
        for name in group.STOPPING_SIGNALS:
            signal.signal(name, signal.SIG_IGN)  # one is enough: the way out is not to be interrupted
        raise Interrupted(number)

    for name in group.STOPPING_SIGNALS:
        signal.signal(name, handler)
    # Every wait ends at the limit and says what was waited for, and ending the ranks takes a while more;
    # the alarm is for what has no limit of its own.
    signal.setitimer(signal.ITIMER_REAL, seconds + timing.RESERVE_SECONDS)


def keep_logs(work: Path, out: Path) -> None:
    with tarfile.open(out / "logs.tar.gz", "w:gz") as archive:
        for path in sorted(work.iterdir()):
            if path.is_file():
                archive.add(path, arcname=f"logs/{path.name}")


def part_a(setting: group.Setting, files: list[Path], found: verify.Verified) -> None:
    start = time.monotonic()
    verify.run(setting, *files, found)
    pinning.run(setting, files[0], found)
    about = found.about
    say(
        f"torch {about.get('torch')}, NCCL {about.get('nccl')}, {about.get('device')}, {setting.ranks} ranks,"
        f" tuner plugin: {found.tuner or 'none'}"
    )
    say(f"\nA. what NCCL's log says it ran, {verify.COLLECTIVE}  ({time.monotonic() - start:.0f} s)")
    say(report.configurations(found))
    say(f"pinned by the program: {found.pins} configurations tried")


def part_b(
    setting: group.Setting, files: list[Path], rounds: int, seed: int, found: verify.Verified
) -> tuple[timing.Timings, dict | None]:
    start = time.monotonic()
    timings = timing.run(setting, *files, rounds, seed, found)
    say(
        f"\nB. interleaved timing, {timings.rounds} rounds of blocks of {timing.CALLS} calls, slowest rank"
        f"  ({time.monotonic() - start:.0f} s)"
    )
    if timings.rounds < rounds:
        found.notes.append(f"the time limit allowed {timings.rounds} of {rounds} rounds")
    if not timings.rounds:
        return timings, None
    summary = report.summarise(timings)
    say(report.timing_text(summary))
    return timings, summary


def prove(options: argparse.Namespace, setting: group.Setting, found: verify.Verified) -> None:
    """Both parts; what is wrong goes into 'found'."""
    empty = setting.work / "empty.conf"
    empty.write_text("# no rows: the plugin is loaded and leaves every call alone\n", encoding="utf-8")
    files = [options.plugin.resolve(), options.policy.resolve(), empty]
    timings = summary = None
    status = "incomplete"  # what the JSON file says if a signal ends the run
    try:
        part_a(setting, files, found)
        if options.blocks:
            timings, summary = part_b(setting, files, options.blocks, options.seed, found)
        status = "failed" if found.failures else "passed"
    except group.GroupError as error:
        found.failures.append(str(error))
        status = "failed"
    finally:
        if options.out:
            plain = {key: str(value) for key, value in vars(options).items()}
            report.write_json(options.out / "pytorch.json", status, plain, found, timings, summary)
            keep_logs(setting.work, options.out)


def conclude(found: verify.Verified) -> int:
    say("")
    for note in found.notes:
        say(f"note: {note}")
    if found.failures:
        for failure in found.failures[:40]:
            say(f"FAIL: {failure}")
        if len(found.failures) > 40:
            say(f"FAIL: and {len(found.failures) - 40} more")
        return 1
    say("correctness: all checks passed")
    return 0


def run(options: argparse.Namespace, command: list[str], deadline: group.Deadline) -> int:
    """With a given rank program: the self-test brings one that needs no GPU."""
    try:
        policy_file.parse_policy(options.policy.read_text(encoding="utf-8"))
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
    except (OSError, policy_file.PolicyError) as error:
        say(f"FAIL: {error}")
        return 1
    found = verify.Verified()
    work = Path(tempfile.mkdtemp(prefix="diapason-gpu-"))
    try:
        with Mps() as mps:
            found.mps = mps.note
            say(mps.note)
            prove(options, group.Setting(command, options.ranks, work, deadline, mps.environment), found)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return conclude(found)


def main(arguments: list[str]) -> int:
    options = options_of(arguments)
    if options.self_test:
        import selftest

        return selftest.main()
    try:
        deadline = group.Deadline(options.time_limit)
        catch_signals(options.time_limit)
        reason = why_skip(options.plugin)
        if reason:
            say(f"SKIP: {reason}")
            return SKIP
        return run(options, [sys.executable, os.fspath(HERE / "rank.py")], deadline)
    except Interrupted as signal_:
        name = signal.Signals(signal_.number).name
        say("FAIL: the time limit is over" if name == "SIGALRM" else f"FAIL: interrupted by {name}")
        return 1 if name == "SIGALRM" else 128 + signal_.number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
