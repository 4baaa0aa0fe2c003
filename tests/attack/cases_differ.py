"""Ranks that are not alike: in their environment, their files, their memory."""
import os

from job import EITHER, SURVIVE, complaints
from scene import ALLGATHER_ROW, ROW, case


def differing(scene, own, expected=SURVIVE, version=None, calls=300, **environment):
    """A job in which own(rank) says what a rank has in its environment beside what all have."""
    options = {'calls': calls, 'collectives': 1}
    if version:
        options['version'] = version
    environment.setdefault('DIAPASON_JOIN_LIMIT', 2)
    scene.expect(expected, scene.job(options=options, environment=environment, each=lambda rank: {
        'environment': own(rank)}).start())


@case('shm', 'redis', 'tcp')
def chain_missing(scene):
    """a chained tuner that some ranks cannot load"""
    def own(rank):
        return {'DIAPASON_CHAIN': scene.places.chain if rank < 2 else '/nowhere/chain.so'}
    for mode in ('static', 'learn'):
        differing(scene, own, EITHER, DIAPASON_MODE=mode)


@case('shm')
def chain_differs(scene):
    """a chained tuner that only some ranks are told of, or that is another on some"""
    differing(scene, lambda rank: {'DIAPASON_CHAIN': scene.places.chain} if rank < 2 else {}, EITHER,
              DIAPASON_MODE='static')
    other = scene.places.plugin  # a tuner too
    differing(scene, lambda rank: {'DIAPASON_CHAIN': scene.places.chain if rank else other}, EITHER,
              DIAPASON_MODE='static')


@case('shm')
def chain_found_differs(scene):
    """a tuner that only some ranks find, without any setting: none of them uses it"""
    folder = os.path.join(scene.folder, 'site')
    os.makedirs(folder, exist_ok=True)
    for name in ('libnccl-tuner.so', 'libnccl-net-site.so'):
        if not os.path.lexists(os.path.join(folder, name)):
            os.symlink(scene.places.chain, os.path.join(folder, name))
    for mode in ('static', 'observe'):
        differing(scene, lambda rank: {'LD_LIBRARY_PATH': folder} if rank < 2 else {}, EITHER, DIAPASON_MODE=mode)
    differing(scene, lambda rank: {'DIAPASON_CHAIN': 'none'} if rank == 3 else {}, EITHER,
              DIAPASON_MODE='static', LD_LIBRARY_PATH=folder)
    differing(scene, lambda rank: {'NCCL_NET_PLUGIN': 'site'} if rank else {}, EITHER,
              DIAPASON_MODE='static', LD_LIBRARY_PATH=folder, NCCL_TUNER_PLUGIN='/nowhere.so')
    # On all of them alike it is used.
    differing(scene, lambda rank: {}, DIAPASON_MODE='static', LD_LIBRARY_PATH=folder)


@case('shm')
def allgather_variable(scene):
    """NCCL_ALLGATHERV_ENABLE differs between ranks"""
    policy = scene.file('policy.conf', ALLGATHER_ROW)
    for mode, calls in (('static', 200), ('learn', 1500)):
        differing(scene, lambda rank: {'NCCL_ALLGATHERV_ENABLE': '0'} if rank < 2 else {}, EITHER,
                  22903, calls, DIAPASON_MODE=mode, DIAPASON_POLICY=policy)


@case('shm')
def library_variables(scene):
    """NCCL_ALGO, NCCL_PROTO or NCCL_DEBUG on one rank"""
    policy = scene.file('policy.conf', ROW)
    name, value = scene.random.choice((('NCCL_ALGO', 'ring'), ('NCCL_PROTO', 'simple'),
                                       ('NCCL_DEBUG', 'INFO')))
    differing(scene, lambda rank: {name: value} if rank == 3 else {}, EITHER, DIAPASON_MODE='static',
              DIAPASON_POLICY=policy)


@case()
def settings_differ(scene):
    """DIAPASON_MODE, DIAPASON_NUMERICS or another setting differs on one rank"""
    policy = scene.file('policy.conf', ROW)
    ways = (('DIAPASON_MODE', 'off'), ('DIAPASON_MODE', 'observe'), ('DIAPASON_MODE', 'learn'),
            ('DIAPASON_NUMERICS', 'pinned'), ('DIAPASON_REGBUFF', '1'),
            ('DIAPASON_ALLGATHER_CHANNELS', '1'), ('DIAPASON_OVERLAP', '1'))
    for name, value in ways if scene.store == 'shm' else [scene.random.choice(ways)]:
        odd = scene.random.randrange(4)
        differing(scene, lambda rank, odd=odd, name=name, value=value: {name: value}
                  if rank == odd else {}, EITHER, DIAPASON_MODE='static', DIAPASON_POLICY=policy,
                  DIAPASON_JOIN_LIMIT=1)


@case('shm')
def mode_differs(scene):
    """one rank applies a policy while the others learn"""
    # The row ends within a band of sizes, which learning has one configuration for.
    policy = scene.file('policy.conf', ROW.replace('1073741824', '4095'))
    for odd in (0, 3):
        differing(scene, lambda rank, odd=odd: {'DIAPASON_MODE': 'static'} if rank == odd else {},
                  EITHER, DIAPASON_POLICY=policy)


