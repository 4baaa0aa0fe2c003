"""Where a cluster keeps its files, and which processes belong to it.

FOLDER = BASE/NAME: owner, hosts/HOST/{pid,ready,*.log}, etc/{hosts,ssh,slurm}, home (of root, on all hosts),
shared (for the programs; all hosts see it at this path).
"""
import json
import os

BASE = '/run/diapason-clusters'
_INIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'host_init.py')


def folder_of(name):
    return os.path.join(BASE, name)


def init_command(folder, host):
    return ['python3', '-B', _INIT, folder, host]


def read_json(folder, name):
    with open(os.path.join(folder, name), encoding='utf-8') as file:
        return json.load(file)


def write_json(folder, name, value):
    """Readers see nothing or all of it."""
    path = os.path.join(folder, name)
    with open(path + '.new', 'w', encoding='utf-8') as file:
        json.dump(value, file)
    os.rename(path + '.new', path)


def write_text(folder, name, text, mode=0o644):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
    return path


def processes():
    """The ids of all processes of this machine."""
    return [int(name) for name in os.listdir('/proc') if name.isdigit()]


def command_line(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            return file.read().decode(errors='replace').split('\0')[:-1]
    except OSError:
        return []


def start_time(pid):
    """In clock ticks since boot: together with the id, it tells a process from a later one with the same id."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            return int(file.read().rpartition(')')[2].split()[19])
    except OSError:
        return None


def is_init(pid, folder, host):
    return command_line(pid) == init_command(folder, host)


def inits(folder=None):
    """(pid, folder, host) of every first process, of one cluster or of all of them, whatever the files say."""
    found = []
    for pid in processes():
        words = command_line(pid)
        if len(words) == 5 and words[1:3] == ['-B', _INIT] and folder in (None, words[3]):
            found.append((pid, words[3], words[4]))
    return found


def state(pid):
    """The letter of the kernel for the state of a process; empty if it does not exist."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            return file.read().rpartition(')')[2].split()[0]
    except OSError:
        return ''
