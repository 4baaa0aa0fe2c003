"""Profiles of played jobs, compared with what really happened: profile_test.py PROGRAM PLUGIN TOOL CASE."""
import glob
import json
import os
import subprocess
import sys
import tempfile

PROGRAM, PLUGIN, TOOL, CASE = sys.argv[1:5]


class Job:
    """Runs a kind of program with a journal of every rank."""

    def __init__(self, kind, *options, times=True, iterations=40):
        with tempfile.TemporaryDirectory(prefix="diapason_profile_") as folder:
            environment = {name: value for name, value in os.environ.items()
                           if not name.startswith(("DIAPASON_", "NCCL_"))}
            environment.update(DIAPASON_MODE="observe", DIAPASON_JOURNAL=folder + "/j.%p",
                               DIAPASON_JOURNAL_TIMES="1" if times else "0",
                               DIAPASON_JOURNAL_RECORDS="262144")
            subprocess.run([PROGRAM, "--plugin", PLUGIN, "--truth", folder + "/truth", "--iterations",
                            str(iterations), *options, kind], env=environment, check=True, timeout=300)
            journals = sorted(glob.glob(folder + "/j.*"))
            run = [TOOL, "journal", "profile", *journals]
            self.profile = json.loads(subprocess.run(run + ["--json"], stdout=subprocess.PIPE, check=True).stdout)
            self.text = subprocess.run(run, stdout=subprocess.PIPE, check=True).stdout.decode()
            self.truths = {}
            for name in glob.glob(folder + "/truth.*"):
                with open(name, encoding="utf-8") as file:
                    self.truths[int(name.rsplit(".", 1)[1])] = json.load(file)
        self.truth = self.truths[0]
        print(self.text)
        print("truth:", self.truth)

    def rank(self, number):
        """The profile of one rank: the ranks are in the order of their processes."""
        return self.profile["ranks"][number]

    def share_of(self, collective):
        """Of the collective time."""
        total = sum(one["us"] for one in self.profile["classes"])
        return sum(one["us"] for one in self.profile["classes"] if one["collective"] == collective) / total


def near(value, truth, share, what):
    """The share is of the truth."""
    if abs(value - truth) > share * truth:
        sys.exit(f"{what}: {value:.1f}, and in truth {truth:.1f}")


def same(value, truth, what):
    if value != truth:
        sys.exit(f"{what}: {value}, and in truth {truth}")


def check(condition, what):
    if not condition:
        sys.exit(what)


def iterations_agree(job, lost=1):
    """Of every rank that ran to the end: number, calls and length of its iterations."""
    for rank, truth in job.truths.items():
        found = job.rank(rank)
        check(truth["timed"] - lost <= found["iterations"] <= truth["timed"] + truth["unusual"],
              f"rank {rank}: {found['iterations']} iterations, and in truth {truth['timed']}")
        same(found["calls_per_iteration"], truth["calls"], "calls of an iteration")
        near(found["iteration_us"], truth["iteration_us"], 0.02, "length of an iteration")
    near(job.profile["iteration_us"], job.truth["iteration_us"], 0.02, "length of an iteration")


def times_agree(job, exposed=0.1):
    """Collective time within 5 %, exposed time within this share of the collective time."""
    collective = sum(truth["collective_us"] for truth in job.truths.values()) / len(job.truths)
    truth = sum(truth["exposed_us"] for truth in job.truths.values()) / len(job.truths)
    found = job.profile["collectives"]
    near(found["us"], collective, 0.05, "collective time")
    if abs(found["exposed_us"] - truth) > exposed * collective:
        sys.exit(f"exposed: {found['exposed_us']:.1f}, in truth {truth:.1f} of {collective:.1f}")
    check(found["exposed_low_us"] <= truth + 0.05 * collective and
          truth - 0.05 * collective <= found["exposed_high_us"],
          f"exposed: {truth:.1f} is not within {found['exposed_low_us']:.1f} to {found['exposed_high_us']:.1f}")
    near(found["exposed_us"] + found["hidden_us"], found["us"], 0.001, "exposed and hidden")


def case_decode():
    job = Job("decode")
    iterations_agree(job)
    times_agree(job)
    same(job.rank(0)["startup_calls"], 10, "calls of start-up")
    check(job.share_of("allreduce") > 0.9, "most is allreduce")
    check("an iteration takes " in job.text.splitlines()[0], job.text)
    check("exposed (estimate); 9" in job.text and "allreduce of 32 KiB" in job.text.splitlines()[0], job.text)
    same([one["name"] for one in job.profile["communicators"]], ["tensor"], "communicators")
    same(job.profile["communicators"][0]["library_version"], 22809, "version")


def case_alike():
    job = Job("alike")
    iterations_agree(job)
    times_agree(job)


def case_ddp():
    job = Job("ddp", iterations=80)
    iterations_agree(job)
    times_agree(job)
    check(job.profile["collectives"]["hidden_us"] > job.profile["collectives"]["us"] / 2, "most is hidden")


