"""The command-line tool that comes with the package: `diapason ...`, `python -m diapason ...`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, List

from ._files import find_tool

_SECONDS = 20.0
_JOURNAL_SECONDS = 120.0
_LARGEST_POLICY = 16 << 20  # beyond it the plugin refuses a file
_LIBRARIES = ("nccl", "rccl")  # that load the plugin


@dataclass
class PolicyCheck:
    """What is known of a policy file. `digest` is None where the tool could not be asked."""

    errors: List[str] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)
    digest: str | None = None


def _run(arguments: List[str], seconds: float = _SECONDS) -> subprocess.CompletedProcess[bytes] | None:
    """None where there is no tool, or it does not run here."""
    tool = find_tool()
    if tool is None:
        return None
    # A setting that is wrong in this environment is not what is asked about.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DIAPASON_")}
    try:
        return subprocess.run([tool, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds, env=environment)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _check_alone(path: str) -> str | None:
    """What can be said of a policy without the tool."""
    try:
        if not os.path.isfile(path):
            return "there is no such file" if not os.path.exists(path) else "it is not a file"
        with open(path, "rb") as file:
            content = file.read(_LARGEST_POLICY + 1)
    except OSError as error:
        return error.strerror or str(error)
    if len(content) > _LARGEST_POLICY:
        return "it is larger than 16 MiB"
    return "it is not text" if b"\0" in content else None


def _wrong_library(policy_for: str, library: str | None) -> str | None:
    """Gloo and Open MPI have policies too, and load no plugin."""
    wanted = (library,) if library in _LIBRARIES else _LIBRARIES
    return None if policy_for in wanted else f"the policy is for {policy_for}, not for {' or '.join(wanted)}"


def check_policy(path: str, library: str | None = None) -> PolicyCheck:
    """The policy as the plugin will read it."""
    alone = _check_alone(path)
    if alone is not None:
        return PolicyCheck([f"the policy {path} cannot be used: {alone}"])
    arguments = ["policy", "check", "--json", path]
    done = _run(arguments + (["--library", library] if library in _LIBRARIES else []))
    try:
        said = json.loads(done.stdout)[0] if done is not None else None
        if said is None:
            return PolicyCheck()
        found = PolicyCheck(digest=str(said["digest"]))
        for one in said["diagnostics"]:
            text = f"{path}:{one['line']}:{one['column']}: {one['message']}"
            (found.errors if one["severity"] == "error" else found.warnings).append(text)
        if not said["ok"] and not found.errors:
            found.errors.append(f"{path} is refused by `diapason policy check`")
        wrong = _wrong_library(str(said["library"]), library)
        if wrong is not None:
            found.errors.insert(0, f"{path}: {wrong}")
        return found
    except (ValueError, KeyError, IndexError, TypeError):
        return PolicyCheck()  # killed, or another program of the same name


def inline_policy(path: str) -> str:
    """The whole policy as the value of DIAPASON_POLICY_INLINE."""
    done = _run(["policy", "env", path])
    name = b"DIAPASON_POLICY_INLINE="
    if done is None:
        raise ValueError("inline=True needs the command-line tool, and there is none that runs here")
    for line in done.stdout.splitlines():
        start = line.find(name)
        if done.returncode == 0 and start >= 0:
            return line[start + len(name):].decode("ascii", "replace").strip()
    said = done.stderr.decode("utf-8", "replace").strip()
    raise ValueError(f"`diapason policy env {path}` failed: {said or f'exit status {done.returncode}'}")


def read_journals(command: str, files: List[str]) -> Any:
    """What `diapason journal COMMAND --json FILES` prints; a RuntimeError where it cannot be had."""
    paths = [os.path.abspath(one) for one in files]  # none of them looks like an option
    done = _run(["journal", command, "--json", *paths], _JOURNAL_SECONDS)
    if done is None:
        why = "there is none that runs here" if find_tool() is None else f"it did not run, or took more than {_JOURNAL_SECONDS:.0f} s"
        raise RuntimeError(f"diapason.report() needs the command-line tool, and {why}")
    try:
        said = json.loads(done.stdout)
    except ValueError:
        text = done.stderr.decode("utf-8", "replace").strip() or f"exit status {done.returncode}"
        raise RuntimeError(f"diapason.report(): `diapason journal {command}` failed: {text}") from None
    if isinstance(said, dict) and "error" in said:
        raise RuntimeError(f"diapason.report(): {said['error']}")
    return said


def main() -> int:
    """Becomes the tool. Returns only where there is none."""
    tool = find_tool()
    if tool is None:
        print("diapason: there is no command-line tool beside this package, and none in PATH. The wheel has it, and so "
              "has the Debian package diapason", file=sys.stderr)
        return 1
    sys.stdout.flush()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and exec would keep that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(tool, [tool, *sys.argv[1:]])
    except OSError as error:
        print(f"diapason: {tool} does not run here: {error.strerror}", file=sys.stderr)
    return 1
