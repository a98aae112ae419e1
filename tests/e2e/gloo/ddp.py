# SPDX-License-Identifier: Apache-2.0
"""Trains a small network by torch's DistributedDataParallel over Gloo: python3 ddp.py RANK SIZE FILE

Rank 1 takes longer for its data. Prints "result NUMBER" of the weights, and "call ELEMENTS" for each
reduction of gradients that torch was asked for.
"""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, LATE_S = 24, 0.04


def counting(calls):
    """torch's own reduction of a bucket, counted."""
    def hook(group, bucket):
        calls.append(bucket.buffer().numel())
        tensor = bucket.buffer().div_(dist.get_world_size())
        return dist.all_reduce(tensor, async_op=True).get_future().then(lambda f: f.value()[0])
    return hook


def main(rank, size, path):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    torch.manual_seed(7)
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 768),
                              torch.nn.ReLU(), torch.nn.Linear(768, 512))
    calls = []
    model = DistributedDataParallel(net, bucket_cap_mb=0.5)
    model.register_comm_hook(None, counting(calls))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(size * STEPS, 16, 64)
    for step in range(STEPS):
        optimizer.zero_grad()
        if rank == 1:
            time.sleep(LATE_S)
        model(data[step * size + rank]).square().mean().backward()
        optimizer.step()
    dist.barrier()
    print("result", sum(p.double().abs().sum().item() for p in net.parameters()))
    for n in calls:
        print("call", n)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
