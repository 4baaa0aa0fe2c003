"""Setup: what init() has set, and what it found to set it for."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from dataclasses import dataclass, field
from typing import List, Mapping, Tuple

from . import _files, _plugin
from ._settings import PREFIX
from ._version import __version__

_WHEELS = ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11")  # that PyTorch depends on


@dataclass(frozen=True, repr=False)
class Setup:
    """What init() has set and found. `print(setup)` shows the variables, repr(setup) what was found."""

    plugin: str | None  #: the file NCCL or RCCL will load; None with required=False where there is none
    environment: Mapping[str, str]  #: the variables that were set, with their values
    before: Mapping[str, str | None]  #: what they were before; None: not set
    notes: List[str] = field(default_factory=list)  #: what a person may want to know about it
    policy_digest: str | None = None  #: as the plugin's log line will have it; None: not known
    version: str | None = None  #: of the plugin; None: not known before it is loaded
    library: str | None = None  #: file of the NCCL or RCCL in this process, or of the one PyTorch brings
    library_version: str | None = None  #: None: not known
    mode: str = "static"
    policy: str | None = None  #: file; "inline": it is in a variable; None: none
    chain: str | None = None  #: the tuner that is asked first; "none": none; None: the one that the library would have loaded
    profiler_chain: str | None = None  #: the profiler that runs beside the plugin's; None: none that is named

    def __str__(self) -> str:
        lines = [f"diapason: {name}={_without_password(name, value)}" for name, value in self.environment.items()]
        return "\n".join(lines + [f"diapason: note: {note}" for note in self.notes] or ["diapason: nothing was set"])

    def __repr__(self) -> str:
        return f"<diapason.Setup: {self.line()}>"

    def line(self) -> str:
        """What was found, on one line; init() logs it."""
        if self.plugin is None:
            return "no plugin, the library decides alone"
        library = f"library {self.library}{_in_brackets(self.library_version)}" if self.library else "library not loaded yet"
        policy = f"policy {self.policy}{_in_brackets(self.policy_digest)}" if self.policy else "no policy"
        chain = {None: "chained tuner: the library's own, if any", "none": "no chained tuner"}.get(self.chain, f"chained tuner {self.chain}")
        parts = [f"plugin {self.plugin}{_in_brackets(self.version)}", library, f"mode {self.mode}", policy, chain]
        if self.profiler_chain:
            parts.append(f"chained profiler {self.profiler_chain}")
        return "; ".join(parts)


def _in_brackets(text: str | None) -> str:
    return f" ({text})" if text else ""


def _without_password(name: str, value: str) -> str:
    return "***" if name == PREFIX + "SECRET" else re.sub(r"(?<=://)[^/@]*:[^@]*(?=@)", "***", value)


def _plugin_version(plugin: str) -> str | None:
    """Nothing is loaded to find it out: the plugin beside this package is of the same build."""
    loaded = _plugin.loaded_path()
    if loaded is not None and os.path.realpath(loaded) == os.path.realpath(plugin):
        return _plugin.version()
    return __version__ if _files.is_beside(plugin) else None


def _library() -> Tuple[str | None, str | None]:
    """The library in this process; before it is there, the one that PyTorch's packages bring."""
    path, version = _plugin.collective_library()
    if path is not None:
        return path, version
    for name in _WHEELS:
        try:
            wheel = importlib.metadata.distribution(name)
            file = str(wheel.locate_file("nvidia/nccl/lib/libnccl.so.2"))
        except (importlib.metadata.PackageNotFoundError, OSError):
            continue
        if os.path.isfile(file):
            return file, wheel.version
    try:
        torch = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        torch = None
    for folder in (torch.submodule_search_locations or []) if torch is not None else []:
        for name in ("librccl.so", "librccl.so.1", "libnccl.so.2"):
            if os.path.isfile(os.path.join(folder, "lib", name)):
                return os.path.join(folder, "lib", name), None
    return None, None


def found(plugin: str | None, environment: Mapping[str, str], before: Mapping[str, str | None], notes: List[str], digest: str | None,
          merged: Mapping[str, str]) -> Setup:
    """The result of init(). `merged` is the environment with what was set."""
    library, library_version = _library()
    policy = "inline" if merged.get(PREFIX + "POLICY_INLINE") else merged.get(PREFIX + "POLICY") or merged.get("NCCL_TUNER_CONFIG_FILE")
    learned = merged.get(PREFIX + "LEARNED", "")
    if not policy and os.path.isfile(learned):
        policy = learned  # the job starts from it
    return Setup(plugin, environment, before, notes, digest, _plugin_version(plugin) if plugin else None, library, library_version,
                 merged.get(PREFIX + "MODE", "").strip().lower() or "static", policy or None, merged.get(PREFIX + "CHAIN") or None,
                 merged.get(PREFIX + "PROFILER_CHAIN") or None)
