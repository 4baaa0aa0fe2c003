"""The ssh of a cluster: keys of its own, no passwords, and servers that listen on the cluster's addresses only."""
import os
import subprocess

import layout
import links


def prepare(folder, hosts):
    """Keys and configurations; host_init.py shows FOLDER/etc/ssh as /etc/ssh of every host."""
    keys = os.path.join(folder, 'ssh')
    os.makedirs(keys, mode=0o700)
    for key in ('user', 'host'):
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', f'{key} of a test cluster',
                        '-f', os.path.join(keys, key)], check=True)
    with open(os.path.join(keys, 'user.pub'), encoding='utf-8') as file:
        layout.write_text(keys, 'authorized', file.read())
    with open(os.path.join(keys, 'host.pub'), encoding='utf-8') as file:
        public = file.read()
    known = ','.join(name for number, host in enumerate(hosts, 1) for name in (host, links.address(number)))
    layout.write_text(keys, 'known_hosts', f'{known} {public}')
    layout.write_text(folder, 'etc/ssh/ssh_config', f"""\
IdentityFile {keys}/user
IdentitiesOnly yes
GlobalKnownHostsFile {keys}/known_hosts
UserKnownHostsFile /dev/null
StrictHostKeyChecking yes
BatchMode yes
LogLevel ERROR
ConnectTimeout 600
""")
    layout.write_text(folder, 'etc/ssh/sshd_config', f"""\
HostKey {keys}/host
AuthorizedKeysFile {keys}/authorized
AuthenticationMethods publickey
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PrintMotd no
LoginGraceTime 600
MaxStartups 100
PidFile /run/sshd.pid
""")


def is_prepared(folder):
    return os.path.isdir(os.path.join(folder, 'ssh'))


def start(cluster, host):
    cluster.check(host, ['sh', '-c', 'mkdir -p /run/sshd && exec "$(command -v sshd)" -o ListenAddress="$0" -E "$1"',
                         cluster.address(host), cluster.log(host, 'sshd')])
