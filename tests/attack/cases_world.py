"""What happens to the store and on the way to it."""
import os
import shutil

from hosts import SmallShm
from job import EITHER, FAIL, FAIL_IN_CREATION, SURVIVE
from scene import case

# Calls without an end (the case stops the job), and a store that is needed all the time.
BUSY = {'calls': 30000, 'fresh': 40, 'collectives': 1, 'pause': 200}
SHORT = 2   # seconds of patience, where what happens takes longer
LONG = 120  # where it does not, on a slow machine neither


def busy(scene, patience, **more):
    environment = {'DIAPASON_STORE_PATIENCE': patience, **more.pop('environment', {})}
    job = scene.job(options={**BUSY, **more.pop('options', {})}, environment=environment, **more)
    job.start()
    job.reach(scene.random.randrange(100, 600))
    return job


def go_on(job, calls=300):
    """All ranks make so many calls more, and end."""
    job.reach(max(one.done for one in job.board.all()) + calls)
    job.stop_soon()


def until_failed(job):
    """Until the first rank has failed: whatever comes back later is too late."""
    job.wait_until(lambda: any(one.error for one in job.board.all()))


def wait_for_registrations(scene, job, ranks=3):
    """Until so many ranks wait in the store for the others."""
    job.wait_until(lambda: scene.server.registrations() >= ranks)


# The server.

@case('redis', 'tcp')
def paused_short(scene):
    """the server stands still for less than the patience"""
    job = busy(scene, LONG)
    for _ in range(2):
        scene.server.pause()
        job.let_time_pass(scene.random.uniform(2.5, 5))
        scene.server.resume()
        job.let_time_pass(0.3)
    go_on(job)
    scene.expect(SURVIVE, job)


@case('redis', 'tcp')
def paused_long(scene):
    """the server stands still for longer than the patience"""
    job = busy(scene, SHORT)
    scene.server.pause()
    scene.expect(FAIL, job)  # ends by itself; so does every communicator
    scene.server.resume()


@case('redis', 'tcp')
def dead(scene):
    """the server is killed and never comes back"""
    job = busy(scene, SHORT)
    scene.server.kill()
    scene.expect(FAIL, job)


@case('redis', 'tcp')
def gone_at_the_end(scene):
    """the server stands still, or is killed, when the job has made its calls"""
    job = scene.job(calls=1000, options={'fresh': 40, 'collectives': 1})
    job.board.hold(True)
    job.start()
    job.reach(1000)
    scene.random.choice((scene.server.pause, scene.server.kill))()
    job.board.hold(False)
    scene.expect(SURVIVE, job)


@case('redis', 'tcp')
def paused_while_joining(scene):
    """the server stands still for less than the patience while ranks join"""
    job = scene.job(environment={'DIAPASON_JOIN_LIMIT': 60, 'DIAPASON_STORE_PATIENCE': LONG})
    job.start(range(3))
    wait_for_registrations(scene, job)
    scene.server.pause()
    job.start([3])
    job.let_time_pass(scene.random.uniform(2.5, 5))
    scene.server.resume()
    scene.expect(SURVIVE, job)


@case('redis', 'tcp')
def dead_before(scene):
    """the server is not there when the job starts"""
    scene.server.kill()
    scene.expect(EITHER, scene.job(calls=200, environment={'DIAPASON_STORE_PATIENCE': SHORT}).start())


@case('redis', 'tcp')
def restarted_durable(scene):
    """the server is killed and comes back with all it had"""
    scene.serve(durable=True)
    job = busy(scene, LONG)
    for _ in range(2):
        scene.server.kill()
        job.let_time_pass(scene.random.uniform(0, 1))
        scene.server.start()
        job.let_time_pass(0.3)
    go_on(job)
    scene.expect(EITHER, job)  # that nothing was lost cannot be known


@case('redis', 'tcp')
def restarted_empty(scene):
    """the server is killed and comes back with nothing"""
    job = busy(scene, LONG)
    scene.server.kill()
    scene.server.start()
    scene.expect(FAIL, job)


@case('redis', 'tcp')
def emptied(scene):
    """the server is emptied while the job runs"""
    job = busy(scene, LONG)
    scene.server.empty()
    scene.expect(FAIL, job)


@case('redis')
def evicting(scene):
    """eviction is turned on while the job runs, and memory is short"""
    job = busy(scene, LONG, options={'lag': 100, 'pause': 50})
    scene.server.squeeze()
    job.let_time_pass(2)
    job.stop_soon()
    scene.expect(EITHER, job)


@case('redis')
def evicts_before(scene):
    """a Redis that may evict, before the job starts"""
    scene.server.squeeze()
    scene.expect(EITHER, scene.job(calls=300, environment={'DIAPASON_JOIN_LIMIT': 2}).start())


@case('redis', 'tcp')
def emptied_while_joining(scene):
    """the server is emptied while the ranks wait for the last one"""
    job = scene.job(calls=200, environment={'DIAPASON_JOIN_LIMIT': 60})
    job.start(range(3))
    job.never_start(3)
    wait_for_registrations(scene, job)
    scene.server.empty()
    scene.expect(FAIL_IN_CREATION, job)


