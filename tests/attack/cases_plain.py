"""Jobs to which nothing happens that the plugin could not live with: all of them must end well."""
import processes
from job import EITHER, SURVIVE
from scene import LIBRARIES, NEW_SELECTION, ROW, case

# Questions about no call: with a full table, and all kinds of them.
AHEAD_FULL, AHEAD_ALL = 2, 7

MASK_CAN_CHANGE = 23102


@case()
def plain(scene):
    """nothing happens"""
    scene.expect(SURVIVE, scene.job(calls=3000).start())


@case()
def static(scene):
    """a policy that differs between ranks: one stands"""
    rows = [scene.file(f'policy{i}.conf', ROW.replace(',1,-1', f',{i},-1', 1)) for i in (1, 2)]
    scene.expect(SURVIVE, scene.job(calls=400, environment={'DIAPASON_MODE': 'static'},
                                    each=lambda rank: {'environment': {
                                        'DIAPASON_POLICY': rows[rank % 2]}}).start())


@case()
def turns(scene):
    """the default and a policy, which differs between ranks, take turns"""
    rows = [scene.file(f'policy{i}.conf', ROW.replace(',1,-1', f',{i},-1', 1)) for i in (1, 2)]
    scene.expect(SURVIVE, scene.job(
        calls=3000, options={'captured': 40, 'groups': 60, 'nonblocking': 40, 'late': 40, 'communicators': 3},
        environment={'DIAPASON_MODE': 'compare', 'DIAPASON_TURN': 20},
        each=lambda rank: {'environment': {'DIAPASON_POLICY': rows[rank % 2]}}).start())


@case()
def orders(scene):
    """two programs outside say at random what runs, and one of them is killed"""
    job = scene.job(
        calls=10000, options={'pause': 30, 'captured': 40, 'groups': 60, 'nonblocking': 40, 'late': 40,
                              'communicators': 3},
        environment={'DIAPASON_MODE': 'tune'}).start()
    before = scene.hosts.on(0) if scene.hosts is not None else ()
    first = scene.order(job, before)
    job.reach(3000)
    scene.order(job, before)
    processes.end(first)
    scene.expect(SURVIVE, job)


@case()
def ways(scene):
    """captured calls, groups of several, non-blocking calls, late events"""
    scene.expect(SURVIVE, scene.job(options={'captured': 60, 'groups': 100, 'nonblocking': 50,
                                             'late': 50}).start())


@case()
def everything(scene):
    """all of these ways, and each rank does something of its own between the calls"""
    version = scene.random.choice(LIBRARIES)
    own = [{'ahead': AHEAD_ALL * (version in NEW_SELECTION)}, {'simulated': 150}, {'sent': 200},
           {'twice': int(version >= LIBRARIES[1])}]
    scene.random.shuffle(own)
    scene.expect(SURVIVE, scene.job(
        calls=2000, options={'version': version, 'captured': 40, 'groups': 60, 'nonblocking': 40,
                             'late': 40}, each=lambda rank: {'options': own[rank]}).start())


@case('shm')
def simulated(scene):
    """simulated groups on one rank"""
    for version in LIBRARIES:
        scene.expect(SURVIVE, scene.job(
            options={'version': version},
            each=lambda rank: {'options': {'simulated': 200}} if rank == 1 else {}).start())


@case('shm')
def simulated_then_sent(scene):
    """simulated groups on one rank, each followed by a send"""
    for version in LIBRARIES:
        scene.expect(SURVIVE, scene.job(
            options={'version': version},
            each=lambda rank: {'options': {'simulated_then_sent': 100}} if rank == 1 else {}).start())
    scene.expect(SURVIVE, scene.job(
        each=lambda rank: {'options': {'sent': 300, 'simulated': 100}} if rank == 3 else {}).start())


@case('shm')
def sent(scene):
    """point-to-point calls on some ranks only"""
    scene.expect(SURVIVE, scene.job(
        each=lambda rank: {'options': {'sent': 300}} if rank % 2 else {}).start())


@case('shm', 'redis', 'tcp')
def two_communicators(scene):
    """groups over two communicators, some of them simulated on one rank"""
    for version in LIBRARIES if scene.store == 'shm' else LIBRARIES[:1]:
        scene.expect(SURVIVE, scene.job(
            options={'version': version, 'pairs': 300, 'groups': 50},
            each=lambda rank: {'options': {'simulated': 100 * (rank == 1), 'sent': 200 * (rank == 2)}}
            ).start())


