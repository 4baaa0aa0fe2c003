"""Jobs that are started wrongly, strangers on their ports, and what can be done afterwards."""
import os
import re
import socket
import threading

from fault_job import (Job, MIB4, SHORT, ALL_REDUCE, case, check, expect_error, expect_fine,
                       free_port, missing)


# ---- started wrongly --------------------------------------------------------------------------

@case("gloo")
def doubled_rank():
    with Job(limit=SHORT) as job:
        for name, rank in ((0, 0), (1, 1), ("1 again", 1)):
            job.start(name, "create", rank=rank)
        told = 0
        for name in job.ranks:
            found = job.steps(name)
            expect_error(found, "create", [], codes=("invalid", "timeout", "peer_lost"),
                         who=f"rank {name}")
            told += bool(re.search(r"rank 1\b.*(twice|two|already)", found["create"]["message"]))
        check(told > 0, f"nobody was told of the doubled rank: "
                        f"{[p.steps for p in job.ranks.values()]}")


@case("gloo")
def late_double():
    """A second rank 1 that comes when the job runs is sent away and disturbs nobody."""
    with Job() as job:
        for rank in (0, 1):
            job.start(rank, f"create file={job.path('go')} all_reduce=1000 destroy", size=2)
        for rank in (0, 1):
            job.ranks[rank].wait_for("create")
        job.start("1 again", "create", rank=1, size=2, limit=SHORT)
        found = job.steps("1 again")
        job.tell("go")
        expect_error(found, "create", ["rank 1"], codes=("invalid", "unavailable", "timeout"),
                     who="the double")
        for rank in (0, 1):
            expect_fine(job, rank, "create all_reduce=1000")


@case("gloo")
def bad_numbers():
    cases = [({"RANK": "5", "WORLD_SIZE": "2"}, "5"), ({"RANK": "-1", "WORLD_SIZE": "2"}, "RANK"),
             ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK"),
             ({"RANK": "0", "WORLD_SIZE": "0"}, "WORLD_SIZE"),
             ({"RANK": "0", "WORLD_SIZE": "99999999999999999999"}, "WORLD_SIZE"),
             ({"RANK": "0", "WORLD_SIZE": None}, "WORLD_SIZE"),
             ({"RANK": None, "WORLD_SIZE": "2"}, "RANK"),
             ({"RANK": "", "WORLD_SIZE": "2"}, "RANK"),
             ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "99999"}, "MASTER_PORT"),
             ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "0x50"}, "MASTER_PORT"),
             ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "no.such.host.invalid"},
              r"no\.such\.host\.invalid")]
    with Job(limit=SHORT) as job:
        for number, (extra, _) in enumerate(cases):
            job.start(number, "create", extra=extra)
        for number, (extra, word) in enumerate(cases):
            expect_error(job.steps(number), "create", [word], who=str(extra),
                         codes=("invalid", "not_found", "unavailable", "timeout"))


@case("gloo")
def different_world_sizes():
    with Job(limit=SHORT) as job:
        job.start(0, "create", size=2)
        job.start(1, "create", size=3)
        for rank in (0, 1):
            expect_error(job.steps(rank), "create", [r"\b3\b", r"\b2\b"],
                         codes=("invalid", "timeout", "peer_lost"), who=f"rank {rank}")


@case("gloo")
def different_backends():
    with Job(limit=SHORT) as job:
        job.start(0, "create", size=2, backend="gloo")
        job.start(1, "create", size=2, backend="nccl")
        for rank in (0, 1):
            expect_error(job.steps(rank), "create", [],
                         codes=("invalid", "unavailable", "timeout", "peer_lost"),
                         who=f"rank {rank}")


@case("gloo")
def unusable_backends():
    with Job(limit=SHORT) as job:
        job.start("typo", "create", rank=0, size=1, backend="glooo")
        job.start("empty", "create backend= create", rank=0, size=1, port=free_port())
        if not os.path.exists("/dev/nvidiactl"):
            job.start("nccl", "create", rank=0, size=1, backend="nccl", port=free_port())
        if not os.path.exists("/dev/kfd"):
            job.start("rccl", "create", rank=0, size=1, backend="rccl", port=free_port())
        expect_error(job.steps("typo"), "create", ["glooo", "did you mean 'gloo'"],
                     codes=("invalid",), who="typo")
        for name in ("nccl", "rccl"):
            if name in job.ranks:
                expect_error(job.steps(name), "create", [name], codes=("unavailable", "not_found"),
                             who=name)


# ---- the port ---------------------------------------------------------------------------------

class Listener:
    """Another program on the job's port: mute, or talkative."""

    def __init__(self, port, says=b""):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", port))
        self.socket.listen(20)
        self.says = says
        self.clients = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
                self.clients.append(client)
                if self.says:
                    client.sendall(self.says)
            except OSError:
                return

    def close(self):
        self.socket.close()
        for client in self.clients:
            client.close()


