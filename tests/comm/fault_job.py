"""Starts ranks of tests/comm/victim.cc, each with its own steps, and reads what became of them."""
import json
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

# The limit of every wait of a victim, in seconds. PATIENT is never reached, on a slow machine neither: for what goes
# well, and for errors that come at once. SHORT is where the limit itself ends the wait; what goes well before that has
# to be done within it.
PATIENT = 120.0
SHORT = 6.0
SLACK = 60  # for a loaded machine: starting a process, being scheduled
END = 300  # until then every victim has ended
MIB4 = 1 << 20  # elements of f32: "4MiB"


class Programs:
    """Filled in from the command line."""
    victim = ""
    diapason = ""


CASES = []  # (backend, name, function)


def case(backend, name=None, *arguments):
    """Makes a function a case, or several: once per decorator, with other arguments."""
    def add(function):
        CASES.append((backend, name or function.__name__, lambda: function(*arguments)))
        return function
    return add


class Failure(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failure(text)


used_ports = set()
port_lock = threading.Lock()


def free_port():
    """Below those that Linux gives to outgoing connections, which would take it before rank 0."""
    with port_lock:
        while True:
            port = random.randrange(10000, 20000)
            with socket.socket() as probe:
                try:
                    probe.bind(("", port))
                except OSError:
                    continue
            if port not in used_ports:
                used_ports.add(port)
                return port


def clean_environment():
    """Without what a launcher around us has set."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "OMPI_", "PMIX_", "SLURM_", "DIAPASON_")
    return {k: v for k, v in os.environ.items() if not k.startswith(names)}


class Process:
    """A victim, or a launcher with victims under it; its lines, and when they came."""

    def __init__(self, command, environment, limit=SHORT):
        self.limit = limit
        self.errors = tempfile.TemporaryFile("w+")
        # A group of its own: whatever it starts ends with it.
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        start_new_session=True)
        self.steps = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            # Launchers put the rank before it.
            at = line.find("{")
            if at >= 0:
                try:
                    self.steps.append(json.loads(line[at:]))
                except ValueError:
                    pass

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()

    def wait_for(self, step, seconds=PATIENT):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if any(s["step"] == step for s in list(self.steps)):
                return
            time.sleep(0.01)
        raise Failure(f"step '{step}' was not reached within {seconds} s; so far {self.steps}; "
                      f"stderr: {self.stderr()}")

    def end(self, seconds=END):
        """Its exit status; what still runs then has broken the promise."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            done = [s["step"] for s in self.steps]
            raise Failure(f"still running after {seconds:.0f} s; steps done: {done}; "
                          f"stderr: {self.stderr()}") from None
        self.reader.join(600)
        return self.process.returncode

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Job:
    def __init__(self, backend="gloo", limit=PATIENT):
        self.backend = backend
        self.limit = limit
        self.folder = tempfile.TemporaryDirectory(prefix="fault_job.")
        self.port = free_port()
        self.ranks = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.ranks.values():
            process.kill()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def tell(self, name):
        """Ends a victim's step file=PATH."""
        with open(self.path(name), "w", encoding="ascii"):
            pass

    def start(self, name, steps, rank=None, size=3, limit=None, backend=None, port=None,
              extra=None):
        """Without a limit the job's counts; 0 leaves it to the environment."""
        limit = self.limit if limit is None else limit
        environment = clean_environment()
        environment.update(RANK=str(name if rank is None else rank), WORLD_SIZE=str(size),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port or self.port))
        environment.update(extra or {})
        environment = {k: v for k, v in environment.items() if v is not None}
        command = [Programs.victim, "--backend", backend or self.backend]
        if limit:
            command += ["--limit", str(int(limit * 1000))]
        self.ranks[name] = Process(command + steps.split(), environment, limit or SHORT)
        return self.ranks[name]

    def kill_after(self, step, *names, signal_number=signal.SIGKILL):
        """When everybody has done a step (or each its own): a rank may return from a collective,
        and end, before the others have all they need of it."""
        for number, process in enumerate(self.ranks.values()):
            process.wait_for(step if isinstance(step, str) else step[number])
        for name in names:
            self.ranks[name].process.send_signal(signal_number)

    def wait_for_port(self):
        """Until rank 0 listens."""
        end = time.monotonic() + PATIENT
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise Failure("rank 0 does not listen")

    def steps(self, name):
        """All steps of a survivor, by name; the first of that name counts."""
        process = self.ranks[name]
        status = process.end()
        check(status == 0, f"rank {name}: exit status {status}; steps {process.steps}; "
                           f"stderr: {process.stderr()}")
        found = {}
        for step in process.steps:
            found.setdefault(step["step"], step | {"limit": process.limit})
        return found


def expect_fine(job, name, steps):
    found = job.steps(name)
    for step in steps.split():
        check(step in found, f"rank {name}: step {step} is missing: {found}")
        check(found[step]["ok"], f"rank {name}: {step}: {found[step]}")


def expect_error(found, step, words, codes=("timeout", "peer_lost"), who=""):
    check(step in found, f"{who}: step {step} is missing: {list(found)}")
    result = found[step]
    check(not result["ok"], f"{who}: {step} went well, expected an error with {words}")
    limit = result.get("limit", SHORT)
    check(result["seconds"] <= limit + 5 + SLACK,
          f"{who}: {step} took {result['seconds']} s, promised are {limit + 5}")
    check(result["code"] in codes, f"{who}: {step}: code {result['code']}, expected {codes}: "
                                   f"{result['message']}")
    for word in words:
        check(re.search(word, result["message"]),
              f"{who}: {step}: no '{word}' in: {result['message']}")


ALL_REDUCE = [r"all_reduce number \d+", "4MiB f32"]


def missing(*ranks):
    return [r"ranks?\b[^.;:]*\b%d\b" % rank for rank in ranks]
