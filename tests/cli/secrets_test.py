#!/usr/bin/env python3
"""No command shows or stores a password: every output and every file that commands make is searched for one.

    secrets_test.py --tool PATH/diapason
"""

import argparse
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 600
PASSWORD = "hunter2secret"
URL = f"redis://alice:{PASSWORD}@localhost:1/0"
MASKED = "redis://alice:***@localhost:1/0"
CLEARED = ("NCCL_", "DIAPASON_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMIX_", "SLURM_")

INPUTS = {
    "job.sh": f"export DIAPASON_STORE={URL}\nexport NCCL_NET_TOKEN='{PASSWORD}'\nexport NCCL_DEBUG INFO\n"
              f"export DIAPASON_STORE = {URL}\nmpirun -x DIAPASON_STORE={URL} job\n",
    "nccl.conf": f"DIAPASON_STORE=\"{URL}\"\nexport DIAPASON_STORE={URL}\nNCCL_NET_PASSWORD={PASSWORD}\n",
    "job.log": "n1:10:10 [0] NCCL INFO NCCL version 2.28.3+cuda12.9\n"
               f"n1:10:10 [0] NCCL INFO DIAPASON_STORE set by environment to {URL}\n"
               f"n1:10:10 [0] NCCL INFO NCCL_NET_TOKEN set by environment to {PASSWORD}\n"
               f"n1:10:10 [0] NCCL WARN cannot reach {URL}: Connection refused\n"
               f"n2:10:10 [0] NCCL INFO DIAPASON_STORE set by environment to {URL}1\n",
}

# Each with whether it has to show the masked value, so that the search is known to look at the right thing.
COMMANDS = (
    (True, "settings"),
    (True, "settings", "--json"),
    (False, "env", "check"),
    (False, "env", "check", "--json"),
    (False, "env", "check", "--all", "--file", "job.sh"),
    (False, "env", "check", "--all", "--file", "nccl.conf"),
    (False, "doctor", "--no-test", "--all", "-o", "doctor.json"),
    (True, "doctor", "--no-test", "--json"),
    (False, "doctor", "--pid", "PID"),
    (False, "doctor", "--pid", "PID", "--json"),
    (False, "doctor", "compare", "doctor.json", "doctor.json", "--all"),
    (False, "env", "check", "--pid", "PID"),
    (False, "knobs", "NCCL_NET"),
    (False, "knobs", "--json"),
    (True, "logs", "job.log"),
    (True, "logs", "job.log", "--json"),
    (False, "sweep", "allreduce", "--backend", "sim", "-g", "2", "--sizes", "1K", "--most", "2", "--least", "1", "--env",
     f"DIAPASON_STORE={URL}", "--env", f"NCCL_NET_TOKEN={PASSWORD}", "--store", "sweep.db"),
    (True, "data", "show", "sweep.db", "--all"),
    (True, "data", "export", "sweep.db", "--format", "csv"),
    (True, "data", "export", "sweep.db", "--format", "json"),
    (False, "data", "check", "sweep.db"),
    (True, "data", "export", "old.db", "--format", "json"),
    (False, "data", "show", "old.db", "--samples"),
    (False, "report", "sweep.db", "old.db", "-o", "both.html"),
    (False, "tune", "all_reduce", "--backend", "sim", "-g", "2", "--sizes", "4K", "--budget", "1h", "--samples", "20", "-o", "tuned"),
    (False, "bench", "all_reduce", "--backend", "gloo", "-g", "2", "-b", "1K", "-e", "1K", "-n", "1", "--rounds", "2", "--store",
     "bench.db"),
    (False, "data", "export", "bench.db", "--format", "json"),
    (False, "ask", "--nodes", "1", "--ranks", "2"),
    (False, "journal", "show", "j"),
)


def schema() -> list[str]:
    """The statements of schema.h: literals that stand side by side are one text."""
    text = (Path(__file__).resolve().parents[2] / "src/dataset/schema.h").read_text()
    body = text[text.index("kSchema[]"):text.index("};", text.index("kSchema[]"))]
    return ["".join(re.findall(r'"([^"]*)"', entry)) for entry in re.findall(r'\{"\w+",\s*((?:"[^"]*"\s*)+)\}', body)]


def old_store(path: Path) -> None:
    """As a version wrote it that knew no secrets."""
    with sqlite3.connect(path) as database:
        for statement in schema():
            database.execute(statement)
        database.execute("insert into machine values(1,'nccl','2.28','g','d','t','h','tool',0,?)",
                         (f"DIAPASON_STORE={URL}\nNCCL_NET_TOKEN={PASSWORD}",))
        database.execute("insert into run values(1,'r','sweep',?,1,1,?,1)", (f"sweep --env DIAPASON_STORE={URL}", URL))
        database.execute("insert into point values(1,0,'allreduce',1024,1,2,'f32','sum',-1,0,'','',0,0,?,'')",
                         (f"DIAPASON_STORE={URL}",))
        database.execute("insert into sample values(1,1,1,0,NULL,0,1,-1,3,?,1)", (f"cannot reach {URL}",))
        database.execute("pragma application_id=0x44696170")
        database.execute("pragma user_version=1")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, required=True)
    tool = str(parser.parse_args().tool.resolve())
    environment = {k: v for k, v in os.environ.items() if not k.startswith(CLEARED)}
    environment |= {"DIAPASON_STORE": URL, "NCCL_NET_TOKEN": PASSWORD, "GLOO_API_KEY": PASSWORD, "DIAPASON_JOURNAL": "j",
                    "DIAPASON_JOIN_LIMIT": "1", "UCX_URL": f"http://{PASSWORD}@host/"}
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in INPUTS.items():
            (folder / file).write_text(text)
        old_store(folder / "old.db")
        own = set(INPUTS) | {"old.db"}
        sleeper = subprocess.Popen(["sleep", "600"], env=environment)
        try:
            for shows, *arguments in COMMANDS:
                arguments = [word.replace("PID", str(sleeper.pid)) if word == "PID" else word for word in arguments]
                done = subprocess.run([tool, *arguments], cwd=folder, env=environment, capture_output=True, timeout=LIMIT,
                                      stdin=subprocess.DEVNULL, check=False)
                output = done.stdout + done.stderr
                label = " ".join(arguments).replace(PASSWORD, "...")
                if done.returncode < 0 or done.returncode == 2:  # a mistake in the command line above
                    failures.append(f"{label}: exit status {done.returncode}: {output[:300]!r}")
                if PASSWORD.encode() in output:
                    at = output.index(PASSWORD.encode())
                    failures.append(f"{label} shows the password: {output[max(0, at - 100):at + 40]!r}")
                if shows and MASKED.encode() not in output:
                    failures.append(f"{label} does not show {MASKED}: {output[:600]!r}")
        finally:
            sleeper.kill()
            sleeper.wait()
        made = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in own]
        for path in made:
            if PASSWORD.encode() in path.read_bytes():
                failures.append(f"{path.relative_to(folder)} holds the password")
        names = {path.name for path in made}
        for expected in ("doctor.json", "sweep.db", "both.html", "report.html", "measurements.db"):
            if expected not in names:
                failures.append(f"{expected} was not made: {sorted(names)}")
        if "doctor.json" in names and MASKED not in json.dumps(json.loads((folder / "doctor.json").read_text())):
            failures.append("doctor.json does not have the masked value")
    print("\n".join(failures) or f"fine: {len(COMMANDS)} commands, {len(made)} files")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
