"""Part A: is the plugin loaded, are the sums right, and did NCCL run what the policy asks?

Short-lived groups with NCCL's log and the plugin's journal switched on. The log is NCCL's own word on
what ran; the journal is the plugin's word on what it asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import group
import nccl_log
import policy_file
from nccl_log import Config, NcclLog

SIZES = [1 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20]
# Odd counts: the last chunk is short, and the channels get unequal shares.
ODD_COUNTS = [1, 3, 255, 2047, 8193, 32771, 131071, 524289]
COUNTS = [size // 4 for size in SIZES] + ODD_COUNTS
COLLECTIVE = "allreduce"
WITH_PLUGIN = ("empty", "policy")


@dataclass
class Verified:
    """What part A found; no failures is a pass."""

    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ran: dict[str, dict[int, Config]] = field(default_factory=dict)  # group -> bytes -> what ran
    about: dict = field(default_factory=dict)  # versions, as rank 0 reports them
    tuner: str = ""  # name and interface version, as NCCL's log has them
    mps: str = ""
    pins: int = 0  # configurations pinned by the program


def environments(plugin: Path, policy: Path, empty: Path) -> dict[str, dict[str, str]]:
    """The groups and all that differs between them."""
    # One group finds the plugin by its path, the other by its short name, as users may.
    search = [str(plugin.parent)] + [p for p in (os.environ.get("LD_LIBRARY_PATH"),) if p]
    by_name = {"NCCL_TUNER_PLUGIN": "diapason", "NCCL_PROFILER_PLUGIN": "diapason", "LD_LIBRARY_PATH": ":".join(search)}
    by_path = {"NCCL_TUNER_PLUGIN": str(plugin), "NCCL_PROFILER_PLUGIN": str(plugin)}
    return {
        "none": {},
        "control": {},
        "empty": by_name | {"DIAPASON_POLICY": str(empty)},
        "policy": by_path | {"DIAPASON_POLICY": str(policy)},
    }


def wrong_sums(name: str, answers: list[dict]) -> list[str]:
    return [
        f"{name}: rank {rank}, {bad['count']} elements: {bad['wrong']} wrong, first at {bad['index']}: "
        f"{bad['got']} instead of {bad['want']}"
        for rank, answer in enumerate(answers)
        for bad in answer["bad"]
    ]


def leaving(stuck: list[str], found: Verified) -> None:
    """Ranks that do not quit are the plugin's fault only if the ranks without it do quit."""
    text = f"ranks did not quit within {group.QUIT_SECONDS:.0f} s: {', '.join(stuck)}"
    if stuck and all(name.endswith(WITH_PLUGIN) for name in stuck):
        found.failures.append(text)
    elif stuck:
        found.notes.append(text)


def plugin_loaded(name: str, logs: list[NcclLog], plugin: Path) -> list[str]:
    """Every rank's log must name our file; without a plugin, no rank's log may name any."""
    failures = []
    for rank, log in enumerate(logs):
        if name not in WITH_PLUGIN:
            if log.loaded or log.using:
                failures.append(f"{name}: rank {rank} loaded a tuner plugin: {log.loaded or log.using}")
        elif not any(os.path.realpath(path) == os.path.realpath(plugin) for path in log.loaded):
            # Before 2.28 the log has the plugin's name only, no path.
            if log.loaded or not log.using:
                said = log.loaded or "no word of a tuner plugin in NCCL's log"
                failures.append(f"{name}: rank {rank} did not load {plugin}: {said}")
    return failures


def what_ran(name: str, logs: list[NcclLog], found: Verified) -> dict[int, Config]:
    """Per size the one configuration the log shows."""
    ran = {}
    for nbytes in sorted(count * 4 for count in COUNTS):
        configs = set().union(*(log.configs(COLLECTIVE, nbytes) for log in logs))
        if len(configs) == 1:
            ran[nbytes] = configs.pop()
        else:
            said = " and ".join(map(str, sorted(configs))) or "nothing"
            found.failures.append(f"{name}: {nbytes} bytes: NCCL's log shows {said}, not one configuration")
    return ran


def differs(row: policy_file.Row, ran: Config) -> bool:
    """Channels are an upper bound: the library never uses more than the communicator has."""
    return (
        row.algorithm not in (None, ran.algorithm)
        or row.protocol not in (None, ran.protocol)
        or (row.channels is not None and ran.channels > row.channels)
    )


def ran_as_asked(rows: list[policy_file.Row], ranks: int, found: Verified) -> None:
    """Where the policy has a row, its configuration; elsewhere, what runs without a plugin."""
    none = found.ran["none"]
    matched = 0
    for nbytes, ran in found.ran["policy"].items():
        row = policy_file.expected(rows, COLLECTIVE, nbytes, ranks, ranks)
        if row is not None:
            matched += 1
            if differs(row, ran):
                found.failures.append(
                    f"policy: {nbytes} bytes: line {row.line} asks {row}, NCCL ran {ran}"
                )
        elif nbytes in none and ran != none[nbytes]:
            found.failures.append(
                f"policy: {nbytes} bytes: no row matches, yet NCCL ran {ran} instead of {none[nbytes]}"
            )
    if not matched:
        found.notes.append(f"the policy has no row for any size with {ranks} ranks: it is not put to the test")


