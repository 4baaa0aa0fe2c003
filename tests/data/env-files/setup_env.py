"""Set NCCL_DEBUG=LOUD before the import."""
import os

NCCL_TIMEOUT = 1800  # seconds


def configure(rank, verbose=False):
    # os.environ["NCCL_ALGO"] = "Foo"
    os.environ["NCCL_DEBUG"] = "INFO" if verbose else "WARN"
    os.environ['NCCL_SOCKET_IFNAME'] = f"eth{rank % 2}"
    os.environ.setdefault("NCCL_IB_TIMEOUT", str(22))
    os.environ["NCCL_IB_DISABLE"] = "True"
    os.environ.update({"NCCL_P2P_LEVEL": "NVL", "NCCL_BUFSIZE": "8388608"})
    os.putenv("NCCL_NTHREADS", "96")
    if os.environ.get("NCCL_MYFLAG") == "1":
        print("flag")
    os.environ["NCCL_MYFLAG"] = "0"


if os.environ["NCCL_DEBUG"] == "INFO":
    del os.environ["NCCL_DEBUG"]
