#!/usr/bin/env python3
"""What `diapason tune -- mpirun ...` gains in whole MPI programs, against Open MPI's own choice and an exhaustive search.

    mpi_programs.py FOLDER_OF_THE_PROGRAMS [--only steps,hpcc,examl,mpb] [--ranks 2] [--budget 5m] [--rounds 12]
                    [--exhaustive] [--json FILE]

steps is a program of this repository; hpcc, examl and mpb-mpi are Debian's. Each is looked at and tuned. With
--exhaustive it is tuned again with as many launches as it takes to try every algorithm and segment size of every call in
the program itself. Then the program alone, without a recorder, is started in rounds: by default, with the rules of
`tune`, with those of the exhaustive search, in an order that rotates. The time is that of the whole command, mpirun
included; the gain is the median of averages of the ratios of a round, with a 95 % interval. A program that was left at
the default has no rules: its gain is 1 by definition, and it is not started again.
"""

import argparse
import itertools
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

LIMIT = 7200
ALL_LAUNCHES = "400"


def settings() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="steps,hpcc,examl,mpb")
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def environment(rules: Path | None = None) -> dict:
    variables = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                              "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    if rules:
        variables["OMPI_MCA_coll_tuned_use_dynamic_rules"] = "1"
        variables["OMPI_MCA_coll_tuned_dynamic_rules_filename"] = str(rules)
    return variables


# Inputs ------------------------------------------------------------------------------------------------------------

def steps(options, _folder: Path) -> list[str]:
    return [str(options.folder.resolve() / "steps"), "1500", "100"]


def hpcc(_options, folder: Path) -> list[str]:
    """The example that comes with the package, with a smaller problem on a grid of 1 x ranks."""
    lines = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt").read_text().splitlines()
    for number, value in ((5, "400"), (10, "1"), (11, _options.ranks)):
        lines[number] = value + " " + lines[number].split(None, 1)[1]
    (folder / "hpccinf.txt").write_text("\n".join(lines) + "\n")
    return [shutil.which("hpcc")]


def examl(_options, folder: Path) -> list[str]:
    """A random alignment of 12 taxa and a random tree to start from."""
    chance = random.Random(1)
    taxa, sites = 12, 600
    base = [chance.choice("ACGT") for _ in range(sites)]
    rows = ["".join(one if chance.random() > 0.25 else chance.choice("ACGT") for one in base) for _ in range(taxa)]
    (folder / "a.phy").write_text(f"{taxa} {sites}\n" + "".join(f"t{i} {row}\n" for i, row in enumerate(rows)))
    parts = [f"t{i}" for i in range(taxa)]
    while len(parts) > 3:
        chance.shuffle(parts)
        parts.append(f"({parts.pop()}:0.1,{parts.pop()}:0.1)")
    (folder / "a.tree").write_text("(" + ",".join(part + ":0.1" for part in parts) + ");\n")
    subprocess.run(["parse-examl", "-s", "a.phy", "-m", "DNA", "-n", "a"], cwd=folder, check=True, timeout=LIMIT,
                   stdout=subprocess.DEVNULL)
    # /usr/bin/examl is a script that starts mpirun by itself.
    binary = "/usr/lib/examl/bin/examl-sse3"
    return [binary, "-s", "a.binary", "-t", "a.tree", "-m", "GAMMA", "-n", "out"]


def mpb(_options, folder: Path) -> list[str]:
    """Bands of a lattice of dielectric spheres."""
    (folder / "bands.ctl").write_text("""(set! geometry-lattice (make lattice (size 1 1 1)))
(set! geometry (list (make sphere (center 0 0 0) (radius 0.25) (material (make dielectric (epsilon 11.56))))))
(set! k-points (list (vector3 0.1 0 0) (vector3 0.3 0 0) (vector3 0.5 0 0)))
(set! resolution 24)
(set! num-bands 4)
(set! deterministic? true)
(run)
""")
    return [shutil.which("mpb-mpi"), "bands.ctl"]


PROGRAMS = {"steps": (steps, None), "hpcc": (hpcc, "hpcc"), "examl": (examl, "parse-examl"), "mpb": (mpb, "mpb-mpi")}


# Measuring ---------------------------------------------------------------------------------------------------------

def signed_rank_cut(pairs: int) -> int:
    """The interval of 95 % reaches from the average of this number to that of this number from the end: exact."""
    counts = [1]
    for rank in range(1, pairs + 1):
        longer = counts + [0] * rank
        for at, count in enumerate(counts):
            longer[at + rank] += count
        counts = longer
    total, cut = 0, 0
    for at, count in enumerate(counts):
        total += count
        if total / 2 ** pairs > 0.025:
            break
        cut = at + 1
    return cut


