"""What a user of `diapason launch` sees, with real processes: input and output, large jobs, ports.

    launch_output_test.py --tool PATH [LaunchTest.test_NAME...]
"""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time

import launched
from launched import Launched, LIMIT, main, wait_until


class LaunchTest(Launched):
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
            os.execve(launched.TOOL, [launched.TOOL, "launch", "-n", "2", "-p", "--grace", "1000", "--", "sh", "-c", script],
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
        result = subprocess.run(["sh", "-c", line], env=self.environment({"TOOL": launched.TOOL}), stderr=subprocess.PIPE,
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
    main(__doc__)
