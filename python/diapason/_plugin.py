"""The plugin that the collective library has loaded into this process, through ctypes."""

from __future__ import annotations

import ctypes
import operator
import os
from typing import Any, Tuple

from ._files import PLUGIN
from ._settings import suggestion

_LOOK_EVERY = 64  # calls between two looks for a plugin that is not there (yet)
_NOLOAD = getattr(os, "RTLD_NOLOAD", None)  # not on every system; then there is never a plugin

# Those NCCL asks its tuners about. The plugin reads them in any letter case, and with "_", "-" or blanks.
_COLLECTIVES = ("allreduce", "allgather", "reducescatter", "broadcast", "bcast", "reduce")
_NOT_READ = str.maketrans("", "", "_- ")
_MOST_MS = 1e9

_plugin: ctypes.CDLL | None = None
_looked = 0


def _open(name: str) -> ctypes.CDLL | None:
    if _NOLOAD is None:
        return None
    try:
        return ctypes.CDLL(name, mode=os.RTLD_NOW | _NOLOAD)
    except OSError:
        return None


def loaded(look_now: bool = False) -> ctypes.CDLL | None:
    """The plugin, if the collective library has loaded it into this process."""
    global _plugin, _looked
    if _plugin is not None:
        return _plugin
    _looked = 1 if look_now else _looked + 1
    if _looked % _LOOK_EVERY != 1:
        return None
    plugin = _open(PLUGIN)
    if plugin is None:
        return None
    try:
        plugin.diapason_version.restype = ctypes.c_char_p
        plugin.diapason_step.restype = None
        plugin.diapason_step.argtypes = []
        plugin.diapason_report.restype = ctypes.c_int
        plugin.diapason_report.argtypes = [ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_double]
    except AttributeError:  # one that is older than this package
        return None
    _plugin = plugin
    return plugin


def available() -> bool:
    """Whether the plugin is in this process: true once the first communicator has been created."""
    return loaded(look_now=True) is not None


def version() -> str | None:
    """The version of the plugin in this process; None where there is none."""
    plugin = loaded(look_now=True)
    return None if plugin is None else plugin.diapason_version().decode()


def step() -> None:
    """An iteration has ended. Call it once per iteration, on every rank.

    With mode="learn" the time between two calls on rank 0 is what is made shorter. Never raises;
    a call costs one or two microseconds, with the plugin and without.
    """
    plugin = loaded()
    if plugin is not None:
        plugin.diapason_step()


def _call_of(collective: Any, nbytes: Any, milliseconds: Any) -> Tuple[bytes, int, float]:
    """What report() was told, if it can be a call; checked here so that a mistake shows without the plugin too."""
    if not isinstance(collective, str):
        raise TypeError(f"report(): the collective is a name, not {collective!r}")
    name = collective.lower().translate(_NOT_READ)
    if name not in _COLLECTIVES:
        raise ValueError(f"report(): there is no collective '{collective}'{suggestion(name, _COLLECTIVES)}")
    try:
        number = operator.index(nbytes)
    except TypeError:
        raise TypeError(f"report(): the bytes are a whole number, not {nbytes!r}") from None
    if not 0 <= number < 1 << 63:
        raise ValueError(f"report(): {number} is no number of bytes")
    try:
        if isinstance(milliseconds, (str, bytes)):  # float() would read them
            raise TypeError
        time = float(milliseconds)
    except OverflowError:  # a whole number that no float can hold
        time = float("inf")
    except (TypeError, ValueError):
        raise TypeError(f"report(): the milliseconds are a number, not {milliseconds!r}") from None
    if not 0 < time < _MOST_MS:
        raise ValueError(f"report(): a call cannot take {time:g} ms; it is more than 0 and less than {_MOST_MS:g}")
    return name.encode(), number, time


def report(collective: str, nbytes: int, milliseconds: float) -> bool:
    """One call of a collective took this long: report() with three arguments (_report.py)."""
    call = _call_of(collective, nbytes, milliseconds)
    plugin = loaded()
    if plugin is None:
        return False
    answer = plugin.diapason_report(*call)
    if answer < 0:
        raise ValueError(f"report(): the plugin refuses {collective}, {nbytes} bytes, {milliseconds} ms")
    return bool(answer == 0)


def _mapped(matches: Tuple[str, ...]) -> str | None:
    """The first file mapped into this process whose name begins with one of these."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                fields = line.rstrip("\n").split(None, 5)
                if len(fields) == 6 and os.path.basename(fields[5]).startswith(matches):
                    return fields[5]
    except OSError:
        pass
    return None


def loaded_path() -> str | None:
    """The file of the plugin in this process."""
    return _mapped((PLUGIN,)) if available() else None


def collective_library() -> Tuple[str | None, str | None]:
    """File and version of the NCCL or RCCL in this process; None for what cannot be found out.

    A library that is linked into another file has no file of its own.
    """
    path = _mapped(("libnccl.so", "librccl.so"))
    library = _open(path) if path else None
    number = ctypes.c_int(0)
    try:
        if library is None or library.ncclGetVersion(ctypes.byref(number)) != 0:
            return path, None
    except AttributeError:
        return path, None
    # 2.9 and later: 2 28 09; before: 2 8 04.
    base = 10000 if number.value >= 10000 else 1000
    return path, f"{number.value // base}.{number.value % base // 100}.{number.value % 100}"
