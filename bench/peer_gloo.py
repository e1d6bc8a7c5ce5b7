"""Gloo, through PyTorch: one rank of a job that times all-reduces of float32.

    peer_gloo.py RANK WORLD ADDRESS BYTES:ITERATIONS...     ADDRESS: of rank 0

Rank 0 prints a line for each size: the seconds of each all-reduce, from a barrier to the end of the
slowest rank, and the machine's CPU seconds for one. Every rank checks every sum. Needs torch.
"""
import datetime
import json
import os
import sys
import time

os.environ["GLOO_SOCKET_IFNAME"] = "eth0"
os.environ["OMP_NUM_THREADS"] = "1"  # workers share the cores of one machine
sys.dont_write_bytecode = True

import torch
import torch.distributed as dist

from measure import machine_cpu_s

PORT = 29500
TIMEOUT = datetime.timedelta(seconds=120)
PERIOD = 1021  # of the values: small integers, so that each sum is exact


def rounds(rank, given, wanted, count, reduce):
    """Seconds of each `reduce`, which must turn `given` into `wanted`."""
    buffer = torch.empty_like(given)
    times = torch.empty(count, dtype=torch.float64)
    for number in range(count):
        buffer.copy_(given)
        dist.barrier()
        begin = time.perf_counter()
        reduce(buffer)
        times[number] = time.perf_counter() - begin
        dist.barrier()  # who checks sooner disturbs those who share a core
        if not torch.equal(buffer, wanted):
            sys.exit(f"rank {rank}: wrong sum")
    return times


def measure(rank, world, elements, count):
    values = torch.arange(elements).remainder(PERIOD).float()
    given = values * (rank + 1)
    wanted = values * (world * (world + 1) // 2)
    rounds(rank, given, wanted, 2, dist.all_reduce)
    cpu = [machine_cpu_s()]
    times = rounds(rank, given, wanted, count, dist.all_reduce)
    cpu.append(machine_cpu_s())
    rounds(rank, given, given, count, lambda buffer: None)  # what all but the all-reduce costs
    cpu.append(machine_cpu_s())
    dist.reduce(times, 0, dist.ReduceOp.MAX)
    spent = (cpu[1] - cpu[0]) - (cpu[2] - cpu[1])
    return {"bytes": 4 * elements, "times_s": times.tolist(), "cpu_s": spent / count}


def main():
    rank, world, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dist.init_process_group(
        "gloo", init_method=f"tcp://{address}:{PORT}", rank=rank, world_size=world, timeout=TIMEOUT
    )
    for size in sys.argv[4:]:
        size_bytes, count = map(int, size.split(":"))
        result = measure(rank, world, size_bytes // 4, count)
        if rank == 0:
            print(json.dumps(result))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
