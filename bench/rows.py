"""The peer of rows.lua: the same rows in PyTorch.

usage: rows.py THREADS default|tuned wall|cpu [DEVICE]

tuned takes the fastest of PyTorch's own options; what the process's
environment must be for it is in run.lua.
"""

import math
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

sys.dont_write_bytecode = True
from gpt import Gpt  # noqa: E402

torch.set_num_threads(int(sys.argv[1]))
TUNED = sys.argv[2] == "tuned"
clock = time.process_time if sys.argv[3] == "cpu" else time.perf_counter
device = sys.argv[4] if len(sys.argv) > 4 else "cpu"
torch.set_default_device(device)


def synchronize():
    if device != "cpu":
        torch.cuda.synchronize()

rows = {}


def row(make):
    rows[make.__name__] = make
    return make


def repeat(f):
    def run(n):
        for _ in range(n):
            f()

    return run


def without_grad(f):
    def run(n):
        with torch.no_grad():
            for _ in range(n):
                f()

    return run


def mlp():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


@row
def mlp_step():
    model = mlp()
    options = {"fused": True} if TUNED else {}
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, **options)
    x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))

    def step():
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()

    return repeat(step)


@row
def mlp_step_graph():
    model = mlp()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True,
                           fused=TUNED)
    x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))

    def step():
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return repeat(graph.replay)


@row
def char_gpt_step():
    model = Gpt(128, 384, 6, 6, 256)
    options = {"fused": True} if TUNED else {}
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, **options)
    x = torch.randint(0, 128, (8, 256))
    y = torch.randint(0, 128, (8 * 256,))

    def step():
        opt.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), y).backward()
        opt.step()

    return repeat(step)


@row
def gpt2_prefill():
    model = Gpt(50257, 768, 12, 12, 1024).eval()
    ids = torch.randint(0, 50257, (1, 256))
    return without_grad(lambda: model(ids, last=True))


@row
def gpt2_decode():
    model = Gpt(50257, 768, 12, 12, 1024).eval()
    cache, one = model.cache(), torch.randint(0, 50257, (1, 1))
    at = [64]

    def step():
        at[0] = 64 if at[0] == 80 else at[0] + 1
        model(one, cache, at[0], last=True)

    return without_grad(step)


@row
def mlp_forward():
    model, x = mlp(), torch.randn(128, 784)
    return without_grad(lambda: model(x))


large = None
weight, bias = torch.ones(1024), torch.zeros(1024)

memory_bound = {
    "layer_norm": lambda x: F.layer_norm(x, (1024,), weight, bias),
    "softmax": lambda x: torch.softmax(x, -1),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "exp": torch.exp,
    "tanh": torch.tanh,
    "relu": F.relu,
    "sum": torch.sum,
    "add": lambda x: x + x,
    "mul_": lambda x: x.mul_(1.0),
}


def large_row(f):
    def make():
        global large
        if large is None:
            large = torch.randn(16384, 1024)
        return without_grad(lambda: f(large))

    return make


for name, f in memory_bound.items():
    rows[name] = large_row(f)

a, b, c = torch.ones(1), torch.ones(1), torch.ones(1, requires_grad=True)
p, q = torch.ones(4, 4), torch.ones(4, 4)

small = {
    "one_add": lambda: a + b,
    "one_add_": lambda: a.add_(b),
    "one_add_graph": lambda: c + b,
    "one_backward": lambda: (c + b).backward(),
    "one_matmul": lambda: p @ q,
    "one_numel": lambda: a.numel(),
}
for name, f in small.items():
    rows[name] = lambda f=f: repeat(f)


