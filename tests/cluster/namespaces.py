"""The system calls behind a host of the cluster: namespaces and mounts. Python 3.11 has no functions for them."""
import ctypes
import os
import shutil
import subprocess

_libc = ctypes.CDLL(None, use_errno=True)
_NEW = {'mnt': 0x00020000, 'uts': 0x04000000, 'ipc': 0x08000000, 'pid': 0x20000000, 'net': 0x40000000}
_BIND, _MOVE, _REC, _PRIVATE = 0x1000, 0x2000, 0x4000, 0x40000
_PR_SET_PDEATHSIG = 1


def _check(result, what):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f'{what}: {os.strerror(error)}')


def unshare(but=()):
    """New namespaces of all kinds but some for the caller; the PID namespace is that of its next child."""
    _check(_libc.unshare(sum(flag for kind, flag in _NEW.items() if kind not in but)), 'unshare')


def join(pid, kinds=tuple(_NEW)):
    """Moves the caller to the namespaces of a process; the PID namespace applies to its next child."""
    files = {kind: os.open(f'/proc/{pid}/ns/{kind}', os.O_RDONLY | os.O_CLOEXEC) for kind in kinds}
    for kind, file in files.items():
        _check(_libc.setns(file, _NEW[kind]), f'setns {kind} of process {pid}')
        os.close(file)


def _mount(source, target, kind, flags, options=''):
    arguments = [text.encode() if text is not None else None for text in (source, target, kind)]
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), options.encode()), f'mount {kind or source} on {target}')


def mount_new(kind, target, options=''):
    _mount(kind, target, kind, 0, options)


def bind(source, target, recursive=False):
    """Makes a folder or file visible at a second path; recursive: with what is mounted below it."""
    _mount(source, target, None, _BIND | (_REC if recursive else 0))


def move_mount(source, target):
    _mount(source, target, None, _MOVE)


def keep_mounts_private():
    """What the caller mounts from now on is not seen outside its mount namespace."""
    _mount('none', '/', None, _REC | _PRIVATE)


def set_host_name(name):
    _check(_libc.sethostname(name.encode(), len(name)), 'sethostname')


def end_with_parent(signal):
    """The kernel sends this signal to the caller when its parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal)


def why_not(with_ssh=True):
    """The reason why there can be no cluster on this machine; None where there can be one."""
    if os.geteuid() != 0:
        return 'a cluster of namespaces needs root'
    programs = [('ip', 'iproute2'), ('tc', 'iproute2')]
    programs += [('sshd', 'openssh-server'), ('ssh-keygen', 'openssh-client')] if with_ssh else []
    for program, package in programs:
        if shutil.which(program, path=search_path()) is None:
            return f'there is no `{program}` (package {package})'
    trial = 'ip link add veth1 type veth peer name veth2 && ip link add br0 type bridge && tc qdisc add dev veth1 root tbf ' \
            'rate 1mbit burst 16k latency 50ms && mount -t tmpfs tmpfs /tmp'
    done = subprocess.run(['unshare', '-n', '-m', '-u', '-i', '-p', '-f', 'sh', '-c', trial], capture_output=True,
                          text=True, env={**os.environ, 'PATH': search_path()})
    return f'no namespaces: {done.stderr.strip()}' if done.returncode != 0 else None


def search_path():
    """PATH with the folders of daemons, which users other than root often lack."""
    return os.environ.get('PATH', '/usr/bin:/bin') + ':/usr/sbin:/sbin'
