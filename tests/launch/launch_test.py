"""What a user of `diapason launch` sees, with real processes: what ranks get, how they start and end.

    launch_test.py --tool PATH [LaunchTest.test_NAME...]
"""

import ctypes
import os
import re
import signal
import subprocess
import time

import launched
from launched import Launched, LIMIT, main, OWN, PR_SET_CHILD_SUBREAPER, proc, state, wait_until


class LaunchTest(Launched):
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
            out = subprocess.run([launched.TOOL, "launch", "-n", str(ranks), *command], env=unset, timeout=LIMIT, check=True,
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


if __name__ == "__main__":
    main(__doc__)
