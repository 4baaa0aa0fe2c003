"""The network of a cluster: a bridge in a namespace of its own, and one shaped veth pair to each host.

Nothing of it is connected to the machine's own network, so that clusters may use the same addresses.
"""
import re
import subprocess

import namespaces

PREFIX = '10.88.0.'
_UNITS = {'kbit': 10**3, 'mbit': 10**6, 'gbit': 10**9}


def address(number):
    """The address of host number 1, 2, ..."""
    return f'{PREFIX}{number}'


def bits_per_second(rate):
    match = re.fullmatch(r'(\d+(?:\.\d+)?)(kbit|mbit|gbit)', rate)
    if not match or float(match[1]) <= 0:
        raise ValueError(f"'{rate}' is no rate; one is such as 10gbit, 100mbit, 500kbit")
    return int(float(match[1]) * _UNITS[match[2]])


def run_in(pid, *command):
    """Runs a program of the machine in the network namespace of a process."""
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          preexec_fn=lambda: namespaces.join(pid, ('net',)),
                          env={'PATH': namespaces.search_path()})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def make_bridge(switch):
    run_in(switch, 'ip', 'link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0')
    run_in(switch, 'ip', 'link', 'set', 'br0', 'up')


def connect(switch, number, host, rate):
    """A cable from the bridge to a host, both given by their first processes. A host that is started again has the
    same hardware address: its neighbours remember it."""
    run_in(switch, 'ip', 'link', 'add', port(number), 'type', 'veth', 'peer', 'name', 'eth0', 'address',
           f'02:00:0a:58:00:{number:02x}', 'netns', str(host))
    run_in(switch, 'ip', 'link', 'set', port(number), 'master', 'br0', 'up')
    run_in(host, 'ip', 'link', 'set', 'lo', 'up')
    run_in(host, 'ip', 'addr', 'add', f'{address(number)}/24', 'dev', 'eth0')
    run_in(host, 'ip', 'link', 'set', 'eth0', 'up')
    shape(switch, number, host, rate)


def shape(switch, number, host, rate):
    """Limits a link in both directions."""
    bits = bits_per_second(rate)
    # A bucket has to hold what is sent between two ticks of the kernel, and one packet of 64 KiB.
    burst = max(bits // 8 // 100, 128 * 1024)
    for pid, device in ((switch, port(number)), (host, 'eth0')):
        run_in(pid, 'tc', 'qdisc', 'replace', 'dev', device, 'root', 'tbf', 'rate', f'{bits}bit', 'burst', str(burst),
               'limit', str(max(4 * burst, 1024 * 1024)))


def set_cable(switch, number, state):
    """Down: both ends lose the carrier, as where a cable is pulled."""
    run_in(switch, 'ip', 'link', 'set', port(number), state)


def port(number):
    return f'port{number}'
