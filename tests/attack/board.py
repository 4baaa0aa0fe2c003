"""What the ranks of a job did: the file that board.h lays out, seen from the conductor."""
import mmap
import struct

MAGIC = 0x64617474
MOST_RANKS = 16
MOST_CALLS = 60000
HEADER = 64
RANK = 128 + 4 * MOST_CALLS
RUNNING, FINISHED, FAILED, STRANDED = range(4)
_FIXED = struct.Struct('<IIIiIIII4Q')


class RankState:
    def __init__(self, words):
        (self.done, self.created, self.state, self.error, self.error_at, self.error_in_init,
         self.gone, self.warnings, init, question, finalize, self.allocations) = words
        self.init_s, self.question_s, self.finalize_s = init / 1e9, question / 1e9, finalize / 1e9


class Board:
    def __init__(self, path, ranks):
        self.ranks = ranks
        with open(path, 'w+b') as file:
            file.truncate(HEADER + RANK * MOST_RANKS)
            self._map = mmap.mmap(file.fileno(), 0)
        struct.pack_into('<III', self._map, 0, MAGIC, ranks, 0xffffffff)

    def close(self):
        self._map.close()

    def stop_at(self, call):
        struct.pack_into('<I', self._map, 8, call)

    def hold(self, on):
        struct.pack_into('<I', self._map, 12, int(on))

    def mark_gone(self, rank):
        struct.pack_into('<I', self._map, HEADER + RANK * rank + 24, 1)

    def rank(self, number):
        return RankState(_FIXED.unpack_from(self._map, HEADER + RANK * number))

    def all(self):
        return [self.rank(i) for i in range(self.ranks)]

    def ran(self, number, calls):
        start = HEADER + RANK * number + 128
        return memoryview(self._map)[start:start + 4 * calls].cast('I').tolist()

    def compare(self):
        """(calls that at least two ranks ran, those in which they differ, kinds that were run)"""
        calls = max(self.rank(i).done for i in range(self.ranks))
        rows = [self.ran(i, calls) for i in range(self.ranks)]
        compared, differences, kinds = 0, [], set()
        for call, ran in enumerate(zip(*rows)):
            known = {word for word in ran if word}
            kinds |= known
            if len(ran) - ran.count(0) < 2:
                continue
            compared += 1
            if len(known) > 1:
                differences.append((call, ran))
        return compared, differences, kinds