@case('shm')
def asked_twice(scene):
    """library 2.29 asks twice about a call, on one rank"""
    scene.expect(SURVIVE, scene.job(
        options={'version': scene.random.choice(LIBRARIES[1:])},
        each=lambda rank: {'options': {'twice': int(rank == 2)}}).start())


@case('shm')
def asked_ahead(scene):
    """library 2.31 asks about no call before every call, on some ranks"""
    for version, questions in zip(NEW_SELECTION, (AHEAD_FULL, AHEAD_ALL)):
        scene.expect(SURVIVE, scene.job(
            # Adjacent size bands: what is asked ahead lies in the band of other calls.
            calls=2000, options={'version': version, 'collectives': 1, 'sizes': 5, 'fresh': 100000},
            each=lambda rank, asks=questions: {'options': {'ahead': asks * (rank % 2)}}).start())


@case('shm')
def selected(scene):
    """calls with a configuration of their own, which thins out their tables"""
    scene.expect(SURVIVE, scene.job(
        options={'version': scene.random.choice(NEW_SELECTION), 'selected': 300, 'groups': 50},
        each=lambda rank: {'options': {'ahead': AHEAD_ALL * (rank == 1), 'twice': int(rank == 2)}}).start())


@case('shm', 'redis', 'tcp')
def mask_changed(scene):
    """2.31: somebody changes the event mask of a running job, on one rank or at another call on each"""
    draw = scene.random
    for masks in ((0,), (0xffff,), (0, 0, 0x200, 0xffff)):
        ranks = draw.sample(range(4), len(masks))
        scene.expect(SURVIVE, scene.job(
            options={'version': MASK_CAN_CHANGE, 'groups': 50, 'communicators': 2},
            environment={'NCCL_RAS_ENABLE': draw.choice((1, ''))},
            each=lambda rank: {'options': {'mask_at': draw.randrange(20, 400), 'mask': masks[ranks.index(rank)]}}
            if rank in ranks else {}).start())


@case('shm')
def mask_could_change(scene):
    """2.31: only some ranks know that nobody can change their event mask"""
    scene.expect(SURVIVE, scene.job(
        options={'version': MASK_CAN_CHANGE},
        each=lambda rank: {'environment': {'NCCL_RAS_ENABLE': rank % 2}}).start())


@case()
def communicators(scene):
    """many communicators, one after the other"""
    scene.expect(SURVIVE, scene.job(ranks=3, calls=1500, options={'communicators': 15}).start())


@case()
def late(scene):
    """one rank starts late, within the limit"""
    job = scene.job(environment={'DIAPASON_JOIN_LIMIT': 30})
    last = scene.random.randrange(4)
    job.start([rank for rank in range(4) if rank != last])
    job.let_time_pass(0.3 + scene.random.random())
    scene.expect(SURVIVE, job.start([last]))


@case('shm', 'redis', 'tcp')
def too_late(scene):
    """one rank starts when the others have given up waiting"""
    job = scene.job(calls=300, environment={'DIAPASON_JOIN_LIMIT': 1})
    last = scene.random.randrange(4)
    job.start([rank for rank in range(4) if rank != last])
    job.wait_until(lambda: all(job.board.rank(rank).created for rank in range(4) if rank != last))
    scene.expect(SURVIVE, job.start([last]))


@case('shm')
def no_profiler(scene):
    """one rank has only half of the plugin"""
    scene.expect(SURVIVE, scene.job(calls=300, environment={'DIAPASON_JOIN_LIMIT': 1},
                                    each=lambda rank: {'options': {'profiler': int(rank != 2)}}).start())


@case()
def killed(scene):
    """one rank is killed"""
    job = scene.job(calls=20000).start()
    job.reach(scene.random.randrange(50, 1000))
    job.kill(scene.random.randrange(4))
    scene.expect(EITHER, job)


@case()
def again(scene):
    """a job is killed, and starts again under the same name with the same ids"""
    name = scene.unique('again')
    options = {'id': 77, 'seed': 5}
    job = scene.job(calls=20000, options=options, name=name).start()
    job.reach(scene.random.randrange(1, 600))
    for rank in range(4):
        job.kill(rank)
    scene.expect(EITHER, job)
    scene.expect(SURVIVE, scene.job(options=options, name=name).start())


@case()
def two_jobs(scene):
    """two jobs at once, under one name (of the same ids they could not be told apart)"""
    both = [scene.job(ranks=3, name=scene.unique('two')) for _ in range(2)]
    for job in both:
        job.start()
    for job in both:
        scene.expect(SURVIVE, job)
