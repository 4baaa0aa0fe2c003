#!/usr/bin/env python3
"""What learning costs and what its choices are worth, beside scikit-learn:

    model.py FOLDER_OF_THE_PROGRAMS GRID.csv [--json FILE]

Times: bench_model makes a table of 4609 configurations and learns from it; GradientBoostingRegressor learns from the very same rows
here, with as many trees. Choices: `diapason evaluate` on the grid; scikit-learn and straight lines are asked the same questions here,
by code of their own. Figures that have a bar come again at the end. The exit status says nothing about bars: 1 is an error.
"""

import argparse
import csv
import json
import math
import operator
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import sklearn
from sklearn.ensemble import GradientBoostingRegressor

LIMIT = 300
TURNS = 3  # of both, so that drift hits both alike
FITS = 2  # in a turn, as all below
LOOPS = 20
VECTORS = 150
COLUMNS = ("num_nodes", "num_gpus", "size_bytes", "log_size", "gpus_per_node", "bytes_per_gpu", "algo", "proto", "nchannels")
ALGORITHMS = {"RING": 1, "TREE": 2}
PROTOCOLS = {"SIMPLE": 0, "LL128": 1, "LL": 2}
DEFAULT = (-1, -1, 0)
CHANNELS = 64
SPLITS = (("sizes", ()), ("configs", ("--draws", "20")), ("cells", ("--draws", "20")), ("nodes", ()))


def table(titles, rows, left=1):
    """As our commands print it: the first columns to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    for row in [titles, *rows]:
        print("  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip())
    print(flush=True)


def spread(seconds, unit=1e3, form="{:.0f}"):
    texts = [form.format(x * unit) for x in (statistics.median(seconds), min(seconds), max(seconds))]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def grow():
    return GradientBoostingRegressor(n_estimators=200, max_depth=6, learning_rate=0.1, random_state=1)


def grow_seed():
    """The original predictor's trees: the defaults."""
    return GradientBoostingRegressor(random_state=1)


def features(nodes, gpus, size, algorithm, protocol, channels):
    return (nodes, gpus, size, math.log2(size), gpus / nodes, size / gpus, algorithm, protocol, channels)


# --- times

def search_loop(model, nodes, gpus, size, pairs):
    """Every fourth channel count of every pair, then those around the best of them: one question each."""
    best, asked = (-math.inf, None), 0
    for pair in pairs:
        def bandwidth(channels):
            return float(model.predict(np.array([features(nodes, gpus, size, *pair, channels)], dtype=np.float32))[0])

        coarse = {channels: bandwidth(channels) for channels in range(1, CHANNELS + 1, 4)}
        middle = max(coarse, key=coarse.get)
        for channels in range(max(1, middle - 3), min(CHANNELS, middle + 3) + 1):
            if channels not in coarse:
                coarse[channels] = bandwidth(channels)
        asked += len(coarse)
        best = max(best, *((value, (*pair, channels)) for channels, value in coarse.items()))
    return best, asked


def search_vector(model, nodes, gpus, size, pairs):
    """All of them in one question."""
    rows = np.empty((len(pairs) * CHANNELS, len(COLUMNS)), dtype=np.float32)
    rows[:, :6] = features(nodes, gpus, size, 0, 0, 0)[:6]
    rows[:, 6:8] = np.repeat(np.array(pairs, dtype=np.float32), CHANNELS, axis=0)
    rows[:, 8] = np.tile(np.arange(1, CHANNELS + 1, dtype=np.float32), len(pairs))
    values = model.predict(rows)
    best = int(np.argmax(values))
    return (float(values[best]), rows[best, 6:]), len(rows)


def merge(all_turns):
    """One of several that have the same keys: lists of times follow each other, all else is the same."""
    first = all_turns[0]
    if isinstance(first, dict):
        return {key: merge([turn[key] for turn in all_turns]) for key in first}
    return sum(all_turns, []) if isinstance(first, list) else first


def time_scikit(path, places, turn):
    data = np.genfromtxt(path, delimiter=",", names=True)
    rows = np.column_stack([data[name] for name in COLUMNS]).astype(np.float32)
    fits = []
    for _ in range(FITS):
        model = grow()
        begin = time.perf_counter()
        model.fit(rows, data["busbw_ip"])
        fits.append(time.perf_counter() - begin)
    pairs = sorted({(int(a), int(p)) for a, p in zip(data["algo"], data["proto"])})
    found = {"rows": len(rows), "fit": fits, "search": {}}
    for name, (nodes, gpus) in places.items():
        random = np.random.default_rng(turn)
        for way, ask, count in (("loop", search_loop, LOOPS), ("vectorised", search_vector, VECTORS)):
            times = []
            for size in 2 ** random.uniform(12, 29, count):
                begin = time.perf_counter()
                _, asked = ask(model, nodes, gpus, int(size), pairs)
                times.append(time.perf_counter() - begin)
            found["search"][f"{name}, {way}"] = {"seconds": times, "candidates": asked}
    return found


