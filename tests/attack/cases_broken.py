"""Ranks that are broken on purpose: what the checker must notice. Run by --self-test alone."""
from job import EITHER

WAYS = {'flip': ' ran ', 'error': 'not ncclSystemError', 'stdout': 'wrote to stdout',
        'crash': 'SIGSEGV', 'slow': 'a question took'}


def broken(scene, way):
    scene.expect(EITHER, scene.job(calls=400, each=lambda rank: {'options': {'broken': way}}
                                   if rank == 1 else {}).start())
