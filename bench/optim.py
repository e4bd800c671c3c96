"""The peer of optim.lua: a step of PyTorch's optimizers.

usage: optim.py THREADS

A request is a line "NAME WAY NUMEL SECONDS" with WAY default, foreach or
fused; the answer is a line with the seconds a step takes, or "none" where
PyTorch has no such.
"""

import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]))
OPTIONS = {"SGD": {"momentum": 0.9}}


def make(name, way, numel):
    p = torch.nn.Parameter(torch.randn(numel // 1000, 1000))
    p.grad = torch.randn_like(p)
    options = dict(OPTIONS.get(name, {}))
    if way != "default":
        options[way] = True
    return getattr(torch.optim, name)([p], **options)


def measure(name, way, numel, seconds):
    try:
        opt = make(name, way, numel)
        opt.step()
    except (AttributeError, TypeError, RuntimeError):
        return "none"
    start, n = time.process_time(), 0
    while n == 0 or time.process_time() - start < seconds:
        opt.step()
        n += 1
    return (time.process_time() - start) / n


for line in sys.stdin:
    name, way, numel, seconds = line.split()
    print(measure(name, way, int(numel), float(seconds)), flush=True)
