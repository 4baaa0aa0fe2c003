#!/usr/bin/env python3
"""Nothing in a file can move the cursor: logs, journals, stores, tables and reports full of escape sequences are read by
every command that shows them, and the output may have no control character but line feed and tab.

    escapes_test.py --tool PATH/diapason --data FOLDER
"""

import argparse
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from secrets_test import CLEARED, schema  # noqa: E402

LIMIT = 600
# A colour, a title, a bell, DEL, and the two ways to write CSI without ESC; then a turn of the text.
EVIL = (b"\x1b[31m", b"\x1b]0;t\x07", b"\x7f", b"\xc2\x9b2J", b"\x9b2J", b"\r", b"\x08", b"\xe2\x80\xae")
EVIL_TEXT = "\x1b[31m\x07\x7f\u009b2J\u202e"


def complaint(output: bytes) -> str:
    """What is wrong with it; "" for nothing."""
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        return f"no UTF-8: {output[max(0, error.start - 60):error.start + 20]!r}"
    for at, character in enumerate(text):
        code = ord(character)
        if (code < 0x20 and character not in "\n\t") or 0x7f <= code < 0xa0 or code == 0x202e:
            return f"U+{code:04x}: {text[max(0, at - 60):at + 20]!r}"
    return ""


class Tests:
    def __init__(self, tool: Path, data: Path, folder: Path):
        self.tool, self.data, self.folder = str(tool), data, folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(CLEARED)}
        self.failures: list[str] = []
        self.runs = 0

    def show(self, *arguments: str, mistake: bool = False) -> None:
        done = subprocess.run([self.tool, *arguments], cwd=self.folder, env=self.environment, capture_output=True,
                              timeout=LIMIT, stdin=subprocess.DEVNULL, check=False)
        self.runs += 1
        label = " ".join(arguments)
        if done.returncode < 0 or (done.returncode == 2) != mistake:
            self.failures.append(f"{label}: exit status {done.returncode}: {done.stderr[:300]!r}")
        for name, output in (("output", done.stdout), ("errors", done.stderr)):
            if why := complaint(output):
                self.failures.append(f"{label}: {name}: {why}")

    def spoiled(self, source: Path, name: str, seed: int) -> str:
        """A copy with escape sequences inside words, about two in three lines."""
        dice = random.Random(seed)
        lines = []
        for line in source.read_bytes().splitlines(keepends=True)[:3000]:
            words = list(re.finditer(rb"[A-Za-z0-9_./:-]+", line))
            for word in sorted(dice.sample(words, min(len(words), dice.choice((0, 1, 2)))), key=lambda w: -w.start()):
                at = dice.randint(word.start(), word.end())
                line = line[:at] + dice.choice(EVIL) + line[at:]
            lines.append(line)
        (self.folder / name).write_bytes(b"".join(lines))
        return name

    def logs(self) -> None:
        folders = ("hosts", "knobs", "logs-lab", "logs", "env-plan", "watch")
        paths = [path for folder in folders for path in sorted((self.data / folder).rglob("*"))]
        sources = [path for path in paths if path.is_file() and path.stat().st_size < 400000
                   and path.suffix in (".log", ".txt", ".out", ".err", ".json", ".xml", "")]
        for seed, source in enumerate(sources[:: max(1, len(sources) // 25)]):
            self.show("logs", self.spoiled(source, f"log{seed}{source.suffix}", seed))
        host = EVIL_TEXT.replace("\u202e", "")
        text = "".join(f"{name}:1{rank}:1{rank} [{rank}] NCCL INFO {line}\n" for rank, name in enumerate((f"a{host}b", "n2"))
                       for line in (f"NCCL version 2.28.3+cuda{host}12", f"NCCL_DEBUG set by environment to IN{host}FO",
                                    f"NET/Plugin: Failed to find ncclNetPlugin{host} symbol.",
                                    f"Using network So{host}cket", f"NCCL_ALGO set by environment to r{host}{rank}",
                                    "comm 0x1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0"))
        (self.folder / "made.log").write_text(text)
        (self.folder / f"na{host.replace('/', '')}me.log").write_text(text)
        self.show("logs", "made.log")
        self.show("logs", "made.log", "--json")
        self.show("logs", f"na{host}me.log")
        flight = {"version": "2.4", "pg_config": {"0": {"name": f"x{EVIL_TEXT}", "desc": EVIL_TEXT, "ranks": "[0, 1]"}},
                  "pg_status": {}, "entries": [{"pg_name": "0", "process_group": [f"x{EVIL_TEXT}", EVIL_TEXT],
                                                "collective_seq_id": 1, "op_id": 1, "profiling_name": f"nccl:all{EVIL_TEXT}reduce",
                                                "state": "scheduled", "input_sizes": [[4]], "output_sizes": [[4]], "record_id": 0,
                                                "time_created_ns": 1, "frames": []}]}
        (self.folder / "flight.json").write_text(json.dumps(flight))
        self.show("logs", "flight.json")

    def journals(self) -> None:
        for source in sorted((self.data / "journals").glob("*.jsonl"))[:8]:
            lines = []
            for line in source.read_bytes().splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                for key, value in entry.items() if isinstance(entry, dict) else ():
                    if isinstance(value, str) and key != "type" and key not in ("collective", "comm", "id"):
                        entry[key] = value + EVIL_TEXT
                lines.append(json.dumps(entry))
            (self.folder / source.name).write_text("\n".join(lines) + "\n")
            for what in (["show"], ["show", "--calls"], ["show", "--learning"], ["show", "--json"], ["check"]):
                self.show("journal", *what, source.name)
            self.show("journal", "show", self.spoiled(source, "raw-" + source.name, 1))

    def stores(self) -> None:
        path = self.folder / "evil.db"
        with sqlite3.connect(path) as database:
            for statement in schema():
                database.execute(statement)
            database.execute("insert into machine values(1,?,?,?,?,?,?,?,0,?)",
                             ("nccl", *[word + EVIL_TEXT for word in ("2.28", "gpu", "driver", "topology", "host", "tool", "NCCL_X=1")]))
            database.execute("insert into run values(1,?,?,?,1,2,?,1)",
                             tuple(word + EVIL_TEXT for word in ("run", "sweep", "origin", "plan")))
            for number in range(1, 4):
                database.execute("insert into point values(?,0,?,1024,1,2,?,?,-1,0,?,?,0,0,?,'')",
                                 (number, *[word + EVIL_TEXT for word in ("allreduce", "f32", "sum", f"ring{number}", "ll", "A=1")]))
            database.execute("insert into point values(4,0,'allreduce',1024,1,2,'f32','sum',-1,0,'ring','ll',0,0,'','')")
            for number in range(1, 9):
                database.execute("insert into sample values(?,1,?,0,?,0,1,-1,?,?,1)",
                                 (number, number % 4 + 1, None if number > 4 else 1e-5 * number, 3 if number > 4 else 0, EVIL_TEXT))
            database.execute("pragma application_id=0x44696170")
            database.execute("pragma user_version=1")
        self.show("data", "show", "evil.db", "--all")
        self.show("data", "show", "evil.db", "--samples")
        self.show("data", "show", "evil.db", "--json")
        self.show("data", "check", "evil.db")
        self.show("data", "check", "evil.db", "--json")
        self.show("data", "export", "evil.db", "--format", "json")
        self.show("report", "evil.db", "-o", "evil.html")
        self.show("plan", "--data", "evil.db")
        self.show("sweep", "--replay", "evil.db")
        page = self.folder / "evil.html"
        if page.exists() and (why := complaint(page.read_bytes())):
            self.failures.append(f"evil.html: {why}")

    def tables(self) -> None:
        for seed, source in enumerate([*sorted((self.data / "measurements").glob("*.csv"))[:2],
                                       *sorted((self.data / "nccl-tests").glob("*"))[:4]]):
            name = self.spoiled(source, f"table{seed}{source.suffix}", seed)
            self.show("data", "import", "--store", f"import{seed}.db", "--library", "nccl", name)
        for seed, source in enumerate(sorted((self.data / "tuner-confs").glob("*.conf"))[:6]):
            name = self.spoiled(source, f"policy{seed}.conf", seed)
            self.show("policy", "check", name)
            self.show("policy", "show", name, "--nodes", "1", "--ranks", "2")
        (self.folder / "job.sh").write_bytes(b"export NCCL_DEBUG=IN\x1b[31mFO\nexport NCCL_ALGO" + b"\x1b[2J" + b"=Ring\n"
                                             b"NCCL_PROTO \x1b[31m x\n")
        self.show("env", "check", "--file", "job.sh")
        self.environment["NCCL_ALGO"] = "Ring\x1b[31m\u009b\x7f"
        self.environment["DIAPASON_MODE"] = "obs\x1b[31m"
        self.environment["DIAPASON_POLICY"] = "a\x1b[31m"
        self.show("env", "check")
        self.show("settings")
        self.show("doctor", "--no-test", "--all")
        self.show("doctor", "--no-test", "--json")
        self.show("knobs", "NCCL_ALGO")
        self.show("no\x1b[31m-command", mistake=True)
        self.show("sweep", "all\x1b[31m", "--sizes", "1\x1b", mistake=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("what", nargs="*", default=["logs", "journals", "stores", "tables"])
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        tests = Tests(options.tool.resolve(), options.data.resolve(), folder)
        for what in options.what:
            getattr(tests, what)()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(tests.failures) or f"fine: {tests.runs} runs")
    return 1 if tests.failures else 0


if __name__ == "__main__":
    sys.exit(main())
