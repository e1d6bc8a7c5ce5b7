"""One rank of a training job: DistributedDataParallel over a backend, timed step by step.

    peer_train.py RANK WORLD ADDRESS BACKEND BOUND EPOCHS STEPS     ADDRESS: of rank 0

BACKEND is one of torch.distributed: gloo or gradwire. With a bound above 0 the gradients go by
gradwire's communication hook, which may lose that part of them. Rank 0 prints one object: seconds of
each epoch, of a step's computation alone and its communication alone, and of small all-reduces.
Every rank checks that all have the same parameters at the end. Needs torch.
"""
import datetime
import hashlib
import json
import os
import sys
import time

os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0")
os.environ["OMP_NUM_THREADS"] = "1"  # workers share the cores of one machine
sys.dont_write_bytecode = True

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PORT = 29500
TIMEOUT = datetime.timedelta(seconds=120)
BATCH = 16
CLASSES = 10
SMALL = {1000: 200, 100000: 100}  # bytes: how often


def make_model():
    """A CNN of 10.7 million parameters for images of 32 x 32."""
    layers = []
    for inputs, outputs in [(3, 32), (32, 64), (64, 128)]:
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    dense = [nn.Linear(128 * 4 * 4, 4096), nn.ReLU(), nn.Linear(4096, 512), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), *dense, nn.Linear(512, CLASSES))


def batches(rank, count):
    """Images of each class are a pattern and noise."""
    patterns = torch.randn(CLASSES, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    own = torch.Generator().manual_seed(1000 + rank)
    for _ in range(count):
        labels = torch.randint(CLASSES, (BATCH,), generator=own)
        noise = torch.randn(BATCH, 3, 32, 32, generator=own)
        yield patterns[labels] + noise, labels


def train(model, optimiser, data):
    """Seconds of an epoch, and the last loss."""
    begin = time.perf_counter()
    for images, labels in data:
        optimiser.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimiser.step()
    return time.perf_counter() - begin, loss.item()


def slowest(seconds):
    """Of all ranks."""
    times = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    return times.tolist()


def reduced(elements, count):
    """Seconds of so many all-reduces by themselves."""
    tensor = torch.ones(elements)
    times = []
    for _ in range(count + 2):
        tensor.fill_(1)
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        times.append(time.perf_counter() - begin)
        if not torch.all(tensor == dist.get_world_size()):
            sys.exit("wrong sum")
    return slowest(times)[2:]


def check_replicas(model, rank, world):
    own = hashlib.sha256()
    for parameter in model.parameters():
        own.update(parameter.detach().numpy().tobytes())
    digests = [None] * world
    dist.all_gather_object(digests, own.hexdigest())
    if len(set(digests)) != 1:
        sys.exit(f"rank {rank}: replicas differ: {digests}")


def finish(rank, world, result, state=None):
    """Closes the hook's job, if there is one, and leaves; rank 0 prints what was found."""
    if state:
        if state.fragments:  # there was a bound
            result["left_out"] = state.left_out / state.fragments / world
        state.close()
    if rank == 0:
        print(json.dumps(result))
    dist.barrier()
    dist.destroy_process_group()


def middle(values):
    return sorted(values)[len(values) // 2]


def main():
    rank, world, address, backend = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    bound, epochs, steps = float(sys.argv[5]), int(sys.argv[6]), int(sys.argv[7])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if backend == "gradwire":
        import gradwire.torch  # registers it
    dist.init_process_group(
        backend, init_method=f"tcp://{address}:{PORT}", rank=rank, world_size=world, timeout=TIMEOUT
    )
    plain = make_model()
    model, state = DistributedDataParallel(plain), None
    if bound > 0:
        state = gradwire.HookState(bound=bound)
        model.register_comm_hook(state, gradwire.ddp_hook)
    optimiser = torch.optim.SGD(plain.parameters(), lr=0.01)
    train(model, optimiser, batches(rank, 2))  # makes buckets and connections
    times, losses = [], []
    for _ in range(epochs):
        data = list(batches(rank, steps))
        dist.barrier()
        seconds, loss = train(model, optimiser, data)
        times += slowest([seconds])
        losses.append(loss)
    check_replicas(plain, rank, world)
    parameters = sum(parameter.numel() for parameter in plain.parameters())
    result = {"backend": backend, "bound": bound, "parameters": parameters, "times_s": times}
    result["losses"] = losses
    with model.no_sync():
        result["compute_s"] = slowest([train(model, optimiser, data)[0]])[0] / steps
    result["communicate_s"] = middle(reduced(parameters, 3))
    result["small_s"] = {size: middle(reduced(size // 4, n)) for size, n in SMALL.items()}
    finish(rank, world, result, state)


if __name__ == "__main__":
    main()
