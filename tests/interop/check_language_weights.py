#!/usr/bin/env python3
"""The trained weights of a decoder and an encoder in Hugging Face's transformers, which knows nothing of Frazil.

    .deps/torch-python/python tests/interop/check_language_weights.py --frazil build/bin/frazil

transformers loads `weights.safetensors` into `GPT2LMHeadModel`, once the maps inside blocks are transposed, and into
`BertForSequenceClassification`, with no name missing or left over, and evaluates the run's test samples, which are drawn here again from the seed of the run configuration: loss and accuracy must be those
that the run answered. Then a run that starts from a file which `save_pretrained` wrote has transformers' loss. Exit code 77: torch or transformers are absent.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 1e-4  # of the loss: other kernels add in another order
MASK64 = (1 << 64) - 1
STRIDE = 0x9E3779B97F4A7C15
SUCCESSORS, SCORES, TRAINING, TEST = range(0x746F6B, 0x746F6B + 4)
MODELS = {
    "decoder": {"kind": "decoder", "vocabulary": 12, "tokens": 10, "dim": 16, "blocks": 2, "heads": 2, "expansion": 2, "dropout": 0.1},
    "encoder": {"kind": "encoder", "vocabulary": 12, "segments": 3, "tokens": 10, "dim": 16, "blocks": 2, "heads": 2, "expansion": 3,
                "classes": 3, "dropout": 0.1},
}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--frazil", default=str(TREE / "build/bin/frazil"))
os.environ["FRAZIL"] = str(pathlib.Path(parser.parse_args().frazil).resolve())
sys.path.insert(0, str(TREE / "tests/findings/support"))
from training import RUN, Training  # noqa: E402

try:
    import safetensors.torch
    import torch
    import transformers
except ImportError as error:
    print(f"check_language_weights.py: skipped: {error}")
    sys.exit(77)


def mix(x):
    x = (x + STRIDE) & MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


class Draws:
    """KeyedDraws of exec/tensors/keyed_random.h."""

    def __init__(self, *key):
        self.state = 0
        for number in key:
            self.state = mix((self.state + number) & MASK64)

    def next(self):
        drawn = mix(self.state)
        self.state = (self.state + STRIDE) & MASK64
        return drawn

    def below(self, bound):
        drawn = self.next()
        while drawn >= (1 << 64) // bound * bound:
            drawn = self.next()
        return drawn % bound


def draw_successors(vocabulary, seed):
    successors, draws = list(range(vocabulary)), Draws(seed, SUCCESSORS, 0, 0)
    for i in range(vocabulary - 1):
        other = i + draws.below(vocabulary - i)
        successors[i], successors[other] = successors[other], successors[i]
    return successors


def draw_test(model):
    """The test samples as exec/data/token_samples.h says: a list of (tokens, label or next tokens)."""
    seed, vocabulary, tokens = RUN["data"]["seed"], model["vocabulary"], model["tokens"]
    samples, successors = [], draw_successors(vocabulary, seed)
    for sample in range(RUN["data"]["test_samples"]):
        draws = Draws(seed, TEST, sample, 0)
        if model["kind"] == "encoder":
            length = tokens // 2 + draws.below(tokens - tokens // 2 + 1)
            text, sums = [draws.below(vocabulary) for _ in range(length)], [0] * model["classes"]
            for token in text:
                scores = Draws(seed, SCORES, token, 0)
                sums = [score + (scores.next() >> 44) for score in sums]
            samples.append((text, sums.index(max(sums))))
        else:
            draws.below(1)
            text = [draws.below(vocabulary)]
            while len(text) <= tokens:
                text.append(draws.below(vocabulary) if draws.below(8) == 0 else successors[text[-1]])
            samples.append((text[:-1], text[1:]))
    return samples


def transpose_maps(path, out):
    """GPT-2 holds the maps inside its blocks as [in, out]."""
    weights = safetensors.torch.load_file(path)
    maps = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")
    turned = {name: weight.t().contiguous() if name.endswith(maps) else weight for name, weight in weights.items()}
    safetensors.torch.save_file(turned, out, metadata={"format": "pt"})


def configure(model):
    """The configuration and the class of transformers."""
    if model["kind"] == "decoder":
        config = transformers.GPT2Config(vocab_size=model["vocabulary"], n_positions=model["tokens"], n_embd=model["dim"],
                                         n_layer=model["blocks"], n_head=model["heads"], n_inner=model["expansion"] * model["dim"])
        return config, transformers.GPT2LMHeadModel
    config = transformers.BertConfig(
        vocab_size=model["vocabulary"], type_vocab_size=model["segments"], max_position_embeddings=model["tokens"],
        hidden_size=model["dim"], num_hidden_layers=model["blocks"], num_attention_heads=model["heads"],
        intermediate_size=model["expansion"] * model["dim"], num_labels=model["classes"])
    return config, transformers.BertForSequenceClassification


def load(model, path):
    config, kind = configure(model)
    folder = path.parent / "hugging_face"
    config.save_pretrained(folder)
    if model["kind"] == "decoder":
        transpose_maps(path, folder / "model.safetensors")
    else:
        shutil.copy(path, folder / "model.safetensors")
    loaded, found = kind.from_pretrained(folder, output_loading_info=True)
    wrong = {what: sorted(keys) for what, keys in found.items() if keys}
    return loaded.eval(), wrong


def evaluate(model, loaded):
    samples = draw_test(model)
    ids = torch.zeros(len(samples), model["tokens"], dtype=torch.int64)
    segments, standing = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, (text, _) in enumerate(samples):
        ids[row, :len(text)] = torch.tensor(text)
        standing[row, :len(text)] = 1
        segments[row, :len(text)] = torch.arange(len(text)) * model.get("segments", 1) // len(text)
    labels = torch.tensor([label for _, label in samples])
    inputs = {"input_ids": ids} if model["kind"] == "decoder" else {
        "input_ids": ids, "token_type_ids": segments, "attention_mask": standing}
    with torch.no_grad():
        logits = loaded(**inputs).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
    return loss.item(), (logits.argmax(-1) == labels).double().mean().item()


def check(model, training):
    """What is wrong, or empty."""
    training.write_run("run.json", model=model, epochs=10, optimizer={"learning_rate": 0.01}, freeze={})
    made = training.run("profile", *"--run run.json --devices 2 --rounds 1 --steps 2 --out model.json --cluster-out cluster.json --quiet".split())
    trained = training.train("--out", model["kind"], "--json")
    if made.returncode or trained.returncode:
        return f"profile and train exit {made.returncode} and {trained.returncode}: {made.stderr}{trained.stdout}"
    answer = json.loads(trained.stdout)
    loaded, wrong = load(model, training.folder / model["kind"] / "weights.safetensors")
    if wrong:
        return f"transformers {transformers.__version__} finds {wrong}"
    loss, accuracy = evaluate(model, loaded)
    if abs(loss - answer["loss"]) > TOLERANCE or abs(accuracy - answer["accuracy"]) > 1e-9:
        return f"transformers has loss {loss} and accuracy {accuracy}, the run {answer['loss']} and {answer['accuracy']}"
    print(f"check_language_weights.py: {model['kind']}: transformers {transformers.__version__} has loss {loss:.6f} and accuracy "
          f"{accuracy:.4f}, the run {answer['loss']:.6f} and {answer['accuracy']:.4f}")
    return ""


def check_start(model, training):
    """What is wrong with a run that starts from a file that transformers has written, and learns nothing; or empty."""
    torch.manual_seed(5)
    config, kind = configure(model)
    theirs = kind(config).eval()
    theirs.save_pretrained(training.folder / f"{model['kind']}-start")
    still = {"groups": [{"match": "*", "weight_decay": 0, "learning_rate_scale": 0}]}
    training.write_run("run.json", model=model, epochs=1, optimizer=still, freeze={})
    started = training.train("--init-from", f"{model['kind']}-start/model.safetensors", "--steps", "1", "--json")
    if started.returncode:
        return f"train --init-from exits {started.returncode}: {started.stderr}"
    answer, (loss, accuracy) = json.loads(started.stdout), evaluate(model, theirs)
    if abs(loss - answer["loss"]) > TOLERANCE or abs(accuracy - answer["accuracy"]) > 1e-9:
        return f"transformers has loss {loss} and accuracy {accuracy}, the run that starts from its file {answer['loss']} and {answer['accuracy']}"
    print(f"check_language_weights.py: {model['kind']}: a run that starts from transformers' file has its loss, {loss:.6f}")
    return ""


def main():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        wrong = [f"{kind}: {found}" for kind, model in MODELS.items() if (found := check(model, training) or check_start(model, training))]
    for sentence in wrong:
        print(f"check_language_weights.py: {sentence}")
    return 1 if wrong else 0


sys.exit(main())
