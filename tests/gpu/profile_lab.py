"""What `diapason journal profile` says of whole jobs against a Kineto trace of the same launch; then learning and comparing.

    python3 profile_lab.py --tool out/bundle/bin/diapason [--kinds decode,ddp,fsdp2] [--parts profile,learn] [--limit 300] [--out DIR]

Per kind of whole_job.py one launch with `run --observe` and GPU times, some of whose iterations torch.profiler traces.
The journals are cut to the same iterations, so both describe the same kernels; the iterations before the trace show
what tracing itself costs. Then a launch with `run --learn` and one with `run --compare` of what was learned. Prints a
line of JSON per finding as it goes, and the tables at the end.
Exit status: 0 every launch ended well and its ranks agreed, 1 one did not, 77 skipped (says why). A missed bar is
printed and is no failure.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import json  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

import group  # noqa: E402
import job_lab  # noqa: E402
import kernel_trace  # noqa: E402
from job_lab import JobLab, say  # noqa: E402
from mps import Mps  # noqa: E402

HERE = Path(__file__).resolve().parent
BAR_PERCENT = 10.0
# Iterations before the trace, in it, and in all.
ITERATIONS = {"decode": (200, 60, 320), "graphs": (200, 60, 320), "ddp": (120, 40, 200), "fsdp2": (100, 40, 170), "tp-dp": (120, 40, 200),
              "moe": (120, 40, 200), "resnet": (120, 40, 200), "regroup": (202, 40, 320)}
OBSERVED_SECONDS = 30.0
KEYS = ("collective_us", "exposed_us", "hidden_us")


def ours(profile: dict) -> dict:
    """A profile of the tool in the words of kernel_trace."""
    times = profile["collectives"]
    return {"iteration_us": profile["iteration_us"], "collective_us": times["us"], "exposed_us": times["exposed_us"],
            "hidden_us": times["hidden_us"], "exposed_low_us": times["exposed_low_us"], "exposed_high_us": times["exposed_high_us"],
            "iterations": profile["iterations"], "iterations_by": profile["iterations_by"], "notes": profile["notes"]}


def read_traces(prefix: Path, ranks: int) -> tuple[list[dict], str]:
    """What each rank has written; and what is wrong with it, else ''."""
    found = []
    for rank in range(ranks):
        try:
            one = json.loads(Path(f"{prefix}.{rank}.json").read_text())
        except (OSError, ValueError) as error:
            return [], f"rank {rank} left no trace: {error}"
        if "error" in one:
            return [], f"rank {rank}: {one['error']}"
        if not one["collective_kernels"]:
            return [], f"rank {rank}: the trace has {one['other_kernels']} kernels, and none of a collective"
        found.append(one)
    return found, ""


def windows(traces: list[dict]) -> dict[str, tuple[int, int]]:
    """The traced iterations, and those before them, by the clock of the journals."""
    return {"traced": (min(one["window_ns"][0] for one in traces), max(one["window_ns"][1] for one in traces)),
            "before": (0, min(one["started_ns"] for one in traces))}


def row(kind: str, source: str, found: dict, against: dict | None) -> dict:
    out = {"kind": kind, "source": source, **{key: found.get(key) for key in ("iteration_us", *KEYS)}}
    if "exposed_low_us" in found:
        out["exposed_range_us"] = [found["exposed_low_us"], found["exposed_high_us"]]
        out["iterations"], out["iterations_by"], out["notes"] = found["iterations"], found["iterations_by"], found["notes"]
    if against:
        out["difference_percent"] = kernel_trace.differences(against, found)
    return out


def table(rows: list[dict]) -> str:
    lines = [f"{'job':<8} {'source':<22} {'iteration':>10} {'collective':>11} {'exposed':>9} {'hidden':>9}   in ms; difference to the "
             f"trace in % of its collective time"]
    for one in rows:
        text = f"{one['kind']:<8} {one['source']:<22} {one['iteration_us'] / 1e3:10.3f} {one['collective_us'] / 1e3:11.3f} " \
               f"{one['exposed_us'] / 1e3:9.3f} {one['hidden_us'] / 1e3:9.3f}"
        change = one.get("difference_percent")
        if change:
            worst = max(abs(change[key]) for key in ("exposed_us", "hidden_us"))
            verdict = "within" if worst <= BAR_PERCENT else "MISSED"
            text += f"   collective {change['collective_us']:+.1f}, exposed {change['exposed_us']:+.1f}, hidden {change['hidden_us']:+.1f}: {verdict}"
        lines.append(text)
    return "\n".join(lines)


class ProfileLab:
    def __init__(self, lab: JobLab, options: argparse.Namespace) -> None:
        self.lab, self.options = lab, options
        self.rows: list[dict] = []
        self.gains: list[str] = []

    def profile_of(self, kind: str, part: str, files: list[Path]) -> dict | None:
        found = self.lab.ask_json("journal", "profile", "--json", *files)
        if found is None:
            return None
        if "collectives" not in found or not found.get("iteration_us"):
            self.lab.fail(f"{kind}, {part}: the profile has no iterations: {found.get('headline', found)} {found.get('notes', '')}")
            return None
        say(f"    {part}: {found['headline']}")
        return ours(found)

    def profile(self, kind: str) -> None:
        """One launch, traced and observed."""
        after, traced, whole = ITERATIONS[kind]
        folder, prefix = self.lab.work / f"{kind}.journals", self.lab.work / f"{kind}.trace"
        document = self.lab.launch(
            f"{kind}.observe", ["--observe", "--journal-dir", folder],
            self.lab.job(kind, "--iterations", whole, "--trace", prefix, "--trace-after", after, "--trace-iterations", traced, "--result",
                         self.lab.work / f"{kind}.result.json"),
            OBSERVED_SECONDS, {"DIAPASON_JOURNAL_TIMES": "1"})
        if document is None:
            return
        say(job_lab.three_lines(document))
        files = job_lab.journals(folder)
        everything = self.profile_of(kind, "all", files)
        traces, problem = read_traces(prefix, self.lab.ranks)
        if problem:
            self.lab.fail(f"{kind}: {problem}")
        if not traces:
            if everything:
                self.add(row(kind, "ours, all", everything, None))
            return
        kineto = kernel_trace.mean_of_ranks(traces)
        kineto["iteration_us"] = statistics.median(one["host_iteration_us"] for one in traces)
        self.add(row(kind, "Kineto", kineto, None))
        self.lab.record(quiet=True, kind=kind, part="kineto by rank", ranks=traces)
        for part, (begin, end) in windows(traces).items():
            targets = [self.lab.work / f"{kind}.{part}" / path.name for path in files]
            calls = [job_lab.cut(path, target, begin, end) for path, target in zip(files, targets)]
            say(f"    {part}: {calls} calls")
            found = self.profile_of(kind, part, targets)
            if found:
                self.add(row(kind, f"ours, {part}", found, kineto if part == "traced" else None))
        if everything:
            self.add(row(kind, "ours, all", everything, None))

    def add(self, one: dict) -> None:
        self.rows.append(one)
        self.lab.record(part="profile", **one)

    def learn(self, kind: str) -> None:
        """A launch that learns, and one that compares what it learned with the default."""
        seconds = self.options.seconds
        learned, folder = self.lab.work / f"{kind}.learned.conf", self.lab.work / f"{kind}.learn.journals"
        document = self.lab.launch(f"{kind}.learn", ["--learn", "--learned", learned, "--journal-dir", folder],
                                   self.lab.job(kind, "--seconds", seconds, "--result", self.lab.work / f"{kind}.learn.result.json"), seconds)
        if document is None:
            return
        say(job_lab.three_lines(document))
        agreed = self.lab.check(f"{kind}.learn", folder)
        self.lab.record(part="learn", kind=kind, gained=document["gained"], chosen=document["chosen"]["text"], agreed=agreed)
        job_lab.remove(folder)
        if learned.exists():
            say("\n".join(f"    {line}" for line in learned.read_text().splitlines()[:12]))
            self.compare(kind, learned, "learned")
        else:
            say(f"    {kind}: nothing was learned; the policy of the lab is compared instead")
            self.compare(kind, HERE / "lab_4ranks.conf", "lab_4ranks.conf")

    def compare(self, kind: str, policy: Path, name: str) -> None:
        folder = self.lab.work / f"{kind}.compare.journals"
        document = self.lab.launch(f"{kind}.compare", ["--compare", "--policy", policy, "--journal-dir", folder],
                                   self.lab.job(kind, "--seconds", self.options.seconds), self.options.seconds,
                                   {"DIAPASON_TURN": str(job_lab.TURN[kind])})
        if document is None:
            return
        say(job_lab.three_lines(document))
        agreed = self.lab.check(f"{kind}.compare", folder)
        self.lab.record(part="compare", kind=kind, policy=name, compared=job_lab.compared(document), agreed=agreed)
        self.gains.append(f"{kind:<8} {name}: {document['gained']['text']}")
        job_lab.remove(folder)

    def conclude(self) -> None:
        if self.rows:
            say("\n" + table(self.rows))
        for line in self.gains:
            say(line)


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", type=Path, required=True, help="the diapason program, of a bundle or a build")
    parser.add_argument("--kinds", default="decode,ddp,fsdp2")
    parser.add_argument("--parts", default="profile,learn")
    parser.add_argument("--seconds", type=float, default=15.0, help="of the job in the launches that learn and compare")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for everything")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    options.kinds, options.parts = options.kinds.split(","), options.parts.split(",")
    if unknown := set(options.kinds) - set(ITERATIONS):
        parser.error(f"--kinds: no {', '.join(sorted(unknown))}; there are {', '.join(ITERATIONS)}")
    if unknown := set(options.parts) - {"profile", "learn"}:
        parser.error(f"--parts: no {', '.join(sorted(unknown))}; there are profile, learn")
    options.tool = options.tool.resolve()
    return options


def run(options: argparse.Namespace, deadline: group.Deadline) -> int:
    work = Path(tempfile.mkdtemp(prefix="profile-lab-"))
    try:
        with Mps() as mps:
            say(mps.note)
            lab = JobLab(options.tool, work, deadline, mps.environment, options.ranks)
            profiles = ProfileLab(lab, options)
            try:
                for part in options.parts:  # all profiles first: they are what nothing else can give
                    for kind in options.kinds:
                        say(f"== {kind}, {part}")
                        getattr(profiles, part)(kind)
            finally:
                also = [path for kind in options.kinds for path in (work / f"{kind}.traced", work / f"{kind}.before")]
                lab.keep(options.out, "profile_lab", also)
                profiles.conclude()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for failure in lab.failures:
        say(f"FAILED: {failure.splitlines()[0]}")
    return 1 if lab.failures else 0


def main(arguments: list[str]) -> int:
    return job_lab.run_limited(options_of(arguments), run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
