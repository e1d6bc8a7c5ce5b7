"""One rank of `experiments/times`: trains until a score is reached, and says when each was.

    times_rank.py RANK WORLD ADDRESS BACKEND VIA BOUND SEED STEPS     ADDRESS: of rank 0

The network is that of bench/train, with 10.7 million parameters; it learns the images of clothes.
Time stops while the score is looked at. Rank 0 prints one object. All ranks must have the same
parameters at the end.
"""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))

import peer_train
import tasks
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

EVERY = 5  # steps between looks
WORDS = 9  # of the command


def images():
    """Those of tasks.py, as large and as colourful as the network wants them."""
    return [functional.interpolate(each, size=(32, 32)).expand(-1, 3, -1, -1)
            if each.dim() == 4 else each for each in tasks.fashion()]


def batches(rank, world, count, seed):
    """Each rank has samples of its own."""
    drawn = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(count, generator=drawn)
        size = peer_train.BATCH
        for at in range(0, count - world * size + 1, world * size):
            yield order[at + rank * size : at + (rank + 1) * size]


def main():
    if len(sys.argv) != WORDS:
        sys.exit("times_rank.py: experiments/times starts it")
    rank, world, address, backend, via = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6]
    bound, seed, steps = float(sys.argv[6]), int(sys.argv[7]), int(sys.argv[8])
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    dist.init_process_group(
        "gloo", init_method=f"tcp://{address}:{peer_train.PORT}", rank=rank, world_size=world,
        timeout=peer_train.TIMEOUT,
    )
    plain = peer_train.make_model()
    model, state = DistributedDataParallel(plain), None
    if backend == "gradwire":
        import gradwire

        state = gradwire.HookState(via=via, bound=bound)
        model.register_comm_hook(state, gradwire.ddp_hook)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.02, momentum=0.9)
    inputs, labels, test_inputs, test_labels = images()
    spent, points = 0.0, []
    source = batches(rank, world, len(inputs), seed)
    for step in range(1, steps + 1):
        batch = next(source)
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=False)
        nn.functional.cross_entropy(model(inputs[batch]), labels[batch]).backward()
        optimizer.step()
        spent += time.perf_counter() - begin
        if step % EVERY == 0:
            score = 0.0
            if rank == 0:
                with torch.no_grad():
                    score = (plain(test_inputs).argmax(1) == test_labels).float().mean().item()
            points.append((step, spent, score))
            dist.barrier()
    peer_train.check_replicas(plain, rank, world)
    peer_train.finish(rank, world, {"points": points}, state)


if __name__ == "__main__":
    main()
