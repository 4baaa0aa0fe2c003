#!/usr/bin/env python3
"""What `diapason tune` gains, against the library's own choice and against the best there is.

    tune.py FOLDER_OF_THE_PROGRAMS [--backend gloo,mpi] [--ranks 4] [--collectives all_reduce] [--sizes 1K:4M:x2]
            [--budget 2m] [--rounds 16] [--between] [--limit SECONDS] [--json FILE]

Tunes, prints its table, and then looks again with other eyes, on ranks of its own: exhaustive sweeps, each on ranks that
are started again, measure every configuration of every size in interleaved rounds. What was tuned is compared with the
default and with the best of all there. The best is picked in one half of the sweeps and timed in the other, and the other
way round, so that neither side wins by luck. Medians; a size's figures are those of its own rounds.

With --between the sweeps also have one size between every two that were tuned, none of them a power of two, and what the
policy runs there is judged alike. --limit ends the sweeps so many seconds after the start, with the rounds they have then.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 900
SWEEPS = 4  # an even number: halves are made of whole ones
STARTED = time.monotonic()


def settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backend", default="gloo,mpi")
    parser.add_argument("--ranks", default="4")
    parser.add_argument("--collectives", default="")
    parser.add_argument("--sizes", default="1K:4M:x2")
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--between", action="store_true")
    parser.add_argument("--limit", type=float, default=0)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def run(*command: str) -> str:
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                                "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT, env=environment).stdout


def geometric(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def samples_of(tool: str, stores: list[str]) -> dict:
    """(collective, bytes) -> {configuration: {(sweep, round): seconds}}; of what never failed."""
    contexts: dict = {}
    failed = set()
    samples = [(number, sample) for number, store in enumerate(stores)
               for sample in json.loads(run(tool, "data", "export", store, "--format", "json"))["samples"]]
    for number, sample in samples:
        key = (sample["collective"], sample["bytes"])
        config = "/".join(str(sample.get(part) or "") for part in ("algorithm", "protocol", "channels"))
        if sample.get("environment"):
            continue
        if sample["outcome"] != "fine":
            failed.add((key, config))
            continue
        contexts.setdefault(key, {}).setdefault(config, {})[number, sample["round"]] = sample["seconds"]
    return {key: {config: rounds for config, rounds in configs.items() if (key, config) not in failed}
            for key, configs in contexts.items()}


def median_of(rounds: dict, half: int) -> float:
    return statistics.median(seconds for (sweep, _), seconds in rounds.items() if sweep % 2 == half)


def judged(configs: dict, tuned: str) -> dict:
    """Times over both halves: the default, what was tuned, and the best of the other half."""
    least = min(len(rounds) for rounds in (configs[""], configs[tuned]))
    halves = {config for config, rounds in configs.items() if {sweep % 2 for sweep, _ in rounds} == {0, 1}}
    whole = {config: rounds for config, rounds in configs.items() if len(rounds) >= least and config in halves}
    default, chosen, best, names = [], [], [], []
    for half in (0, 1):
        name = min(whole, key=lambda config: median_of(whole[config], half))
        names.append(name)
        best.append(median_of(whole[name], 1 - half))
        default.append(median_of(configs[""], 1 - half))
        chosen.append(median_of(configs[tuned], 1 - half))
    return {"default": geometric(default), "tuned": geometric(chosen), "best": geometric(best),
            "names": sorted(set(names)), "rounds": least, "configurations": len(whole)}


def configuration(text: str) -> str:
    """'tree/simple, 4 channels' as samples name it."""
    if text == "library default":
        return "//"
    pair, _, channels = text.partition(", ")
    algorithm, _, protocol = pair.partition("/")
    return f"{algorithm}/{protocol}/{channels.split()[0] if channels else ''}"


def sizes_between(calls: list[dict]) -> list[int]:
    """One between every two neighbours, at a quarter, a half and three quarters of the way in turn."""
    sizes = sorted({call["bytes"] for call in calls})
    return [int(low + (high - low) * (0.25, 0.5, 0.75)[number % 3]) // 64 * 64
            for number, (low, high) in enumerate(zip(sizes, sizes[1:])) if high - low >= 256]


def channels_of(tuned: dict, backend: str) -> str:
    """Counts above the communicator's own are one configuration: measured once."""
    if backend not in ("nccl", "rccl"):
        return "default"
    cap = tuned.get("channel_cap") or 32
    return ",".join(["default", *(str(count) for count in (1, 2, 4, 8, 16, 32) if count <= cap)])


def covered(tuned: dict, collective: str, size: int) -> str:
    """What the policy runs there, as tune's coverage has it; "" outside of it."""
    for one in tuned["coverage"]:
        if one["collective"] == collective and one["first"] <= size <= one["last"]:
            return one["configuration"]
    return ""


def judge_all(contexts: dict, asked: list, tuned: dict) -> list[dict]:
    rows = []
    cap = tuned.get("channel_cap") or 0
    for collective, size, text in asked:
        name = configuration(text)
        name = "" if name == "//" else name
        pair, _, count = name.rpartition("/")
        if cap and count.isdigit() and int(count) > cap:
            name = f"{pair}/{cap}"
        configs = contexts.get((collective, size), {})
        if any({sweep % 2 for sweep, _ in configs.get(one, {})} != {0, 1} for one in ("", name)):
            print(f"  {collective} {size}: {name or 'default'} is not in the exhaustive sweeps")
            continue
        row = judged(configs, name) | {"collective": collective, "bytes": size, "tuned_name": name or "default"}
        rows.append(row)
        print(f"  {collective:13s} {size:9d}  default {row['default'] * 1e6:10.1f}  tuned {row['tuned'] * 1e6:10.1f}  best "
              f"{row['best'] * 1e6:10.1f} us  of the default {row['default'] / row['tuned']:6.2f}  of the best "
              f"{row['best'] / row['tuned']:.3f}  ({', '.join(one or 'default' for one in row['names'])} of {row['configurations']})")
    return rows


