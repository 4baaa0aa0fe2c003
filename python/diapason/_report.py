"""report(): what a run has chosen, as its journals have it, for people in notebooks."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from html import escape
from typing import Any, Dict, List, Literal, Mapping, Sequence, Tuple, overload

from . import _journals, _plugin, _tool
from ._types import PathLike

Row = Dict[str, Any]
_Key = Tuple[Any, ...]
_MISSING: Any = object()
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_CALLS = ("communicator", "collective", "bytes", "ranks", "calls", "replays", "asked", "ran", "default", "us", "reason")
_LEARNING = ("communicator", "collective", "up_to", "configuration", "blocks", "samples", "us", "ratio", "state", "of")


@dataclass(frozen=True, repr=False)
class Report:
    """What the journals of a run say. Notebooks show it as tables; frame() is a pandas DataFrame."""

    files: List[str]
    agree: bool | None  #: whether all ranks ran the same; None: it could not be compared (one journal)
    verdict: str  #: of `diapason journal check`
    problems: List[str]
    notes: List[str]
    modes: List[str]  #: of the communicators
    calls: List[Row] = field(default_factory=list)  #: counted by communicator, collective, size and configuration, all ranks together
    learning: List[Row] = field(default_factory=list)  #: what learning has tried, and what came out

    def frame(self, table: Literal["calls", "learning"] = "calls") -> Any:
        """The table as a pandas DataFrame. Only this needs pandas."""
        if table not in ("calls", "learning"):
            raise ValueError(f"frame(): there is no table '{table}'; known are calls, learning")
        try:
            import pandas
        except ImportError as error:
            raise RuntimeError(f"diapason.report().frame() needs pandas, which cannot be imported: {error}. The rows are in "
                               f".{table}, a list of dicts") from None
        columns = _CALLS if table == "calls" else _LEARNING
        return pandas.DataFrame(self.calls if table == "calls" else self.learning, columns=list(columns))

    def __repr__(self) -> str:
        return f"<diapason.Report of {len(self.files)} journal{'s' if len(self.files) != 1 else ''}: {self.verdict}>"

    def __str__(self) -> str:
        lines = [f"diapason: {self.verdict}"] + [f"diapason: problem: {one}" for one in self.problems]
        lines += [f"diapason: note: {one}" for one in self.notes]
        for rows, columns in ((self.calls, _CALLS), (self.learning, _LEARNING)):
            lines += [""] + _text_table(rows, columns) if rows else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<p><b>diapason</b>: {escape(self.verdict)}</p>"]
        said = [f"problem: {one}" for one in self.problems] + self.notes
        if said:
            parts.append("<ul>" + "".join(f"<li>{escape(one)}</li>" for one in said) + "</ul>")
        for rows, columns in ((self.calls, _CALLS), (self.learning, _LEARNING)):
            if rows:
                head = "".join(f"<th>{escape(one.replace('_', ' '))}</th>" for one in columns)
                body = "".join("<tr>" + "".join(f"<td>{escape(_cell(one, row[one]))}</td>" for one in columns) + "</tr>" for row in rows)
                parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        return "".join(parts)


def _size(number: int) -> str:
    unit = 0
    while number and number % 1024 == 0 and unit + 1 < len(_UNITS):
        number, unit = number // 1024, unit + 1
    return f"{number}{_UNITS[unit]}"


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    if column in ("bytes", "up_to"):
        return _size(value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _text_table(rows: Sequence[Row], columns: Sequence[str]) -> List[str]:
    cells = [[one.replace("_", " ") for one in columns]] + [[_cell(one, row[one]) for one in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in cells]


def _configuration(one: Mapping[str, Any], of_default: str) -> str:
    if one["algorithm"] == "-1":
        return of_default
    channels = f", {one['channels']} channel{'s' if one['channels'] != 1 else ''}" if one["channels"] else ""
    return f"{one['algorithm']}/{one['protocol']}{channels}"


class _Counted:
    """Rows of the table of calls, over the journals of all ranks."""

    def __init__(self) -> None:
        self._rows: Dict[_Key, Row] = {}
        self._times: Dict[_Key, List[float]] = {}
        self._ranks: Dict[_Key, set[_Key]] = {}

    def _row(self, key: _Key, rank: _Key) -> Row:
        self._ranks.setdefault(key, set()).add(rank)
        names = ("communicator", "collective", "bytes", "asked", "ran", "default", "reason")
        return self._rows.setdefault(key, {**dict(zip(names, key)), "calls": 0, "replays": 0})

    def add(self, journal: int, contents: Mapping[str, Any], names: Mapping[int, str]) -> None:
        asked = {(one["comm"], one["call"]): one for one in contents["decisions"]}
        ran: set[_Key] = set()
        for run in contents["runs"]:
            which = (run["comm"], run["call"])
            key = _key_of(names, run, asked.get(which), _configuration(run, "nameless"))
            self._row(key, (journal, run["comm"]))["replays" if which in ran and run["call"] else "calls"] += 1
            ran.add(which)
            if "us" in run:
                self._times.setdefault(key, []).append(run["us"])
        for which, decision in asked.items():
            if which not in ran:
                self._row(_key_of(names, decision, decision, "not seen"), (journal, which[0]))["calls"] += 1
        for one in contents["bypassed"]:
            self._row(_key_of(names, one, None, "bypassed"), (journal, one["comm"]))["calls"] += 1

    def rows(self) -> List[Row]:
        for key, row in self._rows.items():
            times = self._times.get(key)
            row.update(ranks=len(self._ranks[key]), us=statistics.median(times) if times else None)
        found = sorted(self._rows.values(), key=lambda row: (row["communicator"], row["collective"], row["bytes"], -row["calls"]))
        return [{name: row[name] for name in _CALLS} for row in found]


def _key_of(names: Mapping[int, str], call: Mapping[str, Any], decision: Mapping[str, Any] | None, ran: str) -> _Key:
    if decision is None:
        return names.get(call["comm"], "?"), call["collective"], call["bytes"], "", ran, "", "not asked"
    default = {"algorithm": decision["default_algorithm"], "protocol": decision["default_protocol"], "channels": 0}
    return (names.get(call["comm"], "?"), call["collective"], call["bytes"], _configuration(decision, "library default"), ran,
            _configuration(default, ""), decision["reason"])


def _learned(contents: Mapping[str, Any], names: Mapping[int, str]) -> Dict[_Key, List[Row]]:
    found: Dict[_Key, List[Row]] = {}
    for context in contents["learning"]:
        key = (names.get(context["comm"], "?"), context["collective"], 1 << context["band"])
        found[key] = [{
            "communicator": key[0], "collective": key[1], "up_to": key[2], "configuration": _configuration(arm, "library default"),
            "blocks": arm["blocks"], "samples": arm["samples"], "us": arm["us"], "ratio": arm["ratio"], "state": arm["state"],
            "of": "iterations" if context["iterations"] else "calls"} for arm in context["arms"]]
    return found


def read(files: List[str]) -> Report:
    """The journals, one at a time: in memory are the lines of the largest."""
    counted, learning, modes = _Counted(), {}, []  # type: _Counted, Dict[_Key, List[Row]], List[str]
    for journal, file in enumerate(files):
        contents = _tool.read_journals("show", [file])[0]
        names = {one["comm"]: str(one.get("name") or one["id"]) for one in contents["communicators"]}
        modes += [one["mode"] for one in contents["communicators"] if one["mode"] not in modes]
        counted.add(journal, contents, names)
        for key, rows in _learned(contents, names).items():
            if sum(row["samples"] for row in rows) > sum(row["samples"] for row in learning.get(key, [])):
                learning[key] = rows  # rank 0 has all of them
    check = _tool.read_journals("check", files)
    alone = len(files) == 1 and check["compared_communicators"] == 0
    return Report(files, None if alone else check["agree"], check["verdict"], [] if alone else check["problems"], check["notes"], modes,
                  counted.rows(), [row for key in sorted(learning) for row in learning[key]])


@overload
def report(*, files: PathLike | Sequence[PathLike] | None = None) -> Report: ...


@overload
def report(collective: str, nbytes: int, milliseconds: float) -> bool: ...


def report(collective: Any = _MISSING, nbytes: Any = _MISSING, milliseconds: Any = _MISSING, *, files: Any = None) -> Any:
    """What the last run has chosen (no arguments, or files=); or the time of one call (three arguments).

        diapason.report()                                 # journals of the run that init() or env() has set up
        diapason.report(files="j.*")                      # these journals
        diapason.report("allreduce", nbytes, milliseconds)

    report() reads the journals that were written since init(journal=...) or env(journal=...) was called here, or,
    where the launcher has set DIAPASON_JOURNAL, that of this process, and returns a Report. No journal, or one that
    cannot be read, is a RuntimeError.

    With three arguments: one call of a collective took this long, by the program's own clock. For programs that time
    their calls: report each before the next of its kind, on rank 0. `nbytes` is counted as the library does (for
    allgather and reducescatter those of all ranks). True if a learner takes it, False if none does or the plugin is
    not there. With the plugin and without, an unknown collective or an impossible time is a ValueError, and what is no
    name or no number a TypeError.
    """
    missing = [one is _MISSING for one in (collective, nbytes, milliseconds)]
    if not any(missing) and files is None:
        return _plugin.report(collective, nbytes, milliseconds)
    if not all(missing):
        raise TypeError("report(): it takes a collective, its bytes and its milliseconds, or files=, or nothing")
    return read(_journals.of_last_run() if files is None else _journals.named(files))
