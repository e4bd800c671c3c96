"""The peer of fashion.lua: the same models, data and options in PyTorch.

usage: fashion.py mlp|cnn FOLDER [SEEDS [EPOCHS [CONFIGURATION]]]

CONFIGURATION is Adam's (default, foreach or fused), with a comma
channels_last.  Prints, for each seed, the test accuracy after the last epoch
and the milliseconds a step of training took.
"""

import gzip
import os
import resource
import statistics
import sys
import time

import numpy as np
import torch
from torch import nn


def idx(path, header):
    with gzip.open(path) as f:
        return np.frombuffer(f.read(), np.uint8, offset=header)


def load(folder, name):
    x = idx(os.path.join(folder, name + "-images-idx3-ubyte.gz"), 16)
    y = idx(os.path.join(folder, name + "-labels-idx1-ubyte.gz"), 8)
    x = torch.from_numpy(x.reshape(-1, 1, 28, 28).astype(np.float32) / 255)
    return x, torch.from_numpy(y.astype(np.int64))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(),
                         nn.Linear(128, 10))


def block(c, k):
    return nn.Sequential(nn.Conv2d(c, k, 3, padding=1), nn.BatchNorm2d(k),
                         nn.ReLU(), nn.MaxPool2d(2))


def cnn():
    return nn.Sequential(block(1, 32), block(32, 64), nn.Flatten(),
                         nn.Linear(64 * 49, 10))


def accuracy(model, test):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item()
                    for x, y in zip(test[0].split(1000), test[1].split(1000)))
    return 100 * right / len(test[1])


def run(seed, make, train, test, epochs, options):
    torch.manual_seed(seed)
    model = make()
    adam = {k: True for k in options if k in ("foreach", "fused")}
    if "channels_last" in options:
        model = model.to(memory_format=torch.channels_last)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, **adam)
    loss_of = nn.CrossEntropyLoss()
    x, y = train
    steps, seconds = 0, 0.0
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        begin = time.perf_counter()
        for i in range(0, len(x), 128):
            ids = order[i:i + 128]
            opt.zero_grad()
            loss_of(model(x[ids]), y[ids]).backward()
            opt.step()
            steps += 1
        seconds += time.perf_counter() - begin
    return accuracy(model, test), 1e3 * seconds / steps


def main():
    name, folder = sys.argv[1:3]
    rest = sys.argv[3:] + [None] * 3
    seeds = int(rest[0] or 5)
    epochs = int(rest[1] or {"mlp": 10, "cnn": 5}[name])
    kind = rest[2] or "default"
    torch.set_num_threads(int(os.environ.get("THREADS", "2")))
    train, test = load(folder, "train"), load(folder, "t10k")
    results = []
    for seed in range(1, seeds + 1):
        percent, ms = run(seed, {"mlp": mlp, "cnn": cnn}[name], train, test,
                          epochs, kind.split(","))
        results.append((percent, ms))
        print(f"torch {name} {kind} seed {seed}: {percent:.2f} %, "
              f"{ms:.2f} ms a step", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"torch {name} {kind} median: "
          f"{statistics.median(r[0] for r in results):.2f} %, "
          f"{statistics.median(r[1] for r in results):.2f} ms a step; "
          f"peak {peak:.0f} MB")


main()
