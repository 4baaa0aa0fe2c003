"""The words that settings take, for type checkers. At run time any text is accepted and checked (_settings.py)."""

from __future__ import annotations

import os
from typing import Literal, Union

PathLike = Union[str, "os.PathLike[str]"]

Mode = Literal["off", "observe", "static", "learn", "compare", "tune"]
Library = Literal["auto", "nccl", "rccl"]
Numerics = Literal["free", "pinned"]
Reward = Literal["auto", "step", "report", "file", "pattern", "cycle", "gpu"]
Strategy = Literal["elimination", "epsilon", "thompson"]
Arms = Literal["auto", "policy", "seed", "offered"]
