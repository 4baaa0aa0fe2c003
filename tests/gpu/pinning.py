"""Part A, the pin: does a program reach the plugin in its process, and does NCCL run what it pins?"""

from __future__ import annotations

from pathlib import Path

import group
import nccl_log
import verify
from nccl_log import Config

# algorithm and protocol as the library numbers them, channels, bytes, what NCCL must report. Each size
# is used once, so that the log tells the pins apart. None: the library does not offer the pair between
# nodes without NVLink, so the pin must not be applied.
PINS = [
    (0, 0, 1, 64 << 10, Config("tree", "ll", 1)),
    (1, 2, 1, 256 << 10, Config("ring", "simple", 1)),
    (0, 2, 2, 1 << 20, Config("tree", "simple", 2)),
    (4, 2, 0, 16 << 10, None),
]


def run(setting: group.Setting, plugin: Path, found: verify.Verified) -> None:
    """Adds what is wrong to 'found'."""
    one = group.Group(setting, "verify-pinned", {"NCCL_TUNER_PLUGIN": str(plugin)}, log=True)
    answers = []
    try:
        one.start()
        one.wait_ready()
        for algorithm, protocol, channels, nbytes, _ in PINS:
            answers.append(one.ask(f"pin {algorithm} {protocol} {channels} {nbytes // 4}"))
    finally:
        verify.leaving(group.close([one]), found)
    log = nccl_log.NcclLog()
    for rank in range(setting.ranks):
        nccl_log.parse_file(one.path("nccl.log", rank), log)
    for (algorithm, protocol, channels, nbytes, want), ranks in zip(PINS, answers):
        pin = f"pin {algorithm}/{protocol} ch{channels} at {nbytes} bytes"
        found.failures += verify.wrong_sums(pin, ranks)
        for rank, answer in enumerate(ranks):
            expected = answer["asked"] if want else 0
            if answer["asked"] < 1 or answer["applied"] != expected:
                found.failures.append(
                    f"{pin}: rank {rank} was asked {answer['asked']} times, applied {answer['applied']}"
                )
        ran = log.configs(verify.COLLECTIVE, nbytes)
        wrong = {c for c in ran if want and ((c.algorithm, c.protocol) != (want.algorithm, want.protocol)
                                             or c.channels > want.channels)}
        if wrong or not ran:
            found.failures.append(f"{pin}: NCCL's log shows {' and '.join(map(str, ran)) or 'nothing'}")
    found.pins = len(PINS)