def conv_row(name):
    """conv_WHAT:N,IN,SIDE,OUT,KERNEL,STRIDE,DILATION,GROUPS: see rows.lua.
    Tuned, images are channels-last."""
    what, sizes = name.split(":")
    n, cin, side, cout, k, stride, dilation, groups = map(
        int, sizes.split(","))
    padding = dilation * (k - 1) // 2
    order = torch.channels_last if TUNED else torch.contiguous_format
    x = torch.randn(n, cin, side, side).contiguous(memory_format=order)
    w = torch.randn(cout, cin // groups, k, k).contiguous(memory_format=order)
    b = torch.randn(cout)
    gy = F.conv2d(x, w, b, stride, padding, dilation, groups) * 0.01

    def back(input, weight):
        return torch.ops.aten.convolution_backward(
            gy, x, w, None, [stride] * 2, [padding] * 2, [dilation] * 2, False,
            [0, 0], groups, [input, weight, False])

    def forward():
        return F.conv2d(x, w, b, stride, padding, dilation, groups)

    def all():
        forward()
        back(True, True)

    return without_grad({"conv_forward": forward, "conv_all": all,
                         "conv_input": lambda: back(True, False),
                         "conv_weight": lambda: back(False, True)}[what])


def penalized(x, history):
    score = x.gather(1, history)
    score = torch.where(score < 0, score * 1.1, score / 1.1)
    return x.scatter(1, history, score)


def without_tail(x, p):
    """Of transformers: what is behind the share p of the probability."""
    sorted_x, ids = torch.sort(x, descending=False)
    cut = sorted_x.softmax(-1).cumsum(-1) <= 1 - p
    cut[..., -1:] = 0
    return x.masked_fill(cut.scatter(1, ids, cut), -math.inf)


def draw(x):
    return torch.multinomial(x.softmax(-1), 1).item()


def sample_row(name):
    """sample_HOW:VOCABULARY: see rows.lua."""
    how, n = name[len("sample_"):].split(":")
    x = 3 * torch.randn(1, int(n))
    history = 7 * torch.arange(1, 201).view(1, -1)

    def first(x, k):
        return x.masked_fill(x < x.topk(k).values[..., -1:], -math.inf)

    def few(x):
        """Tuned: only the k largest are looked at again."""
        values, ids = x.topk(40)
        return values, ids

    def top_k():
        if not TUNED:
            return draw(first(x, 40))
        values, ids = few(x)
        return ids[0, draw(values)].item()

    def without_light(x):
        p = x.softmax(-1)
        return x.masked_fill(p < 0.05 * p.amax(-1, keepdim=True), -math.inf)

    def everything():
        y = penalized(x, history) / 0.8
        if not TUNED:
            return draw(without_light(without_tail(first(y, 40), 0.9)))
        values, ids = few(y)
        return ids[0, draw(without_light(without_tail(values, 0.9)))].item()

    return without_grad({
        "greedy": lambda: x.argmax(-1).item(),
        "temperature": lambda: draw(x / 0.8),
        "top_k": top_k,
        "top_p": lambda: draw(without_tail(x, 0.9)),
        "min_p": lambda: draw(without_light(x)),
        "all": everything,
        "sort": lambda: torch.sort(x),
    }[how])


def attention_row(name):
    """attention_WHAT:HEADS,QUERIES,KEYS,SIZE: see rows.lua."""
    what, sizes = name.split(":")
    h, m, n, d = map(int, sizes.split(","))
    q, k = torch.randn(1, h, m, d), torch.randn(1, h, n, d)
    v, gy = torch.randn(1, h, n, d), torch.randn(1, h, m, d)
    if what != "attention_all":
        return without_grad(lambda: F.scaled_dot_product_attention(
            q, k, v, is_causal=what == "attention_causal"))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    return repeat(lambda: torch.autograd.grad(
        F.scaled_dot_product_attention(*leaves), leaves, gy))


def product_row(name):
    """matmul_DTYPE:SIZE: see rows.lua."""
    kind, size = name.split(":")
    dtype = {"f32": torch.float32, "f16": torch.float16,
             "bf16": torch.bfloat16}[kind.split("_")[1]]
    x = torch.randn(int(size), int(size)).to(dtype)
    y = torch.randn(int(size), int(size)).to(dtype)
    return without_grad(lambda: x @ y)


def recurrent_row(name):
    """lstm_step:BATCH,STEPS,IN,HIDDEN,LAYERS: see rows.lua."""
    kind, sizes = name.split("_step:")
    batch, steps, inputs, hidden, layers = map(int, sizes.split(","))
    model = getattr(nn, kind.upper())(inputs, hidden, layers, batch_first=True)
    x = torch.randn(batch, steps, inputs, requires_grad=True)
    gy = torch.randn(batch, steps, hidden)

    def step():
        model.zero_grad()
        x.grad = None
        model(x)[0].backward(gy)

    return repeat(step)


def measure(f, seconds):
    n = 1
    f(1)
    while True:
        synchronize()
        start = clock()
        f(n)
        synchronize()
        t = clock() - start
        if t >= seconds:
            return t / n
        n = max(n + 1, math.ceil(n * min(100, 1.2 * seconds / t)))


ready = {}
for line in sys.stdin:
    name, seconds = line.split()
    if name not in ready:
        ready[name] = (conv_row if name.startswith("conv_") else
                       sample_row if name.startswith("sample_") else
                       recurrent_row if "_step:" in name else
                       attention_row if name.startswith("attention_") else
                       product_row if ":" in name else rows.get)(name)
        if name in rows:
            ready[name] = ready[name]()
    print(f"{measure(ready[name], float(seconds)):.9g}", flush=True)
