"""A site's own tuner, inside its network plugin, and diapason in one PyTorch job, on one GPU that several ranks share.

    python3 site_lab.py --plugin libnccl-tuner-diapason.so [--tool diapason] [--out FOLDER]

`site_network.c` is compiled here and named by NCCL_NET_PLUGIN. What the library runs by its log, call by call: without
diapason, with it, with a policy for one of the sizes, with DIAPASON_CHAIN=none, and while learning. Another NCCL is taken
with LD_PRELOAD.

Exit status: 0 every check passed, 1 one failed, 77 skipped (says why).
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import argparse  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

import nccl_log  # noqa: E402
from learn_lab import HERE, Lab, SKIP  # noqa: E402
from mps import Mps  # noqa: E402
from run_pytorch import why_skip  # noqa: E402

SIZES = (8192, 65536, 524288, 2097152)
CHANGED = SIZES[1:]              # by the site's tuner
BY_POLICY = 524288
POLICY = f"allreduce,{BY_POLICY},{BY_POLICY},ring,ll,1,-1,-1,-1,-1\n"
STATIC = {"DIAPASON_MODE": "static", "DIAPASON_STORE": "", "NCCL_PROFILER_PLUGIN": ""}


class SiteLab(Lab):
    network = ""  # the site's network plugin

    def plain(self, name: str, settings: dict[str, str], plugin: bool = True, calls: int = 400) -> dict | None:
        """What ran at each size, by NCCL's log of rank 0."""
        sizes = ",".join(str(size) for size in SIZES)
        results = self.run(name, "plain", ["--bytes", sizes, "--calls", str(calls)], 90,
                           {"NCCL_NET_PLUGIN": self.network} | settings,
                           without=() if plugin else tuple(range(self.options.ranks)))
        if not results:
            return None
        self.check(sum(r["wrong"] for r in results) == 0, f"{name}: sums are right")
        log = nccl_log.parse_file(self.work / f"{name}.0.log")
        ran = {size: log.configs("allreduce", size) for size in SIZES}
        print("  " + ", ".join(f"{size}: {' '.join(map(str, sorted(ran[size])))}" for size in SIZES), flush=True)
        self.figures[name] = {str(size): sorted(map(str, ran[size])) for size in SIZES}
        return ran

    def all(self) -> None:
        without = self.plain("neither", {"NCCL_NET_PLUGIN": ""}, plugin=False)
        alone = self.plain("alone", {}, plugin=False)
        if not without or not alone:
            return
        wanted = {nccl_log.Config("tree", "simple", 1)}
        self.check(all(alone[size] == wanted for size in CHANGED), "alone: the library takes the tuner in the network plugin")
        self.check(without != alone, "neither: the library alone chooses something else")
        self.chained(alone)
        self.with_policy(alone)
        off = self.plain("off", STATIC | {"DIAPASON_CHAIN": "none"})
        self.check(off == without, "off: with DIAPASON_CHAIN=none the library decides alone")
        self.learning()

    def chained(self, alone: dict) -> None:
        for name, settings in (("chained", STATIC), ("env", STATIC | {"NCCL_TUNER_PLUGIN": "",
                                                                     "NCCL_ENV_PLUGIN": str(self.options.plugin)})):
            ran = self.plain(name, settings)
            if ran is None:
                continue
            self.check(ran == alone, f"{name}: every size runs as without diapason")
            self.check(self.logged(name, "chained tuner site") == self.options.ranks, f"{name}: every rank's log names it")
            self.agree(name, counted=False)

    def with_policy(self, alone: dict) -> None:
        policy = self.work / "one.conf"
        policy.write_text(POLICY)
        ran = self.plain("policy", STATIC | {"DIAPASON_POLICY": str(policy)})
        if ran is None:
            return
        self.check(ran[BY_POLICY] == {nccl_log.Config("ring", "ll", 1)}, "policy: its size runs its row")
        rest = [size for size in SIZES if size != BY_POLICY]
        self.check(all(ran[size] == alone[size] for size in rest), "policy: the other sizes run what the site's tuner wants")
        self.agree("policy", counted=False)

    def learning(self) -> None:
        learned = self.work / "learned.conf"
        if self.plain("learn", {"DIAPASON_LEARNED": str(learned)}, calls=4000) is None:
            return
        self.check(self.logged("learn", "chained tuner site") == self.options.ranks, "learn: every rank's log names it")
        self.check(self.logged("learn", "learning allreduce") > 0, "learn: rank 0 learns")
        print(learned.read_text() if learned.exists() else "  nothing was learned", flush=True)
        self.agree("learn")


def compile_network(work: Path) -> str:
    """The file, or an empty text where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    library = work / "libnccl-net-site.so"
    if not compiler:
        return ""
    command = [compiler, "-x", "c", "-std=c11", "-shared", "-fPIC", "-o", str(library), str(HERE / "site_network.c")]
    subprocess.run(command, check=True, timeout=60)
    return str(library)


def main() -> int:
    parser = argparse.ArgumentParser(description="A site's tuner and diapason in one job, on one GPU")
    parser.add_argument("--plugin", type=Path, required=True)
    parser.add_argument("--tool", help="diapason, for `journal check`")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.plugin = options.plugin.resolve()
    reason = why_skip(options.plugin)
    work = Path(tempfile.mkdtemp(prefix="site-"))
    network = "" if reason else compile_network(work)
    if reason or not network:
        print(f"skipped: {reason or 'there is no C compiler'}")
        shutil.rmtree(work, ignore_errors=True)
        return SKIP
    with Mps() as mps:
        print(mps.note, flush=True)
        lab = SiteLab(options, work, mps)
        lab.network = network
        lab.all()
    return lab.finish("site")


if __name__ == "__main__":
    sys.exit(main())