@case('shm')
def chain_is_said(scene):
    """a chained tuner that only some ranks are told of: every rank says so, before any call"""
    job = scene.job(calls=0, environment={'DIAPASON_MODE': 'static', 'DIAPASON_JOIN_LIMIT': 120},
                    each=lambda rank: {'environment': {'DIAPASON_CHAIN': scene.places.chain}}
                    if rank < 2 else {}).start()
    scene.expect(EITHER, job)
    scene.check(all(any('chain' in line and 'rank' in line for line in complaints(job.log(rank)))
                    for rank in range(4)), 'not every rank says that the chained tuner differs')


@case('shm')
def learning_settings_differ(scene):
    """what learning goes by differs on every rank: rank 0 decides for all"""
    def own(rank):
        return {'DIAPASON_MARGIN': ('1%', '2%', '5%', '9%')[rank],
                'DIAPASON_ARMS': ('auto', 'policy', 'seed', 'offered')[rank],
                'DIAPASON_STRATEGY': ('elimination', 'epsilon', 'thompson', 'epsilon')[rank],
                'DIAPASON_REWARD': ('gpu', 'gpu', 'step', 'file')[rank]}
    differing(scene, own, calls=2500)


@case('shm', 'redis', 'tcp')
def bad_setting(scene):
    """a setting on one rank that cannot be used"""
    odd = scene.random.randrange(4)
    differing(scene, lambda rank: {'DIAPASON_MARGIN': 'x'} if rank == odd else {}, EITHER,
              DIAPASON_MODE='static', DIAPASON_POLICY=scene.file('policy.conf', ROW),
              DIAPASON_JOIN_LIMIT=1)


@case('shm', 'file')
def policy_unreadable(scene):
    """a policy that one rank cannot read, with a store"""
    policy = scene.file('policy.conf', ROW)
    for odd in (0, 3):
        for mode in ('static', 'learn'):
            differing(scene, lambda rank, odd=odd: {
                'DIAPASON_POLICY': '/nowhere/policy.conf' if rank == odd else policy}, EITHER,
                DIAPASON_MODE=mode)


@case('shm')
def policy_unreadable_alone(scene):
    """a policy that one rank cannot read, without a store"""
    policy = scene.file('policy.conf', ROW)
    broken = scene.file('broken.conf', 'allreduce,what,is,this\n')
    for bad in ('/nowhere/policy.conf', broken):
        differing(scene, lambda rank, bad=bad: {
            'DIAPASON_STORE': '', 'DIAPASON_POLICY': bad if rank == 3 else policy}, EITHER,
            DIAPASON_MODE='static')


@case('shm')
def two_stores(scene):
    """ranks that are sent to different stores"""
    differing(scene, lambda rank: {'DIAPASON_STORE': 'shm' if rank < 2 else f'file:{scene.folder}'},
              DIAPASON_JOIN_LIMIT=1)


# Allocations in a row. Not more: the C++ library allocates per thread what it needs for its first
# exception, and where that fails too glibc ends the process.
FAILURES = (1, 1, 2)


def with_failing_memory(scene, first, count, fail_call=-1, mode='static', calls=60, others=0):
    job = scene.job(ranks=2, calls=calls, options={'collectives': 0, 'lag': 1, 'pause': 0},
                    environment={'DIAPASON_MODE': mode, 'DIAPASON_JOIN_LIMIT': 1,
                                 'DIAPASON_POLICY': scene.file('policy.conf', ROW)},
                    each=lambda rank: {'options': {'fail_first': first, 'fail_count': count,
                                                   'fail_call': fail_call, 'fail_others': others},
                                       'environment': {'LD_PRELOAD': scene.places.fail_malloc}}
                    if rank == 1 else {}).start()
    scene.expect(EITHER, job)
    return job.board.rank(1).allocations


@case()
def memory_at_init(scene):
    """one allocation of one rank fails while a communicator is created"""
    for mode in ('static', 'learn') if scene.store == 'shm' else [scene.random.choice(('static', 'learn'))]:
        most = with_failing_memory(scene, 1 << 40, 1, mode=mode)
        few = 12 if scene.store == 'shm' else 4
        # Half of them when the ranks have agreed: what fails then must not go unnoticed.
        late = range(max(0, most - 40), most)
        chosen = scene.random.sample(range(most), few // 2) + scene.random.sample(late, few // 2)
        for first in sorted(chosen):
            with_failing_memory(scene, first, scene.random.choice(FAILURES), mode=mode)


@case('shm', 'redis', 'tcp')
def memory_in_a_call(scene):
    """allocations of one rank fail in a call"""
    for _ in range(6 if scene.store == 'shm' else 2):
        with_failing_memory(scene, scene.random.randrange(4), scene.random.choice(FAILURES),
                            scene.random.choice((0, 1, 8, 16, 17, 48)), 'learn', 300)


@case('shm', 'redis', 'tcp')
def memory_behind(scene):
    """allocations of one rank fail on the plugin's own threads while it learns"""
    for _ in range(6 if scene.store == 'shm' else 2):
        with_failing_memory(scene, scene.random.choice((0, 1, 2, 5, 10, 30, 100)),
                            scene.random.choice(FAILURES), scene.random.choice((0, 17, 100)),
                            'learn', 1500, others=1)
