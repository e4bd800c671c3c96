"""The peer of fashion_mlp.lua: the same model, data and options in PyTorch.

usage: fashion_mlp.py FOLDER [SEEDS [EPOCHS [CONFIGURATION]]]

CONFIGURATION is Adam's: default, foreach or fused.  Prints, for each seed,
the test accuracy after the last epoch and the steps a second of training.
"""

import gzip
import os
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
    x = torch.from_numpy(x.reshape(-1, 784).astype(np.float32) / 255)
    return x, torch.from_numpy(y.astype(np.int64))


def run(seed, train, test, epochs, adam):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
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
    with torch.no_grad():
        right = (model(test[0]).argmax(1) == test[1]).float().mean().item()
    return 100 * right, steps / seconds


def main():
    folder = sys.argv[1]
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    kind = sys.argv[4] if len(sys.argv) > 4 else "default"
    adam = {} if kind == "default" else {kind: True}
    torch.set_num_threads(int(os.environ.get("THREADS", "2")))
    train, test = load(folder, "train"), load(folder, "t10k")
    results = []
    for seed in range(1, seeds + 1):
        accuracy, rate = run(seed, train, test, epochs, adam)
        results.append((accuracy, rate))
        print(f"torch {kind} seed {seed}: {accuracy:.2f} %, "
              f"{rate:.0f} steps/s", flush=True)
    print(f"torch {kind} median: "
          f"{statistics.median(r[0] for r in results):.2f} %, "
          f"{statistics.median(r[1] for r in results):.0f} steps/s")


main()
