"""verify(): is the plugin really in this job, the same on every rank, and are the results right?"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List

from . import _plugin
from ._version import __version__

_RECORD = 4096  # bytes each rank tells the others about itself
_LONGEST = 300  # characters of one fact


@dataclass(frozen=True)
class Verification:
    """What verify() has found; the same on every rank but for `rank`, `plugin` and `library`."""

    ok: bool  #: no problems
    backend: str  #: of the process group: nccl, gloo, ...
    rank: int
    ranks: int
    plugin: str | None  #: file of the plugin in this process
    version: str | None  #: its version
    library: str | None  #: file of NCCL or RCCL in this process
    library_version: str | None
    mode: str  #: DIAPASON_MODE as this process has it
    loaded: int  #: ranks that have the plugin
    exact: bool  #: sums came out right on every rank
    nbytes: int  #: of the all_reduce
    first_ms: float  #: of the first call, which connects; slowest rank
    median_us: float  #: of the later calls; slowest rank
    problems: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    def __str__(self) -> str:
        library = f"NCCL {self.library_version}" if self.library_version else self.backend
        who = f"diapason {self.version}" if self.version else "no plugin"
        where = f"on {self.loaded} of {self.ranks} ranks, mode {self.mode}" if self.loaded else f"on any of {self.ranks} ranks"
        lines = [f"diapason: {who} in {library} {where}",
                 f"diapason: all_reduce of {self.nbytes} bytes: {'exact' if self.exact else 'WRONG'}, {self.median_us:.0f} us "
                 f"(the first {self.first_ms:.0f} ms)"]
        lines += [f"diapason: problem: {text}" for text in self.problems]
        return "\n".join(lines + [f"diapason: note: {text}" for text in self.notes])


def _wait(work: Any, what: str, end: float, seconds: float) -> None:
    """A wait that ends. Blocking ones would hang with the group."""
    spins = 0
    while not work.is_completed():
        if time.monotonic() > end:
            raise RuntimeError(f"diapason.verify(): {what} did not end in {seconds:.0f} s: a rank is missing, hangs, or runs another "
                               "configuration than the others. The process group cannot be used any more")
        spins += 1
        time.sleep(0 if spins < 2000 else 0.0005)
    work.wait()


def _pattern(torch: Any, count: int, rank: int, device: Any) -> Any:
    """Whole numbers that differ by rank and element; their sums are exact in float32."""
    return ((torch.arange(count, device=device) * (rank + 3)) % 251).to(torch.float32)


def _policy_digest() -> str:
    """Of what the plugin was given to read; equal text, equal digest."""
    inline = os.environ.get("DIAPASON_POLICY_INLINE", "")
    if inline:
        return hashlib.sha256(inline.encode()).hexdigest()[:16]
    name = os.environ.get("DIAPASON_POLICY") or os.environ.get("NCCL_TUNER_CONFIG_FILE") or ""
    name = name or os.environ.get("DIAPASON_LEARNED", "")
    try:
        with open(name, "rb") as file:
            return hashlib.sha256(file.read(16 << 20)).hexdigest()[:16]
    except OSError:
        return "none"


def _mode() -> str:
    return os.environ.get("DIAPASON_MODE", "").strip().lower() or "static"


def _exchange(torch: Any, dist: Any, facts: Dict[str, Any], group: Any, device: Any, ranks: int,
              end: float, seconds: float) -> List[Dict[str, Any]]:
    text = json.dumps({k: v[:_LONGEST] if isinstance(v, str) else v for k, v in facts.items()}).encode()
    mine = torch.tensor(list(text.ljust(_RECORD)), dtype=torch.uint8, device=device)
    everyone = [torch.zeros(_RECORD, dtype=torch.uint8, device=device) for _ in range(ranks)]
    _wait(dist.all_gather(everyone, mine, group=group, async_op=True), "the all_gather of what the ranks say", end, seconds)
    return [json.loads(bytes(one.cpu().tolist())) for one in everyone]


def _which(facts: List[Dict[str, Any]], test: Callable[[Dict[str, Any]], bool]) -> str:
    """'rank 2', 'ranks 0, 3', 'ranks 0, 1, 2, 3 and 12 more'."""
    ranks = [rank for rank, one in enumerate(facts) if test(one)]
    more = f" and {len(ranks) - 4} more" if len(ranks) > 4 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:4]))}{more}"


def _differ(facts: List[Dict[str, Any]], key: str, what: str) -> List[str]:
    """One problem where ranks do not have the same."""
    mine = facts[0][key]
    others = [one[key] for one in facts if one[key] != mine]
    if not others:
        return []
    return [f"{what}: {mine} on rank 0, {others[0]} on {_which(facts, lambda one: bool(one[key] != mine))}"]


def _judge(facts: List[Dict[str, Any]], nccl: bool) -> List[str]:
    problems = []
    if not all(one["exact"] for one in facts):
        problems.append(f"the all_reduce gave wrong sums on {_which(facts, lambda one: not one['exact'])}")
    loaded = [one for one in facts if one["version"]]
    if not nccl:
        return problems
    if not loaded:
        set_to = facts[0]["variable"]
        why = f"NCCL_TUNER_PLUGIN is {set_to}; NCCL_DEBUG=INFO says why it was not loaded" if set_to else \
            "NCCL_TUNER_PLUGIN is not set; call diapason.init() before init_process_group()"
        return problems + [f"the plugin is on no rank: {why}"]
    if len(loaded) < len(facts):
        problems.append(f"{_which(facts, lambda one: not one['version'])} has no plugin and the others do: ranks that choose differently "
                        "hang. Set the same variables on every rank")
    problems += _differ(loaded, "version", "different versions of the plugin") if len(loaded) == len(facts) else []
    problems += _differ(facts, "mode", "different modes")
    if not all(one["store"] for one in facts):  # with a store all use the policy of the first
        problems += _differ(facts, "policy", "different policies (digests)")
    return problems + _differ(facts, "library_version", "different versions of the library")


def verify(group: Any = None, *, strict: bool = True, timeout: float = 60.0, elements: int = 65537, calls: int = 10,
           max_us: float | None = None, device: Any = None) -> Verification:
    """Is the plugin in this process and on all ranks, the same everywhere, and are sums right?

    Call it on every rank of the group, after init() and the creation of the process group (on GPUs after
    torch.cuda.set_device). It runs an all_reduce whose result is known, times it, and lets the ranks compare
    what they loaded and were told. Every wait ends after `timeout` seconds.

    strict    True: problems are a RuntimeError, on every rank alike; False: they are in the result
    elements  float32 values of the all_reduce
    calls     timed calls after the first
    max_us    a median above it is a problem; None: any time is fine
    device    where the tensors are; None: the current GPU for NCCL, else the CPU

    Needs torch; a group that is not on NCCL is fine, and has nothing to tune.
    """
    try:
        import torch
        import torch.distributed as dist
    except (ImportError, OSError) as error:
        raise RuntimeError(f"diapason.verify() needs torch, which cannot be imported: {error}") from None
    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError("diapason.verify() comes too early: call it after torch.distributed.init_process_group()")
    if elements < 1 or calls < 1 or not timeout > 0:
        raise ValueError("elements and calls are at least 1, timeout is above 0")
    backend = str(dist.get_backend(group))
    nccl = "nccl" in backend or (backend == "undefined" and torch.cuda.is_available())
    if device is None:
        device = torch.device("cuda", torch.cuda.current_device()) if nccl else torch.device("cpu")
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise RuntimeError("diapason.verify() was called on a rank that is not part of the group")
    end = time.monotonic() + timeout

    want = sum(_pattern(torch, elements, other, device) for other in range(ranks))
    times, exact = [], True
    for _ in range(calls + 1):
        data = _pattern(torch, elements, rank, device)
        if nccl:
            torch.cuda.synchronize(device)
        begin = time.perf_counter()
        _wait(dist.all_reduce(data, group=group, async_op=True), "an all_reduce", end, timeout)
        times.append(time.perf_counter() - begin)
        exact = exact and bool(torch.equal(data, want))

    library, library_version = _plugin.collective_library() if nccl else (None, None)
    if nccl and library_version is None:
        library_version = ".".join(str(part) for part in torch.cuda.nccl.version())
    facts = _exchange(torch, dist, {
        "exact": exact, "version": _plugin.version() if nccl else None, "mode": _mode(), "policy": _policy_digest(),
        "store": os.environ.get("DIAPASON_STORE", "") or ("shm" if _mode() == "learn" else ""),
        "library_version": library_version, "variable": os.environ.get("NCCL_TUNER_PLUGIN", ""), "host": platform.node(),
        "first": times[0], "median": statistics.median(times[1:]), "package": __version__,
    }, group, device, ranks, end, timeout)

    problems = _judge(facts, nccl)
    median = max(one["median"] for one in facts) * 1e6
    if max_us is not None and median > max_us:
        problems.append(f"the all_reduce of {elements * 4} bytes took {median:.0f} us, more than {max_us:.0f} us")
    notes = [] if nccl else [f"the backend is {backend}: there is nothing to tune here, the plugin is for NCCL and RCCL"]
    if ranks == 1:
        notes.append("the group has one rank: the library never asks about it")
    found = Verification(
        not problems, backend, rank, ranks, _plugin.loaded_path() if nccl else None, facts[rank]["version"], library, library_version,
        _mode(), sum(1 for one in facts if one["version"]), all(one["exact"] for one in facts), elements * 4,
        max(one["first"] for one in facts) * 1e3, median, problems, notes)
    if strict and problems:
        raise RuntimeError("diapason.verify(): " + "; ".join(problems))
    return found