def bench(options: argparse.Namespace, backend: str, ranks: str, scratch: str) -> dict:
    tool = str(options.folder.resolve() / "diapason")
    names = [name for name in options.collectives.split(",") if name]
    common = [*names, "--backend", backend, "-g", ranks, "--sizes", options.sizes]
    folder = f"{scratch}/{backend}-{ranks}"
    print(f"== {backend}, {ranks} ranks: diapason tune {' '.join(common)} --budget {options.budget}", flush=True)
    tuned = json.loads(run(tool, "tune", *common, "--budget", options.budget, "-o", folder, "--json", "-q"))
    calls = tuned["calls"]
    for call in calls:
        check = call.get("check")
        shown = (f"{check['library']['median_us']:10.1f} -> {check['tuned']['median_us']:10.1f} us  {call['gain']:6.2f} x "
                 f"[{check['low']:.2f}, {check['high']:.2f}] in {check['rounds']} rounds"
                 if call["ending"] == "tuned" else f"{call['library']['median_us']:10.1f} us  left alone: {call.get('why', '')}")
        print(f"  {call['collective']:13s} {call['bytes']:9d}  {shown}  {call['configuration']}")
    print(f"  verified by tune: {tuned['tuned']} of {len(calls)} faster, {tuned['mean_gain']:.2f} x in the geometric mean "
          f"over all, worst {min(call['gain'] for call in calls):.2f} x, {tuned['seconds']:.0f} s in all")

    stores = [f"{folder}/exhaustive{number}.db" for number in range(SWEEPS)]
    collectives = names or sorted({call["collective"] for call in calls})
    rounds = str(max(1, options.rounds // SWEEPS))
    sizes = sizes_between(calls) if options.between else []
    sizes = sorted({call["bytes"] for call in calls} | set(sizes))
    for number, store in enumerate(stores):
        limit = []
        if options.limit:
            left = max(5.0, options.limit - (time.monotonic() - STARTED))
            limit = ["--budget", f"{left / (SWEEPS - number):.0f}s"]
        run(tool, "sweep", *collectives, "--backend", backend, "-g", ranks, "--sizes", ",".join(str(size) for size in sizes),
            "--channels", channels_of(tuned, backend), "--least", rounds, "--most", rounds, "--store", store, "-q", *limit)
    contexts = samples_of(tool, stores)
    contexts = {key: {("" if config == "//" else config): rounds for config, rounds in configs.items()}
                for key, configs in contexts.items()}
    print(f"== {backend}, {ranks} ranks: the same again beside {SWEEPS} exhaustive sweeps, {rounds} rounds of every "
          f"configuration in each")
    rows = judge_all(contexts, [(call["collective"], call["bytes"], call["configuration"]) for call in calls], tuned)
    gains = [row["default"] / row["tuned"] for row in rows]
    shares = [row["best"] / row["tuned"] for row in rows]
    best = [row["default"] / row["best"] for row in rows]
    print(f"  {len(rows)} sizes: tuned {geometric(gains):.3f} x the default (worst {min(gains):.3f}), the exhaustive best "
          f"{geometric(best):.3f} x; tuned is {geometric(shares):.3f} of the best (worst {min(shares):.3f}); tune took {tuned['seconds']:.0f} s", flush=True)
    for collective in sorted({row["collective"] for row in rows}):
        of_it = [row for row in rows if row["collective"] == collective]
        print(f"    {collective:13s} tuned {geometric([r['default'] / r['tuned'] for r in of_it]):.3f} x, best "
              f"{geometric([r['default'] / r['best'] for r in of_it]):.3f} x, of the best "
              f"{geometric([r['best'] / r['tuned'] for r in of_it]):.3f}")
    between = []
    if options.between:
        known = {(call["collective"], call["bytes"]) for call in calls}
        asked = [(*key, covered(tuned, *key)) for key in sorted(contexts) if key not in known]
        print(f"== {backend}, {ranks} ranks: sizes between the tuned ones")
        between = judge_all(contexts, [one for one in asked if one[2]], tuned)
    if between:
        worst = min(between, key=lambda row: row["default"] / row["tuned"])
        print(f"  {len(between)} sizes between: {geometric([row['best'] / row['tuned'] for row in between]):.3f} of the best (the default "
              f"{geometric([row['best'] / row['default'] for row in between]):.3f}), worst {worst['default'] / worst['tuned']:.3f} of "
              f"the default ({worst['collective']} {worst['bytes']}); goals: 0.95, 0.97; tune took {tuned['seconds']:.0f} s", flush=True)
    return {"between": between, "backend": backend, "ranks": int(ranks), "tune": tuned, "again": rows, "gain": geometric(gains),
            "worst_gain": min(gains), "of_the_best": geometric(shares), "best": geometric(best)}


def main() -> int:
    options = settings()
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for backend in options.backend.split(","):
            for ranks in options.ranks.split(","):
                results.append(bench(options, backend, ranks, scratch))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
