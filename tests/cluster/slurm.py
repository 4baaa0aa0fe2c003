"""A real Slurm on the hosts of a cluster: slurmctld on the first host, slurmd and munge on each of them."""
import os
import pwd
import shutil
import subprocess

import layout
import namespaces
import remains

_PROGRAMS = ('slurmctld', 'slurmd', 'srun', 'sbatch', 'munged')


def why_not():
    """The reason why there can be no Slurm here; None where there can be one."""
    for program in _PROGRAMS:
        if shutil.which(program, path=namespaces.search_path()) is None:
            return f'there is no `{program}` (packages slurm-wlm and munge)'
    try:
        pwd.getpwnam('munge')
    except KeyError:
        return 'there is no user munge'
    if not os.path.isdir('/etc/slurm'):
        return 'there is no folder /etc/slurm (package slurm-wlm)'
    return None


def _configuration(cluster, cpus):
    own = cluster.folder
    hosts = cluster.hosts()
    nodes = ''.join(f'NodeName={host} NodeAddr={cluster.address(host)} CPUs={cpus} State=UNKNOWN\n' for host in hosts)
    return f"""\
ClusterName={cluster.name}
SlurmctldHost={hosts[0]}({cluster.address(hosts[0])})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={own}/slurm/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={own}/hosts/{hosts[0]}/slurmctld.log
SlurmdLogFile={own}/hosts/%n/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=300
KillWait=2
OverTimeLimit=0
InactiveLimit=0
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
{nodes}"""


def _start_munge(cluster, host):
    script = ('mkdir -p /run/munge && cp "$0" /run/munge/key && chown -R munge: /run/munge && chmod 400 /run/munge/key '
              '&& exec runuser -u munge -- "$(command -v munged)" --key-file=/run/munge/key --num-threads=2 '
              '--socket=/run/munge/munge.socket.2 --pid-file=/run/munge/munged.pid --log-file=/run/munge/log '
              '--seed-file=/run/munge/seed')
    cluster.check(host, ['sh', '-c', script, os.path.join(cluster.folder, 'munge.key')])


def start(cluster, cpus=8):
    """Returns once all hosts are idle. Every node counts `cpus` CPUs, whatever the machine has."""
    with open(os.path.join(cluster.folder, 'munge.key'), 'wb') as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(os.urandom(128))
    os.makedirs(os.path.join(cluster.folder, 'slurm', 'state'))
    layout.write_text(cluster.folder, 'etc/slurm/slurm.conf', _configuration(cluster, cpus))
    first = cluster.hosts()[0]
    for host in cluster.hosts():
        _start_munge(cluster, host)
    cluster.check(first, ['slurmctld', '-c'])
    for host in cluster.hosts():
        start_node(cluster, host)
    remains.wait_until(lambda: _idle(cluster) == len(cluster.hosts()), 'all nodes of Slurm to be idle')


def start_node(cluster, host):
    cluster.check(host, ['sh', '-c', 'mkdir -p /run/slurmd && exec slurmd -N "$0"', host])


def _idle(cluster):
    try:
        done = cluster.run(cluster.hosts()[0], ['sinfo', '-h', '-N', '-t', 'idle', '-o', '%N'], timeout=60)
    except subprocess.TimeoutExpired:
        return 0
    return len(set(done.stdout.split()))
