#!/usr/bin/env python3
"""MPI programs under the recorder: what it records, and that they run as without it.

    record_test.py --recorder PATH [--every-call PATH] [--fortran-names PATH] [CLASS.test_NAME...]

Skips (77) what needs an mpirun, a compiler or a program that is not here.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import recording

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "mpi_tune"))
from mpi_case import run_tests  # noqa: E402

OPTIONS = None
SOURCE = pathlib.Path(__file__).resolve().parent
LONGEST = 300
INT = 4

# (name, bytes on rank 0 of n, bytes elsewhere), in the order of every_call.c.
BLOCKING = [
    ("barrier", lambda n: 0, None), ("bcast", lambda n: 11, None), ("gather", lambda n: 12 * n, None),
    ("gatherv", lambda n: 13 * n, lambda n: 13), ("scatter", lambda n: 14 * n, None),
    ("scatterv", lambda n: 15 * n, lambda n: 15), ("allgather", lambda n: 16 * n, None),
    ("allgatherv", lambda n: 17 * n, None), ("alltoall", lambda n: 18 * n, None),
    ("alltoallv", lambda n: 19 * n, None), ("alltoallw", lambda n: 19 * n, None), ("reduce", lambda n: 20, None),
    ("allreduce", lambda n: 21, None), ("reduce_scatter", lambda n: 22 * n, None),
    ("reduce_scatter_block", lambda n: 23 * n, None), ("scan", lambda n: 24, None), ("exscan", lambda n: 25, None),
]
NEIGHBORS = [("neighbor_allgather", 52), ("neighbor_allgatherv", 54), ("neighbor_alltoall", 56),
             ("neighbor_alltoallv", 54), ("neighbor_alltoallw", 54)]


def expected_calls(rank, ranks):
    def calls(prefix):
        return [(prefix + name, INT * (elsewhere if rank and elsewhere else root)(ranks), ranks)
                for name, root, elsewhere in BLOCKING]
    pairs = [(prefix + name, INT * count, ranks) for name, count in NEIGHBORS for prefix in ("", "i")]
    return calls("") + calls("i") + pairs


class Base(unittest.TestCase):
    launcher = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
    extra = {}

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="diapason-record-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_program(self, program, ranks=2, preload=True, record="rec.%p", settings=None):
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **self.extra)
        environment.pop("LD_PRELOAD", None)
        variables = dict(settings or {})
        if preload:
            variables["LD_PRELOAD"] = str(OPTIONS.recorder)
        if record:
            variables["DIAPASON_MPI_RECORD"] = str(self.folder / record)
        # Through env, so that the launcher itself runs without the recorder.
        command = [*self.launcher, "-n", str(ranks), "env", *[f"{k}={v}" for k, v in variables.items()], *program]
        return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, env=environment,
                              cwd=self.folder, check=False)

    def recordings(self):
        """By rank."""
        files = [recording.Recording(path) for path in sorted(self.folder.glob("rec.*"))]
        return {int(one.process["rank"]): one for one in files}

    def check_every_call(self, ranks):
        found = self.recordings()
        self.assertEqual(sorted(found), list(range(ranks)))
        for rank, one in found.items():
            self.assertEqual(one.shape(), expected_calls(rank, ranks))
            self.assertEqual((one.dropped, one.over_limit, one.ended), (0, 0, 1))
            self.assertTrue(one.loaded_ns < one.init_ns < one.finalize_ns <= one.written_ns)
            self.assertEqual(sum(count for count, _ in one.totals.values()), len(one.calls))
            for call in one.calls:
                self.assertEqual(call.type_bytes, INT if call.bytes else 0)
                self.assertEqual(call.flags, 0)
                self.assertTrue(one.init_ns <= call.start_ns <= one.finalize_ns)
        # Communicators are matched by their ids.
        worlds = {one.comms[1].id for one in found.values()}
        self.assertEqual(len(worlds), 1)
        return found


class OpenMpi(Base):
    def setUp(self):
        super().setUp()
        if not OPTIONS.every_call or not shutil.which("mpirun.openmpi"):
            self.skipTest("Open MPI is not installed")

    def test_every_call_with_its_bytes(self):
        ran = self.run_program([str(OPTIONS.every_call)], ranks=3)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        found = self.check_every_call(3)
        self.assertTrue(found[0].process["library"].startswith("Open MPI v"), found[0].process)
        self.assertEqual(found[0].process["size"], "3")
        # World, and the ring of neighbours, which was freed.
        self.assertEqual([(c.ranks, c.flags, c.ended_ns > 0) for c in found[0].comms.values()],
                         [(3, 0, True), (3, recording.TOPOLOGY, True)])
        self.assertEqual(found[0].comms[1].nodes, 1)

    def test_every_call_site_has_a_place(self):
        self.run_program([str(OPTIONS.every_call)])
        one = self.recordings()[0]
        places = [one.sites[call.site] for call in one.calls]
        self.assertEqual(len(set(places)), len(places))
        self.assertTrue(all(place.startswith("every_call+0x") for place in places), places)

    def test_arguments_that_mpi_leaves_undefined(self):
        ran = self.run_program([str(OPTIONS.every_call), "unusual"], ranks=4)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        for rank, one in self.recordings().items():
            roots = {0: 39 * 2, 2: 0}  # of the intercommunicator: the root, and beside it
            expected = [("allreduce", 31, 4), ("allgather", 32 * 4, 4), ("alltoall", 33 * 4, 4),
                        ("gather", 34 * 4, 4), ("bcast", 0, 4), ("bcast", 60, 4), ("allreduce", 35, 4),
                        *[("allgather", 36 * 2, 2)] * 3, ("allgather", 37 * 2, 2), ("bcast", 38, 2),
                        ("gather", roots.get(rank, 39 * 2), 2)]
            self.assertEqual(one.shape(), [(name, INT * count, ranks) for name, count, ranks in expected])
            self.assertEqual([call.flags for call in one.calls], [0] * 6 + [recording.NOT_COMMUTATIVE] + [0] * 6)
            self.assertEqual(one.calls[5].type_bytes, 80)
            # Handles that come again are new communicators.
            halves = [one.comms[call.communicator] for call in one.calls[7:10]]
            self.assertEqual(len({comm.number for comm in halves}), 3)
            self.assertEqual({comm.name for comm in halves}, {"half"})
            self.assertTrue(all(comm.ended_ns >= comm.created_ns > 0 for comm in halves))
            inter = one.comms[one.calls[-1].communicator]
            self.assertEqual((inter.flags, inter.ranks, inter.remote_ranks), (recording.INTER, 2, 2))
        found = self.recordings()
        half = [one.comms[one.calls[7].communicator] for one in (found[0], found[1], found[2], found[3])]
        self.assertEqual(half[0].id, half[2].id)
        self.assertNotEqual(half[0].id, half[1].id)

    def test_threads(self):
        ran = self.run_program([str(OPTIONS.every_call), "threads"])
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        if "no threads" in ran.stdout:
            self.skipTest("this Open MPI has no MPI_THREAD_MULTIPLE")
        for one in self.recordings().values():
            self.assertEqual(one.totals["allreduce"][0], 4000)
            self.assertEqual(len(one.calls) + one.dropped, 4000)
            by_comm = {}
            for call in one.calls:
                by_comm.setdefault(call.communicator, []).append(call.sequence)
            self.assertEqual(len(by_comm), 4)
            if not one.dropped:
                self.assertTrue(all(each == list(range(1, 1001)) for each in by_comm.values()))

    def test_a_child_records_nothing(self):
        ran = self.run_program([str(OPTIONS.every_call), "fork"])
        self.assertEqual((ran.returncode, ran.stdout), (0, ""))
        self.check_every_call(2)

    def test_programs_that_do_not_finalize(self):
        for case in ("abort", "exit"):
            with self.subTest(case):
                for path in self.folder.glob("rec.*"):
                    path.unlink()
                self.run_program([str(OPTIONS.every_call), case], ranks=1)
                one = self.recordings()[0]
                self.assertEqual(one.shape(), expected_calls(0, 1)[:len(BLOCKING)])
                self.assertEqual((one.finalize_ns, one.ended), (0, 1 if case == "exit" else one.ended))

    def test_programs_that_are_gone(self):
        for case in ("quit", "kill"):
            with self.subTest(case):
                self.assertEqual(self.killed(case), expected_calls(0, 1)[:len(BLOCKING)])

    def killed(self, case):
        """The calls of a process that ends without a word, once its file has them."""
        for path in self.folder.iterdir():
            path.unlink()
        go = self.folder / "go"
        environment = dict(os.environ, LD_PRELOAD=str(OPTIONS.recorder), DIAPASON_MPI_RECORD=str(self.folder / "rec.%p"))
        with subprocess.Popen([str(OPTIONS.every_call), case, str(go)], env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as program:
            try:
                end = time.monotonic() + LONGEST
                while not self.has_calls():
                    self.assertIsNone(program.poll(), "it ended too early")
                    self.assertLess(time.monotonic(), end, "its file never had its calls")
                    time.sleep(0.01)
                go.touch()
                program.wait(LONGEST)
            finally:
                program.kill()
        return self.recordings()[0].shape()

    def has_calls(self):
        try:
            return any(len(recording.Recording(path).calls) == len(BLOCKING) for path in self.folder.glob("rec.*"))
        except (AssertionError, recording.struct.error):
            return False  # it is being written

    def test_without_the_variable_nothing_is_written(self):
        ran = self.run_program([str(OPTIONS.every_call)], record=None)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_program_without_mpi_does_not_notice(self):
        ran = self.run_program(["sh", "-c", "echo fine"], ranks=1)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "fine\n", ""))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_file_that_cannot_be_written_is_one_line(self):
        ran = self.run_program([str(OPTIONS.every_call)], ranks=1, record="no/such/folder")
        self.assertEqual((ran.returncode, ran.stdout), (0, ""))
        self.assertEqual(ran.stderr.count("\n"), 1)
        self.assertIn("diapason: MPI calls are not recorded: cannot write the recording", ran.stderr)

    def test_the_file_has_a_limit_and_totals_have_none(self):
        ran = self.run_program([str(OPTIONS.every_call), "threads"], ranks=1,
                               settings={"DIAPASON_JOURNAL_LIMIT": "65536"})
        if "no threads" in ran.stdout:
            self.skipTest("this Open MPI has no MPI_THREAD_MULTIPLE")
        one = self.recordings()[0]
        self.assertLess(one.calls and len(one.calls) or 0, 4000)
        self.assertEqual(one.totals["allreduce"][0] + one.dropped, 4000)
        self.assertEqual(len(one.calls) + one.over_limit + one.dropped, 4000)
        self.assertLessEqual(max(path.stat().st_size for path in self.folder.glob("rec.*")), 65536)

    def test_the_names_of_fortran(self):
        if not OPTIONS.fortran_names:
            self.skipTest("Open MPI's Fortran library is not installed")
        ran = self.run_program([str(OPTIONS.fortran_names)])
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        for one in self.recordings().values():
            # Once each, and not a second time for the function of C that they call.
            self.assertEqual(one.shape(), [("allreduce", 8 * count, 2) for count in (1, 2, 3, 4, 5)] +
                             [("iallgather", 2 * 4 * 6, 2), ("alltoallw", 2 * 4 * 7, 2), ("gatherv", one.calls[-1].bytes, 2)])
            self.assertEqual(one.calls[-1].bytes, 4 * 8 * (2 if one.process["rank"] == "0" else 1))
            self.assertEqual({call.flags for call in one.calls}, {recording.FORTRAN})
            self.assertGreater(one.init_ns, 0)
            self.assertGreater(one.finalize_ns, 0)


class Library(unittest.TestCase):
    def test_shows_nothing_but_functions_of_mpi(self):
        if not shutil.which("nm"):
            self.skipTest("nm is not installed")
        listed = subprocess.run(["nm", "-D", "--defined-only", OPTIONS.recorder], capture_output=True, text=True,
                                timeout=LONGEST, check=True).stdout.splitlines()
        names = [line.split()[-1] for line in listed]
        self.assertGreater(len(names), 250)
        strange = [name for name in names if not re.fullmatch(r"MPI_[A-Za-z_]+|mpi_[a-z_]+|ompi_[a-z_]+_f", name)]
        self.assertEqual(strange, [])


class Fortran(Base):
    def test_programs_of_fortran(self):
        compiler = shutil.which("mpif90.openmpi")
        if not compiler or not shutil.which("gfortran"):
            self.skipTest("gfortran is not installed")
        for source in ("program.f90", "program_f08.f90"):
            with self.subTest(source):
                for path in self.folder.glob("rec.*"):
                    path.unlink()
                program = self.folder / "program"
                subprocess.run([compiler, "-o", program, SOURCE / source], check=True, timeout=LONGEST,
                               cwd=self.folder)
                ran = self.run_program([str(program)])
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                for one in self.recordings().values():
                    self.assertEqual(one.shape(), [("bcast", 40, 2), ("allreduce", 80, 2), ("ibarrier", 0, 2)])
                    self.assertEqual({call.flags for call in one.calls}, {recording.FORTRAN})


class Mpich(Base):
    launcher = ["mpirun.mpich"]

    def test_the_same_calls(self):
        compiler = shutil.which("mpicc.mpich")
        if not compiler or not shutil.which("mpirun.mpich"):
            self.skipTest("MPICH is not installed")
        program = self.folder / "every_call"
        subprocess.run([compiler, "-o", program, SOURCE / "every_call.c", "-lpthread"], check=True,
                       timeout=LONGEST)
        ran = self.run_program([str(program)])
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        found = self.check_every_call(2)
        self.assertTrue(found[0].process["library"].startswith("MPICH"), found[0].process)
        for path in self.folder.glob("rec.*"):
            path.unlink()
        ran = self.run_program([str(program), "unusual"], ranks=4)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        for one in self.recordings().values():
            self.assertEqual(one.shape()[:7], [
                ("allreduce", 124, 4), ("allgather", 512, 4), ("alltoall", 528, 4), ("gather", 544, 4),
                ("bcast", 0, 4), ("bcast", 240, 4), ("allreduce", 140, 4)])
            self.assertEqual(one.calls[6].flags, recording.NOT_COMMUTATIVE)
            self.assertEqual(one.comms[one.calls[-1].communicator].flags, recording.INTER)


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    parser.add_argument("--recorder", type=pathlib.Path, required=True)
    parser.add_argument("--every-call", type=pathlib.Path)
    parser.add_argument("--fortran-names", type=pathlib.Path)
    parser.add_argument("tests", nargs="*")
    OPTIONS = parser.parse_args()
    return run_tests(sys.modules[__name__], OPTIONS.tests)


if __name__ == "__main__":
    sys.exit(main())