def case_fsdp():
    job = Job("fsdp", iterations=80)
    iterations_agree(job)
    times_agree(job)


def case_two():
    job = Job("two", iterations=80)
    iterations_agree(job)
    times_agree(job)
    roles = {one["name"]: one for one in job.profile["communicators"]}
    same(sorted(roles), ["data", "tensor"], "communicators")
    for one in roles.values():
        same((one["ranks"], one["created"], one["ended"]), (2, 2, 2), one["name"])


def case_comes_and_goes():
    job = Job("comes-and-goes")
    iterations_agree(job)
    times_agree(job)
    roles = {one["name"]: one for one in job.profile["communicators"]}
    same((roles["expert"]["created"], roles["expert"]["ended"]), (20, 20), "communicators")
    same(len(roles), 2, "communicators")


def case_tenth():
    job = Job("tenth", iterations=80)
    iterations_agree(job)
    longer = job.rank(0)
    same(longer["longer_iterations"], job.truth["unusual"], "longer iterations")
    near(longer["longer_us"], job.truth["unusual_us"], 0.02, "their length")


def case_accumulate():
    job = Job("accumulate")
    iterations_agree(job)
    times_agree(job)
    same(job.rank(0)["parts"], 4, "parts")


def case_evaluate():
    job = Job("evaluate")
    iterations_agree(job, lost=3)
    times_agree(job)
    check(job.rank(0)["other_calls"] >= 36, "calls of evaluations are not part of iterations")


def case_graph():
    job = Job("graph")
    same(job.rank(0)["calls_per_iteration"], 4, "calls of an iteration")
    by_name = {one["collective"]: one for one in job.profile["classes"] if one["least_bytes"] > 4}
    same(by_name["allreduce"]["captured"], by_name["allreduce"]["calls"], "captured calls")
    same(by_name["allgather"]["captured"], 0, "captured calls")
    same(job.profile["untried_calls"], 4 * 40 * 3, "calls that cannot be tried")
    check("cannot be tried in the running job" in job.text, job.text)
    near(job.profile["untimed_calls_per_iteration"], 3, 0.001, "calls without a time")
    check("; collectives at least " in job.text.splitlines()[0], job.text)
    near(by_name["allgather"]["us"], job.profile["collectives"]["us"], 0.001, "the time of the others")


def case_groups():
    job = Job("groups")
    iterations_agree(job)
    times_agree(job)
    classes = {(one["collective"], one["most_bytes"]): one for one in job.profile["classes"]}
    same(classes["allreduce", 512 * 1024]["in_groups"], 4 * 40, "calls in groups")
    same(classes["allreduce", 1024 * 1024]["in_groups"], 0, "calls in groups")
    check(classes["broadcast", 128 * 1024]["broadcasts"] >= 4 * 40, "broadcasts")
    check(0 < job.profile["untried_us"] < job.profile["collectives"]["us"], "time that cannot be tried")


def case_none():
    job = Job("none")
    same(job.profile["iterations_by"], "none", "iterations")
    same(job.profile["iteration_us"], 0, "length of an iteration")
    check(job.text.startswith("no iterations found in 800 calls"), job.text)
    check(any("diapason_step()" in note for note in job.profile["notes"]), job.text)


def case_steps():
    job = Job("tenth", "--steps", iterations=60)
    same(job.profile["iterations_by"], "steps", "iterations")
    near(job.profile["iteration_us"], job.truth["iteration_us"], 0.02, "length of an iteration")
    same(job.rank(0)["calls_per_iteration"], job.truth["calls"], "calls of an iteration")


def case_uneven():
    job = Job("ddp", "--slow-rank", "1.2", iterations=80)
    iterations_agree(job)
    # Collectives queue behind each other while they wait for the slow rank: only the bounds are certain.
    times_agree(job, exposed=1)
    waits = [job.rank(rank)["collectives"]["waiting_us"] for rank in range(4)]
    check(waits[3] < 0.2 * waits[0], f"the slow rank does not wait: {waits}")


def case_cut():
    job = Job("ddp", "--stop", "1:20", iterations=60)
    iterations_agree(job)
    check(any("1 journal is not complete" in note for note in job.profile["notes"]), job.text)
    check(job.rank(1)["iterations"] < 20, "the cut journal has fewer iterations")


def case_no_times():
    job = Job("ddp", times=False)
    near(job.profile["iteration_us"], job.truth["iteration_us"], 0.05, "length of an iteration")
    same(job.profile["has_times"], False, "times")
    check("the time of its collectives is not known" in job.text.splitlines()[0], job.text)
    check(any("DIAPASON_JOURNAL_TIMES=1" in note for note in job.profile["notes"]), job.text)


if __name__ == "__main__":
    globals()["case_" + CASE.replace("-", "_")]()