# The network.

@case('redis', 'tcp')
def unplugged_short(scene):
    """one host is cut off for less than the patience"""
    job = busy(scene, LONG)
    host = scene.random.randrange(4)
    scene.hosts.unplug(host)
    try:
        job.let_time_pass(scene.random.uniform(2.5, 5))
    finally:
        scene.hosts.plug(host)
    go_on(job)
    scene.expect(SURVIVE, job)


@case('redis', 'tcp')
def unplugged_long(scene):
    """one host is cut off for longer than the patience"""
    job = busy(scene, SHORT)
    host = scene.random.randrange(1, 4)
    scene.hosts.unplug(host)
    try:
        until_failed(job)
    finally:
        scene.hosts.plug(host)
    scene.expect(FAIL, job)


@case('redis', 'tcp')
def unplugged_before(scene):
    """one host is cut off before the job starts"""
    host = scene.random.randrange(1, 4)
    scene.hosts.unplug(host)
    try:
        job = scene.job(calls=300, environment={'DIAPASON_JOIN_LIMIT': 2,
                                                'DIAPASON_STORE_PATIENCE': SHORT}).start()
        scene.expect(EITHER, job)
    finally:
        scene.hosts.plug(host)


@case('redis', 'tcp')
def unplugged_server(scene):
    """the server's host is cut off for longer than the patience; its own rank still has it"""
    job = busy(scene, SHORT)
    scene.hosts.unplug(0)
    try:
        until_failed(job)
    finally:
        scene.hosts.plug(0)
    scene.expect(FAIL, job)


@case('redis', 'tcp')
def slow_network(scene):
    """every answer takes a while"""
    delay = scene.random.choice((0.001, 0.01, 0.03))
    where = scene.server.proxy(delay=delay, jitter=delay / 2, seed=scene.random.randrange(1000))
    job = scene.job(calls=400, environment={'DIAPASON_STORE': where, 'DIAPASON_JOIN_LIMIT': 20})
    scene.expect(SURVIVE, job.start())


@case('redis', 'tcp')
def dropping_network(scene):
    """connections are reset at random"""
    where = scene.server.proxy(drop=scene.random.choice((0.01, 0.05)),
                               seed=scene.random.randrange(1000))
    job = scene.job(options={'fresh': 40}, environment={'DIAPASON_STORE': where,
                                                        'DIAPASON_JOIN_LIMIT': 20})
    scene.expect(SURVIVE, job.start())


# Files and shared memory.

@case('file')
def folder_removed(scene):
    """the store's folder is removed while the job runs"""
    job = busy(scene, SHORT, options={'calls': 8000})
    shutil.rmtree(os.path.join(scene.folder, 'store'), ignore_errors=True)
    scene.expect(FAIL, job)


@case('file')
def removed_while_joining(scene):
    """the store's folder is removed while the ranks wait for the last one"""
    job = scene.job(calls=200, environment={'DIAPASON_JOIN_LIMIT': 60})
    job.start(range(3))
    job.never_start(3)
    store = os.path.join(scene.folder, 'store')
    job.wait_until(lambda: sum('.j' in name for _, _, names in os.walk(store) for name in names) >= 6)
    shutil.rmtree(store, ignore_errors=True)
    scene.expect(FAIL_IN_CREATION, job)


@case('file')
def folder_not_there(scene):
    """a folder that one rank cannot have"""
    odd = scene.random.randrange(4)
    scene.expect(EITHER, scene.job(calls=300, environment={'DIAPASON_JOIN_LIMIT': 1},
                                   each=lambda rank: {'environment': {
                                       'DIAPASON_STORE': 'file:/proc/1/nowhere'}}
                                   if rank == odd else {}).start())


@case('shm', 'file')
def file_size_limit(scene):
    """ranks that may write no files, or tiny ones (ulimit -f)"""
    # What a rank says goes through a pipe: its own log is not what is limited.
    script = 'exec 2> >(exec cat >&2); ulimit -f "$1"; shift; exec "$@"'
    some = scene.random.randrange(4)
    for limited, kib in ((range(4), 0), (range(4), 1), ((some,), scene.random.randrange(2))):
        scene.expect(EITHER, scene.job(
            calls=300, environment={'DIAPASON_JOIN_LIMIT': 1},
            before=lambda rank, limited=limited, kib=kib: ['bash', '-c', script, 'bash', str(kib)]
            if rank in limited else []).start())


@case('shm')
def shm_full(scene):
    """/dev/shm is full before the job starts"""
    shm = scene.keep(SmallShm(scene.random.choice((1, 4))))
    shm.fill()
    scene.expect(EITHER, scene.job(calls=300, environment={'DIAPASON_JOIN_LIMIT': 1},
                                   before=lambda rank: shm.inside()).start())


@case('shm')
def shm_fills(scene):
    """somebody else fills /dev/shm while the job runs"""
    shm = scene.keep(SmallShm(64))
    job = busy(scene, SHORT, before=lambda rank: shm.inside(), options={'sizes': 5, 'pause': 50})
    shm.fill()
    job.reach(8000)
    job.stop_soon()
    scene.expect(EITHER, job)
