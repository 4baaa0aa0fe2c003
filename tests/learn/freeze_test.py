"""A running job is frozen and thawed by the tool: played_job, plugin, tool."""
import json
import os
import subprocess
import sys
import tempfile
import threading

LIMIT = 600


class Job:
    """A learning job that runs until it is told to stop; keeps what its ranks log."""

    def __init__(self, program, plugin, folder):
        self.stop_file = os.path.join(folder, "stop")
        environment = dict(os.environ, PLAYED_STOP=self.stop_file)
        self.process = subprocess.Popen([program, "-v", plugin, "until-told"], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.news = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stderr:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()

    def wait_for(self, text):
        with self.news:
            found = self.news.wait_for(lambda: any(text in line for line in self.lines), LIMIT)
        assert found, f"no line with '{text}' in:\n" + "".join(self.lines[-30:])

    def name(self):
        return f"played{self.process.pid}"

    def stop(self):
        open(self.stop_file, "w").close()
        status = self.process.wait(LIMIT)
        return status, self.process.stdout.read()


def main():
    program, plugin, tool = sys.argv[1:4]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DIAPASON_")}

    def run(*arguments):
        return subprocess.run([tool, *arguments], env=clean, capture_output=True, text=True,
                              timeout=LIMIT)

    with tempfile.TemporaryDirectory() as folder:
        job = Job(program, plugin, folder)
        job.wait_for("learning allreduce")
        missing = run("freeze", "no-such-job")
        assert missing.returncode == 1, missing
        assert "no-such-job" in missing.stderr and job.name() in missing.stderr, missing.stderr

        frozen = run("freeze", job.name())
        assert frozen.returncode == 0 and "is frozen" in frozen.stdout, frozen
        job.wait_for("frozen: nothing is tried")
        again = json.loads(run("freeze", job.name(), "--json").stdout)
        assert again == {"job": job.name(), "state": "frozen", "changed": False}, again

        thawed = run("thaw", job.name())
        assert thawed.returncode == 0 and "is thawed" in thawed.stdout, thawed
        job.wait_for("thawed: configurations are tried again")
        status, output = job.stop()
        assert status == 0 and "fine" in output, output
        gone = run("thaw", job.name())
        assert gone.returncode == 1, gone


if __name__ == "__main__":
    main()
