import os

command = "NCCL_NTHREADS=%d python x.py" % threads
other = "NCCL_BUFFSIZE={} ./bench".format(size)
logger.info("NCCL_IB_TIMEOUT=%s", os.environ["NCCL_IB_TIMEOUT"])
text = {"NCCL_MAX_CTAS": 16 if large else 8}
