"""winograd.py - convolutions of 3 by 3 in PyTorch, beside build/bench/winograd.

    winograd.py [THREADS [ROUNDS]]

For each shape the two take turns, in channels-last order; prints medians of
wall and CPU time of both, and PyTorch's by ours.
"""

import re
import statistics
import subprocess
import sys
import time

import torch

SHAPES = (320, 64), (640, 32), (1280, 16), (128, 256)
CALLS = 3


def layer(channels):
    conv = torch.nn.Conv2d(channels, channels, 3, padding=1)
    return conv.to(memory_format=torch.channels_last)


def theirs(conv, x):
    conv(x)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(CALLS):
        conv(x)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return 1e3 * wall / CALLS, 1e3 * cpu / CALLS


def ours(threads, channels, size):
    text = subprocess.run(
        ["build/bench/winograd", str(threads), "3", f"{channels},{size}"],
        check=True, capture_output=True, text=True).stdout
    found = re.search(r"tiles +([0-9.]+) ms, CPU +([0-9.]+) ms", text)
    return float(found[1]), float(found[2])


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    for channels, size in SHAPES:
        x = torch.randn(1, channels, size, size)
        x = x.to(memory_format=torch.channels_last)
        conv = layer(channels)
        rows = [theirs(conv, x) + ours(threads, channels, size)
                for _ in range(rounds)]
        wall, cpu, own_wall, own_cpu = map(statistics.median, zip(*rows))
        print(f"conv3x3 {threads} threads {channels:4} channels {size:3}^2: "
              f"PyTorch {wall:.1f} ms (CPU {cpu:.1f}), "
              f"ours {own_wall:.1f} ms (CPU {own_cpu:.1f}), "
              f"{wall / own_wall:.2f}x (CPU {cpu / own_cpu:.2f}x)", flush=True)


main()
