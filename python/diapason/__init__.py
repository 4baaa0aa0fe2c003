"""diapason for Python programs: the tuner plugin for NCCL and RCCL, put into a job and told what an
iteration is.

    import diapason
    diapason.init(mode="learn", learned="learned.conf")   # before the process group
    torch.distributed.init_process_group("nccl")
    print(diapason.verify())                              # is it there, the same on every rank?
    for batch in loader:
        ...                                               # forward, backward, optimizer
        diapason.step()                                   # once per iteration, on every rank

init() sets variables of this process; env() returns them for launchers; tuned() sets them for a block.
Nothing here loads anything: the collective library loads the plugin when the first communicator is
created. Without it step(), report(collective, nbytes, milliseconds), available() and version() do nothing
and return at once, so a program can keep them in.
"""

from __future__ import annotations

from ._callback import StepCallback
from ._found import Setup
from ._plugin import available, step, version
from ._report import Report, report
from ._setup import cleanup, current, env, init, library_path
from ._tuned import tuned
from ._types import Arms, Library, Mode, Numerics, Reward, Strategy
from ._verify import Verification, verify
from ._version import __version__

__all__ = [
    "Arms",
    "Library",
    "Mode",
    "Numerics",
    "Report",
    "Reward",
    "Setup",
    "StepCallback",
    "Strategy",
    "Verification",
    "__version__",
    "available",
    "cleanup",
    "current",
    "env",
    "init",
    "library_path",
    "report",
    "step",
    "tuned",
    "verify",
    "version",
]
