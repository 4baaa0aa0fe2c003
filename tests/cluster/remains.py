"""Finds and removes clusters, also those whose maker was killed in the middle."""
import contextlib
import os
import shutil
import signal
import time

import layout

LIMIT = 600  # seconds; every wait ends by then, on a slow machine as well


def wait_until(condition, what, limit=LIMIT):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f'waited {limit} s for {what}')
        time.sleep(0.02)


def names():
    """The clusters of this machine: those with a folder, and those that only have processes."""
    found = {os.path.basename(folder) for _, folder, _ in layout.inits()}
    with contextlib.suppress(FileNotFoundError):
        found |= set(os.listdir(layout.BASE))
    return sorted(found)


def _kill_inits(folder):
    left = layout.inits(folder)
    for pid, _, _ in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not left


def remove(name):
    """Ends all processes of a cluster and removes its folder. True if there was one."""
    folder = layout.folder_of(name)
    existed = name in names()
    # The processes, namespaces, links and mounts of a host end with its first process. A maker that still runs may
    # start one more host, which does not come up without the folder.
    wait_until(lambda: _kill_inits(folder), f'the end of the hosts of {name}')
    shutil.rmtree(folder, ignore_errors=True)
    wait_until(lambda: _kill_inits(folder), f'the end of the hosts of {name}')
    with contextlib.suppress(OSError):
        os.rmdir(layout.BASE)
    return existed


def remove_ownerless():
    """Removes clusters whose owner, a test, has ended without doing so."""
    for name in names():
        try:
            pid, started = layout.read_json(layout.folder_of(name), 'owner')
        except (OSError, ValueError):
            continue
        if layout.start_time(pid) != started:
            remove(name)


def owner(pid):
    return [pid, layout.start_time(pid)]
