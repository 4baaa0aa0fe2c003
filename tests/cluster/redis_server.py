"""A Redis server on a host of a cluster, which keeps nothing on disk."""
import shutil

import remains


def why_not():
    return None if shutil.which('redis-server') else 'there is no `redis-server` (package redis-server)'


def start(cluster, host):
    """Returns its URL once it answers."""
    cluster.check(host, ['redis-server', '--daemonize', 'yes', '--bind', cluster.address(host), '--protected-mode', 'no',
                         '--save', '', '--appendonly', 'no', '--dir', '/run', '--logfile', cluster.log(host, 'redis')])
    remains.wait_until(lambda: cluster.run(host, ['redis-cli', '-h', host, 'ping']).stdout.strip() == 'PONG',
                       f'the Redis server of {host}')
    return f'redis://{host}'
