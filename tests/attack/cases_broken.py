"""Ranks that are broken on purpose: what the checker must notice. Run by --self-test alone."""
from job import EITHER

WAYS = {'flip': ' ran ', 'error': 'not ncclSystemError', 'stdout': 'wrote to stdout',
        'crash': 'SIGSEGV', 'slow': 'a question took', 'hang': 'did not end'}


def broken(scene, way):
    job = scene.job(calls=400, each=lambda rank: {'options': {'broken': way}} if rank == 1 else {})
    if way == 'hang':
        job.limit = 10
    scene.expect(EITHER, job.start())