def print_times(ours, scikit):
    print(f"Learning from {ours['rows']} rows, {ours['trees']} trees of depth {ours['depth']}, rate {ours['rate']}; one thread; "
          "ms, median [min, max]\n")
    median = statistics.median(scikit["fit"])
    lines = [["scikit-learn " + sklearn.__version__, "1", spread(scikit["fit"]), str(len(scikit["fit"])), ""]]
    members = ours["members"]
    several = f"; as {ours['collectives']} collectives"
    for key, name, forests in (("forest_original", f"our trees alone, its {ours['original_columns']} columns", 1),
                               ("forest_physical", f"our trees alone, our {ours['physical_columns']} columns", 1),
                               ("single", "train, one member", 1),
                               ("uncertainty", f"train, {members} members of {ours['member_trees']} trees (the default)", members),
                               ("single_collectives", "train, one member" + several, 1),
                               ("uncertainty_collectives", f"train, {members} members of {ours['member_trees']} trees{several}", members)):
        times = ours["fit"][key]
        lines.append([name, str(forests), spread(times), str(len(times)), f"{median / statistics.median(times):.1f}"])
    table(["who", "forests", "ms", "repeats", "times faster"], lines)
    print(f"`train` is the whole of Predictor::Fit, with {ours['defaults']} defaults, curves and tables. The check of how far it carries "
          f"to other\nplaces is on, as it is by default, but grows nothing with {ours['places']} places of a collective (from 3 on: up to 4 "
          f"forests). The same rows\nhave {ours['sizes']} sizes at a place, where the grid has {ours['measured_sizes']}; the last two lines "
          f"have as many rows, at the grid's own sizes.\n")

    print("One search, all algorithms and protocols of the data, channels 1 to 64, every size new; ms\n")
    lines = []
    for key, title in (("measured", "measured"), ("elsewhere", "never measured")):
        mine = ours["search"][key]
        times = mine["seconds"]
        typical = statistics.median(times)
        lines.append([f"{mine['place']} ({title})", "diapason", str(mine["candidates"]), f"{typical * 1e3:.3f}",
                      f"{np.quantile(times, 0.95) * 1e3:.3f}", str(len(times)), ""])
        others = [(f"diapason, one member of {ours['trees']} trees", ours["search_single"].get(key))]
        others += [(f"scikit-learn, {way}", scikit["search"][f"{key}, {way}"]) for way in ("loop", "vectorised")]
        for who, other in others:
            if other is None:
                continue
            slow = statistics.median(other["seconds"])
            lines.append(["", who, str(other["candidates"]), f"{slow * 1e3:.3f}",
                          f"{np.quantile(other['seconds'], 0.95) * 1e3:.3f}", str(len(other["seconds"])), f"{slow / typical:.1f}"])
    table(["place", "who", "candidates", "median", "95 %", "searches", "times slower"], lines, 2)
    load = ours["load"]
    print(f"Loading the model from its file ({load['bytes'] / 1024:.0f} KiB): {spread(load['seconds'], 1e3, '{:.2f}')} ms, "
          f"median [min, max] of {len(load['seconds'])}\n", flush=True)


# --- choices

class Grid:
    """Medians, by place, size and configuration; and the repeats, for those who learn from rows."""

    def __init__(self, path):
        samples = defaultdict(list)
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            config = DEFAULT if row["algo"] == "DEFAULT" else (ALGORITHMS[row["algo"]], PROTOCOLS[row["proto"]], int(row["nchannels"]))
            key = ((int(row["num_nodes"]), int(row["num_gpus"])), int(row["size_bytes"]), config)
            samples[key].append(float(row["busbw_ip"]))
        self.samples = samples
        # Half of the last digit of the column: "5.1" among hundredths has lost its zero.
        half = 0.5 * 10.0 ** -max(len(row["busbw_ip"].partition(".")[2]) for row in rows)
        self.coarse = {key: half / min(values) for key, values in samples.items()}
        self.scenes = defaultdict(lambda: defaultdict(dict))
        for (place, size, config), values in sorted(samples.items()):
            self.scenes[place][size][config] = statistics.median(values)

    def without_sizes(self):
        """Of all but the first and the last size every third is hidden, three times."""
        for offset in range(3):
            hidden = set()
            for place, scene in self.scenes.items():
                hidden |= {(place, size) for i, size in enumerate(sorted(scene)[1:-1]) if i % 3 == offset}
            yield hidden

    def without_nodes(self):
        for nodes in sorted({place[0] for place in self.scenes}):
            yield {(place, size) for place, scene in self.scenes.items() if place[0] == nodes for size in scene}


