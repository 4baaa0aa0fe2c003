"""A rank dies, does not come, or does something else than the others."""
import signal
import time

from fault_job import (Job, MIB4, SHORT, SLACK, ALL_REDUCE, case, check, expect_error, expect_fine,
                       missing)


# ---- a rank dies ------------------------------------------------------------------------------

@case("gloo")
def killed_before_a_collective():
    with Job() as job:
        for rank in (0, 1):
            job.start(rank, f"create sleep=500 all_reduce={MIB4} barrier destroy")
        job.start(2, "create sleep=600000")
        job.kill_after("create", 2)
        for rank in (0, 1):
            found = job.steps(rank)
            expect_error(found, f"all_reduce={MIB4}", ALL_REDUCE + missing(2), who=f"rank {rank}")
            # The group is broken: every later call says the same, at once.
            first = found[f"all_reduce={MIB4}"]["message"]
            expect_error(found, "barrier", [], who=f"rank {rank}")
            check(found["barrier"]["message"] == first and found["barrier"]["seconds"] < found["barrier"]["limit"] / 2,
                  f"rank {rank}: a later call says something else: {found['barrier']}")
            check(found["destroy"]["seconds"] <= 5 + SLACK, "destroying took too long")


@case("gloo")
def killed_during_a_collective():
    with Job() as job:
        for rank in (0, 1):
            job.start(rank, f"create loop=1000000:{MIB4} destroy")
        job.start(2, f"create kill_after=700 loop=1000000:{MIB4}")
        for rank in (0, 1):
            expect_error(job.steps(rank), f"loop=1000000:{MIB4}", ALL_REDUCE + missing(2),
                         who=f"rank {rank}")


@case("gloo")
def killed_during_small_collectives():
    with Job() as job:
        for rank in (0, 1):
            job.start(rank, "create loop=1000000:1024 destroy")
        job.start(2, "create kill_after=500 loop=1000000:1024")
        for rank in (0, 1):
            expect_error(job.steps(rank), "loop=1000000:1024",
                         [r"all_reduce number \d+", "4KiB f32"] + missing(2), who=f"rank {rank}")


@case("gloo")
def killed_after_a_collective():
    with Job() as job:
        for rank in (0, 1):
            job.start(rank, f"create all_reduce={MIB4} sleep=700 barrier destroy")
        job.start(2, f"create all_reduce={MIB4} sleep=600000")
        job.kill_after(f"all_reduce={MIB4}", 2)
        for rank in (0, 1):
            found = job.steps(rank)
            check(found[f"all_reduce={MIB4}"]["ok"], f"rank {rank}: {found}")
            expect_error(found, "barrier", [r"barrier number \d+"] + missing(2), who=f"rank {rank}")


@case("gloo")
def killed_rank_0():
    """The one that keeps the store."""
    with Job() as job:
        job.start(0, f"create kill_after=500 loop=1000000:{MIB4}")
        for rank in (1, 2):
            job.start(rank, f"create loop=1000000:{MIB4} destroy")
        for rank in (1, 2):
            expect_error(job.steps(rank), f"loop=1000000:{MIB4}", ALL_REDUCE + missing(0),
                         who=f"rank {rank}")


@case("gloo")
def killed_two_of_four():
    with Job() as job:
        for rank in (0, 1):
            job.start(rank, f"create sleep=700 all_reduce={MIB4} destroy", size=4)
        for rank in (2, 3):
            job.start(rank, "create sleep=600000", size=4)
        job.kill_after("create", 2, 3)
        for rank in (0, 1):
            expect_error(job.steps(rank), f"all_reduce={MIB4}", ALL_REDUCE + missing(2, 3),
                         who=f"rank {rank}")


@case("gloo")
def killed_while_started():
    with Job() as job:
        for rank in (0, 1):
            job.start(rank, f"create start={MIB4} wait wait destroy")
        job.start(2, "create sleep=600000")
        job.kill_after("create", 2)
        for rank in (0, 1):
            expect_error(job.steps(rank), "wait", ALL_REDUCE + missing(2), who=f"rank {rank}")


@case("gloo")
def killed_while_creating():
    with Job(limit=SHORT) as job:
        for rank in (0, 1):
            job.start(rank, "create", size=4)
        job.start(2, "kill_after=600 create", size=4)
        for rank in (0, 1):
            expect_error(job.steps(rank), "create", missing(3), who=f"rank {rank}")


