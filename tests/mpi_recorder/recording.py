"""Reads recordings of MPI calls as docs/formats/mpi-recording.md describes them: a second reader, which shares nothing
with that of src/mpi_record."""

import collections
import struct

HEAD = struct.Struct("<8s6I6Q2I")
TOTALS = struct.Struct("<2Q")
BLOCK = struct.Struct("<2I")
COMM = struct.Struct("<2Ii3I3Q")
CALL = struct.Struct("<4Q3I2BH")

Call = collections.namedtuple("Call", "start_ns duration_ns bytes site communicator sequence type_bytes call flags")
Comm = collections.namedtuple("Comm", "number ranks rank remote_ranks nodes flags id created_ns ended_ns name")

ROWS = """barrier bcast gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv alltoallw reduce allreduce
reduce_scatter reduce_scatter_block scan exscan neighbor_allgather neighbor_allgatherv neighbor_alltoall
neighbor_alltoallv neighbor_alltoallw""".split()
NAMES = [name for row in ROWS for name in (row, "i" + row)]
NOT_COMMUTATIVE, FORTRAN = 1, 2
INTER, TOPOLOGY = 1, 2


class Recording:
    def __init__(self, path):
        data = path.read_bytes()
        (magic, version, order, head_bytes, call_bytes, self.pid, known, self.loaded_ns, self.init_ns, self.finalize_ns,
         self.written_ns, self.dropped, self.over_limit, self.ended, _) = HEAD.unpack_from(data)
        assert magic == b"diapmpi\n" and version == 1 and order == 0x01020304, path
        assert call_bytes == CALL.size and known == len(NAMES), (call_bytes, known)
        self.totals = {}
        for i, name in enumerate(NAMES):
            count, nanoseconds = TOTALS.unpack_from(data, HEAD.size + i * TOTALS.size)
            if count:
                self.totals[name] = (count, nanoseconds)
        self.process, self.comms, self.calls, self.sites = {}, {}, [], {}
        at = head_bytes
        while at < len(data):
            kind, size = BLOCK.unpack_from(data, at)
            at += BLOCK.size
            self.block(kind, data[at:at + size])
            at += size
        assert at == len(data), "the last block is cut"

    def block(self, kind, data):
        if kind == 1:
            self.process = dict(line.split("=", 1) for line in data.decode().splitlines())
        elif kind == 2:
            comm = Comm(*COMM.unpack_from(data), data[COMM.size:].decode())
            if comm.number in self.comms:
                comm = self.comms[comm.number]._replace(ended_ns=comm.ended_ns)
            self.comms[comm.number] = comm
        elif kind == 3:
            for fields in CALL.iter_unpack(data):
                self.calls.append(Call(*fields[:-1])._replace(call=NAMES[fields[7]]))
        elif kind == 4:
            self.sites[struct.unpack_from("<Q", data)[0]] = data[8:].decode()
        else:
            raise AssertionError(f"block of kind {kind}")

    def shape(self):
        """What was called: (name, bytes, ranks of the communicator)."""
        return [(call.call, call.bytes, self.comms[call.communicator].ranks) for call in self.calls]
