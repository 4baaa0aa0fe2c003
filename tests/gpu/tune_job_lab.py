"""`diapason tune -- COMMAND` on whole jobs: how long it takes, what it gains, and against what else could be chosen.

    python3 tune_job_lab.py --tool out/bundle/bin/diapason --kind decode [--parts tune,pins,rivals,judge] [--budget 4m]
                            [--launches 8] [--limit 570] [--state DIR] [--out DIR]

Parts, each with a time limit (--limits pins:90,judge:200):
  tune     `diapason tune --budget B -o DIR -- torchrun ... whole_job.py`, by the clock from the command to the policy
  pins     the contexts of the job, then every pair and channel count of each context in turns with the default inside
           one launch: the best fixed choice per context
  rivals   policies of `tune` without a command, of a sweep (the fastest configuration of each size), of a job that
           learned with DIAPASON_STRATEGY=epsilon, and of AutoCCL's descent over what `pins` has measured
  judge    fresh launches, in each of them all of these in turns with the default (--launches)
  compare  the tuned policy by `diapason run --compare` (--launches)
What is captured in CUDA graphs (--kind graphs) cannot take turns inside a launch: there every choice of `pins` and `judge`
runs in a launch of its own. --step lets the job call diapason_step(), without which `tune` sees iterations only where the
library reports replays.
What a part has found is kept in --state, so that parts can run one after the other in several calls. Prints a line of
JSON per finding, and the table at the end. Exit status: 0, 1 if something failed, 77 skipped (says why). A missed bar
is printed and is no failure.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import random  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

import group  # noqa: E402
import job  # noqa: E402
import job_arms  # noqa: E402
import job_lab  # noqa: E402
import job_rivals  # noqa: E402
import stats  # noqa: E402
from job_lab import JobLab, say  # noqa: E402
from mps import Mps  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("tune", "pins", "rivals", "judge", "compare")
LIMITS = {"tune": 400.0, "pins": 150.0, "rivals": 300.0, "judge": 400.0, "compare": 200.0}
BASE, CONTROL, TUNED, BEST = "default", "default again", "tuned in the job", "best fixed choices"
RIVALS = {"calls": "tune without a command", "table": "table of a sweep", "epsilon": "epsilon bandit", "descent": "AutoCCL's descent"}
# Iterations of a block that count; those before them do not.
BLOCKS = {"decode": (10, 3)}
USUAL_BLOCK = (4, 1)
# Every choice needs a launch of its own: calls are captured in graphs.
BY_LAUNCHES = {"graphs"}
BAR_GAIN = {"decode": 1.45}
BAR_LOW, BAR_OF_BEST, BAR_SECONDS = 0.99, 0.97, 300.0


def seconds_of(text: str) -> float:
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]] if text[-1:] in "smh" else float(text)


class TuneJobLab:
    def __init__(self, lab: JobLab, options: argparse.Namespace, state: Path) -> None:
        self.lab, self.options, self.kind = lab, options, options.kind
        self.own, self.common = state / options.kind, state / "common"
        for folder in (self.own, self.common):
            folder.mkdir(parents=True, exist_ok=True)

    # What parts leave for each other.

    def kept(self, name: str) -> dict | None:
        try:
            return json.loads((self.own / name).read_text())
        except (OSError, ValueError):
            return None

    def tuned(self) -> Path | None:
        path = self.own / "tuned" / "policy.conf"
        return path if path.is_file() else None

    def plugin(self) -> Path:
        return self.lab.tool.parent.parent / "lib" / "libnccl-tuner-diapason.so"

    # A plain command of the tool, or of the job.

    def command(self, name: str, words: list[str], seconds: float, settings: dict[str, str] | None = None) -> str | None:
        """None if it went well; what it printed is in NAME.log."""
        log = self.lab.work / f"{name}.log"
        begin = time.monotonic()
        limit = self.lab.deadline.limit(seconds)
        problem = job.run(words, self.lab.environment(settings), log, limit) if limit > 5 else "no time was left"
        say(f"# {name}: {time.monotonic() - begin:.1f} s{': ' + problem if problem else ''}")
        if problem:
            self.lab.fail(f"{name}: {problem}\n" + job_lab.tail(log))
        return problem

    def tune(self) -> None:
        target = self.own / "tuned"
        shutil.rmtree(target, ignore_errors=True)
        budget = seconds_of(self.options.budget)
        metric = ["--metric", self.options.metric] if self.options.metric else []
        begin = time.monotonic()
        problem = self.command(f"{self.kind}.tune", [str(self.lab.tool), "tune", "--budget", self.options.budget, "-o", str(target), *metric, "--",
                                                     *self.lab.job(self.kind, "--seconds", 3600, *self.marks())], budget + 90)
        took = time.monotonic() - begin
        say(job_lab.tail(self.lab.work / f"{self.kind}.tune.log", 40))
        policy = self.tuned()
        text = policy.read_text() if policy else ""
        say("\n".join(f"    {line}" for line in text.splitlines()[:20]))
        self.lab.record(part="tune", kind=self.kind, seconds=took, problem=problem, budget=self.options.budget, policy=text,
                        verdict="reached" if took < BAR_SECONDS else "missed")
        (self.own / "tune.json").write_text(json.dumps({"seconds": took, "problem": problem}))

    def marks(self) -> list[str]:
        return ["--step"] if self.options.step else []

    # Choices in turns inside one launch, or in a launch each.

    def by_launches(self, name: str, arms: dict[str, str | None], seconds: float, seed: int) -> list[dict[str, float]]:
        """One round: a launch per arm, in an order of the seed, and its iteration of the slowest rank; empty if one failed."""
        order = list(arms)
        random.Random(seed).shuffle(order)
        found: dict[str, float] = {}
        for number, arm in enumerate(order):
            policy, result = self.lab.work / f"{name}.{number}.conf", self.lab.work / f"{name}.{number}.result.json"
            text = arms[arm]
            settings = {"NCCL_TUNER_PLUGIN": str(self.plugin())}
            if text is None:
                settings["DIAPASON_POLICY"] = str(self.tuned())
            elif text:
                policy.write_text(text)
                settings["DIAPASON_POLICY"] = str(policy)
            words = self.lab.job(self.kind, "--seconds", seconds, "--result", result)
            if self.command(f"{name}.{number}", words, seconds + job_lab.START_SECONDS, settings):
                return []
            found[arm] = json.loads(result.read_text())["ms"] / 1e3
            say(f"    {arm}: {found[arm] * 1e3:.3f} ms")
        return [found]

    def turns(self, name: str, arms: dict[str, str | None], seconds: float, seed: int) -> list[dict[str, float]]:
        """The rounds of a launch: per arm the median iteration of its block, of the slowest rank."""
        if self.kind in BY_LAUNCHES:
            return self.by_launches(name, arms, min(seconds, self.options.judge_seconds), seed)
        block, skip = BLOCKS.get(self.kind, USUAL_BLOCK)
        plan = job_arms.Plan(arms, block, skip, seed)
        file, result = self.lab.work / f"{name}.arms", self.lab.work / f"{name}.result.json"
        plan.write(file)
        settings = {"NCCL_TUNER_PLUGIN": str(self.plugin())}
        if any(text is None for text in arms.values()):
            settings["DIAPASON_POLICY"] = str(self.tuned())
        if self.command(name, self.lab.job(self.kind, "--seconds", seconds, "--arms", file, "--result", result),
                        seconds + job_lab.START_SECONDS, settings):
            return []
        found = json.loads(result.read_text())
        for arm, (asked, applied) in found.get("pins", {}).items():
            if asked > applied:
                say(f"    {arm}: {asked - applied} of {asked} calls were not pinned: the library does not offer it there")
        rounds = plan.rounds(found["times"])
        if len(rounds) < 3:
            self.lab.fail(f"{name}: only {len(rounds)} whole rounds of {len(arms)} arms in {seconds} s")
            return []
        return rounds

    def contexts(self) -> list[job_rivals.Context]:
        """What an iteration calls, by a launch that only observes."""
        folder = self.lab.work / f"{self.kind}.look"
        document = self.lab.launch(f"{self.kind}.look", ["--observe", "--journal-dir", folder], self.lab.job(self.kind, "--seconds", 5), 5,
                                   {"DIAPASON_JOURNAL_TIMES": "1"})
        profile = self.lab.ask_json("journal", "profile", "--json", *job_lab.journals(folder)) if document else None
        job_lab.remove(folder)
        if not profile or "classes" not in profile:
            return []
        say(f"    {profile['headline']}")
        return job_rivals.contexts_of(profile)

    def pins(self) -> None:
        contexts = self.contexts()
        if not contexts:
            self.lab.fail(f"{self.kind}: no contexts were found")
            return
        say("    contexts: " + "; ".join(map(str, contexts)))
        channels = [int(one) for one in self.options.channels.split(",")]
        choices = {f"{context} {job_rivals.choice_name(choice)}": (context, choice)
                   for context in contexts for choice in job_rivals.candidates(context, channels)}
        arms: dict[str, str | None] = {BASE: "", CONTROL: ""}
        arms |= {name: context.row(choice) for name, (context, choice) in choices.items()}
        rounds = self.turns(f"{self.kind}.pins", arms, self.options.pin_seconds, 1)
        if not rounds:
            return
        gains = job_arms.log_gains(rounds, BASE)
        by_choice = {choice: gains[name] for name, choice in choices.items()}
        best = job_rivals.best_choices(by_choice)
        for name, found in sorted(gains.items(), key=lambda one: -statistics.median(one[1])):
            interval = stats.bootstrap(found).map(math.exp)
            self.lab.record(part="pins", kind=self.kind, arm=name, gain=interval.estimate, low=interval.low, high=interval.high, rounds=len(found))
        descent = {context: job_rivals.Descent(context, channels, job_rivals.replayed(by_choice, context)).run() for context in contexts}
        (self.own / "best.conf").write_text(job_rivals.policy_of(best, "the fastest fixed choice of every context"))
        (self.own / "descent.conf").write_text(job_rivals.policy_of(descent, "coordinate descent over channel counts, pair by pair"))
        say((self.own / "best.conf").read_text() + (self.own / "descent.conf").read_text())
        (self.own / "pins.json").write_text(json.dumps({"rounds": rounds, "best": {str(one): job_rivals.choice_name(choice) for one, choice in best.items()}}))

    # Rivals.

    def rivals(self) -> None:
        self.rival_calls()
        self.rival_table()
        self.rival_epsilon()

    def rival_calls(self) -> None:
        """Once for all kinds: it knows nothing of the job."""
        target = self.common / "calls.conf"
        if target.exists():
            return
        folder = self.lab.work / "calls"
        words = [str(self.lab.tool), "tune", "--backend", "nccl", "-g", str(self.lab.ranks), "--budget", self.options.rival_budget, "-o", str(folder)]
        if not self.command("calls", words, seconds_of(self.options.rival_budget) + 60, self.shared()):
            found = folder / "policy.conf"
            target.write_text(found.read_text() if found.exists() else "# nothing was confirmed\n")

    def rival_table(self) -> None:
        target = self.common / "table.conf"
        if target.exists():
            return
        store = self.lab.work / "sweep.db"
        words = [str(self.lab.tool), "sweep", "allreduce", "allgather", "reducescatter", "--backend", "nccl", "-g", str(self.lab.ranks), "--sizes",
                 "1K:16M:x2", "--channels", "default,1,2", "--budget", self.options.rival_budget, "--store", str(store), "-q"]
        if not self.command("sweep", words, seconds_of(self.options.rival_budget) + 60, self.shared()):
            shown = self.lab.ask_json("data", "show", "--json", store)
            if shown:
                target.write_text(job_rivals.static_table(shown))

    def shared(self) -> dict[str, str]:
        return {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}

    def rival_epsilon(self) -> None:
        seconds = seconds_of(self.options.rival_budget)
        document = self.lab.launch(f"{self.kind}.epsilon", ["--learn", "--learned", self.lab.work / f"{self.kind}.epsilon.conf"],
                                   self.lab.job(self.kind, "--seconds", seconds), seconds, {"DIAPASON_STRATEGY": "epsilon"})
        if document:
            say(job_lab.three_lines(document))
            (self.own / "epsilon.conf").write_text(job_rivals.policy_of_chosen(document["chosen"]["by_call"], self.lab.ranks))

    # The judgement.

    def arms(self) -> dict[str, str | None]:
        arms: dict[str, str | None] = {BASE: "", CONTROL: ""}
        if self.tuned():
            arms[TUNED] = None
        for folder, name, title in ((self.own, "best", BEST), (self.own, "descent", RIVALS["descent"]), (self.own, "epsilon", RIVALS["epsilon"]),
                                    (self.common, "calls", RIVALS["calls"]), (self.common, "table", RIVALS["table"])):
            path = folder / f"{name}.conf"
            if path.exists():
                arms[title] = path.read_text()
        return arms

    def judge(self) -> None:
        arms = self.arms()
        say("    " + ", ".join(arms))
        before = self.kept("judged.json") or {"launches": []}
        launches: list[dict[str, float]] = before["launches"] if self.options.resume else []
        for number in range(len(launches), self.options.launches):
            each = self.options.judge_seconds + 15
            if self.lab.deadline.left() < each * (len(arms) if self.kind in BY_LAUNCHES else 1):
                say(f"# {number} of {self.options.launches} launches: no time was left")
                break
            rounds = self.turns(f"{self.kind}.judge{number}", arms, self.options.judge_seconds, 100 + number)
            if not rounds:
                break
            medians = {arm: statistics.median(one[arm] for one in rounds) * 1e3 for arm in rounds[0]}
            gains = {arm: statistics.median(found) for arm, found in job_arms.log_gains(rounds, BASE).items()}
            launches.append({"rounds": len(rounds), "ms": medians, "log_gains": gains})
            self.lab.record(part="judge", kind=self.kind, launch=number, rounds=len(rounds), ms=medians,
                            gains={arm: math.exp(gain) for arm, gain in gains.items()})
            (self.own / "judged.json").write_text(json.dumps({"launches": launches}))

    def compare(self) -> None:
        policy = self.tuned()
        if policy is None:
            say("    no tuned policy")
            return
        gains = []
        for number in range(self.options.launches):
            if self.lab.deadline.left() < self.options.judge_seconds + 15:
                break
            document = self.lab.launch(f"{self.kind}.compare{number}", ["--compare", "--policy", policy],
                                       self.lab.job(self.kind, "--seconds", self.options.judge_seconds), self.options.judge_seconds,
                                       {"DIAPASON_TURN": str(job_lab.TURN[self.kind])})
            if document is None:
                break
            found = job_lab.compared(document)
            self.lab.record(part="compare", kind=self.kind, launch=number, compared=found, agreed=document["agreed"]["agreed"])
            if found.get("gain"):
                gains.append(math.log(found["gain"]))
        if gains:
            say(f"{self.kind}: run --compare: {interval_text(gains)} in {len(gains)} launches")

    def conclude(self) -> None:
        judged = self.kept("judged.json")
        if judged and judged["launches"]:
            rows, lines = summary(self.kind, judged["launches"], (self.kept("tune.json") or {}).get("seconds"))
            self.lab.record(part="summary", kind=self.kind, arms=rows)
            say("\n" + "\n".join(lines))


def interval_text(logs: list[float]) -> str:
    found = stats.student_mean(logs)
    if not math.isfinite(found.low):
        return f"{math.exp(found.estimate):.3f} x"
    return f"{math.exp(found.estimate):.3f} x [{math.exp(found.low):.3f}, {math.exp(found.high):.3f}]"


def summary(kind: str, launches: list[dict], tune_seconds: float | None) -> tuple[dict, list[str]]:
    """Per arm the gain over launches, with Student's interval, and its share of the best fixed choices; the bars."""
    # An arm counts in the launches that had it.
    arms = list(dict.fromkeys(arm for one in launches for arm in one["log_gains"]))
    rows, lines = {}, [f"{kind}: {len(launches)} launches, gain of the iteration over the default [95 % over launches]",
                       f"  {'':<26} {'ms':>8}  {'gain':<26} of the best fixed choices"]
    base = statistics.median(one["ms"][BASE] for one in launches)
    lines.append(f"  {BASE:<26} {base:8.3f}")
    for arm in arms:
        having = [one for one in launches if arm in one["log_gains"]]
        logs = [one["log_gains"][arm] for one in having]
        shares = [one["log_gains"][arm] - one["log_gains"][BEST] for one in having if BEST in one["log_gains"]]
        mean = stats.student_mean(logs)
        known = math.isfinite(mean.low)
        rows[arm] = {"gain": math.exp(mean.estimate), "low": math.exp(mean.low) if known else None, "high": math.exp(mean.high) if known else None,
                     "of_best": math.exp(statistics.fmean(shares)) if shares else None, "launches": len(logs),
                     "ms": statistics.median(one["ms"][arm] for one in having)}
        share = f"{rows[arm]['of_best']:.3f}" if shares else "-"
        lines.append(f"  {arm:<26} {rows[arm]['ms']:8.3f}  {interval_text(logs):<26} {share}")
    if TUNED in rows:
        lines += bars(kind, rows[TUNED], tune_seconds)
    return rows, lines


