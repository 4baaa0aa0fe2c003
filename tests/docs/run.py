#!/usr/bin/env python3
"""Runs every command of one page of the documentation, and compares what the page shows below it.

    run.py --tool PATH/bin/diapason README.md docs/commands/bench.md ...
    run.py --tool PATH/bin/diapason --verbose docs/commands/bench.md      also prints what the commands print

tests/docs/README.md says how commands are found, and tests/docs/commands.toml what is done about
those that cannot run everywhere.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is written into the source tree
sys.path.insert(0, str(Path(__file__).resolve().parent))
from pages import ROOT, Command, Declared, load, name_of  # noqa: E402

# What a scratch copy holds of the source tree; only read.
LINKED = [
    "bench",
    "clusters",
    "docs",
    "examples",
    "include",
    "packaging",
    "python",
    "src",
    "targets",
    "tests",
    "VERSION",
]
LIMIT_S = 600


class Scratch:
    """A folder that looks like the repository after `./dev build`, and belongs to one page."""

    def __init__(self, tool: Path, declared: Declared):
        self.folder = Path(tempfile.mkdtemp(prefix="diapason-docs-"))
        self.work = self.folder / "diapason"
        programs = self.folder / "programs"
        for each in (self.work / "build/release", programs, self.folder / "home", self.folder / "tmp"):
            each.mkdir(parents=True)
        for name in LINKED:
            if (ROOT / name).exists():
                (self.work / name).symlink_to(ROOT / name)
        (self.work / "build/release/bin").symlink_to(tool.parent)
        (self.work / "build/release/lib").symlink_to(tool.parent.parent / "lib")
        (programs / "diapason").symlink_to(tool)
        self.build = tool.parent.parent
        for name, text in declared.stand_ins.items():
            path = self.work / name if name.startswith("./") else programs / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("DIAPASON_", "NCCL_", "RCCL_", "OMPI_", "SLURM_", "GLOO_", "TORCH_"))
        }
        self.environment = kept | {
            "PATH": f"{programs}:{kept['PATH']}",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "SOURCE": str(ROOT),
            "COLUMNS": "200",
            # Tests run in containers, often as root and with fewer cores than ranks.
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
        }
        self.state = self.folder / "state"
        self.background: list[subprocess.Popen] = []

    def begin_block(self) -> None:
        self.state.unlink(missing_ok=True)

    def run(self, text: str, limit: float) -> tuple[int, str, str]:
        """(status, standard output, standard error); 124 after the limit."""
        # What a command exports, the next ones of its block see, as in a terminal.
        script = (
            f'[ ! -f "{self.state}" ] || . "{self.state}"\n{text}\n'
            f'status=$?\nexport -p > "{self.state}"\nexit $status\n'
        )
        out, err = self.folder / "out", self.folder / "err"
        with out.open("wb") as to_out, err.open("wb") as to_err:
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.work,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
                start_new_session=True,
            )
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = 124
            finally:
                end_group(process)
        return status, out.read_text(errors="replace"), err.read_text(errors="replace")

    def start(self, text: str) -> None:
        """A process that commands may look at; its id is in $PID (of several: $PID1, $PID2, ...)."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {text}"],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.background.append(process)
        self.environment[f"PID{len(self.background)}"] = str(process.pid)
        self.environment.setdefault("PID", str(process.pid))

    def close(self) -> None:
        for process in self.background:
            end_group(process)
        shutil.rmtree(self.folder, ignore_errors=True)


