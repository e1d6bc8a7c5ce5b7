"""Averages an array over all ranks of a job, which the environment describes.

export GRADWIRE_JOIN=127.0.0.1:4790 WORLD_SIZE=2
RANK=0 python3 average.py & RANK=1 python3 average.py
"""

import numpy as np

import gradwire

with gradwire.Job() as job:
    gradients = np.full(1_000_000, job.rank + 1, np.float32)
    job.allreduce(gradients, op="average")
    print(f"rank {job.rank} of {job.world}: every average is {gradients[-1]:g}")
