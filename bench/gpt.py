"""The peer of gpt.lua, with a cache of keys and values that is written into."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def attend(self, x, cache, at):
        b, n, dim = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(
            2, 0, 3, 1, 4)
        if cache is not None:
            keys, values = cache
            keys[:, :, at:at + n], values[:, :, at:at + n] = k, v
            k, v = keys[:, :, :at + n], values[:, :, :at + n]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=n > 1)
        return self.out(y.transpose(1, 2).reshape(b, n, dim))

    def forward(self, x, cache=None, at=0):
        x = x + self.attend(self.norm1(x), cache, at)
        h = F.gelu(self.up(self.norm2(x)), approximate="tanh")
        return x + self.down(h)


class Gpt(nn.Module):
    def __init__(self, vocabulary, dim, heads, layers, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.places = nn.Embedding(length, dim)
        self.blocks = nn.ModuleList(
            Block(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = heads, dim // heads, length

    def cache(self, batch=1):
        heads, size, length = self.head
        return [[torch.zeros(batch, heads, length, size) for _ in range(2)]
                for _ in self.blocks]

    def forward(self, ids, cache=None, at=0, last=False):
        n = ids.shape[1]
        x = self.tokens(ids) + self.places.weight[at:at + n]
        for i, block in enumerate(self.blocks):
            x = block(x, cache and cache[i], at)
        x = self.norm(x[:, -1:] if last else x)
        return F.linear(x, self.tokens.weight)
