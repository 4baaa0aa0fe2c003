import subprocess, ray

ray.init(runtime_env={"env_vars": {"NCCL_DEBUG": "INFO", "NCCL_P2P_DISABLE": "1"}})
subprocess.run(["mpirun", "-x", "NCCL_IB_DISABLE=true", "./a"], env=dict(NCCL_SHM_DISABLE="1"))
env = {"NCCL_SOCKET_IFNAME": iface, "NCCL_CROSS_NIC": 1, "NCCL_DEBUG_SUBSYS": None}
script = f"""#!/bin/bash
export NCCL_DEBUG={level}
export NCCL_NET_GDR_LEVEL=PBX
srun python train.py
"""
HELP = {"NCCL_ALGO": "which algorithm the library uses, such as Ring"}
container = client.V1Container(env=[client.V1EnvVar(name="NCCL_IB_HCA", value="mlx5_0")])
