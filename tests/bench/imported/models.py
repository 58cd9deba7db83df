"""The models of measure.py: in PyTorch, with samples, and as "model" of a run configuration the same model in C++.

Modules are cut as exec/models cuts its layers, and read the same parameters in the same order, so that a model of the choice can take over the
start values of the exported one; losses then tell whether both do the same work.
"""

from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch
import torch.nn.functional as F
from torch import nn

BATCHES = 4  # of samples, which steps go through by turns


@dataclass
class Case:
    name: str
    model: nn.Module
    inputs: dict  # name -> tensor of all samples
    labels: torch.Tensor
    loss: Callable
    batch: int
    micro_batches: int
    steps: int  # of each side in a round
    built_in: Optional[dict] = None
    draws: bool = False  # dropout: losses differ


class Attention(nn.Module):
    """Returns what attention adds to x; `after` norms the sum, else x is normed first."""

    def __init__(self, dim, heads, epsilon, form, after=False):
        super().__init__()
        self.norm = nn.LayerNorm(dim, epsilon)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.heads, self.form, self.after = heads, form, after

    def forward(self, x, mask=None):
        n, t, d = x.shape
        y = x if self.after else self.norm(x)
        q, k, v = self.qkv(y).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(self.form(q, k, v, mask).transpose(1, 2).reshape(n, t, d))
        return self.norm(x) if self.after else x


class Transform(nn.Module):
    def __init__(self, dim, epsilon, approximate="none", after=False):
        super().__init__()
        self.norm = nn.LayerNorm(dim, epsilon)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.approximate, self.after = approximate, after

    def forward(self, x, mask=None):
        y = x if self.after else self.norm(x)
        x = x + self.down(F.gelu(self.up(y), approximate=self.approximate))
        return self.norm(x) if self.after else x


def attend(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, mask)


def attend_causally(q, k, v, mask):
    """Written out, as in the eager form of GPT-2."""
    later = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(2, 3) * q.shape[3] ** -0.5).masked_fill(later, -torch.inf)
    return scores.softmax(-1) @ v


class Mlp(nn.Module):
    def __init__(self, values, widths, classes):
        super().__init__()
        sizes = [values, *widths]
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(i, o), nn.GELU()) for i, o in zip(sizes, widths))
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, images):
        x = images.flatten(1)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Vit(nn.Module):
    def __init__(self, image, patch, dim, blocks, heads, classes):
        super().__init__()
        self.side, self.patch = image // patch, patch
        self.patches = nn.Linear(3 * patch * patch, dim)
        self.token = nn.Parameter(torch.randn(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, self.side**2 + 1, dim))
        self.blocks = nn.ModuleList(
            part for _ in range(blocks) for part in (Attention(dim, heads, 1e-12, attend), Transform(dim, 1e-12)))
        self.norm, self.head = nn.LayerNorm(dim, 1e-12), nn.Linear(dim, classes)

    def forward(self, images):
        n, side, patch = images.shape[0], self.side, self.patch
        cut = images.view(n, 3, side, patch, side, patch).permute(0, 2, 4, 1, 3, 5).reshape(n, side * side, 3 * patch * patch)
        x = self.patches(cut)
        x = torch.cat([self.token.expand(n, 1, x.shape[2]), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


class Decoder(nn.Module):
    """Its table of tokens is its head, too."""

    def __init__(self, vocabulary, tokens, dim, blocks, heads):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = nn.Parameter(torch.randn(tokens, dim) * 0.1)
        self.blocks = nn.ModuleList(
            part for _ in range(blocks)
            for part in (Attention(dim, heads, 1e-5, attend_causally), Transform(dim, 1e-5, "tanh")))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Encoder(nn.Module):
    def __init__(self, vocabulary, tokens, dim, blocks, heads, classes):
        super().__init__()
        self.words, self.segments = nn.Embedding(vocabulary, dim), nn.Embedding(2, dim)
        self.positions = nn.Parameter(torch.randn(tokens, dim) * 0.1)
        self.norm = nn.LayerNorm(dim, 1e-12)
        self.blocks = nn.ModuleList(
            part for _ in range(blocks)
            for part in (Attention(dim, heads, 1e-12, attend, after=True), Transform(dim, 1e-12, after=True)))
        self.pooler, self.head = nn.Linear(dim, dim), nn.Linear(dim, classes)

    def forward(self, ids, segments, mask):
        x = self.norm(self.words(ids) + self.positions + self.segments(segments))
        added = torch.zeros(ids.shape[0], 1, 1, ids.shape[1]).masked_fill(mask[:, None, None, :] == 0, -1e4)
        for block in self.blocks:
            x = block(x, added)
        return self.head(torch.tanh(self.pooler(x[:, 0])))


def classify(outputs, labels):
    return F.cross_entropy(outputs if isinstance(outputs, torch.Tensor) else outputs.logits, labels)


def predict_next(outputs, labels):
    return F.cross_entropy(outputs.view(-1, outputs.shape[-1]), labels.view(-1))


def images(count, size, classes):
    return {"images": torch.randn(count, 3, size, size)}, torch.randint(classes, (count,))


def sentences(count, tokens, vocabulary):
    lengths = torch.randint(tokens // 2, tokens + 1, (count, 1))
    return torch.randint(vocabulary, (count, tokens)), (torch.arange(tokens) < lengths).long()


def mlp():
    inputs, labels = images(BATCHES * 64, 32, 10)
    return Case("mlp", Mlp(3 * 32 * 32, [512, 512, 256], 10), inputs, labels, classify, 64, 4, 8,
                {"kind": "mlp", "image": 32, "channels": 3, "widths": [512, 512, 256], "classes": 10})


def vit():
    shape = {"image": 32, "patch": 4, "dim": 192, "blocks": 4, "heads": 3, "classes": 10}
    inputs, labels = images(BATCHES * 16, 32, 10)
    return Case("vit", Vit(**shape), inputs, labels, classify, 16, 4, 1, {"kind": "vit", "channels": 3, **shape})


def decoder():
    shape = {"vocabulary": 256, "tokens": 64, "dim": 192, "blocks": 4, "heads": 6}
    ids = torch.randint(256, (BATCHES * 16, 65))
    return Case("decoder", Decoder(**shape), {"ids": ids[:, :-1].contiguous()}, ids[:, 1:].contiguous(), predict_next, 16, 4, 1,
                {"kind": "decoder", **shape})


def encoder():
    shape = {"vocabulary": 1000, "tokens": 32, "dim": 192, "blocks": 4, "heads": 6, "classes": 4}
    ids, mask = sentences(BATCHES * 32, 32, 1000)
    inputs = {"ids": ids, "segments": torch.zeros_like(ids), "mask": mask}
    return Case("encoder", Encoder(**shape), inputs, torch.randint(4, (len(ids),)), classify, 32, 4, 1, {"kind": "encoder", **shape})


def minilm(trains_table=True):
    """BERT of MiniLM's size with two labels, 22.7 million parameters of which the table of words has 11.7, and dropout."""
    import transformers

    config = transformers.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, num_labels=2)
    model = transformers.BertForSequenceClassification(config)
    model.bert.embeddings.word_embeddings.weight.requires_grad_(trains_table)
    ids, mask = sentences(BATCHES * 16, 32, config.vocab_size)
    name = "minilm, table trained" if trains_table else "minilm"
    return Case(name, model, {"input_ids": ids, "attention_mask": mask}, torch.randint(2, (len(ids),)), classify, 16, 2, 1, draws=True)


CASES = {"mlp": mlp, "vit": vit, "decoder": decoder, "encoder": encoder, "minilm": lambda: minilm(False), "minilm-table": minilm}
