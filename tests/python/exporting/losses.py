"""Losses that are no mean over a batch's labels are refused, for training averages the losses of micro-batches; means pass."""

import torch
from exported import export
from models import Mlp, Sample
from refused import INPUTS, LABELS, Refusing
from torch import nn
from torch.nn import functional as F

WEIGHT = torch.tensor([1.0, 2.0, 0.5])
TOKENS = torch.tensor([[0, 1, 2, -100, -100], [2, -100, -100, -100, -100], [1, 1, 0, 0, 2], [0, 2, 1, 2, -100]])


class Tagger(nn.Module):
    """Scores for each of the five numbers of a sample."""

    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(1, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.first(x[:, :, None])).transpose(1, 2)


class Penalised(nn.Module):
    """Returns a number beside the scores."""

    def __init__(self, penalty):
        super().__init__()
        self.first, self.head, self.penalty = nn.Linear(5, 4), nn.Linear(4, 3), penalty

    def forward(self, x):
        scores = self.head(self.first(x))
        return scores, self.penalty(self, scores)


def single(outputs, labels):
    return F.cross_entropy(outputs, labels, reduction="none")


def masked(outputs, labels):
    return single(outputs, labels).sum() / (labels != -100).sum()


def contrastive(outputs, _):
    rows = F.normalize(outputs, dim=1)
    return F.cross_entropy(rows @ rows.T, torch.arange(rows.shape[0]))


def with_penalty(outputs, labels):
    return F.cross_entropy(outputs[0], labels) + 0.1 * outputs[1]


class Losses(Refusing):
    def expect_no_mean(self, loss, labels=LABELS, model=Mlp, inputs=INPUTS):
        parts = ("the loss is no mean over the labels: ", "the losses of micro-batches are averaged")
        self.expect(model(), *parts, loss=loss, labels=labels, inputs=inputs)

    def expect_mean(self, loss, labels=LABELS, model=Mlp, inputs=INPUTS):
        return export(Sample("mean", model(), inputs, labels, loss))

    def test_weights_of_classes_in_a_mean_are_refused_whatever_the_labels(self):
        for labels in (LABELS, torch.zeros(4, dtype=torch.int64)):
            self.expect(Mlp(), "divides by the weights", "weight[labels]).mean()", labels=labels, loss=nn.CrossEntropyLoss(WEIGHT))
        self.expect_mean(lambda o, y: (single(o, y) * WEIGHT[y]).mean())

    def test_sums_and_sums_by_a_fixed_number_are_refused(self):
        for loss in (lambda o, y: F.cross_entropy(o, y, reduction="sum"), lambda o, y: single(o, y).sum() / 4, lambda o, y: o.pow(2).sum()):
            self.expect_no_mean(loss)
        self.expect_mean(lambda o, y: single(o, y).sum() / y.shape[0])

    def test_what_compares_samples_or_takes_one_of_them_is_refused_even_if_all_are_alike(self):
        for inputs in (INPUTS, torch.zeros(2, 5)):
            for loss in (contrastive, lambda o, y: single(o, y).max(), lambda o, y: single(o, y).square().mean().sqrt()):
                self.expect_no_mean(loss, inputs=inputs, labels=LABELS[: len(inputs[0]) if isinstance(inputs, tuple) else 2])

    def test_labels_that_are_ignored_do_not_count(self):
        file = self.expect_mean(F.cross_entropy, TOKENS, Tagger)
        self.assertEqual(file.graph["loss"]["ignore_index"], -100)
        self.expect_no_mean(lambda o, y: F.cross_entropy(o, y) + F.cross_entropy(o[:, :, 1:], y[:, 1:]), TOKENS, Tagger)

    def test_a_mean_that_leaves_labels_out_by_itself_is_refused_though_the_example_has_none_of_them(self):
        self.expect_no_mean(masked, TOKENS, Tagger)
        self.expect_no_mean(masked, TOKENS.clamp(min=0), Tagger)

    def test_a_mean_of_losses_of_single_labels_counts_all(self):
        file = self.expect_mean(lambda o, y: (single(o, y) * (1 - torch.exp(-single(o, y)))).mean())
        self.assertIsNone(file.graph["loss"]["ignore_index"])

    def test_regression_and_several_labels_for_each_sample(self):
        aims = torch.linspace(0, 1, 12).reshape(4, 3)
        for loss in (F.mse_loss, F.l1_loss, F.binary_cross_entropy_with_logits):
            self.expect_mean(loss, aims)
        self.expect_mean(lambda o, y: F.binary_cross_entropy(o.sigmoid(), y), aims)
        self.expect_mean(lambda o, y: F.mse_loss(o.squeeze(1), y), aims[:, 0], lambda: nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 1)))

    def test_a_number_beside_the_outputs_must_not_depend_on_the_batch(self):
        self.expect_mean(with_penalty, model=lambda: Penalised(lambda model, _: model.head.weight.square().sum()))
        self.expect(Penalised(lambda _, scores: scores.square().mean()), "an output of shape [] that depends on the batch", loss=with_penalty)
