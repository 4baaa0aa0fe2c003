"""diapason for Python programs: tells the plugin in this process what an iteration is.

    import diapason
    for batch in loader:
        ...                  # forward, backward, optimizer
        diapason.step()      # once per iteration, on every rank

Nothing here loads anything: the collective library loads the plugin when the first communicator is
created (NCCL_TUNER_PLUGIN and NCCL_PROFILER_PLUGIN, or NCCL_ENV_PLUGIN alone). Without it every
call returns at once and does nothing, so a program can keep them in.
"""

from __future__ import annotations

import ctypes
import os

__all__ = ["available", "report", "step", "version"]

_NAME = "libnccl-tuner-diapason.so"
_LOOK_EVERY = 64  # calls between two looks for a plugin that is not there (yet)

_plugin: ctypes.CDLL | None = None
_looked = 0


def _find() -> ctypes.CDLL | None:
    """The plugin, if the collective library has loaded it into this process."""
    global _plugin, _looked
    if _plugin is not None:
        return _plugin
    _looked += 1
    if _looked % _LOOK_EVERY != 1:
        return None
    try:
        plugin = ctypes.CDLL(_NAME, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        plugin.diapason_version.restype = ctypes.c_char_p
        plugin.diapason_step.restype = None
        plugin.diapason_step.argtypes = []
        plugin.diapason_report.restype = ctypes.c_int
        plugin.diapason_report.argtypes = [ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_double]
    except (OSError, AttributeError):  # not loaded, or one that is older than this package
        return None
    _plugin = plugin
    return plugin


def available() -> bool:
    """Whether the plugin is in this process."""
    global _looked
    _looked = 0
    return _find() is not None


def version() -> str | None:
    """The plugin's version; None where there is none."""
    plugin = _find()
    return None if plugin is None else plugin.diapason_version().decode()


def step() -> None:
    """An iteration has ended. Call it once per iteration, on every rank."""
    plugin = _find()
    if plugin is not None:
        plugin.diapason_step()


def report(collective: str, nbytes: int, milliseconds: float) -> bool:
    """One call of a collective took this long, by the program's own clock.

    True if somebody learns from it. An unknown collective or an impossible time is a ValueError.
    """
    plugin = _find()
    if plugin is None:
        return False
    if not 0 <= nbytes < 1 << 63:
        raise ValueError(f"{nbytes} is no number of bytes")
    answer = plugin.diapason_report(collective.encode(), nbytes, milliseconds)
    if answer < 0:
        raise ValueError(f"no collective '{collective}', or no time: {milliseconds} ms")
    return answer == 0
