"""What a user of `diapason launch` sees, with real processes.

    launch_test.py --tool PATH [LaunchTest.test_NAME...]

Every process of a test carries a token of its own in its environment: so the test finds all of them, however they
were started, and ends what a failed test leaves behind.
"""

import contextlib
import ctypes
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

TOOL = None
LIMIT = 600  # seconds; every wait in here ends by then, on a slow machine as well
PR_SET_CHILD_SUBREAPER = 36
OWN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def wait_until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {LIMIT} s in vain: {what}")
        time.sleep(0.01)


def proc(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def state(pid):
    stat = proc(pid, "stat")
    return stat.rpartition(b")")[2].split()[0].decode() if stat else ""


class LaunchTest(unittest.TestCase):
    def setUp(self):
        self.token = uuid.uuid4().hex
        self.folder = tempfile.TemporaryDirectory(prefix="launch_test.")
        self.started = []

    def tearDown(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def environment(self, extra=()):
        kept = {name: value for name, value in os.environ.items() if name not in OWN}
        return {**kept, "TOKEN": self.token, "FOLDER": self.folder.name, **dict(extra)}

    def start(self, *arguments, env=(), **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([TOOL, "launch", *arguments], env=self.environment(env), **options)
        self.started.append(process)
        return process

    def run_tool(self, *arguments, env=(), **options):
        """Exit status, lines of standard output, text of standard error."""
        given = options.pop("input", None)
        if given is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*arguments, env=env, **options)
        out, err = process.communicate(given, timeout=LIMIT)
        return process.returncode, (out or b"").decode().splitlines(), (err or b"").decode()

    def processes(self):
        """Everybody of this test who is alive, except the test and the launchers."""
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) in [process.pid for process in self.started]:
                continue
            if f"TOKEN={self.token}".encode() in proc(name, "environ") and state(name) not in ("", "Z", "X"):
                found.append(int(name))
        return found

    def ranks(self):
        return [pid for pid in self.processes() if b"\0RANK=" in b"\0" + proc(pid, "environ")]

    def wait_for_files(self, *names):
        for name in names:
            wait_until(lambda name=name: os.path.exists(self.path(name)), f"file {name}")

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def assert_nobody_left(self):
        wait_until(lambda: not self.processes(), f"end of {self.processes()}")

    # The environment of a rank.

    def test_variables(self):
        status, out, err = self.run_tool("-n", "4", "--", "sh", "-c", "echo " + " ".join("$" + name for name in OWN))
        self.assertEqual((status, err), (0, ""))
        ports = {line.split()[5] for line in out}
        self.assertEqual(len(ports), 1, out)
        port = ports.pop()
        self.assertTrue(0 < int(port) < 65536)
        self.assertEqual(sorted(out), [f"{r} 4 {r} 4 localhost {port}" for r in range(4)])

    def test_foreign_variables_are_removed(self):
        foreign = ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_FD", "PMIX_RANK", "SLURM_PROCID",
                   "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_STEP_ID", "TORCHELASTIC_USE_AGENT_STORE", "GROUP_RANK"]
        kept = ["OMPI_MCA_btl", "PMIX_MCA_gds", "SLURM_JOB_ID", "SLURM_JOB_NODELIST"]
        env = {name: "7" for name in foreign + kept} | {"RANK": "7", "WORLD_SIZE": "9", "MASTER_ADDR": "elsewhere"}
        status, out, _ = self.run_tool("-n", "1", "--", "env", env=env)
        self.assertEqual(status, 0)
        seen = dict(line.split("=", 1) for line in out if "=" in line)
        self.assertEqual([name for name in foreign if name in seen], [])
        self.assertEqual([name for name in kept if seen.get(name) != "7"], [])
        self.assertEqual((seen["RANK"], seen["WORLD_SIZE"], seen["MASTER_ADDR"]), ("0", "1", "localhost"))

    def secret_of(self, process):
        wait_until(lambda: self.ranks(), "the ranks")
        variables = proc(self.ranks()[0], "environ").split(b"\0")
        path = [one for one in variables if one.startswith(b"DIAPASON_SECRET_FILE=")][0].split(b"=", 1)[1].decode()
        self.assertIsNone(process.poll())
        return path

    def test_secret_is_private_and_gone_in_the_end(self):
        env = {"DIAPASON_SECRET": "of another job, longer", "DIAPASON_SECRET_FILE": "/of/another/job",
               "TMPDIR": self.folder.name}
        script = "file=$DIAPASON_SECRET_FILE; stat -c %a $file $(dirname $file); " \
                 "cat $file; echo; echo ${DIAPASON_SECRET-unset}; echo $file"
        seen = set()
        for _ in range(2):
            status, _, err = self.run_tool("-n", "2", "--log-dir", self.path("logs"), "--", "sh", "-c", script,
                                           env=env)
            self.assertEqual((status, err), (0, ""))
            texts = [self.read(f"logs/rank-{rank}.out").splitlines() for rank in (0, 1)]
            self.assertEqual(texts[0], texts[1])
            mode, folder_mode, secret, value, path = texts[0]
            self.assertEqual((mode, folder_mode, value), ("600", "700", "unset"))
            self.assertRegex(secret, "^[A-Za-z0-9_-]{43}$")
            self.assertTrue(path.startswith(self.folder.name), path)
            self.assertFalse(os.path.exists(os.path.dirname(path)), path)
            seen.add(secret)
        self.assertEqual(len(seen), 2)
        for name in ("DIAPASON_SECRET_FILE=/x", "DIAPASON_SECRET=x"):
            self.assertEqual(self.run_tool("-n", "1", "--env", name, "--", "true")[0], 2)

    def test_secret_goes_with_a_launcher_that_is_ended(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = self.start("-n", "2", "--", "sleep", "1000")
            path = self.secret_of(process)
            self.assertTrue(os.path.exists(path))
            process.send_signal(number)
            process.wait(timeout=LIMIT)
            self.assert_nobody_left()
            wait_until(lambda path=path: not os.path.exists(os.path.dirname(path)), f"removal of {path}")

    def test_secret_without_a_place(self):
        # Somewhere else where TMPDIR cannot be written.
        status, out, err = self.run_tool("-n", "1", "--", "sh", "-c", "test -s $DIAPASON_SECRET_FILE && echo fine",
                                         env={"TMPDIR": "/nowhere"})
        self.assertEqual((status, out, err), (0, ["fine"], ""))

    def test_secret_is_in_no_argument(self):
        process = self.start("-n", "2", "--", "sleep", "1000")
        with open(self.secret_of(process), "rb") as file:
            secret = file.read()
        self.assertEqual(len(secret), 43)
        for pid in [process.pid, *self.processes()]:
            self.assertNotIn(secret, proc(pid, "cmdline"))
            self.assertNotIn(secret, proc(pid, "environ"))

    def test_threads(self):
        cores = len(os.sched_getaffinity(0))
        command = ("--", "sh", "-c", "echo $OMP_NUM_THREADS")
        unset = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        for ranks in (1, 2 * cores):
            out = subprocess.run([TOOL, "launch", "-n", str(ranks), *command], env=unset, timeout=LIMIT, check=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.decode().split()
            self.assertEqual(out, [str(max(1, cores // ranks))] * ranks)
        self.assertEqual(self.run_tool("-n", "1", *command, env={"OMP_NUM_THREADS": "3"})[1], ["3"])

    def test_env_option(self):
        status, out, _ = self.run_tool("-n", "2", "--env", "A=x=y", "--env", "B=", "--env", "HOME=/h", "--env", "A=z z",
                                       "--", "sh", "-c", 'echo "$A|${B-unset}|$HOME"')
        self.assertEqual((status, out), (0, ["z z||/h"] * 2))

    def test_usage_errors(self):
        for arguments in (["-n", "4"], ["-n", "4", "--"], ["-n", "0", "--", "true"], ["-n", "4097", "--", "true"],
                          ["--", "true"], ["-n", "2", "true"], ["-n", "2", "--nonsense", "--", "true"],
                          ["-n", "1", "--env", "A", "--", "true"], ["-n", "1", "--env", "=1", "--", "true"],
                          ["-n", "1", "--env", "RANK=1", "--", "true"], ["-n", "1", "--port", "65536", "--", "true"],
                          ["-n", "1", "--grace", "-1", "--", "true"], ["-n", "1", "--timeout", "nan", "--", "true"],
                          ["-n", "1", "--grace", "inf", "--", "true"], ["-n", "1", "--", ""]):
            status, out, err = self.run_tool(*arguments)
            self.assertEqual((status, out), (2, []), arguments)
            self.assertNotEqual(err, "", arguments)

    def test_arguments_are_verbatim(self):
        words = ["-n", "3", "--prefix", "--", "[a,b]", "{}", "", "%%", "--help", "settings", "a b", "-"]
        status, out, _ = self.run_tool("-n", "1", "--", "printf", "<%s>\\n", *words)
        self.assertEqual((status, out), (0, [f"<{word}>" for word in words]))

    # Exit statuses.

    def test_first_failure_is_the_status(self):
        script = 'trap "exit 7" TERM; touch $FOLDER/r$RANK; if [ $RANK = 1 ]; then ' \
                 'while [ ! -e $FOLDER/r0 -o ! -e $FOLDER/r2 ]; do sleep 0.01; done; exit 3; fi; ' \
                 'while :; do sleep 0.05; done'
        status, _, err = self.run_tool("-n", "3", "--", "sh", "-c", script)
        self.assertEqual(status, 3)
        # The shells say something about their sleep, too.
        self.assertRegex(err, r"(?m)^diapason: rank 1 \(pid \d+\) exited with status 3; ending the others$")
        self.assertEqual(err.count("diapason"), 1)
        self.assert_nobody_left()

    def test_first_of_two_failures(self):
        # Both ends wait for the launcher as one signal.
        script = 'echo $$ > $FOLDER/new$RANK; mv $FOLDER/new$RANK $FOLDER/pid$RANK; ' \
                 'while [ ! -e $FOLDER/go$RANK ]; do sleep 0.01; done; exit 2$RANK'
        process = self.start("-n", "3", "--", "sh", "-c", script)
        self.wait_for_files("pid0", "pid1", "pid2")
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state(process.pid) == "T", "the launcher stopped")
        for rank in (2, 0):
            with open(self.path(f"go{rank}"), "w", encoding="utf-8"):
                pass
            pid = int(self.read(f"pid{rank}"))
            wait_until(lambda pid=pid: state(pid) == "Z", f"end of rank {rank}")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(timeout=LIMIT), 22)

    def test_killed_rank(self):
        status, _, err = self.run_tool("-n", "3", "--", "sh", "-c", "[ $RANK = 2 ] && kill -KILL $$; exec sleep 1000")
        self.assertEqual(status, 128 + signal.SIGKILL)
        self.assertRegex(err, r"^diapason: rank 2 \(pid \d+\) was killed by SIGKILL; ending the others\n$")

    def test_command_that_cannot_start(self):
        plain = self.path("plain")
        with open(plain, "w", encoding="utf-8") as file:
            file.write("#!/no/such/interpreter\n")
        cases = [("no-such-command-anywhere", 127), ("/no/such/file", 127), (plain, 126), (self.folder.name, 126)]
        for command, expected in cases:
            status, _, err = self.run_tool("-n", "8", "--", command)
            self.assertEqual(status, expected, command)
            self.assertRegex(err, rf"^diapason: error: cannot start '{re.escape(command)}': [^\n]+\n$")
        os.chmod(plain, 0o755)
        status, _, err = self.run_tool("-n", "2", "--", plain)
        self.assertEqual(status, 127)
        self.assertIn("interpreter", err)

    def test_own_status_127_of_a_rank_is_no_start_failure(self):
        status, _, err = self.run_tool("-n", "1", "--", "sh", "-c", "exit 127")
        self.assertEqual(status, 127)
        self.assertIn("rank 0", err)

    def test_path_of_the_ranks_is_searched(self):
        tool = self.path("only-here")
        with open(tool, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho found\n")
        os.chmod(tool, 0o755)
        status, out, _ = self.run_tool("-n", "1", "--env", f"PATH={self.folder.name}", "--", "only-here")
        self.assertEqual((status, out), (0, ["found"]))

    # Ending.

    def test_failure_ends_everybody(self):
        # Grandchildren in the rank's group, one in a group of its own (as timeout(1) makes), all deaf to SIGTERM.
        script = 'trap "" TERM; sleep 1000 & timeout 1000 sleep 1000 & touch $FOLDER/r$RANK; ' \
                 'if [ $RANK = 1 ]; then while [ ! -e $FOLDER/r0 ]; do sleep 0.01; done; exit 5; fi; ' \
                 'while :; do sleep 1; done'
        status, _, err = self.run_tool("-n", "2", "--grace", "0.3", "--", "sh", "-c", script)
        self.assertEqual(status, 5)
        self.assertIn("killing", err)
        self.assertEqual(self.processes(), [])

    def test_grace_lets_ranks_finish(self):
        script = 'trap "sleep 0.3; touch $FOLDER/saved; exit 0" TERM; touch $FOLDER/ready; ' \
                 'if [ $RANK = 1 ]; then while [ ! -e $FOLDER/ready0 ]; do sleep 0.01; done; exit 5; fi; ' \
                 'touch $FOLDER/ready0; while :; do sleep 0.05; done'
        status, _, err = self.run_tool("-n", "2", "--grace", "300", "--", "sh", "-c", script)
        self.assertEqual(status, 5)
        self.assertTrue(os.path.exists(self.path("saved")))
        self.assertNotIn("killing", err)

    def test_left_behind_processes_are_ended(self):
        script = 'sleep 1000 & setsid sh -c "touch $FOLDER/daemon; exec sleep 1000" & ' \
                 'while [ ! -e $FOLDER/daemon ]; do sleep 0.01; done'
        with open(self.path("out"), "w", encoding="utf-8") as out:
            status, _, err = self.run_tool("-n", "1", "-p", "--", "sh", "-c", script, stdout=out)
        self.assertEqual(status, 0)
        self.assertIn("1 process that they left behind", err)
        # Whoever has made a session of its own wanted to stay.
        self.assertEqual(len(self.processes()), 1)

    def test_no_zombies(self):
        # What the launcher does not collect would come to us.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        script = 'if [ $RANK = 3 ]; then while [ ! -e $FOLDER/go ]; do sleep 0.01; done; exit 9; fi; ' \
                 'sh -c "sleep 1000 & sleep 1000 & touch $FOLDER/r$RANK; wait" & wait'
        process = self.start("-n", "4", "--", "sh", "-c", script)
        self.wait_for_files("r0", "r1", "r2")
        with open(self.path("go"), "w", encoding="utf-8"):
            pass
        self.assertEqual(process.wait(timeout=LIMIT), 9)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        self.assertEqual(self.processes(), [])

    def test_timeout(self):
        script = 'trap "exit 0" TERM; while :; do sleep 0.05; done'
        status, _, err = self.run_tool("-n", "2", "--timeout", "0.5", "--", "sh", "-c", script)
        self.assertEqual(status, 124)
        self.assertIn("time limit of 0.5 s", err)
        self.assert_nobody_left()
        self.assertEqual(self.run_tool("-n", "2", "--timeout", "300", "--", "true")[0], 0)

    def test_launcher_killed(self):
        script = 'trap "" TERM HUP; sleep 1000 & timeout 1000 sleep 1000 & touch $FOLDER/r$RANK; ' \
                 'while :; do sleep 1; done'
        process = self.start("-n", "3", "--", "sh", "-c", script)
        self.wait_for_files("r0", "r1", "r2")
        self.assertGreaterEqual(len(self.ranks()), 9)
        process.kill()
        process.wait(timeout=LIMIT)
        self.assert_nobody_left()

    def test_launcher_and_keeper_killed(self):
        script = 'touch $FOLDER/r$RANK; while :; do sleep 0.02; done'
        process = self.start("-n", "3", "--", "sh", "-c", script)
        self.wait_for_files("r0", "r1", "r2")
        keepers = [pid for pid in self.processes() if proc(pid, "comm") == b"diapason-keeper\n"]
        self.assertEqual(len(keepers), 1)
        os.kill(keepers[0], signal.SIGKILL)
        wait_until(lambda: state(keepers[0]) in ("Z", ""), "end of the keeper")
        process.kill()
        process.wait(timeout=LIMIT)
        self.assert_nobody_left()

    def test_launcher_killed_while_starting(self):
        for delay in (0, 0.002, 0.005, 0.01, 0.02, 0.04):
            process = self.start("-n", "64", "--", "sleep", "1000")
            time.sleep(delay)
            process.kill()
            process.wait(timeout=LIMIT)
            self.assert_nobody_left()

    # Signals.

    def test_user_signals_reach_the_ranks_only(self):
        # The helper would die of SIGUSR1.
        script = 'sleep 1000 & helper=$!; trap "kill -0 $helper && touch $FOLDER/got1-$RANK" USR1; ' \
                 'trap "touch $FOLDER/got2-$RANK; kill $helper; exit 0" USR2; touch $FOLDER/r$RANK; ' \
                 'while :; do sleep 0.02; done'
        process = self.start("-n", "2", "--", "sh", "-c", script)
        self.wait_for_files("r0", "r1")
        process.send_signal(signal.SIGUSR1)
        self.wait_for_files("got1-0", "got1-1")
        process.send_signal(signal.SIGUSR2)
        self.wait_for_files("got2-0", "got2-1")
        self.assertEqual(process.wait(timeout=LIMIT), 0)

    def test_terminating_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            name = signal.Signals(number).name[3:]
            script = f'trap "touch $FOLDER/got{name}$RANK; trap - {name}; kill -{name} $$" {name}; ' \
                     f'touch $FOLDER/{name}$RANK; while :; do sleep 0.02; done'
            process = self.start("-n", "2", "--", "sh", "-c", "ulimit -c 0; " + script)
            self.wait_for_files(f"{name}0", f"{name}1")
            process.send_signal(number)
            _, err = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, 128 + number)
            self.assertIn(f"SIG{name}", err.decode())
            self.wait_for_files(f"got{name}0", f"got{name}1")

    def test_signal_that_ranks_survive_in_order(self):
        script = 'trap "exit 0" TERM; touch $FOLDER/r$RANK; while :; do sleep 0.02; done'
        process = self.start("-n", "2", "--grace", "300", "--", "sh", "-c", script)
        self.wait_for_files("r0", "r1")
        process.terminate()
        self.assertEqual(process.wait(timeout=LIMIT), 0)

    def test_deaf_ranks_are_killed_after_a_signal(self):
        script = 'trap "" TERM; touch $FOLDER/r$RANK; while :; do sleep 0.02; done'
        process = self.start("-n", "2", "--grace", "0.2", "--", "sh", "-c", script)
        self.wait_for_files("r0", "r1")
        process.terminate()
        self.assertEqual(process.wait(timeout=LIMIT), 128 + signal.SIGTERM)
        self.assert_nobody_left()

    def test_second_interrupt_kills(self):
        script = 'trap "touch $FOLDER/got$RANK" INT; touch $FOLDER/r$RANK; while :; do sleep 0.02; done'
        process = self.start("-n", "2", "--grace", "1000", "--", "sh", "-c", script)
        self.wait_for_files("r0", "r1")
        process.send_signal(signal.SIGINT)
        self.wait_for_files("got0", "got1")
        time.sleep(0.15)  # two signals within 0.1 s are one request
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertIn("SIGINT again", err.decode())
        self.assert_nobody_left()

    def test_ignored_hangup_stays_ignored(self):
        script = 'touch $FOLDER/r$RANK; while [ ! -e $FOLDER/go ]; do sleep 0.02; done; kill -HUP $$; exit 0'
        process = self.start("-n", "2", "--", "sh", "-c", script,
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_files("r0", "r1")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGWINCH)
        with open(self.path("go"), "w", encoding="utf-8"):
            pass
        _, err = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, err), (0, b""))

    def test_stop_and_continue(self):
        script = "touch $FOLDER/r$RANK; exec sleep 1000"
        process = self.start("-n", "2", "--", "sh", "-c", script, start_new_session=True)
        self.wait_for_files("r0", "r1")
        process.send_signal(signal.SIGTSTP)
        wait_until(lambda: [state(pid) for pid in self.ranks() + [process.pid]] == ["T"] * 3, "everybody stopped")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: "T" not in [state(pid) for pid in self.ranks() + [process.pid]], "everybody continued")
        process.terminate()
        self.assertEqual(process.wait(timeout=LIMIT), 128 + signal.SIGTERM)

    def test_ranks_inherit_no_blocked_signals_or_limits(self):
        show = ["sh", "-c", "grep -E '^Sig(Blk|Ign):' /proc/self/status; ulimit -n"]
        status, out, _ = self.run_tool("-n", "1", "--", *show)
        expected = subprocess.run(show, check=True, stdout=subprocess.PIPE).stdout.decode().splitlines()
        self.assertEqual((status, out), (0, expected))

    # Input and output.

    def test_input_goes_to_rank_0(self):
        status, out, _ = self.run_tool("-n", "3", "-p", "--", "sh", "-c", "cat; echo end", input=b"one\ntwo\n")
        self.assertEqual(status, 0)
        self.assertEqual(sorted(out), ["[0] end", "[0] one", "[0] two", "[1] end", "[2] end"])

    def test_terminal_input(self):
        # Rank 0 sees the end of the input instead of being stopped, and ^C reaches each rank once.
        script = 'trap "echo got" INT; cat; touch $FOLDER/r$RANK; ' \
                 'while [ ! -e $FOLDER/go ]; do sleep 0.02; done; exit 0'
        pid, master = pty.fork()
        if pid == 0:
            os.execve(TOOL, [TOOL, "launch", "-n", "2", "-p", "--grace", "1000", "--", "sh", "-c", script],
                      self.environment())
        self.wait_for_files("r0", "r1")
        os.write(master, b"\x03")
        text = b""
        end = time.monotonic() + LIMIT
        os.set_blocking(master, False)
        while True:
            self.assertLess(time.monotonic(), end, text)
            try:
                text += os.read(master, 4096)
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break
            if text.count(b"] got") >= 2 and not os.path.exists(self.path("go")):
                with open(self.path("go"), "w", encoding="utf-8"):
                    pass
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        os.close(master)
        self.assertEqual(sorted(re.findall(rb"\[\d\] got", text)), [b"[0] got", b"[1] got"])

    def test_prefix_keeps_lines_whole(self):
        program = "import os, sys\n" \
                  "rank = os.environ['RANK']\n" \
                  "for i in range(200):\n" \
                  "    for stream in (sys.stdout, sys.stderr):\n" \
                  "        for piece in (rank * 50, rank * 5000, rank * 50 + '\\n'):\n" \
                  "            stream.write(piece)\n" \
                  "            stream.flush()\n"
        status, lines, _ = self.run_tool("-n", "4", "-p", "--", sys.executable, "-c", program, stderr=subprocess.STDOUT)
        self.assertEqual(status, 0)
        self.assertEqual(len(lines), 1600)
        whole = {f"[{r}] " + str(r) * 5100 for r in range(4)}
        self.assertEqual(len([line for line in lines if line not in whole]), 0)

    def test_prefix_separates_the_outputs(self):
        status, out, err = self.run_tool("-n", "2", "-p", "--", "sh", "-c", "echo out; echo >&2 err; printf last")
        self.assertEqual(status, 0)
        self.assertEqual(sorted(out), ["[0] last", "[0] out", "[1] last", "[1] out"])
        self.assertEqual(sorted(err.splitlines()), ["[0] err", "[1] err"])

    def test_prefix_bounds_lines(self):
        limit, size = 65536, 1000000
        status, out, _ = self.run_tool("-n", "1", "-p", "--", "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x")
        self.assertEqual(status, 0)
        self.assertLessEqual(max(len(line) for line in out), limit + len("[0] "))
        self.assertTrue(all(line.startswith("[0] ") for line in out))
        self.assertEqual("".join(line[4:] for line in out), "x" * size)

    def test_last_words_come_before_the_verdict(self):
        script = "printf 'it broke' >&2; exit 4"
        status, lines, _ = self.run_tool("-n", "1", "-p", "--", "sh", "-c", script, stderr=subprocess.STDOUT)
        self.assertEqual(status, 4)
        self.assertEqual(lines[0], "[0] it broke")
        self.assertRegex(lines[1], "exited with status 4$")

    def test_reader_that_pauses_does_not_stop_the_watch(self):
        script = 'if [ $RANK = 1 ]; then while [ ! -e $FOLDER/go ]; do sleep 0.02; done; exit 6; fi; exec yes'
        process = self.start("-n", "2", "-p", "--", "sh", "-c", script)
        wait_until(lambda: len(self.ranks()) >= 2, "both ranks")
        with open(self.path("go"), "w", encoding="utf-8"):
            pass
        self.assert_nobody_left()  # before anybody has read
        out, _ = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 6)
        self.assertEqual(set(out.splitlines()), {b"[0] y"})

    def test_reader_that_leaves(self):
        process = self.start("-n", "1", "-p", "--", "yes")
        self.assertEqual(process.stdout.read(4), b"[0] ")
        process.stdout.close()
        self.assertEqual(process.wait(timeout=LIMIT), 128 + signal.SIGPIPE)
        self.assert_nobody_left()

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.run_tool("-n", "1", "-p", "--", "echo", "x", stdout=full)[0], 1)

    def test_closed_standard_files(self):
        line = 'exec "$TOOL" launch -n 2 -p -- sh -c "echo out; echo err >&2; cat" <&- >&-'
        result = subprocess.run(["sh", "-c", line], env=self.environment({"TOOL": TOOL}), stderr=subprocess.PIPE,
                                timeout=LIMIT, check=False)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(sorted(result.stderr.splitlines()), [b"[0] err", b"[1] err"])

    def test_log_dir(self):
        logs = self.path("a/b")
        command = ("--", "sh", "-c", "echo out$RANK; printf err$RANK >&2")
        status, out, err = self.run_tool("-n", "2", "--log-dir", logs, *command)
        self.assertEqual((status, out, err), (0, [], ""))
        for rank in range(2):
            self.assertEqual(self.read(f"a/b/rank-{rank}.out"), f"out{rank}\n")
            self.assertEqual(self.read(f"a/b/rank-{rank}.err"), f"err{rank}")
        status, out, err = self.run_tool("-n", "1", "-p", "--log-dir", logs, *command)
        self.assertEqual((status, out, err), (0, ["[0] out0"], "[0] err0\n"))
        self.assertEqual(self.read("a/b/rank-0.out") + self.read("a/b/rank-0.err"), "out0\nerr0")

    def test_log_dir_that_cannot_be_written(self):
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        self.assertEqual(self.run_tool("-n", "1", "--log-dir", self.path("file"), "--", "true")[0], 1)
        os.mkdir(self.path("logs"))
        os.symlink(self.path("target"), self.path("logs/rank-1.err"))
        status, _, err = self.run_tool("-n", "3", "--log-dir", self.path("logs"), "--", "sleep", "1000")
        self.assertEqual(status, 1)
        self.assertIn("rank-1.err", err)
        self.assertFalse(os.path.exists(self.path("target")))
        self.assert_nobody_left()
        os.remove(self.path("logs/rank-1.err"))
        os.mkfifo(self.path("logs/rank-1.err"))
        self.assertEqual(self.run_tool("-n", "3", "--log-dir", self.path("logs"), "--", "sleep", "1000")[0], 1)

    # The job.

    def test_many_ranks(self):
        status, out, err = self.run_tool("-n", "64", "-p", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(sorted(out), sorted(f"[{r}] {r} of 64" for r in range(64)))

    def test_many_ranks_with_few_open_files_allowed(self):
        import resource
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        status, out, _ = self.run_tool("-n", "64", "-p", "--", "sh", "-c", "ulimit -n",
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)))
        self.assertEqual((status, sorted(out)), (0, sorted(f"[{r}] 64" for r in range(64))))

    def test_ports(self):
        show = ("--", "sh", "-c", "echo $MASTER_PORT")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            status, out, err = self.run_tool("-n", "1", *show, env={"MASTER_PORT": port})
            self.assertEqual(status, 0)
            self.assertNotEqual(out, [port])
            self.assertIn(f"port {port} (MASTER_PORT)", err)
            status, out, err = self.run_tool("-n", "1", "--port", port, *show)
            self.assertEqual((status, out), (1, []))
            self.assertIn(f"port {port} cannot be used", err)
        self.assertEqual(self.run_tool("-n", "1", "--port", port, *show)[:2], (0, [port]))
        self.assertEqual(self.run_tool("-n", "1", *show, env={"MASTER_PORT": port}), (0, [port], ""))
        for wrong in ("0", "65536", "x", "-1", "1e3"):
            self.assertEqual(self.run_tool("-n", "1", *show, env={"MASTER_PORT": wrong})[0], 1, wrong)

    def test_rank_0_can_listen(self):
        program = "import os, socket\n" \
                  "server = socket.create_server(('', int(os.environ['MASTER_PORT'])))\n" \
                  "client = socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])))\n"
        self.assertEqual(self.run_tool("-n", "1", "--", sys.executable, "-c", program)[0], 0)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--tool"]:
        sys.exit(__doc__)
    TOOL = os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