def empty_changes_nothing(found: Verified) -> None:
    none, empty = found.ran["none"], found.ran["empty"]
    for nbytes in sorted(set(none) & set(empty)):
        if none[nbytes] != empty[nbytes]:
            found.failures.append(
                f"empty: {nbytes} bytes: NCCL ran {empty[nbytes]} instead of {none[nbytes]}"
            )


def journal_problem(row: policy_file.Row, decisions: list[dict], nbytes: int) -> str | None:
    """The rank's journal must show the row applied at this size, and nothing else applied."""
    here = [d for d in decisions if d.get("collective") == COLLECTIVE and d.get("bytes") == nbytes]
    applied = [d for d in here if d.get("applied")]
    if not applied:
        reasons = sorted({str(d.get("reason")) for d in here}) or "no record"
        return f"no decision applied at {nbytes} bytes: {reasons}"
    for decision in applied:
        asked = {"line": row.line}
        if row.algorithm is not None:
            asked["algorithm"] = row.algorithm
        if row.protocol is not None:
            asked["protocol"] = row.protocol
        if row.channels is not None:
            asked["channels"] = row.channels
        wrong = {key: decision.get(key) for key in asked if decision.get(key) != asked[key]}
        if wrong:
            return f"{nbytes} bytes: journal has {wrong}, the policy asks {asked}"
    return None


def journals(name: str, one: group.Group, rows: list[policy_file.Row], found: Verified) -> None:
    """One journal per process ('%p'); for the empty policy, none may show anything applied."""
    for rank, process in enumerate(one.processes):
        path = one.setting.work / f"{name}.journal.{process.pid}"
        if not path.exists():
            if name == "policy":
                found.failures.append(f"{name}: rank {rank} wrote no journal {path.name}")
            continue
        try:
            decisions = policy_file.read_decisions(path)
        except ValueError as error:
            found.failures.append(f"{name}: rank {rank}: {error}")
            continue
        if name == "empty":
            if any(d.get("applied") for d in decisions):
                found.failures.append(f"empty: rank {rank}'s journal shows an applied decision")
            continue
        for nbytes in sorted(count * 4 for count in COUNTS):
            row = policy_file.expected(rows, COLLECTIVE, nbytes, len(one.processes), len(one.processes))
            problem = row and journal_problem(row, decisions, nbytes)
            if problem:
                found.failures.append(f"{name}: rank {rank}: {problem}")


def run(setting: group.Setting, plugin: Path, policy: Path, empty: Path, found: Verified) -> None:
    """Adds what it sees, and what is wrong, to 'found'."""
    rows = policy_file.parse_policy(policy.read_text(encoding="utf-8"))
    groups: dict[str, group.Group] = {}
    stuck: list[str] = []
    try:
        for name, environment in environments(plugin, policy, empty).items():
            if name == "control":  # it is there for the timing alone
                continue
            if name in WITH_PLUGIN:
                environment["DIAPASON_JOURNAL"] = str(setting.work / f"{name}.journal.%p")
                environment["DIAPASON_JOURNAL_TABLES"] = "1"  # for `diapason ask --table` afterwards
            groups[name] = group.Group(setting, f"verify-{name}", environment, log=True)
            groups[name].start()
        for name, one in groups.items():
            one.wait_ready()
        found.about = groups["none"].about[0]
        for name, one in groups.items():
            # Twice: a choice that changes between equal calls must not go unseen.
            for _ in range(2):
                counts = ",".join(map(str, COUNTS))
                found.failures += wrong_sums(name, one.ask(f"check {counts}"))
    finally:
        stuck = group.close(list(groups.values()))
    leaving(stuck, found)
    read_logs(groups, rows, plugin, found)


def read_logs(
    groups: dict[str, group.Group], rows: list[policy_file.Row], plugin: Path, found: Verified
) -> None:
    ranks = len(groups["none"].processes)
    for name, one in groups.items():
        paths = [one.path("nccl.log", rank) for rank in range(ranks)]
        missing = [path.name for path in paths if not path.exists()]
        if missing:
            found.failures.append(f"{name}: NCCL wrote no log: {', '.join(missing)}")
        logs = [nccl_log.parse_file(path) if path.exists() else NcclLog() for path in paths]
        found.failures += plugin_loaded(name, logs, plugin)
        found.ran[name] = what_ran(name, logs, found)
        if name == "policy":
            found.tuner = ", ".join(sorted({using for log in logs for using in log.using}))
        for text in sorted({warning for log in logs for warning in log.warnings}):
            found.notes.append(f"{name}: NCCL warns: {text}")
        if name in WITH_PLUGIN:
            journals(name, one, rows, found)
    ran_as_asked(rows, ranks, found)
    empty_changes_nothing(found)