@case("gloo")
def ended_in_order():
    """A rank that leaves as it should, while the others still expect it."""
    with Job() as job:
        for rank in (0, 1):
            job.start(rank, f"create sleep=500 all_reduce={MIB4} destroy")
        job.start(2, "create destroy")
        expect_fine(job, 2, "create destroy")
        for rank in (0, 1):
            expect_error(job.steps(rank), f"all_reduce={MIB4}", ALL_REDUCE + missing(2),
                         who=f"rank {rank}")


@case("gloo")
def ended_without_a_word():
    with Job() as job:
        for rank in (0, 1):
            job.start(rank, f"create sleep=500 all_reduce={MIB4} destroy")
        job.start(2, "create sleep=300 exit=0")
        for rank in (0, 1):
            expect_error(job.steps(rank), f"all_reduce={MIB4}", ALL_REDUCE + missing(2),
                         who=f"rank {rank}")


@case("gloo")
def killed_in_a_split():
    with Job() as job:
        job.start(0, f"create split=0 all_reduce={MIB4} sleep=1500 all_reduce=7 destroy", size=4)
        job.start(1, f"create split=1 sleep=500 all_reduce={MIB4} destroy", size=4)
        job.start(2, f"create split=0 all_reduce={MIB4} sleep=1500 all_reduce=7 destroy", size=4)
        job.start(3, "create split=1 sleep=600000", size=4)
        job.kill_after(["split=0", "split=1", "split=0", "split=1"], 3)
        expect_error(job.steps(1), f"all_reduce={MIB4}", ALL_REDUCE + [r"rank"], who="rank 1")
        # A group without the dead one goes on.
        for rank in (0, 2):
            expect_fine(job, rank, f"split=0 all_reduce={MIB4} all_reduce=7")


# ---- a rank does not come ---------------------------------------------------------------------

@case("gloo")
def never_created():
    with Job(limit=SHORT) as job:
        for rank in (0, 1):
            job.start(rank, "create")
        for rank in (0, 1):
            expect_error(job.steps(rank), "create", missing(2), codes=("timeout",),
                         who=f"rank {rank}")


@case("gloo")
def rank_0_never_created():
    with Job(limit=SHORT) as job:
        for rank in (1, 2):
            job.start(rank, "create")
        for rank in (1, 2):
            expect_error(job.steps(rank), "create", missing(0), codes=("timeout",),
                         who=f"rank {rank}")


@case("gloo")
def limit_from_the_environment():
    with Job(limit=SHORT) as job:
        job.start(0, "create", size=2, limit=0, extra={"DIAPASON_TIMEOUT": "2"})
        expect_error(job.steps(0), "create", missing(1), codes=("timeout",), who="rank 0")


@case("gloo")
def limit_that_is_no_number():
    with Job() as job:
        job.start(0, "create", size=1, limit=0, extra={"DIAPASON_TIMEOUT": "soon"})
        found = job.steps(0)
        if not found["create"]["ok"]:
            expect_error(found, "create", ["DIAPASON_TIMEOUT"], codes=("invalid",), who="rank 0")
        else:
            check("DIAPASON_TIMEOUT" in job.ranks[0].stderr(), "not a word about a bad setting")


@case("gloo")
def sleeps_through_a_collective():
    with Job(limit=SHORT) as job:
        for rank in (0, 1):
            job.start(rank, f"create all_reduce={MIB4} destroy")
        job.start(2, "create sleep=600000")
        for rank in (0, 1):
            expect_error(job.steps(rank), f"all_reduce={MIB4}", ALL_REDUCE + missing(2),
                         codes=("timeout", "peer_lost"), who=f"rank {rank}")


@case("gloo")
def stopped_and_continued():
    """SIGSTOP; when it wakes up, the stopped one gets an error too."""
    with Job(limit=SHORT) as job:
        for rank in (0, 1):
            job.start(rank, f"create all_reduce={MIB4} destroy")
        job.start(2, f"create stop all_reduce={MIB4} destroy")
        for rank in (0, 1):
            expect_error(job.steps(rank), f"all_reduce={MIB4}", ALL_REDUCE + missing(2),
                         who=f"rank {rank}")
        job.ranks[2].process.send_signal(signal.SIGCONT)
        expect_error(job.steps(2), f"all_reduce={MIB4}", ALL_REDUCE, who="rank 2")