def ask_scikit(grid, hidden):
    rows, targets = [], []
    for (place, size, config), values in grid.samples.items():
        if config == DEFAULT or (place, size) in hidden:
            continue
        rows += [features(*place, size, *config)] * len(values)
        targets += values
    model = grow_seed().fit(np.array(rows, dtype=np.float32), targets)

    def choose(place, size):
        configs = [config for config in grid.scenes[place][size] if config != DEFAULT]
        predicted = model.predict(np.array([features(*place, size, *config) for config in configs], dtype=np.float32))
        return configs[int(np.argmax(predicted))]

    return choose


def ask_lines(grid, hidden):
    def choose(place, size):
        best, chosen = math.inf, DEFAULT
        for config in grid.scenes[place][size]:
            # Time is size over bandwidth, but for a factor that is the same for all.
            known = [(math.log(other), math.log(other / cells[config])) for other, cells in sorted(grid.scenes[place].items())
                     if (place, other) not in hidden and config in cells]
            below = [point for point in known if point[0] <= math.log(size)]
            above = [point for point in known if point[0] >= math.log(size)]
            if not below or not above:
                continue
            (x0, y0), (x1, y1) = below[-1], above[0]
            guess = y0 if x0 == x1 else y0 + (y1 - y0) * (math.log(size) - x0) / (x1 - x0)
            if guess < best - 1e-12:
                best, chosen = guess, config
        return chosen

    return choose


def judge(grid, parts, ask):
    """The figures of `diapason evaluate --json`, by code of their own."""
    means, everything, against = [], [], []
    for hidden in parts:
        choose = ask(grid, hidden)
        fractions = []
        for place, size in sorted(hidden):
            cells = grid.scenes[place][size]
            chosen = choose(place, size)
            fractions.append(cells[chosen] / max(cells.values()))
            # What the printed digits hide is no harm, and no gain.
            digits = 0 if chosen == DEFAULT else sum(math.log1p(grid.coarse[place, size, c]) for c in (chosen, DEFAULT))
            gain = math.log(cells[chosen] / cells[DEFAULT])
            against.append((gain, math.copysign(max(0.0, abs(gain) - digits), gain)))
        means.append(statistics.geometric_mean(fractions))
        everything += fractions
    return {"of_best": statistics.geometric_mean(everything), "worst": min(everything), "worst_part": min(means), "part_means": means,
            "of_default": math.exp(statistics.mean(g for g, _ in against)), "worst_of_default": math.exp(min(s for _, s in against))}


def judge_all(tool, path):
    grid = Grid(path)
    splits = {}
    for name, more in SPLITS:
        said = run(tool, "evaluate", "--data", path, "--library", "rccl", "--leave-out", name, *more, "--json")
        splits[name] = {one["chooser"]: one for one in said["choosers"]}
    splits["sizes"]["scikit-learn"] = judge(grid, grid.without_sizes(), ask_scikit)
    splits["sizes"]["interpolation, in Python"] = judge(grid, grid.without_sizes(), ask_lines)
    splits["nodes"]["scikit-learn"] = judge(grid, grid.without_nodes(), ask_scikit)
    return splits


def print_choices(splits):
    print("Choices on the grid, what is named being hidden from those who choose; speed as a fraction of the fastest configuration's\n"
          "(geometric mean, worst choice, worst mean of an offset, draw or node count) and of the default's\n")
    order = ("default", "scikit-learn", "busbw predictor", "interpolation", "interpolation, in Python", "best known", "diapason")
    lines = []
    for name, _ in SPLITS:
        shown = name
        for who in order:
            one = splits[name].get(who)
            if one is None:
                continue
            keys = ("of_best", "worst", "worst_part", "of_default", "worst_of_default")
            lines.append([shown, who, *(f"{one[key]:.3f}" for key in keys)])
            shown = ""
    table(["hidden", "who chooses", "of the best", "worst", "worst part", "of the default", "worst"], lines, 2)
    ours, theirs = splits["sizes"]["interpolation"], splits["sizes"]["interpolation, in Python"]
    keys = ("of_best", "worst", "worst_part", "of_default", "worst_of_default")
    apart = max(abs(ours[key] - theirs[key]) for key in keys)
    agree = apart < 5e-4
    print(f"Interpolation by `diapason evaluate` and by this script {'agree' if agree else 'DO NOT AGREE'} to three digits "
          f"(largest difference {apart:.1e}).\n", flush=True)
    return agree


