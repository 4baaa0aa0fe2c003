"""The first process of a host: FOLDER NAME. Makes its namespaces and mounts, then reaps orphans until it is killed.

The kernel ends every process of the host, and removes its mounts and links, when this process ends. Its command line
names the cluster's folder: so the processes of a cluster are found even if the program that made it was killed.
"""
import os
import pwd
import signal
import sys

import layout
import namespaces

# What every host has for itself. The rest of the file system is the machine's, as an image that all hosts boot.
OWN_FOLDERS = {'/tmp': '1777', '/dev/shm': '1777', '/run': '755'}


def _mount_own_folders(folder, name, shared_memory):
    """Prepared below the host's folder and then moved, because they hide the folder of the cluster."""
    hidden = [*OWN_FOLDERS, pwd.getpwuid(0).pw_dir]
    visible = [folder, *layout.read_json(folder, 'visible.json')]
    for target, mode in OWN_FOLDERS.items():
        if target == '/dev/shm' and shared_memory:
            continue
        stage = os.path.join(folder, 'hosts', name, 'mount' + target.replace('/', '_'))
        os.makedirs(stage, exist_ok=True)
        namespaces.mount_new('tmpfs', stage, f'mode={mode}')
        _show(visible, target, stage)
        namespaces.move_mount(stage, os.path.realpath(target))
    home = hidden[-1]
    if os.path.isdir(home):
        stage = os.path.join(folder, 'home')
        _show(visible, home, stage)
        namespaces.bind(stage, home, recursive=True)


def _show(visible, target, stage):
    """Binds those of the visible folders that lie below target into what will be mounted there."""
    for path in visible:
        if path.startswith(os.path.realpath(target) + '/'):
            inside = stage + path[len(os.path.realpath(target)):]
            os.makedirs(inside, exist_ok=True)
            namespaces.bind(path, inside)


def _mount_configuration(folder, name):
    own = os.path.join(folder, 'hosts', name)
    namespaces.bind(os.path.join(folder, 'etc', 'hosts'), '/etc/hosts')
    for file in ('hostname', 'resolv.conf'):
        if os.path.exists(f'/etc/{file}'):
            namespaces.bind(os.path.join(own, file), os.path.realpath(f'/etc/{file}'))
    for name_in_etc in ('ssh', 'slurm'):
        if os.path.isdir(f'/etc/{name_in_etc}') and os.path.isdir(os.path.join(folder, 'etc', name_in_etc)):
            namespaces.bind(os.path.join(folder, 'etc', name_in_etc), f'/etc/{name_in_etc}')


def _set_up(folder, name, shared_memory):
    namespaces.keep_mounts_private()
    namespaces.set_host_name(name)
    _mount_configuration(folder, name)
    _mount_own_folders(folder, name, shared_memory)
    namespaces.mount_new('proc', '/proc')
    _mount_sysfs(os.path.join(folder, 'hosts', name, 'mount_cgroup'))


def _mount_sysfs(stage):
    """A new one shows the interfaces of the host; the control groups, which Slurm wants to see, are the machine's."""
    groups = '/sys/fs/cgroup'
    if not os.path.ismount(groups):
        namespaces.mount_new('sysfs', '/sys')
        return
    os.makedirs(stage, exist_ok=True)
    namespaces.bind(groups, stage, recursive=True)
    namespaces.mount_new('sysfs', '/sys')
    namespaces.move_mount(stage, groups)


def _reap():
    while True:
        signal.sigtimedwait([signal.SIGCHLD], 1)
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            pass


def main():
    folder, name = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    shared_memory = layout.read_json(folder, 'shared_memory.json')
    namespaces.unshare(but=('ipc',) if shared_memory else ())
    child = os.fork()
    if child != 0:
        layout.write_json(folder, os.path.join('hosts', name, 'pid'), child)
        return
    os.setsid()
    os.chdir('/')
    try:
        _set_up(folder, name, shared_memory)
        layout.write_json(folder, os.path.join('hosts', name, 'ready'), 'yes')
    except OSError as error:
        layout.write_json(folder, os.path.join('hosts', name, 'ready'), f'{name}: {error}')
        os._exit(1)
    _reap()


if __name__ == '__main__':
    main()