@case("gloo")
def stopped_rank_0():
    """The store's own process hangs: nobody can ask it, and everybody must notice."""
    with Job(limit=SHORT) as job:
        job.start(0, "create sleep=600000")
        for rank in (1, 2):
            job.start(rank, f"create sleep=300 all_reduce={MIB4} destroy")
        job.kill_after("create", 0, signal_number=signal.SIGSTOP)
        for rank in (1, 2):
            expect_error(job.steps(rank), f"all_reduce={MIB4}", ALL_REDUCE + missing(0),
                         who=f"rank {rank}")


@case("gloo")
def stopped_rank_0_while_creating():
    """Its port accepts connections, and nobody answers."""
    with Job(limit=SHORT) as job:
        job.start(0, "create")
        job.wait_for_port()
        job.ranks[0].process.send_signal(signal.SIGSTOP)
        for rank in (1, 2):
            job.start(rank, "create")
        for rank in (1, 2):
            expect_error(job.steps(rank), "create", missing(0), who=f"rank {rank}")


@case("gloo")
def stopped_in_the_middle():
    with Job(limit=SHORT) as job:
        for rank in (0, 1):
            job.start(rank, f"create loop=1000000:{MIB4} destroy")
        job.start(2, f"create loop=1000000:{MIB4}")
        job.ranks[0].wait_for("create")
        time.sleep(0.5)
        job.ranks[2].process.send_signal(signal.SIGSTOP)
        for rank in (0, 1):
            expect_error(job.steps(rank), f"loop=1000000:{MIB4}", ALL_REDUCE + missing(2),
                         who=f"rank {rank}")


@case("gloo", "waiting_in_all_reduce", "all_reduce=1000", "all_reduce", (0, 1))
@case("gloo", "waiting_in_broadcast", "broadcast=1000:2", "broadcast", (0, 1))
@case("gloo", "waiting_in_reduce", "reduce=1000:0", "reduce", (0,))
@case("gloo", "waiting_in_all_gather", "all_gather=1000", "all_gather", (0, 1))
@case("gloo", "waiting_in_reduce_scatter", "reduce_scatter=1000", "reduce_scatter", (0, 1))
@case("gloo", "waiting_in_all_to_all", "all_to_all=1000", "all_to_all", (0, 1))
@case("gloo", "waiting_in_barrier", "barrier", "barrier", (0, 1))
@case("gloo", "waiting_in_recv", "recv=1000:2", "recv", (0, 1))
def waits_for_one_that_sleeps(step, word, waiting):
    with Job(limit=SHORT) as job:
        for rank in (0, 1):
            job.start(rank, f"create {step} destroy")
        job.start(2, "create sleep=600000")
        for rank in waiting:
            expect_error(job.steps(rank), step, [rf"{word} number \d+"] + missing(2),
                         who=f"rank {rank}")


@case("gloo")
def split_without_one():
    with Job(limit=SHORT) as job:
        for rank in (0, 1):
            job.start(rank, "create split=0 destroy")
        job.start(2, "create sleep=600000")
        for rank in (0, 1):
            expect_error(job.steps(rank), "split=0", missing(2), who=f"rank {rank}")


# ---- ranks that do not match ------------------------------------------------------------------

def must_end_badly(job, ranks, step_of):
    """Nobody hangs, nobody crashes, and somebody is told."""
    told = 0
    for rank in ranks:
        found = job.steps(rank)
        step = found[step_of(rank)]
        check(step["seconds"] <= step["limit"] + 5 + SLACK, f"rank {rank}: {step}")
        told += not step["ok"]
    check(told > 0, "all ranks went on as if nothing were wrong")


@case("gloo")
def mismatched_sizes():
    with Job(limit=SHORT) as job:
        for rank in range(3):
            job.start(rank, f"create all_reduce={1000 if rank else 2000} destroy")
        must_end_badly(job, range(3), lambda rank: f"all_reduce={1000 if rank else 2000}")


@case("gloo")
def mismatched_operations():
    with Job(limit=SHORT) as job:
        for rank in range(3):
            job.start(rank, f"create {'all_gather' if rank else 'all_reduce'}=100000 destroy")
        must_end_badly(job, range(3),
                       lambda rank: f"{'all_gather' if rank else 'all_reduce'}=100000")


@case("gloo")
def one_call_more():
    with Job() as job:
        for rank in range(3):
            job.start(rank, "create all_reduce=10 all_reduce=11 destroy" if rank
                      else "create all_reduce=10 destroy")
        for rank in (1, 2):
            expect_error(job.steps(rank), "all_reduce=11", [r"all_reduce number \d+"] + missing(0),
                         who=f"rank {rank}")
