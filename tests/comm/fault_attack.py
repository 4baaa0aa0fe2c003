"""Processes that are no ranks of a job try to join it, to end it, or to read its secret."""
import os
import re
import subprocess
import sys
import tempfile
import time

from fault_job import Job, Process, Programs, PATIENT, SHORT, case, check, clean_environment, \
    expect_error, expect_fine, free_port

# Runs as a process of its own, as another user where we can become one: it gets no file of ours.
#   PORT SIZE VERSION SECRET_FILE PROCESS STEAL
INTRUDER = r"""
import encodings.idna, os, socket, struct, sys, time
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)  # nobody
    os.setuid(65534)
port, size = int(sys.argv[1]), int(sys.argv[2])
version, secret_file, process, steal = sys.argv[3:7]
def number(x): return struct.pack("<Q", x)
def text(x): return number(len(x)) + x
def frame(kind, body): return struct.pack("<IB", len(body), kind) + body
MAGIC = b"diapason store 2"
def hello(rank, size, version=version.encode(), proof=b""):
    return MAGIC + frame(1, text(version) + text(b"") + number(rank) + number(size) + text(b"evil")
                         + number(666) + text(b"n" * 32) + text(proof))
end = time.monotonic() + 120
kept = []
def say(bytes_):
    while True:
        try:
            client = socket.create_connection(("127.0.0.1", port), timeout=600)
            break
        except OSError:
            if time.monotonic() > end:
                sys.exit("no store")
            time.sleep(0.01)
    try:
        client.sendall(bytes_)
    except OSError:
        pass
    kept.append(client)
wrong = [hello(1, size + 1), hello(1, size, b"9.9"), hello(size + 7, size), hello(2**40, size),
         hello(0, size), b"diapason store 1" + b"\1" * 90, b"\0" * 100,
         MAGIC + struct.pack("<IB", 60 << 20, 2) + b"x" * 100000]
if steal == "steal":
    for rank in range(size):
        for proof in (b"", b"\0" * 32):
            wrong.append(hello(rank, size, proof=proof)
                         + frame(4, text(b"hosts") + number(1) + number(rank) + number(1)
                                 + text(b"garbage") + number(0) + number(10)))
for one in wrong:
    say(one)
for _ in range(400):
    say(b"")
# What it was told, until it is told no more.
accepted = 0
for client in kept[:len(wrong)]:
    got = b""
    client.settimeout(5)
    try:
        while piece := client.recv(4096):
            got += piece
    except OSError:
        pass
    after = got[16:]
    while len(after) >= 5:
        length, kind = struct.unpack("<IB", after[:5])
        accepted += kind == 7
        after = after[5 + length:]
print("accepted", accepted)
for path in (secret_file, f"/proc/{process}/environ"):
    try:
        with open(path, "rb") as file:
            print("read", path, len(file.read()))
    except OSError as error:
        print("denied", error.errno)
"""


def version():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "VERSION")
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def intrude(port, size, our_version, secret_file="/", process=1, steal=""):
    """What the intruder saw, when it is done."""
    done = subprocess.run([sys.executable, "-", str(port), str(size), our_version, secret_file,
                           str(process), steal], input=INTRUDER, capture_output=True, text=True,
                          timeout=600, check=False, cwd="/")
    check(done.returncode == 0, f"the intruder failed: {done.stderr}")
    return done.stdout


def rank_0(parent):
    """Process id and secret file of the launcher's rank 0."""
    end = time.monotonic() + PATIENT
    while time.monotonic() < end:
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    of = int(file.read().rpartition(")")[2].split()[1])
                if of != parent:
                    continue
                with open(f"/proc/{name}/environ", "rb") as file:
                    variables = dict(one.split(b"=", 1) for one in file.read().split(b"\0")
                                     if b"=" in one)
            except (OSError, ValueError):
                continue
            if variables.get(b"RANK") == b"0":
                return int(name), variables[b"DIAPASON_SECRET_FILE"].decode()
        time.sleep(0.01)
    raise AssertionError("no rank 0")


