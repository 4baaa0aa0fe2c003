"""Programs of Debian under the recorder: they run to their end, with the same results, and the look makes sense.

    debian_test.py --tool PATH [CLASS.test_NAME...]

Skips (77) where a program is not installed.
"""

import json
import pathlib
import shutil
import sys

from mpi_case import main, MpiCase

EXAMPLE = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")


class Debian(MpiCase):
    def test_hpcc(self):
        if not shutil.which("hpcc") or not shutil.which("mpirun") or not EXAMPLE.exists():
            self.skipTest("hpcc is not installed")
        lines = EXAMPLE.read_text().splitlines()
        # A problem of seconds, on a grid of 1 x 2.
        for number, value in ((5, "200"), (10, "1"), (11, "2")):
            lines[number] = value + " " + lines[number].split(None, 1)[1]
        (self.folder / "hpccinf.txt").write_text("\n".join(lines) + "\n")
        self.run_tool("run", "--observe", "-q", "--journal-dir", "records", "--", "mpirun", "--oversubscribe", "-n", "2",
                      "hpcc")
        self.assertIn("Success=1", (self.folder / "hpccoutf.txt").read_text().splitlines())
        files = sorted((self.folder / "records").glob("run-*.mpirec"))
        self.assertEqual(len(files), 2)
        profile = json.loads(self.run_tool("journal", "profile", "--json", *files).stdout)
        self.assertEqual((profile["ranks"], profile["missing_ranks"]), (2, 0))
        self.assertTrue(profile["library"].startswith("Open MPI"))
        names = {one["call"] for one in profile["classes"]}
        self.assertLessEqual({"barrier", "bcast", "allreduce", "reduce", "alltoall"}, names)
        self.assertTrue(0 < profile["collective_share"] < 1)
        self.assertTrue(0 < profile["changeable_share"] < 1)


if __name__ == "__main__":
    sys.exit(main(__name__))
