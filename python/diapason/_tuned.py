"""tuned(): a policy for the communicators that are created inside a block."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Dict, Type

from . import _setup
from ._found import Setup
from ._types import Mode, PathLike


class tuned:  # noqa: N801  it is used like a function
    """Communicators that are created inside the block use the policy; afterwards the environment is as before.

        with diapason.tuned("policy.conf") as setup:
            torch.distributed.init_process_group("nccl", device_id=device)
            train()

    Takes what init() takes, and refuses the same, when the block is entered: a missing or invalid policy is a ValueError,
    a missing plugin a RuntimeError.

    A communicator keeps what it was created with, inside and after the block. PyTorch creates the communicator of a group
    at its first collective, or, with device_id, with the group; that has to happen inside. Where the plugin is in the
    process already, only new communicators are affected; where NCCL was initialized without it, no later communicator
    can get it, and the block is refused (RuntimeError), and so are a block inside a block, and init() inside one.

    The environment belongs to the whole process: other threads see the variables too.
    """

    def __init__(self, policy: PathLike, mode: Mode | None = None, **arguments: Any) -> None:
        self._arguments: Dict[str, Any] = {"policy": policy, "mode": mode, **arguments}
        self._restore: Dict[str, str | None] | None = None
        self._outer: Setup | None = None

    def __enter__(self) -> Setup:
        if _setup.block is not None:
            raise RuntimeError("diapason.tuned() inside diapason.tuned(): the variables of the process can hold one policy. Leave the outer "
                               "block first, or put all rows into one policy")
        if self._arguments["policy"] is None:
            raise ValueError("diapason.tuned() needs a policy file; to learn one use diapason.init(mode='learn')")
        before = dict(os.environ)
        self._outer = _setup.current()
        setup = _setup.apply("tuned", self._arguments)
        changed = set(setup.environment) | set(self._outer.environment if self._outer is not None else ())
        self._restore = {name: before.get(name) for name in changed}
        _setup.block = setup
        return setup

    def __exit__(self, kind: Type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._restore is None:
            return
        for name, value in self._restore.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._restore = None
        _setup.block = None
        _setup.take_back(self._outer)
