"""The two files of the plugin that this proof reads: the policy (its input), the journal (its output)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

COLUMNS = 10
ANY = -1


class PolicyError(ValueError):
    """The policy cannot be read; says which line."""


@dataclass(frozen=True)
class Row:
    """One policy row; None is 'leave it to the library'."""

    line: int
    collective: str
    min_bytes: int
    max_bytes: int
    algorithm: str | None
    protocol: str | None
    channels: int | None
    nodes: int
    ranks: int
    pipe_ops: int
    reg_buff: int

    def matches(self, collective: str, nbytes: int, nodes: int, ranks: int) -> bool:
        """For a single call on plain buffers: one pipelined operation, nothing registered."""
        return (
            self.collective == collective
            and self.min_bytes <= nbytes
            and (self.max_bytes == ANY or nbytes <= self.max_bytes)
            and self.nodes in (ANY, nodes)
            and self.ranks in (ANY, ranks)
            and self.pipe_ops in (ANY, 1)
            and self.reg_buff in (ANY, 0)
        )

    def __str__(self) -> str:
        channels = "" if self.channels is None else f" ch<={self.channels}"
        return f"{self.algorithm or 'any'}/{self.protocol or 'any'}{channels}"


def _row(number: int, text: str) -> Row:
    cells = [cell.strip().lower() for cell in text.split(",")]
    if len(cells) != COLUMNS:
        raise PolicyError(f"line {number}: {len(cells)} columns, not {COLUMNS}")
    try:
        low, high, channels, nodes, ranks, pipe_ops, reg_buff = (
            int(cells[i]) for i in (1, 2, 5, 6, 7, 8, 9)
        )
    except ValueError as error:
        raise PolicyError(f"line {number}: {error}") from None
    algorithm, protocol = (None if c == str(ANY) else c for c in cells[3:5])
    asked = channels if channels > 0 else None
    return Row(number, cells[0], low, high, algorithm, protocol, asked, nodes, ranks, pipe_ops, reg_buff)


def parse_policy(text: str) -> list[Row]:
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip()
        if content:
            rows.append(_row(number, content))
    return rows


def expected(rows: list[Row], collective: str, nbytes: int, nodes: int, ranks: int) -> Row | None:
    """The first row that matches decides; None where the policy leaves the call alone."""
    return next((row for row in rows if row.matches(collective, nbytes, nodes, ranks)), None)


def read_decisions(path: Path) -> list[dict]:
    """The decision records of one journal; other records are skipped, a broken line is an error."""
    decisions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"journal {path.name}, line {number}: not JSON ({error})") from None
        if not isinstance(record, dict):
            raise ValueError(f"journal {path.name}, line {number}: not an object")
        if record.get("type") == "decision":
            decisions.append(record)
    return decisions
