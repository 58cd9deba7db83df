"""What cannot be exported is refused in one sentence, and nothing is written."""

import contextlib
import functools
import io
import unittest
import warnings
from pathlib import Path

import torch
from exported import FOLDER
from frazil import FrazilError
from frazil.exporting import ExportRefused, export_model
from models import classification
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Doubled(torch.autograd.Function):
    """The identity, with twice the gradient."""

    @staticmethod
    def forward(_, x):
        return x * 1.0

    @staticmethod
    def backward(_, gradient):
        return gradient * 2


class Between(nn.Module):
    """Two linear layers with something between them, done by the module `middle`."""

    def __init__(self, middle):
        super().__init__()
        self.first = nn.Linear(5, 4)
        self.middle = Called(middle)
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.middle(self.first(x)))


class Called(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


class View(nn.Module):
    """Changes a view of what another layer has made and still reads."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 3)])

    def forward(self, x):
        made = self.blocks[0](x)
        view = made.view(-1, 2, 2)
        other = self.blocks[1](made)
        view.mul_(2.0)
        return self.blocks[2](made + other)


class Auxiliary(nn.Module):
    """Two heads, of which one works in training only."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(5, 3), nn.Linear(5, 3)])

    def forward(self, x):
        return [head(x) for head in self.heads[: 2 if self.training else 1]]


class Headed(nn.Module):
    """A loss behind a layer of its own."""

    def __init__(self, head):
        super().__init__()
        self.head = head

    def forward(self, outputs, labels):
        return classification(self.head(outputs), labels)


class Keeping(nn.Module):
    """Two linear layers with a parameter and a buffer that `change` may change while it runs."""

    def __init__(self, change):
        super().__init__()
        self.first = nn.Linear(5, 4)
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("average", torch.zeros(4))
        self.last = nn.Linear(4, 3)
        self.change = change

    def forward(self, x):
        x = self.first(x)
        self.change(self, x)
        return self.last((x - self.average) * self.scale)


def average_by_out(model, x):
    with torch.no_grad():
        torch.lerp(model.average, x.mean(0), 0.1, out=model.average)


def write_by_out(_, x):
    with torch.no_grad():
        torch.mul(x, 2.0, out=torch.zeros_like(x))


def branch_on_values(x):
    return x if x.sum() > 0 else -x


def fix_batch(x):
    return x.view(4, 4)


def line_of(function):
    """The line of the only statement of a function."""
    return function.__code__.co_firstlineno + 1


INPUTS = (torch.linspace(-1, 1, 20).reshape(4, 5),)
LABELS = torch.tensor([0, 1, 2, 0])


class Refusing(unittest.TestCase):
    def expect(self, model, *parts, inputs=INPUTS, labels=LABELS, loss=classification, cuts="blocks"):
        """The sentence has all these parts and no second line, and there is no file."""
        path = Path(FOLDER.name) / "refused.safetensors"
        path.unlink(missing_ok=True)
        with self.assertRaises(ExportRefused) as caught:
            export_model(model, inputs, labels, loss, path, cuts)
        for part in parts:
            self.assertIn(part, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        self.assertFalse(path.exists())


class Refused(Refusing):
    def test_a_function_whose_backward_an_export_loses(self):
        self.expect(Between(Doubled.apply), "module middle (refused.py:", "Doubled, a torch.autograd.Function")

    def test_a_branch_on_the_values_of_a_tensor(self):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            where = f"module middle (refused.py:{line_of(branch_on_values)})"
            self.expect(Between(branch_on_values), f"{where}: branches on, or counts by, the values of a tensor")
        self.assertEqual(told.getvalue(), "")

    def test_a_batch_that_is_fixed(self):
        where = f"module middle (refused.py:{line_of(fix_batch)}): fixes the batch at 4 samples"
        self.expect(Between(fix_batch), where)
        self.expect(Between(lambda x: x * 2 if x.shape[0] == 4 else x), "module middle (refused.py:", "fixes the batch at 4 samples")
        weights = torch.ones(4)
        loss = lambda outputs, labels: (F.cross_entropy(outputs, labels, reduction="none") * weights).mean()  # noqa: E731
        self.expect(Between(lambda x: x), "the loss (refused.py:", "fixes the batch at 4 samples", loss=loss)

    def test_a_size_that_depends_on_values(self):
        self.expect(Between(lambda x: x[x[:, 0] > 0]), "refused.py:", "depends on")

    def test_random_draws_without_a_key(self):
        self.expect(Between(lambda x: F.rrelu(x, training=True)), "module middle (refused.py:", "aten::rrelu", "without a key")
        self.expect(Between(lambda x: x[:, torch.randperm(4)]), "module middle (refused.py:", "aten::randperm")
        self.expect(Between(lambda x: x + torch.rand(4)), "module middle (refused.py:", "aten::rand,")

    def test_random_draws_that_the_loss_does_not_read(self):
        def draw_more(x):
            F.dropout(x, 0.5)
            return x

        self.expect(Between(draw_more), "module middle (refused.py:", "draws random numbers for something")

    def test_a_change_of_a_view_of_what_crosses_a_cut(self):
        self.expect(View(), "refused.py:", "changes in place a view")

    def test_a_change_of_what_the_model_keeps(self):
        self.expect(Keeping(average_by_out), "refused.py:", "aten::lerp.Scalar_out changes the buffer average")
        self.expect(Keeping(lambda model, _: model.scale.detach().clamp_(-0.5, 0.5)), "refused.py:", "aten::clamp_ changes the parameter scale")
        self.expect(Keeping(lambda model, _: model.average.view(2, 2)[0].add_(1.0)), "changes the buffer average")
        self.expect(nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(5, 3))), "changes the buffer 0.parametrizations.weight.0._")
        ids = torch.tensor([0, 1, 2, 0])
        self.expect(nn.Sequential(nn.Embedding(4, 3, max_norm=1.0)), "aten::embedding_renorm_ changes the parameter 0.weight", inputs=(ids,))

    def test_an_operation_that_writes_through_out(self):
        self.expect(Keeping(write_by_out), "refused.py:", "aten::mul.out writes through out=")

    def test_autocast(self):
        def narrow(x):
            with torch.autocast("cpu"):
                return x @ x.T @ x

        self.expect(Between(narrow), "refused.py:", "torch.autocast")

    def test_parameters_of_another_type(self):
        self.expect(Between(lambda x: x).double(), "the parameter first.weight is float64, expected float32")

    def test_hooks_on_the_gradients_of_parameters(self):
        model = Between(lambda x: x)
        hook = model.last.weight.register_hook(lambda gradient: gradient * 2)
        self.expect(model, "the parameter last.weight has a hook on its gradient")
        hook.remove()
        model.first.bias.register_post_accumulate_grad_hook(lambda parameter: None)
        self.expect(model, "the parameter first.bias has a hook on its gradient")

    def test_statistics_over_all_batches(self):
        self.expect(nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3, momentum=None)), "module 1:", "momentum=None")

    def test_statistics_of_two_places(self):
        norm = nn.BatchNorm1d(3)
        self.expect(nn.Sequential(nn.Linear(5, 3), norm, nn.ReLU(), norm, nn.Linear(3, 3)), "module 3:", "the same running statistics a second time")

    def test_a_batch_of_one_and_batches_that_differ(self):
        self.expect(Between(lambda x: x), "at least 2 samples", inputs=(INPUTS[0][:1],))
        self.expect(Between(lambda x: x), "the same batch", inputs=(INPUTS[0][:3],))

    def test_inputs_and_labels_of_types_that_no_data_file_holds(self):
        words = torch.zeros(4, 5, dtype=torch.int32)
        self.expect(nn.Embedding(3, 4), "the example: found example input 0 of int32, expected float32, int64, bool", inputs=(words,))
        self.expect(Between(lambda x: x), "the example: found labels of int32", labels=LABELS.int())

    def test_what_is_no_model(self):
        self.expect(lambda x: x, "the model: found a function, expected a torch.nn.Module")
        self.expect(torch.compile(Between(lambda x: x)), "the model: has been through torch.compile")
        inside = Between(lambda x: x)
        inside.first.compile()
        self.expect(inside, "module first: has been through torch.compile")

    def test_what_is_no_example(self):
        model = Between(lambda x: x)
        self.expect(model, "the example: found a list as labels", labels=[0, 1, 2, 0])
        self.expect(model, "the example: found a tensor without dimensions as labels", labels=LABELS[0])
        self.expect(model, "the example: found a dict as example input 0", inputs={"x": INPUTS[0]})
        self.expect(model, "the model: its forward does not take 2 inputs by place (too many positional arguments)", inputs=INPUTS * 2)
        self.expect(nn.Bilinear(5, 5, 3), "does not take 1 inputs by place (missing a required argument: 'input2')")

    def test_a_path_that_is_no_place_for_a_file(self):
        for path, told in ((FOLDER.name, "found a folder"), (f"{FOLDER.name}/nowhere/a.safetensors", "found no folder .*/nowhere, expected one")):
            with self.assertRaisesRegex(FrazilError, f"^{path}: {told}"):
                export_model(lambda: "is not looked at", INPUTS, LABELS, classification, path)

    def test_labels_that_the_loss_does_not_take(self):
        self.expect(Between(lambda x: x), "the loss: fails for 8 samples", "(IndexError: Target 5 is out of bounds.)", labels=LABELS + 5)

    def test_a_model_that_does_not_train(self):
        self.expect(Between(lambda x: x).requires_grad_(False), "has no parameter that trains")

    def test_a_single_block(self):
        self.expect(nn.Linear(5, 3), "makes one block (before), expected two or more")

    def test_numbers_that_are_not_finite(self):
        self.expect(Between(lambda x: x), "the example: found nan in example input 0", inputs=(INPUTS[0] / 0 * 0,))
        self.expect(Between(lambda x: x - torch.inf), "the loss of 4 samples is nan, expected a finite number")
        self.expect(Between(lambda x: (x * 0).sqrt()), "the gradient of the parameter first.weight has numbers that are not finite")

    def test_a_cut_at_no_module(self):
        self.expect(Between(lambda x: x), 'found the cut "midle"', cuts=["midle"])
        self.expect(Between(lambda x: x), 'found the cut "layers", expected "blocks" or paths of modules', cuts="layers")

    def test_a_loss_that_is_no_single_number(self):
        self.expect(Between(lambda x: x), "the loss is no single number", loss=lambda outputs, _: outputs)

    def test_a_loss_that_reads_parameters(self):
        model = Between(lambda x: x)

        def with_penalty(outputs, labels):
            return classification(outputs, labels) + 0.1 * model.last.weight.pow(2).sum()

        self.expect(model, "the loss reads last.weight by itself", loss=with_penalty)
        self.expect(Between(lambda x: x), "the loss reads a tensor that requires gradients by itself", loss=with_penalty)
        head = nn.Linear(3, 3)
        self.expect(model, "the loss has parameters or running statistics of its own (loss.head.weight)", loss=Headed(head))
        self.expect(model, "the loss has parameters or running statistics of its own", loss=Headed(head.requires_grad_(False)))

    def test_what_works_in_evaluation_as_in_training(self):
        self.expect(Between(lambda x: F.dropout(x, 0.5, training=True)), "module middle (refused.py:", "aten::dropout works in evaluation as in training")
        mean, variance = torch.zeros(4), torch.ones(4)
        self.expect(Between(lambda x: F.batch_norm(x, mean, variance, training=True)), "aten::batch_norm works in evaluation as in training")

        def attend(x):
            x = x.view(-1, 1, 2, 2)
            return F.scaled_dot_product_attention(x, x, x, dropout_p=0.1).flatten(1)

        self.expect(Between(attend), "aten::scaled_dot_product_attention works in evaluation as in training")

    def test_fewer_outputs_in_evaluation_than_the_loss_reads(self):
        self.expect(Auxiliary(), "returns fewer tensors in evaluation", loss=lambda outputs, labels: sum(classification(one, labels) for one in outputs))

    def test_complex_constants(self):
        turn = torch.zeros(2, dtype=torch.complex64)
        self.expect(Between(lambda x: x + torch.view_as_real(turn).flatten()), "complex64, which a model file cannot hold")

    def test_weights_that_are_made_before_forward(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = nn.Sequential(nn.utils.weight_norm(nn.Linear(5, 3)))
        self.expect(model, "module 0: keeps the result of an operation as weight", "parametrizations")

    def test_sparse_gradients(self):
        ids = torch.tensor([0, 1, 2, 0])
        self.expect(nn.Sequential(nn.Embedding(4, 3, sparse=True)), "module 0: aten::embedding has sparse gradients", inputs=(ids,))

    def test_reentrant_checkpoints(self):
        call = functools.partial(checkpoint, torch.tanh, use_reentrant=True)
        self.expect(Between(call), "module middle (refused.py:", "a reentrant checkpoint, expected use_reentrant=False")

    def test_a_model_that_does_not_depend_on_parameters(self):
        self.expect(nn.Sequential(nn.Flatten()), "no parameters", loss=lambda outputs, _: outputs.mean())
