#!/usr/bin/env python3
"""export.py FOLDER: the encoder that ../sentiment/fetch.py left in FOLDER, with adapters of rank 8 (LoRA) and a new head, which alone train.

Leaves model.safetensors and run.json in FOLDER, beside the data of ../sentiment/prepare.py, and prints the commands that train. Takes torch,
transformers and peft (examples/requirements.txt).
"""

import argparse
import sys
from pathlib import Path

import torch
import transformers
from peft import LoraConfig, get_peft_model

import frazil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import runs  # noqa: E402

INPUTS = ("input_ids", "attention_mask")
ADAPTERS = {"task_type": "SEQ_CLS", "r": 8, "lora_alpha": 16, "lora_dropout": 0.1, "target_modules": ["query", "value"]}


def loss_of(output, labels):
    return torch.nn.functional.cross_entropy(output.logits, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    torch.manual_seed(0)
    encoder = transformers.BertForSequenceClassification.from_pretrained(folder / "model", num_labels=2)
    model = get_peft_model(encoder, LoraConfig(**ADAPTERS))
    model.print_trainable_parameters()
    samples = {name: tensor.torch()[:4] for name, tensor in frazil.read_tensors(folder / "train.safetensors").items()}
    inputs = tuple(samples[name] for name in INPUTS)
    frazil.export_model(model, inputs, samples["labels"], loss_of, folder / "model.safetensors", name="lora")
    runs.write_run(
        folder,
        optimizer={"kind": "adamw", "learning_rate": 0.002, "weight_decay": 0.01, "schedule": "linear", "warm_up_steps": 25},
        epochs=4,
        batch_size=32,
        micro_batch_size=8,
    )


if __name__ == "__main__":
    main()