# --- bars

def bars(ours, scikit, splits):
    found = []

    reach = {">=": operator.ge, ">": operator.gt, "<": operator.lt}

    def bar(what, value, limit, form="{:.3f}", sign=">="):
        found.append({"what": what, "measured": form.format(value), "bar": f"{sign} {form.format(limit)}",
                      "reached": bool(reach[sign](value, limit))})

    sizes = splits["sizes"]
    bar("hidden sizes: of the best", sizes["diapason"]["of_best"], 0.985)
    bar("hidden sizes: worst choice", sizes["diapason"]["worst"], 0.88)
    bar("hidden sizes: less interpolation's, worst offset",
        min(a["of_best"] - b["of_best"] for a, b in zip(sizes["diapason"]["parts"], sizes["interpolation"]["parts"])), -0.002, "{:+.4f}")
    for name in ("configs", "cells"):
        mine, known = splits[name]["diapason"], splits[name]["best known"]
        bar(f"hidden {name}: of the best", mine["of_best"], 0.975)
        bar(f"hidden {name}: worst choice", mine["worst"], 0.85)
        bar(f"hidden {name}: less best known's", mine["of_best"] - known["of_best"], 0, "{:+.4f}", ">")
        bar(f"hidden {name}: less best known's, worst draws", mine["worst_part"] - known["worst_part"], 0, "{:+.4f}", ">")
    bar("hidden nodes: worst against the default", splits["nodes"]["diapason"]["worst_of_default"], 0.98)
    bar("anything hidden: worst against the default", min(split["diapason"]["worst_of_default"] for split in splits.values()), 0.97)

    fit = statistics.median(scikit["fit"])
    for key, name, least in (("forest_original", "one forest alone", 5), ("single", "one member, the whole fit", 5),
                             ("uncertainty", "with uncertainty, the whole fit", 2),
                             ("single_collectives", "one member, as several collectives", 5),
                             ("uncertainty_collectives", "with uncertainty, as several collectives", 2)):
        bar(f"training, {name}: times faster", fit / statistics.median(ours["fit"][key]), least, "{:.1f}")
    for key, title in (("measured", "measured place"), ("elsewhere", "place never measured")):
        typical = statistics.median(ours["search"][key]["seconds"])
        for way, least in (("loop", 20), ("vectorised", 3)):
            slow = statistics.median(scikit["search"][f"{key}, {way}"]["seconds"])
            bar(f"search, {title}: times faster than {way}", slow / typical, least, "{:.1f}")
        bar(f"search, {title}: median in ms", typical * 1e3, 2, "{:.3f}", "<")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Learning and choosing, beside scikit-learn")
    parser.add_argument("programs", type=Path)
    parser.add_argument("grid", type=Path)
    parser.add_argument("--json", type=Path, help="keep every figure in this file")
    asked = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.csv"
        ours, scikit = [], []
        for turn in range(TURNS):
            ours.append(run(asked.programs / "bench_model", asked.grid, rows))
            places = {key: (one["nodes"], one["ranks"]) for key, one in ours[-1]["search"].items()}
            scikit.append(time_scikit(rows, places, turn))
    ours, scikit = merge(ours), merge(scikit)
    if scikit["rows"] != ours["rows"]:
        raise RuntimeError(f"scikit-learn read {scikit['rows']} rows of {ours['rows']}")
    print_times(ours, scikit)
    splits = judge_all(asked.programs / "diapason", asked.grid)
    agree = print_choices(splits)
    reached = bars(ours, scikit, splits)
    table(["what", "measured", "bar", "reached"],
          [[one["what"], one["measured"], one["bar"], "yes" if one["reached"] else "NO"] for one in reached])
    print(f"{time.monotonic() - begin:.0f} s in all")
    if asked.json is not None:
        asked.json.write_text(json.dumps({"diapason": ours, "scikit_learn": scikit, "choices": splits, "bars": reached}, indent=1) + "\n")
    return 0 if agree else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        print(f"bench model: {error}", file=sys.stderr)
        sys.exit(1)
