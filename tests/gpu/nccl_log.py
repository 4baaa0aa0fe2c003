"""Reads NCCL's own log (NCCL_DEBUG=INFO): which tuner was loaded, and what really ran.

The texts are those of NCCL 2.24 to 2.30 (the same in 2.28.9, which PyTorch 2.11 carries):
  enqueue.cc        "%s: %ld Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}"  (rank 0 only)
  plugin/tuner.cc   "Successfully loaded external tuner plugin %s"                (the file's path)
  plugin/tuner/*    "TUNER/Plugin: Using %s (v5)", "TUNER/Plugin: Using tuner plugin %s" before 2.28
Each line starts with "host:pid:tid [device] NCCL INFO ", which may have a time stamp before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, order=True)
class Config:
    """What ran for one collective call, in lower case as in a policy file."""

    algorithm: str
    protocol: str
    channels: int

    def __str__(self) -> str:
        return f"{self.algorithm}/{self.protocol} ch{self.channels}"


@dataclass
class NcclLog:
    """What the logs of one group say."""

    ran: dict[tuple[str, int], set[Config]] = field(default_factory=dict)
    loaded: list[str] = field(default_factory=list)  # paths of external tuner plugins
    using: list[str] = field(default_factory=list)  # "name (v5)"
    warnings: list[str] = field(default_factory=list)

    def configs(self, collective: str, nbytes: int) -> set[Config]:
        return self.ran.get((collective, nbytes), set())


# search, not match: what stands before "NCCL INFO" depends on NCCL_DEBUG_TIMESTAMP_*.
_RAN = re.compile(
    r"NCCL INFO (?P<collective>\w+): (?P<bytes>\d+) Bytes -> Algo (?P<algorithm>\w+) "
    r"proto (?P<protocol>\w+) channel\{Lo\.\.Hi\}=\{(?P<lo>\d+)\.\.(?P<hi>\d+)\}"
)
_LOADED = re.compile(r"NCCL INFO Successfully loaded external tuner plugin (?P<path>.+?)\s*$")
_USING = re.compile(
    r"NCCL INFO TUNER/Plugin: Using (?:tuner plugin )?(?P<name>(?!internal tuner).+?)\s*$"
)
_WARNING = re.compile(r"NCCL WARN (?P<text>.*\S)")


def parse(text: str, into: NcclLog | None = None) -> NcclLog:
    """Adds the lines of one log file; lines of no interest are skipped."""
    log = into if into is not None else NcclLog()
    for line in text.splitlines():
        if found := _RAN.search(line):
            channels = int(found["hi"]) - int(found["lo"]) + 1
            config = Config(found["algorithm"].lower(), found["protocol"].lower(), channels)
            key = (found["collective"].lower(), int(found["bytes"]))
            log.ran.setdefault(key, set()).add(config)
        elif found := _LOADED.search(line):
            log.loaded.append(found["path"])
        elif found := _USING.search(line):
            log.using.append(found["name"])
        elif found := _WARNING.search(line):
            log.warnings.append(found["text"])
    return log


def parse_file(path: Path, into: NcclLog | None = None) -> NcclLog:
    # A rank that was ended in the middle of a line may leave broken bytes.
    return parse(path.read_text(encoding="utf-8", errors="replace"), into)