def gain_of(defaults: list[float], tuned: list[float]) -> dict:
    logs = [math.log(one / other) for one, other in zip(defaults, tuned)]
    averages = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(logs, 2))
    cut = signed_rank_cut(len(logs))
    return {"gain": math.exp(statistics.median(averages)), "low": math.exp(averages[cut - 1]),
            "high": math.exp(averages[-cut]), "rounds": len(logs)}


class Program:
    def __init__(self, options, name: str, folder: Path):
        self.options, self.name, self.folder = options, name, folder
        self.tool = str(options.folder.resolve() / "diapason")
        # Bound: where more ranks than cores move about, launches differ by a factor of two.
        self.command = ["mpirun", "--bind-to", "core:overload-allowed", "-n", options.ranks,
                        *PROGRAMS[name][0](options, folder)]

    def clean(self) -> None:
        """examl refuses to overwrite the files of an earlier run."""
        for file in self.folder.glob("ExaML_*"):
            file.unlink()

    def seconds(self, rules: Path | None) -> float:
        self.clean()
        start = time.monotonic()
        subprocess.run(self.command, cwd=self.folder, check=True, timeout=LIMIT, env=environment(rules),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - start

    def tune(self, output: str, *options: str) -> dict:
        self.clean()
        start = time.monotonic()
        done = subprocess.run([self.tool, "tune", "--json", "-o", output, *options, "--between", "rm -f ExaML_*", "--",
                               *self.command], cwd=self.folder, timeout=LIMIT, env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False, text=True)
        result = json.loads(done.stdout)
        if "error" in result:
            raise SystemExit(f"{self.name}: {result['error']}")
        result["seconds"] = time.monotonic() - start
        return result

    def judge(self) -> dict:
        row: dict = {"program": self.name, "ranks": int(self.options.ranks)}
        tuned = self.tune("tuned", "--budget", self.options.budget)
        row |= {"verdict": tuned["verdict"], "seconds": tuned["seconds"], "launches": len(tuned["launches"]),
                "collective_share": tuned["collective_share"],
                "changeable_share": tuned["changeable_share"], "headline": tuned["headline"], "notes": tuned["notes"],
                "chosen": [one["chosen"] for one in tuned["contexts"]]}
        settings_of = {"default": None}
        if self.options.exhaustive:
            every = self.tune("exhaustive", "--budget", "2h", "--launches", ALL_LAUNCHES)
            row["exhaustive"] = {"verdict": every["verdict"], "seconds": every["seconds"],
                                 "launches": len(every["launches"])}
            if every["verdict"] == "faster":
                settings_of["exhaustive"] = self.folder / "exhaustive/rules.conf"
        if tuned["verdict"] == "faster":
            settings_of["tuned"] = self.folder / "tuned/rules.conf"
        times: dict = {name: [] for name in settings_of}
        for number in range(self.options.rounds if len(settings_of) > 1 else 0):
            names = list(settings_of)
            for name in names[number % len(names):] + names[:number % len(names)]:
                times[name].append(self.seconds(settings_of[name]))
        for name in list(settings_of)[1:]:
            row.setdefault(name, {})
            row[name] |= gain_of(times["default"], times[name])
        if times["default"]:
            row["default_seconds"] = statistics.median(times["default"])
        return row


def text_of(figures: dict | None, kept: str) -> str:
    if not figures or "gain" not in figures:
        return kept
    return f"{figures['gain']:.3f} [{figures['low']:.3f}, {figures['high']:.3f}]"


def main() -> None:
    options = settings()
    rows = []
    print(f"{'program':8} {'ranks':>5} {'collectives':>11} {'by rules':>8}  {'verdict':16} {'launches':>8} {'seconds':>7}  "
          f"{'gain of tune':22} {'gain of exhaustive search'}", flush=True)
    for name in options.only.split(","):
        if PROGRAMS[name][1] and not shutil.which(PROGRAMS[name][1]):
            print(f"{name:8} not installed", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="diapason-mpi-") as folder:
            row = Program(options, name, Path(folder)).judge()
        rows.append(row)
        every = row.get("exhaustive")
        print(f"{name:8} {row['ranks']:5} {row['collective_share']:10.0%}  {row['changeable_share']:7.0%}   {row['verdict']:16} "
              f"{row['launches']:8} {row['seconds']:7.0f}  {text_of(row.get('tuned'), '1 (default kept)'):22} "
              f"{text_of(every, every['verdict'] if every else 'not asked for')}", flush=True)
        for line in [] if row["verdict"] == "faster" else [row["headline"], *row["notes"]]:
            print("  " + line, flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
