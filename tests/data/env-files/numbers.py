import os
os.environ["NCCL_P2P_DISABLE"] = 1
os.environ["NCCL_DEBUG"] = "INFO"
