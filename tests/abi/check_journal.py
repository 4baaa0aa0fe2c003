#!/usr/bin/env python3
"""Checks a decision journal line by line, as a reader of it would rely on it.

Every complete line is a JSON object; the first names the journal; a communicator is described
before its first decision; a communicator's calls count upwards. Under tuner API v1 all threads
share one communicator, so there the calls may come in any order, but none twice. Exits 1 with one
line per mistake, at most three of a kind.
"""
import argparse
import collections
import json
import re
import sys

KINDS = {"journal", "communicator", "decision", "run", "bypassed", "reward", "step", "dropped", "end"}


def complete_lines(data, may_be_cut):
    lines = data.split(b"\n")
    rest = lines.pop()
    if rest and not may_be_cut:
        yield len(lines) + 1, None, "the last line does not end"
    for number, line in enumerate(lines, start=1):
        try:
            yield number, json.loads(line.decode("ascii")), None
        except ValueError as error:
            yield number, None, f"no JSON: {error}"


class Calls:
    """The calls seen of one communicator."""

    def __init__(self, api):
        self.in_order = api != 1
        self.last = 0
        self.seen = set()

    def problem_with(self, call):
        if call in self.seen or (self.in_order and call <= self.last):
            return f"call {call} after call {self.last}"
        self.last = call
        self.seen.add(call)
        return None


def check(data, options):
    calls = {}
    gone = set()
    decisions = 0
    ended = False
    for number, entry, problem in complete_lines(data, options.cut):
        if problem:
            yield number, problem
            continue
        kind = entry.get("type")
        if kind not in KINDS:
            yield number, f"unknown type {kind!r}"
        if (number == 1) != (kind == "journal"):
            yield number, f"type {kind!r} in this place"
        if ended:
            yield number, "something after the end"
        ended = kind == "end"
        if kind == "communicator":
            # Again when it ends, and then with that time.
            if (entry["comm"] in calls) != ("ended_ns" in entry) or entry["comm"] in gone:
                yield number, f"communicator {entry['comm']} is described twice, or ends before it begins"
            if "ended_ns" in entry:
                gone.add(entry["comm"])
            calls.setdefault(entry["comm"], Calls(entry["api"]))
        if kind == "decision":
            decisions += 1
            comm = entry["comm"]
            if comm not in calls:
                yield number, f"a decision of communicator {comm} before its description"
                continue
            problem = calls[comm].problem_with(entry["call"])
            if problem:
                yield number, f"communicator {comm}: {problem}"
    if options.end and not ended:
        yield 0, "the journal was not ended"
    if decisions < options.decisions:
        yield 0, f"{decisions} decisions, expected {options.decisions} or more"
    if options.exactly is not None and decisions != options.exactly:
        yield 0, f"{decisions} decisions, expected {options.exactly}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cut", action="store_true", help="the last line may be incomplete")
    parser.add_argument("--end", action="store_true", help="the journal must have been ended")
    parser.add_argument("--decisions", type=int, default=0, help="at least so many decisions")
    parser.add_argument("--exactly", type=int, help="exactly so many decisions")
    parser.add_argument("journal")
    options = parser.parse_args()
    with open(options.journal, "rb") as journal:
        problems = list(check(journal.read(), options))
    shown = collections.Counter()
    for number, problem in problems:
        kind = re.sub(r"\d+", "", problem)
        shown[kind] += 1
        if shown[kind] <= 3:
            print(f"{options.journal}:{number}: {problem}")
    if problems:
        print(f"{options.journal}: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
