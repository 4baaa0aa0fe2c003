"""Plays NCCL 2.28.9 for one rank of a Python program: loads the plugin the variables name, as the library
does, and asks it call by call. Nothing is communicated.

The layouts are written down from the published headers (tests/abi has them in C).
"""

from __future__ import annotations

import ctypes
import os

ALGORITHMS, PROTOCOLS = 7, 3
ALLREDUCE = 4
COLL, GROUP_API, COLL_API, KERNEL_LAUNCH = 1 << 1, 1 << 8, 1 << 9, 1 << 11
WORDS = (b"TREE", b"RING"), (b"LL", b"LL128", b"SIMPLE")

void, number, name = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p


class Tuner(ctypes.Structure):
    _fields_ = [
        ("name", name),
        ("init", ctypes.CFUNCTYPE(number, ctypes.POINTER(void), ctypes.c_uint64, ctypes.c_size_t, ctypes.c_size_t, void, void, void)),
        ("get_coll_info", ctypes.CFUNCTYPE(number, void, number, ctypes.c_size_t, number, void, number, number, number,
                                           ctypes.POINTER(number))),
        ("finalize", ctypes.CFUNCTYPE(number, void)),
    ]


class Coll(ctypes.Structure):
    _fields_ = [("sequence", ctypes.c_uint64), ("func", name), ("send", void), ("receive", void), ("count", ctypes.c_size_t),
                ("root", number), ("datatype", name), ("channels", ctypes.c_uint8), ("warps", ctypes.c_uint8),
                ("algorithm", name), ("protocol", name), ("parent_group", void)]


class CollApi(ctypes.Structure):
    _fields_ = [("func", name), ("count", ctypes.c_size_t), ("datatype", name), ("root", number), ("stream", void),
                ("captured", ctypes.c_bool)]


class Detail(ctypes.Union):
    _fields_ = [("coll_api", CollApi), ("coll", Coll)]


class Event(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint64), ("parent", void), ("rank", number), ("detail", Detail)]


class Profiler(ctypes.Structure):
    _fields_ = [
        ("name", name),
        ("init", ctypes.CFUNCTYPE(number, ctypes.POINTER(void), ctypes.c_uint64, ctypes.POINTER(number), name, number, number, number, void)),
        ("start_event", ctypes.CFUNCTYPE(number, void, ctypes.POINTER(void), ctypes.POINTER(Event))),
        ("stop_event", ctypes.CFUNCTYPE(number, void)),
        ("record_state", void),
        ("finalize", ctypes.CFUNCTYPE(number, void)),
    ]


class Library:
    """One per process, like the library itself. `fake` has its logger and says its version."""

    def __init__(self, fake: str) -> None:
        self.fake = ctypes.CDLL(fake)
        number.in_dll(self.fake, "fake_version").value = 22809
        self.logger = ctypes.cast(self.fake.fake_log, void)
        tuner = ctypes.CDLL(os.environ["NCCL_TUNER_PLUGIN"], mode=os.RTLD_NOW | os.RTLD_LOCAL)
        profiler = ctypes.CDLL(os.environ["NCCL_PROFILER_PLUGIN"], mode=os.RTLD_NOW | os.RTLD_LOCAL)
        self.tuner = Tuner.in_dll(tuner, "ncclTunerPlugin_v5")
        self.profiler = Profiler.in_dll(profiler, "ncclProfiler_v5")
        self.mask = number(0)


class Communicator:
    def __init__(self, library: Library, identity: int, rank: int, ranks: int) -> None:
        self.library, self.rank, self.sequence = library, rank, 0
        self.tuner, self.profiler = void(), void()
        assert library.profiler.init(ctypes.byref(self.profiler), identity, ctypes.byref(library.mask), b"played", ranks, ranks, rank,
                                     library.logger) == 0
        assert library.tuner.init(ctypes.byref(self.tuner), identity, ranks, ranks, library.logger, None, None) == 0

    def _start(self, kind: int, parent: void | None, detail: Detail | None = None) -> void:
        handle = void()
        event = Event(kind, parent, self.rank, detail or Detail())
        self.library.profiler.start_event(self.profiler, ctypes.byref(handle), ctypes.byref(event))
        return handle

    def _stop(self, handle: void) -> None:
        self.library.profiler.stop_event(handle)

    def all_reduce(self, nbytes: int) -> tuple[int, int]:
        """What the library would run: algorithm and protocol."""
        mask = self.library.mask.value
        group = call = None
        if mask:
            group = self._start(GROUP_API, None)
            call = self._start(COLL_API, group, Detail(coll_api=CollApi(b"AllReduce", nbytes // 4, b"ncclFloat32", 0, None, False)))
            self._stop(call)
        table = (ctypes.c_float * (ALGORITHMS * PROTOCOLS))(*([-1.0] * (ALGORITHMS * PROTOCOLS)))
        for algorithm, protocol, cost in ((0, 0, 40.0), (0, 2, 50.0), (1, 0, 20.0), (1, 2, 30.0)):
            table[algorithm * PROTOCOLS + protocol] = cost
        channels = number(0)
        answer = self.library.tuner.get_coll_info(self.tuner, ALLREDUCE, nbytes, 1, ctypes.cast(table, void), ALGORITHMS, PROTOCOLS, 0,
                                                  ctypes.byref(channels))
        assert answer == 0, f"the plugin's answer is {answer}"
        best = min((cost, index) for index, cost in enumerate(table) if cost >= 0)[1]
        algorithm, protocol = divmod(best, PROTOCOLS)
        if mask & KERNEL_LAUNCH:
            self._stop(self._start(KERNEL_LAUNCH, group))
        if mask & COLL:
            self._stop(self._start(COLL, call, Detail(coll=Coll(
                self.sequence, b"AllReduce", None, None, nbytes // 4, 0, b"ncclFloat32", channels.value or 2, 17, WORDS[0][algorithm],
                WORDS[1][protocol], None))))
        if group is not None:
            self._stop(group)
        self.sequence += 1
        return algorithm, protocol

    def destroy(self) -> None:
        self.library.tuner.finalize(self.tuner)
        self.library.profiler.finalize(self.profiler)
