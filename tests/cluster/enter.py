"""FOLDER HOST COMMAND...: runs a command on a host of a cluster, in the current folder where the host has it.

The exit status is the command's, or 128 plus the signal that ended it. The command is killed with this process.
"""
import os
import signal
import sys

import layout
import namespaces


def pid_of(folder, host):
    """The first process of a host; LookupError where the host does not run."""
    try:
        pid = layout.read_json(folder, os.path.join('hosts', host, 'pid'))
    except OSError:
        raise LookupError(f'the cluster in {folder} has no host {host}') from None
    if not layout.is_init(pid, folder, host):
        raise LookupError(f'the host {host} of {folder} does not run')
    return pid


def _become(command, where):
    namespaces.end_with_parent(signal.SIGKILL)
    try:
        os.chdir(where)
    except OSError:
        os.chdir('/')
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f'{os.uname().nodename}: {command[0]}: {error.strerror}', file=sys.stderr, flush=True)
        os._exit(127)


def main():
    folder, host, *command = sys.argv[1:]
    where = os.getcwd()
    try:
        namespaces.join(pid_of(folder, host))
    except (LookupError, OSError) as error:
        print(f'cluster: {error}', file=sys.stderr)
        return 125
    os.environ.pop('TMPDIR', None)
    os.environ['PATH'] = namespaces.search_path()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command as well
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _become(command, where)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


if __name__ == '__main__':
    sys.exit(main())
