"""Processes that end with the conductor, whatever ends it."""
import ctypes
import signal
import subprocess

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command, **options):
    """Only from the main thread: the kernel takes a thread's end for its parent's."""
    return subprocess.Popen(command, preexec_fn=_die_with_parent, stdin=subprocess.DEVNULL, **options)


def end(process):
    if process is not None and process.poll() is None:
        process.kill()
    if process is not None:
        process.wait()
