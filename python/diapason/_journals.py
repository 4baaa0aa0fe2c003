"""Which journals belong to the last run that this process has set up."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from typing import Dict, List, Tuple

_State = Tuple[int, int, int]


@dataclass(frozen=True)
class _Run:
    pattern: str  # value of DIAPASON_JOURNAL, absolute
    before: Dict[str, _State]  # journals of earlier runs, as they were


_run: _Run | None = None


def _expanded(pattern: str, host: str, process: str) -> Tuple[str, str]:
    """A pattern for glob and a regular expression: %h and %p stand for the host and the process id."""
    wild, expression = "", ""
    for part in re.split(r"(%[hp%])", pattern):
        if part == "%h":
            wild, expression = wild + "*", expression + host
        elif part == "%p":
            wild, expression = wild + "*", expression + process
        else:
            part = "%" if part == "%%" else part
            wild, expression = wild + glob.escape(part), expression + re.escape(part)
    return wild, expression


def _matching(pattern: str, process: str = r"\d+") -> Dict[str, _State]:
    """A process that finds its file in use adds its id to the name."""
    wild, expression = _expanded(pattern, "[^/]+", process)
    states = {}
    for path in glob.glob(wild) + glob.glob(wild + ".*"):
        if re.fullmatch(rf"{expression}(?:\.{process})?", path) and os.path.isfile(path):
            try:
                found = os.stat(path)
            except OSError:  # it was removed meanwhile
                continue
            states[path] = (found.st_ino, found.st_size, found.st_mtime_ns)
    return states


def remember(pattern: str | None) -> None:
    """A run is about to begin whose journals go there; None: it writes none."""
    global _run
    if not pattern:
        _run = None
        return
    pattern = os.path.abspath(pattern)
    _run = _Run(pattern, _matching(pattern))


def of_last_run() -> List[str]:
    """Files that are new or have grown since init() or env(); a RuntimeError where there are none."""
    pattern = os.environ.get("DIAPASON_JOURNAL")
    if _run is not None:
        pattern = _run.pattern
        files = [path for path, state in _matching(pattern).items() if _run.before.get(path) != state]
    elif pattern:  # the launcher has set it: this process's own
        files = list(_matching(os.path.abspath(pattern), str(os.getpid())))
    else:
        raise RuntimeError("diapason.report(): no journal was asked for in this process. Pass journal='j.%h.%p' to diapason.init() or "
                           "diapason.env() before the run, or name the files: diapason.report(files='j.*')")
    if not files:
        raise RuntimeError(f"diapason.report(): the run has written no journal {pattern} (yet). The plugin writes it as soon as the job "
                           "has a communicator; diapason.verify() in the job tells whether the plugin is in it")
    return sorted(files)


def named(files: object) -> List[str]:
    """The files of report(files=...): a name, a pattern such as 'j.*', or a list of them."""
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    if not isinstance(files, (list, tuple, set, frozenset)) or not files:
        raise TypeError(f"diapason.report(): files= takes file names, not {files!r}")
    found: List[str] = []
    for one in files:
        name = os.path.expanduser(os.fsdecode(os.fspath(one)))
        matches = [name] if os.path.exists(name) else sorted(glob.glob(name))
        if not matches:
            raise ValueError(f"diapason.report(): there is no file {name}")
        found += [path for path in matches if path not in found]
    return found
