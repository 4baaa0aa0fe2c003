"""Every setting of the plugin and what it takes, as `diapason settings` prints it.

A copy, so that a wrong value is refused where it was written and not in a line of NCCL's log; a test
compares it with what the tool prints.
"""

from __future__ import annotations

import base64
import difflib
import os
import re
from typing import Any, Callable, Dict, Iterable

PREFIX = "DIAPASON_"

BOUNDS: Dict[str, str] = {
    "MODE": "off, observe, static, learn, compare, tune",
    "POLICY": "text",
    "POLICY_INLINE": "text",
    "POLICY_OVERLAP": "text",
    "OVERLAP": "0 or 1",
    "CHAIN": "text",
    "PROFILER_CHAIN": "text",
    "LIBRARY": "auto, nccl, rccl",
    "FINGERPRINT": "text",
    "REGBUFF": "0 or 1",
    "LL128": "0 or 1",
    "ALLGATHER_CHANNELS": "0 or 1",
    "SINGLE_SHAPE": "0 or 1",
    "NUMERICS": "free, pinned",
    "STORE": "text",
    "JOB": "text",
    "JOIN_LIMIT": "1 to 3600",
    "STORE_PATIENCE": "0 to 86400",
    "REWARD": "auto, step, report, file, pattern, cycle, gpu",
    "REWARD_FILE": "text",
    "STRATEGY": "elimination, epsilon, thompson",
    "EPSILON": "a share: 0.05 or 5%",
    "MARGIN": "a share: 0.05 or 5%",
    "EXPLORE_BUDGET": "a share: 0.05 or 5%",
    "TURN": "20 to 3600000",
    "ARMS": "auto, policy, seed, offered",
    "LEARNED": "text",
    "LEARN_MEMORY": "0 to 1024TiB",
    "FREEZE_FILE": "text",
    "JOURNAL": "text",
    "JOURNAL_RECORDS": "64 to 1048576",
    "JOURNAL_LIMIT": "64KiB to 1024TiB",
    "JOURNAL_SHARED": "0 or 1",
    "JOURNAL_TABLES": "0 or 1",
    "JOURNAL_TIMES": "0 or 1",
    "MPI_RECORD": "text",
    "BACKEND": "auto, nccl, rccl, gloo, mpi, sim",
    "TIMEOUT": "1 to 604800",
    "SECRET_FILE": "text",
    "SECRET": "text",
    "SLOW_CALL": "-1 to 604800000",
    "SLOW_FACTOR": "0 to 1000",
    "CLUSTER": "text",
    "NCCL_LIBRARY": "text",
    "RCCL_LIBRARY": "text",
    "LIB_DIR": "text",
}

_POWERS = "kmgt"


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the name that was meant, or all there are."""
    names = list(known)
    close = difflib.get_close_matches(word.lower(), [name.lower() for name in names], 1)
    return f"; did you mean '{close[0]}'?" if close else f"; known are {', '.join(names)}"


def _bytes_of(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,19}(?:\.\d{1,6})?)\s*(?:([kmgt])(ib|b|)|b)?", text.lower())
    if match is None:
        return None
    power = _POWERS.index(match.group(2)) + 1 if match.group(2) else 0
    return int(float(match.group(1)) * (1000 if match.group(3) == "b" else 1024) ** power)


def _share_of(text: str) -> float | None:
    match = re.fullmatch(r"(\d{1,9}\.?\d{0,15}|\.\d{1,15})\s*(%?)", text)
    return None if match is None else float(match.group(1)) / (100 if match.group(2) else 1)


def _as_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        if BOUNDS[name.upper()] != "0 or 1":  # margin=True is no margin of 1
            raise ValueError(f"{name}={value} cannot be used; it takes {BOUNDS[name.upper()]}")
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):  # never 1e-05, which the plugin does not read
        return f"{value:.9f}".rstrip("0").rstrip(".")
    try:
        text: str = os.fsdecode(os.fspath(value))
    except TypeError:
        raise ValueError(f"{name}: {value!r} is neither text nor a number") from None
    if not text.strip():
        raise ValueError(f"{name}: an empty value sets nothing; leave it out, or pass None")
    if "\0" in text or "\n" in text:
        raise ValueError(f"{name}: {value!r} cannot be in an environment variable")
    return text


def _store_problem(text: str) -> str | None:
    """Never quotes the value, which may hold a password."""
    if text == "shm" or text.startswith("file:/"):
        return None
    if text.startswith("redis://"):
        host = text[len("redis://"):].rsplit("@", 1)[-1].split("/", 1)[0]
        return "redis:// is followed by a host" if not host or host.startswith((":", "[]")) else None
    if text.startswith("file:"):
        return "a folder is written with its full path, as in file:/shared/folder"
    return f"unknown store '{text.split(':', 1)[0]}'; known are shm, file:/a/folder and redis://host:port"


def _inline_problem(text: str) -> str | None:
    """What the form, the checksum and the first number tell; the plugin reads the rest."""
    match = re.fullmatch(r"(d1\.([\w-]{2,}))\.([0-9a-f]{16})", text, re.ASCII)
    if match is None:
        return "it is not what `diapason policy env FILE` writes, or was cut short"
    sum_of_it = 0xCBF29CE484222325  # FNV-1a
    for byte in match.group(1).encode():
        sum_of_it = (sum_of_it ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    if f"{sum_of_it:016x}" != match.group(3):
        return "it does not add up to its checksum: it was cut short or changed"
    library = base64.urlsafe_b64decode(match.group(2)[:2] + "==")[0]
    return None if library < 2 else "the policy is for another library than NCCL and RCCL"


# Texts of which more can be said than that they are text.
_TEXTS: Dict[str, Callable[[str], str | None]] = {"STORE": _store_problem, "POLICY_INLINE": _inline_problem}


def _checked_text(name: str, text: str) -> str:
    look = _TEXTS.get(name.upper())
    problem = look(text) if look else None
    if problem is not None:
        raise ValueError(f"{name} cannot be used: {problem}")
    return text


def checked(name: str, value: Any) -> str:
    """The value as its variable wants it; a ValueError where the plugin would refuse it."""
    text = _as_text(name, value).strip()
    bounds = BOUNDS[name.upper()]
    if bounds == "text":
        return _checked_text(name, text)
    if bounds == "0 or 1":
        if text.lower() in ("0", "1", "on", "off", "yes", "no", "true", "false"):
            return text
    elif bounds.startswith("a share"):
        share = _share_of(text)
        if share is not None and share <= 1:
            return text
    elif " to " in bounds:
        low, high = (_bytes_of(end) if not end.startswith("-") else int(end) for end in bounds.split(" to "))
        number = int(text) if re.fullmatch(r"-?\d{1,18}", text) else None
        if number is None and "B" in bounds:
            number = _bytes_of(text)
        if number is not None and low is not None and high is not None and low <= number <= high:
            return text
    else:
        choices = bounds.split(", ")
        if text.lower() in choices:
            return text.lower()
        raise ValueError(f"{name}='{text}' is not one of its values{suggestion(text, choices)}")
    raise ValueError(f"{name}='{text}' cannot be used; it takes {bounds}")