@case("launcher")
def launch_attacked_while_starting():
    """Rank 0 waits for the others, and intruders come in their place."""
    ranks = 3
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="fault_attack.") as folder:
        go = os.path.join(folder, "go")
        script = f'while [ "$RANK" != 0 ] && [ ! -e {go} ]; do sleep 0.02; done; ' \
                 f'exec {Programs.victim} --backend gloo --limit {int(PATIENT * 1000)} create all_reduce=1000 destroy'
        job = Process([Programs.diapason, "launch", "-n", str(ranks), "--port", str(port), "--",
                       "sh", "-c", script], clean_environment())
        try:
            process, secret_file = rank_0(job.process.pid)
            seen = intrude(port, ranks, version(), secret_file, process, "steal")
            check("accepted 0\n" in seen, f"an intruder was let in: {seen}")
            if os.geteuid() == 0:
                check(seen.count("denied 13") == 2, f"another user can read the secret: {seen}")
            else:
                print("not root: that another user cannot read the secret is not tested")
            with open(go, "w", encoding="ascii"):
                pass
            status = job.end()
            check(status == 0, f"the job failed ({status}): {job.steps} {job.stderr()}")
            done = [s for s in job.steps if s["step"] == "all_reduce=1000" and s["ok"]]
            check(len(done) == ranks, f"{job.steps}")
            said = re.findall("a connection from 127.0.0.1 was turned away", job.stderr())
            check(1 <= len(said) <= 7, f"{len(said)} lines about intruders: {job.stderr()}")
            check(not os.path.exists(secret_file), f"{secret_file} is still there")
        finally:
            job.kill()


@case("gloo")
def wrong_hellos_end_nothing():
    """Without a secret: who says nothing right does no harm either."""
    with Job() as job:
        job.start(0, "create all_reduce=1000 destroy", size=2)
        job.wait_for_port()
        intrude(job.port, 2, "0")
        job.start(1, "create all_reduce=1000 destroy", size=2)
        for rank in (0, 1):
            expect_fine(job, rank, "create all_reduce=1000 destroy")


@case("gloo")
def another_user_cannot_join_without_a_secret():
    """Nor on the host itself, where the kernel says whose a connection is."""
    if os.geteuid() != 0:
        print("not root: cannot become another user")
        return
    with Job() as job:
        job.start(0, "create all_reduce=1000 destroy", size=3)
        job.wait_for_port()
        seen = intrude(job.port, 3, version(), steal="steal")
        check("accepted 0\n" in seen, f"an intruder was let in: {seen}")
        for rank in (1, 2):
            job.start(rank, "create all_reduce=1000 destroy", size=3)
        for rank in range(3):
            expect_fine(job, rank, "create all_reduce=1000 destroy")


def secret_file(folder, name, text, mode=0o600):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, mode)
    return {"DIAPASON_SECRET_FILE": path}


@case("gloo")
def secret_of_the_user():
    """One file for all ranks; one rank with another, one without, and a file that all can read."""
    with tempfile.TemporaryDirectory(prefix="fault_attack.") as folder:
        good = secret_file(folder, "good", "a secret of sixteen letters\n")
        with Job() as job:
            for rank in (0, 1):
                job.start(rank, "create all_reduce=1000 destroy", size=2, extra=good)
            for rank in (0, 1):
                expect_fine(job, rank, "create all_reduce=1000 destroy")
        other = secret_file(folder, "other", "another secret of sixteen letters")
        for extra, words in ((other, ["another secret"]), ({}, ["DIAPASON_SECRET_FILE"])):
            with Job(limit=SHORT) as job:
                job.start(0, "create", size=2, extra=good)
                job.start(1, "create", size=2, extra=extra)
                expect_error(job.steps(0), "create", ["rank 1"], codes=("timeout",), who="rank 0")
                expect_error(job.steps(1), "create", words, codes=("timeout",), who="rank 1")
        with Job() as job:
            job.start(0, "create", size=2,
                      extra=secret_file(folder, "open", "a secret of sixteen letters", 0o644))
            expect_error(job.steps(0), "create", [f"{folder}/open", "chmod 600"],
                         codes=("invalid",), who="rank 0")


@case("launcher", "bench_keeps_the_limit_of_the_environment", "1", [])
@case("launcher", "bench_prefers_its_own_limit", "600", ["--limit", "1"])
def bench_limit(seconds, options):
    """bench waits for a rank that never comes no longer than it was told: by default 60 s."""
    environment = {**clean_environment(), "RANK": "0", "WORLD_SIZE": "2",
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                   "DIAPASON_TIMEOUT": seconds}
    process = Process([Programs.diapason, "bench", "--backend", "gloo", *options], environment)
    try:
        status = process.end(50)
        check(status == 1, f"status {status}: {process.stderr()}")
        check("rank 1 has not arrived" in process.stderr(), process.stderr())
    finally:
        process.kill()
