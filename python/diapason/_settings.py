"""Every setting of the plugin and what it takes, as `diapason settings` prints it.

A copy, so that a wrong value is refused where it was written and not in a line of NCCL's log; a test
compares it with what the tool prints.
"""

from __future__ import annotations

import difflib
import os
import re
from typing import Any, Dict, Iterable

PREFIX = "DIAPASON_"

BOUNDS: Dict[str, str] = {
    "MODE": "off, observe, static, learn",
    "POLICY": "text",
    "POLICY_INLINE": "text",
    "POLICY_OVERLAP": "text",
    "OVERLAP": "0 or 1",
    "CHAIN": "text",
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
    "REWARD": "auto, step, report, file, pattern, gpu",
    "REWARD_FILE": "text",
    "STRATEGY": "elimination, epsilon, thompson",
    "EPSILON": "a share: 0.05 or 5%",
    "MARGIN": "a share: 0.05 or 5%",
    "EXPLORE_BUDGET": "a share: 0.05 or 5%",
    "ARMS": "auto, policy, seed, offered",
    "LEARNED": "text",
    "LEARN_MEMORY": "0 to 1024TiB",
    "JOURNAL": "text",
    "JOURNAL_RECORDS": "64 to 1048576",
    "JOURNAL_LIMIT": "64KiB to 1024TiB",
    "JOURNAL_TABLES": "0 or 1",
    "JOURNAL_TIMES": "0 or 1",
    "BACKEND": "auto, nccl, rccl, gloo, mpi, sim",
    "TIMEOUT": "1 to 604800",
    "SLOW_CALL": "-1 to 604800000",
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
        return "1" if value else "0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):  # never 1e-05, which the plugin does not read
        return f"{value:.9f}".rstrip("0").rstrip(".")
    try:
        text = os.fspath(value)
    except TypeError:
        raise ValueError(f"{name}: {value!r} is neither text nor a number") from None
    text = os.fsdecode(text)
    if not text or "\0" in text or "\n" in text:
        raise ValueError(f"{name}: {value!r} cannot be in an environment variable")
    return text


def checked(name: str, value: Any) -> str:
    """The value as its variable wants it; a ValueError where the plugin would refuse it."""
    text = _as_text(name, value).strip()
    bounds = BOUNDS[name.upper()]
    if bounds == "text":
        return text
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