@case("gloo", "port_taken_by_a_mute_program", b"")
@case("gloo", "port_taken_by_a_talkative_program", b"HTTP/1.1 400 Bad Request\r\n\r\n" * 50)
def port_taken(says):
    with Job(limit=SHORT) as job:
        listener = Listener(job.port, says)
        try:
            for rank in (0, 1):
                job.start(rank, "create", size=2)
            expect_error(job.steps(0), "create", [str(job.port), "MASTER_PORT"],
                         codes=("unavailable", "io", "invalid"), who="rank 0")
            expect_error(job.steps(1), "create", [str(job.port)],
                         codes=("timeout", "unavailable", "invalid", "peer_lost"), who="rank 1")
        finally:
            listener.close()


GARBAGE = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\xff" * 64, b"\0" * 4096, os.urandom(20000),
           b"diapason store 1" + b"\xff" * 64, b"diapason store 2" + b"\1\0\0\0\1",
           b"diapason store 2" + b"\x10\0\0\0\2" + b"\0" * 16,
           b"diapason store 2" + (4096).to_bytes(4, "little") + b"\1", b"\x16\x03\x01\x02\0\1", b""]


def disturb(port, kept):
    """What a port scanner or a lost program sends; half of them stay connected and say nothing."""
    for garbage in GARBAGE * 3:
        try:
            client = socket.create_connection(("127.0.0.1", port), timeout=600)
            client.sendall(garbage)
            if len(kept) % 2 == 0:
                kept.append(client)
            else:
                kept.append(None)
                client.close()
        except OSError:
            kept.append(None)


@case("gloo")
def strangers_on_the_port():
    """Before the others come, while the job runs, and at its end."""
    with Job() as job:
        kept = []
        steps = f"create loop=200:1024 file={job.path('go')} all_reduce=1000 destroy"
        job.start(0, steps)
        job.wait_for_port()
        disturb(job.port, kept)
        for rank in (1, 2):
            job.start(rank, steps)
        disturb(job.port, kept)
        job.ranks[1].wait_for("create")
        disturb(job.port, kept)
        job.tell("go")
        for rank in range(3):
            expect_fine(job, rank, "create loop=200:1024 all_reduce=1000 destroy")
        for client in kept:
            if client:
                client.close()


@case("gloo")
def strangers_on_every_port():
    """Not only on the port that was named: also on those the library itself listens on."""
    with Job() as job:
        for rank in range(3):
            job.start(rank, f"create file={job.path('go')} all_reduce=1000 destroy")
        for rank in range(3):
            job.ranks[rank].wait_for("create")
        kept = []
        listening = set()
        pids = {job.ranks[rank].process.pid for rank in range(3)}
        inodes = set()
        for pid in pids:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                try:
                    link = os.readlink(f"/proc/{pid}/fd/{fd}")
                except OSError:
                    continue
                if link.startswith("socket:["):
                    inodes.add(link[8:-1])
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(table, encoding="ascii") as lines:
                for line in list(lines)[1:]:
                    fields = line.split()
                    if fields[3] == "0A" and fields[9] in inodes:
                        listening.add(int(fields[1].rsplit(":", 1)[1], 16))
        for port in listening - {job.port}:
            for garbage in GARBAGE:
                try:
                    client = socket.create_connection(("127.0.0.1", port), timeout=600)
                    client.sendall(garbage)
                    kept.append(client)
                except OSError:
                    pass
        job.tell("go")
        for rank in range(3):
            expect_fine(job, rank, "create all_reduce=1000 destroy")


# ---- afterwards -------------------------------------------------------------------------------

@case("gloo", "created_again_without_rank_2", 2)
@case("gloo", "created_again_without_rank_0", 0)
def created_again(dead):
    with Job() as job:
        port = free_port()
        survivors = [rank for rank in range(3) if rank != dead]
        for place, rank in enumerate(survivors):
            job.start(rank, f"create sleep=500 all_reduce={MIB4} destroy port={port} rank={place} "
                            "size=2 create all_reduce=1000 barrier destroy")
        job.start(dead, "create sleep=600000")
        job.kill_after("create", dead)
        for rank in survivors:
            found = job.steps(rank)
            expect_error(found, f"all_reduce={MIB4}", ALL_REDUCE + missing(dead),
                         who=f"rank {rank}")
            creates = [s for s in job.ranks[rank].steps if s["step"] == "create"]
            check(len(creates) == 2 and creates[1]["ok"], f"rank {rank}: {creates}")
            for step in ("all_reduce=1000", "barrier"):
                check(found[step]["ok"], f"rank {rank}: {found[step]}")


@case("gloo")
def created_again_on_the_same_port():
    """No failure: one group after the other, as a program with phases has them."""
    with Job() as job:
        for rank in range(3):
            job.start(rank, "create all_reduce=10 destroy create all_reduce=20 destroy create "
                            "all_reduce=30 destroy")
        for rank in range(3):
            job.steps(rank)
            wrong = [s for s in job.ranks[rank].steps if not s["ok"]]
            check(not wrong, f"rank {rank}: {wrong}")