def end_group(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def tidy(text: str, scratch: Scratch) -> list[str]:
    """The lines of a text, without what depends on where it was printed."""
    for folder, name in ((scratch.work, ""), (scratch.build, "build/release/"), (ROOT, "")):
        text = text.replace(f"{folder}/", name)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in text.split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def loosened(line: str) -> str:
    """The line without its figures: what a table says whatever was measured."""
    line = re.sub(r"[-+]?\d[\d.,]*([eE][-+]?\d+)?", "#", line)
    return re.sub(r"\s+", " ", line).strip()


def same(shown: list[str], printed: list[str], words_only: bool) -> bool:
    """`...` alone stands for any lines, `...` at the end of a line for the rest of it."""
    if words_only:
        shown, printed = [loosened(each) for each in shown], [loosened(each) for each in printed]
    parts = []
    for line in shown:
        line = line.rstrip()
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        elif line.endswith("..."):
            parts.append(re.escape(line[:-3]) + r".*\n")
        else:
            parts.append(re.escape(line) + r"\n")
    return re.fullmatch("".join(parts), "".join(each + "\n" for each in printed)) is not None


def missing(needs: list[str], tool: Path) -> str:
    """Why a command cannot run here, or nothing."""
    for need in needs:
        if need.startswith("lib/"):
            if not (tool.parent.parent / need).exists():
                return f"{need} was not built"
        elif need.startswith("bin/"):
            if not (tool.parent.parent / need).exists():
                return f"{need} was not built"
        elif shutil.which(need) is None:
            return f"{need} is not installed"
    return ""


class Page:
    def __init__(self, name: str, tool: Path, declared: Declared, verbose: bool):
        self.name, self.tool, self.declared, self.verbose = name, tool, declared, verbose
        self.failures = self.ran = self.compared = self.skipped = 0

    def fail(self, command: Command, text: str, printed: str = "") -> None:
        self.failures += 1
        print(f"FAILED {command.page}:{command.line}: {command.text}\n  {text}")
        for line in printed.splitlines()[-40:]:
            print(f"  | {line}")

    def check(self) -> bool:
        commands, wrong = load(ROOT / self.name, self.declared.programs)
        for each in wrong:
            self.failures += 1
            print(f"FAILED {each}")
        page = self.declared.pages.get(self.name, {})
        scratch = Scratch(self.tool, self.declared)
        try:
            for text in page.get("setup", []):
                status, out, err = scratch.run(text, LIMIT_S)
                if status != 0:
                    print(f"FAILED {self.name}: its setup `{text}` ended with {status}\n{out}{err}")
                    return False
            for text in page.get("background", []):
                scratch.start(text)
            block = -1
            for command in commands:
                if command.block != block and not page.get("one_shell", False):
                    scratch.begin_block()
                    block = command.block
                self.one(command, scratch, page)
        finally:
            scratch.close()
        print(
            f"{self.name}: {len(commands)} commands: {self.ran} ran, {self.compared} of them with the output shown, "
            f"{self.skipped} skipped, {self.failures} failed"
        )
        return self.failures == 0

    def one(self, command: Command, scratch: Scratch, page: dict) -> None:
        rule = self.declared.of(command)
        why = rule.get("skip", "") or missing(rule.get("needs", []) + page.get("needs", []), self.tool)
        if why:
            self.skipped += 1
            print(f"skipped {command.page}:{command.line}: {command.text}\n  because {why}")
            return
        text = rule.get("run", command.text) + (" " + rule["add"] if "add" in rule else "")
        for old, new in page.get("replace", {}).items():
            text = re.sub(rf"\b{re.escape(old)}\b", new, text)
        began = time.monotonic()
        status, out, err = scratch.run(text, LIMIT_S)
        took = time.monotonic() - began
        self.ran += 1
        instead = f" (as `{text}`)" if text != command.text else ""
        if self.verbose:
            print(f"{command.page}:{command.line}: {command.text}{instead}: {status}, {took:.1f} s\n{out}{err}")
        expected = rule.get("status", 0)
        if status not in (expected if isinstance(expected, list) else [expected]):
            self.fail(command, f"ended with {status}, not {expected}, after {took:.1f} s{instead}", out + err)
            return
        how = rule.get("output", "exact")
        if not command.output or how not in ("exact", "words"):
            return
        self.compared += 1
        shown = tidy("\n".join(command.output), scratch)
        if any(same(shown, tidy(each, scratch), how == "words") for each in (out, out + err, err + out)):
            return
        self.fail(command, f"prints something else than the page shows{instead}; it prints", "\n".join(tidy(out + err, scratch)))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", type=Path, required=True)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("pages", nargs="+")
    options = parser.parse_args()
    declared = Declared()
    tool = options.tool.resolve()
    names = [each if not Path(each).is_absolute() else name_of(Path(each)) for each in options.pages]
    good = [Page(each, tool, declared, options.verbose).check() for each in names]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
