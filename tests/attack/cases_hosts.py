"""What happens to whole hosts and to the links between them. Their jobs run on a cluster in a box (--hosts)."""
from cases_differ import FAILURES
from cases_world import LONG, SHORT, busy
from job import EITHER, SURVIVE
from scene import SERVED, host_case

# Calls of a job to which one thing happens after the other.
CAMPAIGN = 20000
MOST = 50000


def _some_host(scene):
    return scene.random.randrange(scene.hosts.COUNT)


def _cut(scene, job):
    host = _some_host(scene)
    scene.hosts.unplug(host)
    try:
        job.let_time_pass(scene.random.uniform(0.2, 2))
    finally:
        scene.hosts.plug(host)


def _pause(scene, job):
    host = _some_host(scene)
    scene.hosts.pause(host)
    try:
        job.let_time_pass(scene.random.uniform(0.2, 2))
    finally:
        scene.hosts.resume(host)


def _slow(scene, job):
    host = _some_host(scene)
    scene.hosts.slow_down(host, scene.random.choice(('200kbit', '1mbit', '10mbit')))
    try:
        job.let_time_pass(scene.random.uniform(0.5, 2))
    finally:
        scene.hosts.speed_up(host)


def _restart(scene, job):
    scene.server.kill()
    job.let_time_pass(scene.random.uniform(0, 1))
    scene.server.start()


@host_case()
def campaign(scene):
    """links are cut and slowed, hosts stand still, the server is restarted with its file, one after the other"""
    events = [_cut, _pause, _slow]
    if scene.store in SERVED:
        scene.serve(durable=True)
        events.append(_restart)
    job = busy(scene, LONG, options={'calls': MOST, 'pause': scene.random.choice((20, 80))})
    while min(one.done for one in job.board.all()) < CAMPAIGN and len(job.alive()) == job.ranks:
        scene.random.choice(events)(scene, job)
        job.let_time_pass(scene.random.uniform(0.1, 1))
    job.stop_soon()
    # Whether a restarted server has lost anything, a rank cannot know in every case.
    scene.expect(EITHER if scene.store in SERVED else SURVIVE, job)


def _kill_host(scene, host):
    """A job one of whose hosts is killed; then the host is booted."""
    job = busy(scene, SHORT)
    job.killed |= {rank for rank in range(job.ranks) if rank % scene.hosts.COUNT == host}
    scene.hosts.kill(host)
    try:
        scene.expect(EITHER, job)
    finally:
        scene.hosts.boot(host)


def _next_job(scene):
    """A job after that has nothing to suffer from."""
    scene.expect(SURVIVE, scene.job(calls=500, environment={'DIAPASON_JOIN_LIMIT': 60}).start())


@host_case()
def host_killed(scene):
    """a host is killed with its ranks, and booted; the next job runs on it"""
    _kill_host(scene, scene.random.randrange(1, scene.hosts.COUNT))
    _next_job(scene)


@host_case('redis', 'tcp')
def server_host_killed(scene):
    """the server's host is killed and booted, and the server started with its file"""
    scene.serve(durable=True)
    _kill_host(scene, 0)
    scene.server.start()
    _next_job(scene)


@host_case()
def host_paused_while_joining(scene):
    """a host stands still while the ranks join"""
    job = scene.job(environment={'DIAPASON_JOIN_LIMIT': 120, 'DIAPASON_STORE_PATIENCE': LONG})
    job.start(range(2))
    scene.hosts.pause(0)
    job.start(range(2, job.ranks))
    job.let_time_pass(scene.random.uniform(0.5, 3))
    scene.hosts.resume(0)
    scene.expect(SURVIVE, job)


@host_case()
def memory_and_cut(scene):
    """an allocation of one rank fails while a link is cut"""
    draw = scene.random
    job = scene.job(
        calls=3000, options={'fresh': 40, 'collectives': 1}, environment={'DIAPASON_STORE_PATIENCE': LONG},
        each=lambda rank: {'options': {'fail_first': draw.choice((0, 1, 2, 5, 10, 30, 100)),
                                       'fail_count': draw.choice(FAILURES),
                                       'fail_call': draw.randrange(100, 1500), 'fail_others': 1},
                           'environment': {'LD_PRELOAD': scene.places.fail_malloc}} if rank == 1 else {})
    job.start()
    job.reach(draw.randrange(100, 600))
    _cut(scene, job)
    scene.expect(EITHER, job)