def bars(kind: str, tuned: dict, tune_seconds: float | None) -> list[str]:
    def line(what: str, value: float | None, reached: bool, bar: str) -> str:
        return f"  bar: {what}, {bar}: " + ("not known" if value is None else f"{value:.3f}, {'reached' if reached else 'MISSED'}")

    out = []
    if kind in BAR_GAIN:
        out.append(line("gain", tuned["gain"], tuned["gain"] >= BAR_GAIN[kind], f"at least {BAR_GAIN[kind]}"))
    out.append(line("lower end of the interval", tuned["low"], (tuned["low"] or 0) >= BAR_LOW, f"at least {BAR_LOW}"))
    out.append(line("of the best fixed choices", tuned["of_best"], (tuned["of_best"] or 0) >= BAR_OF_BEST, f"at least {BAR_OF_BEST}"))
    if kind == "decode":
        out.append(line("seconds to the verified policy", tune_seconds, (tune_seconds or math.inf) < BAR_SECONDS, f"under {BAR_SECONDS:.0f}"))
    return out


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", type=Path, required=True, help="the diapason program, of a bundle or a build")
    parser.add_argument("--kind", required=True, choices=sorted(job_lab.TURN))
    parser.add_argument("--parts", default="tune,pins,rivals,judge")
    parser.add_argument("--budget", default="4m", help="of `diapason tune -- COMMAND`")
    parser.add_argument("--step", action="store_true", help="the job that is tuned calls diapason_step()")
    parser.add_argument("--metric", default="", help="passed on to `diapason tune`, such as 'loss ([0-9.]+)'")
    parser.add_argument("--channels", default="0,1,2", help="channel counts to pin; 0: the library's own")
    parser.add_argument("--pin-seconds", type=float, default=40.0, help="of the launch with all pins")
    parser.add_argument("--rival-budget", default="60s", help="of each rival that measures")
    parser.add_argument("--judge-seconds", type=float, default=10.0, help="of the iterations of a launch that judges")
    parser.add_argument("--launches", type=int, default=4)
    parser.add_argument("--resume", action="store_true", help="judge: count the launches of earlier calls")
    parser.add_argument("--limit", type=float, default=570.0, help="seconds for everything")
    parser.add_argument("--limits", default="", help="seconds for single parts, such as pins:90,judge:200")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--state", type=Path, default=ROOT / "out" / "job_lab")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    options.parts = options.parts.split(",")
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"--parts: no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    try:
        options.limits = LIMITS | {name: float(value) for name, value in (one.split(":") for one in options.limits.split(",") if one)}
        seconds_of(options.budget), seconds_of(options.rival_budget)
    except ValueError:
        parser.error("--limits is a list such as pins:90,judge:200; --budget and --rival-budget are times such as 90s or 4m")
    options.tool, options.state = options.tool.resolve(), options.state.resolve()
    return options


def run(options: argparse.Namespace, deadline: group.Deadline) -> int:
    work = Path(tempfile.mkdtemp(prefix="tune-job-lab-"))
    try:
        with Mps() as mps:
            say(mps.note)
            lab = JobLab(options.tool, work, deadline, mps.environment, options.ranks)
            jobs = TuneJobLab(lab, options, options.state)
            try:
                for part in options.parts:
                    say(f"== {options.kind}, {part}")
                    lab.deadline = group.Deadline(deadline.limit(options.limits[part]))
                    getattr(jobs, part)()
            finally:
                jobs.conclude()
                lab.keep(options.out, f"tune_job_{options.kind}")
                if options.out:
                    shutil.copytree(options.state, options.out / "state", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.db", "*.jsonl"))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for failure in lab.failures:
        say(f"FAILED: {failure.splitlines()[0]}")
    return 1 if lab.failures else 0


def main(arguments: list[str]) -> int:
    return job_lab.run_limited(options_of(arguments), run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
