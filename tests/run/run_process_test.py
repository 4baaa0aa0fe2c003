"""What the command of `diapason run` has and gets: streams, signals, a terminal; and how it ends.

    run_process_test.py --tool PATH --rank PATH [RunProcessTest.test_NAME...]
"""

import os
import pty
import signal
import subprocess
import time

import ran
from ran import LIMIT, main, proc, Ran, state, wait_until


class RunProcessTest(Ran):
    def ready(self, name="ready"):
        wait_until(lambda: os.path.exists(self.path(name)), f"file {name}")

    def start_shell(self, script, *options, **more):
        return self.start("--policy", self.path("policy.conf"), *options, "--", "sh", "-c", script, **more)

    def test_streams(self):
        status, out, err = self.with_policy("sh", "-c", "cat; echo to err >&2", input=b"to in\n")
        self.assertEqual((status, out), (0, "to in\n"))
        self.assertEqual(err[0], "to err")

    def test_much_output(self):
        status, out, _ = self.with_policy("sh", "-c", "yes 0123456789abcdef | head -c 20000000")
        self.assertEqual((status, len(out)), (0, 20000000))

    def test_working_directory_and_environment(self):
        status, out, _ = self.with_policy("sh", "-c", "pwd; echo $MINE; echo $DIAPASON_MODE", env={"MINE": "a b"})
        self.assertEqual((status, out.splitlines()), (0, [os.path.realpath(self.folder.name), "a b", "static"]))

    def test_status(self):
        self.assertEqual(self.with_policy("sh", "-c", "exit 42")[0], 42)
        self.assertEqual(self.with_policy("sh", "-c", "kill -KILL $$")[0], 128 + signal.SIGKILL)
        status, _, err = self.with_policy("no-such-program")
        self.assertEqual((status, len(err)), (127, 1))
        self.assertIn("cannot start 'no-such-program'", err[0])
        status, _, err = self.with_policy(self.path("policy.conf"))
        self.assertEqual(status, 126)
        self.assertIn("Permission denied", err[0])

    def test_signals_are_passed_on(self):
        for number, name in ((signal.SIGTERM, "TERM"), (signal.SIGINT, "INT"), (signal.SIGHUP, "HUP"),
                             (signal.SIGQUIT, "QUIT"), (signal.SIGUSR1, "USR1"), (signal.SIGUSR2, "USR2")):
            process = self.start_shell(f"trap 'echo got {name}; exit 9' {name}; touch ready; "
                                       "while :; do sleep 0.02; done")
            self.ready()
            process.send_signal(number)
            out, err = process.communicate(timeout=LIMIT)
            self.assertEqual((process.returncode, out.decode()), (9, f"got {name}\n"), err)
            self.assert_three_lines(err.decode().splitlines())
            os.unlink(self.path("ready"))

    def test_no_limit_on_the_way_out(self):
        """A program that saves its state after SIGTERM is not killed."""
        process = self.start_shell("trap 'sleep 2; echo saved; exit 0' TERM; touch ready; while :; do sleep 0.02; done")
        self.ready()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out), (0, b"saved\n"))

    def test_grace_and_timeout(self):
        stubborn = "trap '' TERM; touch ready; while :; do sleep 0.05; done"
        process = self.start_shell(stubborn, "--grace", "0.3")
        self.ready()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assert_nobody_left()
        process = self.start_shell(stubborn, "--grace", "0.3", "--timeout", "1")
        _, err = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 124, err)
        self.assertIn(b"time limit of 1 s is over", err)
        self.assert_nobody_left()

    def test_nothing_is_left(self):
        start = "setsid sh -c 'touch apart; exec sleep 1000' & sleep 1000 & " \
                "while ! test -e apart; do sleep 0.02; done; touch ready; "
        # A failure ends what made a session of its own, too.
        self.assertEqual(self.with_policy("sh", "-c", start + "exit 3")[0], 3)
        self.assert_nobody_left()
        for number in (signal.SIGTERM, signal.SIGINT):
            os.unlink(self.path("apart"))
            os.unlink(self.path("ready"))
            process = self.start_shell(start + "wait")
            self.ready()
            process.send_signal(number)
            process.communicate(timeout=LIMIT)
            self.assert_nobody_left()

    def test_killed_with_the_tool(self):
        process = self.start_shell("sleep 1000 & touch ready; sleep 1000")
        self.ready()
        process.kill()
        process.wait(timeout=LIMIT)
        self.assert_nobody_left()

    def test_mpirun_and_signals(self):
        self.needs("mpirun")
        process = self.start("--policy", self.path("policy.conf"), "--", "mpirun", "-n", "2", "sh", "-c",
                             "touch ready.$OMPI_COMM_WORLD_RANK; exec sleep 1000")
        for rank in (0, 1):
            self.ready(f"ready.{rank}")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT)
        self.assertNotEqual(process.returncode, 0)
        self.assert_nobody_left()

    def terminal(self, script):
        """The tool with a terminal of its own, as a shell's job in the foreground: its pid and the terminal."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder.name)
            os.execve(ran.TOOL, [ran.TOOL, "run", "--policy", self.path("policy.conf"), "--", "sh", "-c", script],
                      self.environment())
        return pid, terminal

    def finish(self, pid, terminal):
        status = []

        def ended():
            try:
                os.set_blocking(terminal, False)
                os.read(terminal, 65536)
            except OSError:
                pass
            found, value = os.waitpid(pid, os.WNOHANG)
            if found:
                status.append(os.waitstatus_to_exitcode(value))
            return bool(status)
        wait_until(ended, "end of the tool")
        os.close(terminal)
        return status[0]

    def test_a_terminal_is_read(self):
        pid, terminal = self.terminal("test -t 0 && read -r line && echo \"$line\" > line")
        os.write(terminal, b"typed\n")
        self.assertEqual(self.finish(pid, terminal), 0)
        self.assertEqual(self.read("line"), "typed\n")

    def test_control_c(self):
        pid, terminal = self.terminal("trap 'exit 7' INT; touch ready; while :; do sleep 0.02; done")
        self.ready()
        os.write(terminal, b"\x03")
        self.assertEqual(self.finish(pid, terminal), 7)
        self.assert_nobody_left()

    def test_stop_and_continue(self):
        process = self.start_shell("touch ready; while ! test -e go; do sleep 0.02; done; exit 6")
        self.ready()
        command = [pid for pid in self.processes() if proc(pid, "cmdline").startswith(b"sh\0")][0]
        process.send_signal(signal.SIGTSTP)
        wait_until(lambda: state(process.pid) == "T" and state(command) == "T", "both are stopped")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: state(process.pid) != "T" and state(command) != "T", "both go on")
        with open(self.path("go"), "w", encoding="utf-8"):
            pass
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 6)

    def test_ignored_signals_stay_ignored(self):
        """As under nohup."""
        process = self.start_shell("touch ready; while ! test -e go; do sleep 0.02; done; exit 6",
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.ready()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        with open(self.path("go"), "w", encoding="utf-8"):
            pass
        self.assertEqual(process.wait(timeout=LIMIT), 6)

    def test_closed_streams(self):
        script = f"{ran.TOOL} run --policy {self.path('policy.conf')} -- sh -c 'exit 4' >&- 2>&- <&-"
        done = subprocess.run(["sh", "-c", script], env=self.environment(), timeout=LIMIT)
        self.assertEqual(done.returncode, 4)


if __name__ == "__main__":
    main(__doc__)
