"""`./dev cluster`: a cluster of namespaces of this machine, for people and scripts. Tests use cluster.py."""
import argparse
import os
import sys

import namespaces
import redis_server
import slurm
from cluster import DEFAULT_RATE, Cluster

SKIP = 77


def _up(options):
    reason = namespaces.why_not()
    for wanted, service in ((options.slurm, slurm), (options.redis, redis_server)):
        reason = reason or (service.why_not() if wanted else None)
    if reason:
        print(f'skipped: {reason}')
        return SKIP
    cluster = Cluster.up(options.name, options.hosts, rate=options.rate)
    try:
        if options.slurm:
            slurm.start(cluster)
        if options.redis:
            redis_server.start(cluster, options.redis)
    except BaseException:
        cluster.down()
        raise
    return _status(options)


def _down(options):
    existed = Cluster(options.name).down()
    print(f"cluster '{options.name}': {'removed' if existed else 'there was none'}")
    return 0


def _run(options):
    command = options.command[1:] if options.command[:1] == ['--'] else options.command
    if not command:
        raise ValueError('which command?')
    words = Cluster(options.name).words(options.host, command)
    os.execv(words[0], words)


def _status(options):
    cluster = Cluster(options.name)
    hosts = cluster.hosts()
    print(f"cluster '{cluster.name}': {len(hosts)} hosts, shared folder {cluster.shared}")
    for host in hosts:
        print(f'  {host}  {cluster.address(host)}  {cluster.state(host)}')
    return 0


def _operation(options):
    cluster = Cluster(options.name)
    extra = [options.rate] if options.action == 'rate' else []
    getattr(cluster, {'rate': 'set_rate'}.get(options.action, options.action))(options.host, *extra)
    return 0


def _delay(options):
    way = Cluster(options.name).delay(options.host, options.port, options.milliseconds)
    print(f'{options.host}:{way} leads to {options.host}:{options.port}, {options.milliseconds:g} ms later in each direction')
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog='./dev cluster', description=__doc__)
    parser.add_argument('--name', default='box', help='the cluster, where there are several (default box)')
    actions = parser.add_subparsers(dest='action', required=True)
    up = actions.add_parser('up', help='start hosts box1 to boxN; one of this name that exists is removed first')
    up.add_argument('hosts', type=int)
    up.add_argument('--rate', default=DEFAULT_RATE, help=f'of every link (default {DEFAULT_RATE})')
    up.add_argument('--slurm', action='store_true', help='with Slurm: slurmctld on box1, slurmd on every host')
    up.add_argument('--redis', metavar='HOST', help='with a Redis server on this host')
    up.set_defaults(function=_up)
    actions.add_parser('down', help='end all its processes and remove its files').set_defaults(function=_down)
    actions.add_parser('status', help='its hosts').set_defaults(function=_status)
    run = actions.add_parser('run', aliases=['exec'], help='run a command on a host')
    run.add_argument('host')
    run.add_argument('command', nargs=argparse.REMAINDER)
    run.set_defaults(function=_run)
    for action, text in (('cut', 'pull the cable of a host'), ('heal', 'plug it in again'),
                         ('pause', 'stop all processes of a host'), ('resume', 'let them go on'),
                         ('kill', 'end a host at once'), ('boot', 'start it again'),
                         ('rate', 'change the rate of its link')):
        operation = actions.add_parser(action, help=text)
        operation.add_argument('host')
        if action == 'rate':
            operation.add_argument('rate')
        operation.set_defaults(function=_operation)
    delay = actions.add_parser('delay', help='a second port of a host that leads to one of its TCP ports, slowly')
    delay.add_argument('host')
    delay.add_argument('port', type=int)
    delay.add_argument('milliseconds', type=float, help='that data waits in each direction')
    delay.set_defaults(function=_delay)
    return parser


def main():
    options = _parser().parse_args()
    if os.geteuid() != 0:
        print('skipped: a cluster of namespaces needs root')
        return SKIP
    try:
        return options.function(options)
    except (LookupError, ValueError, RuntimeError, TimeoutError) as error:
        print(f'./dev cluster: {error.args[0]}', file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
