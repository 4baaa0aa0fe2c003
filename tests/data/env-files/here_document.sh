#!/bin/bash
cat > job.sbatch <<'END'
#!/bin/bash
#SBATCH -N 2
export NCCL_BUFFSIZE=4MB
srun python train.py
END
sbatch job.sbatch
cat <<END
To see more, set NCCL_DEBUG=TRACE_ALL and NCCL_FOO=1.
END
cat <<END > README.txt
NCCL_ALGO=whatever is not valid
END
