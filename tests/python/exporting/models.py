"""The models that the exporter is tested with: small, each with inputs, labels and a loss."""

from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional as F

BATCH = 4
TOKENS = 6
WORDS = 17
WIDTH = 8
CLASSES = 3


@dataclass
class Sample:
    """A model with what it is exported with. cuts: as of export_model."""

    name: str
    model: nn.Module
    inputs: tuple
    labels: torch.Tensor
    loss: Callable
    cuts: Any = "blocks"


def classification(outputs, labels):
    logits = outputs if isinstance(outputs, torch.Tensor) else outputs.logits
    return F.cross_entropy(logits, labels)


def next_token(outputs, labels):
    logits = outputs if isinstance(outputs, torch.Tensor) else outputs.logits
    return F.cross_entropy(logits.transpose(1, 2), labels)


def spans(outputs, labels):
    """Question answering: the mean of the losses of both ends of a span."""
    starts, ends = labels[:, 0], labels[:, 1]
    return (F.cross_entropy(outputs.start_logits, starts) + F.cross_entropy(outputs.end_logits, ends)) / 2


def squares(outputs, labels):
    return F.mse_loss(outputs, labels)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(5, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)])
        self.drop = nn.Dropout(0.25)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.drop(F.gelu(layer(x)))
        return self.layers[-1](x)


class Attention(nn.Module):
    rate = 0.1

    def __init__(self, causal):
        super().__init__()
        self.join = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.causal = causal

    def forward(self, x, mask=None):
        n, t, _ = x.shape
        q, k, v = (part.view(n, t, 2, WIDTH // 2).transpose(1, 2) for part in self.join(x).split(WIDTH, dim=2))
        rate = self.rate if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, t, WIDTH))


class Block(nn.Module):
    def __init__(self, causal=False):
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.attention = Attention(causal)
        self.between = nn.LayerNorm(WIDTH)
        self.wide = nn.Linear(WIDTH, 2 * WIDTH)
        self.narrow = nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, mask=None):
        x = x + self.drop(self.attention(self.before(x), mask))
        return x + self.drop(self.narrow(F.gelu(self.wide(self.between(x)))))


class Gpt(nn.Module):
    """A decoder whose head is its table of tokens."""

    rate = 0.1

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList([Block(causal=True) for _ in range(2)])
        self.last = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        x = F.dropout(x, self.rate, self.training)
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.start = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.places = nn.Parameter(torch.randn(1, 5, WIDTH))
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.last = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.start.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x)[:, 0])


class Bert(nn.Module):
    """An encoder under a mask of padding, with a pooler that nothing reads."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(TOKENS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids, attention):
        mask = (1.0 - attention[:, None, None, :].to(torch.float32)) * -1e4
        x = self.norm(self.tokens(ids) + self.places(torch.arange(ids.shape[1])))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x[:, 0]), torch.tanh(self.pooler(x[:, 0]))


class Residual(nn.Module):
    """Two convolutions beside a shortcut, with statistics and activations in place."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.act(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        y += x
        return self.act(y)


class Cnn(nn.Module):
    """A small U-Net's way: the stem is read again behind the blocks, so that its output has several readers."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.ModuleList([Residual(4) for _ in range(3)])
        self.drop = nn.Dropout2d(0.2)
        self.join = nn.Conv2d(8, 4, 1)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, images):
        skip = x = self.stem(images)
        for block in self.blocks:
            x = block(x)
        x = self.join(torch.cat([x, skip], dim=1)) + self.drop(skip)
        return self.head(x.mean((2, 3)))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.steps = nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids):
        states, _ = self.steps(self.tokens(ids))
        return self.head(states[:, -1])


class Gru(nn.Module):
    """Both ways, with dropout between its layers."""

    def __init__(self):
        super().__init__()
        self.steps = nn.GRU(WIDTH, 4, 2, batch_first=True, bidirectional=True, dropout=0.3)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        states, last = self.steps(x)
        return self.head(states.mean(1) + torch.cat([last[-1], last[-2]], dim=1))


class DroppedLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.LSTM(WIDTH, 4, 3, dropout=0.3)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, x):
        states, _ = self.steps(x.transpose(0, 1))
        return self.head(states[-1])


class Encoder(nn.Module):
    """torch's own encoder. Its fast path, which has other bits, is taken in evaluation only, and is switched off."""

    def __init__(self):
        super().__init__()
        torch.backends.mha.set_fastpath_enabled(False)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, padding):
        return self.head(self.encoder(x, src_key_padding_mask=padding > 0).mean(1))


class Branching(nn.Module):
    """Another program in evaluation: noise in training only, and another scale."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(5, WIDTH), nn.Linear(WIDTH, CLASSES)])

    def forward(self, x):
        x = self.blocks[0](x)
        if self.training:
            x = x * 1.5 + 0.1
        x = torch.tanh(x)
        return self.blocks[1](x if self.training else x * 0.5)


class Switching(nn.Module):
    """The same operations in evaluation, with other numbers: a scale and the degree of a norm."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(5, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)])

    def forward(self, x):
        x = self.blocks[0](x) * (torch.tensor([1.0, 2.0]) if self.training else torch.tensor([10.0, 5.0])).repeat(WIDTH // 2)
        x = self.blocks[1](x).view(-1, 2, WIDTH // 2)
        x = x + torch.cdist(x, x * 0.5, p=1.0 if self.training else 3.0).mean(2, keepdim=True)
        return self.blocks[2](x.flatten(1))


def ids_of(generator, words=WORDS):
    return torch.randint(0, words, (BATCH, TOKENS), generator=generator)


def own_samples():
    """The models of this file."""
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    ids, classes, words = ids_of(g), torch.randint(0, CLASSES, (BATCH,), generator=g), ids_of(g)
    images = torch.randn(BATCH, 3, 8, 8, generator=g)
    rows = torch.randn(BATCH, 5, generator=g)
    padding = torch.zeros(BATCH, TOKENS, dtype=torch.int64)
    padding[1, 3:] = 1
    vectors = torch.randn(BATCH, TOKENS, WIDTH, generator=g)
    return [
        Sample("mlp", Mlp(), (rows,), classes, classification),
        Sample("gpt", Gpt(), (ids,), words, next_token),
        Sample("vit", Vit(), (images,), classes, classification),
        Sample("bert", Bert(), (ids, 1 - padding), classes, first_classification),
        Sample("cnn", Cnn(), (images,), classes, classification),
        Sample("lstm", Lstm(), (ids,), classes, weighted_classification),
        Sample("gru", Gru(), (vectors,), classes, classification),
        Sample("dropped_lstm", DroppedLstm(), (vectors,), classes, classification),
        Sample("encoder", Encoder(), (vectors, padding), classes, classification),
        Sample("branching", Branching(), (rows,), classes, classification),
        Sample("switching", Switching(), (rows,), classes, classification),
    ]


def first_classification(outputs, labels):
    return classification(outputs[0], labels)


def weighted_classification(outputs, labels):
    """The mean of losses that are weighted by their classes."""
    return (F.cross_entropy(outputs, labels, reduction="none") * torch.tensor([1.0, 2.0, 0.5])[labels]).mean()
