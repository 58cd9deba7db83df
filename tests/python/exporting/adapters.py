"""A model of Hugging Face's peft: a tiny encoder whose own parameters stay as they are, with adapters that train, and a head that does."""

import torch
from hugging_face import WIDE, WIDTH
from models import BATCH, CLASSES, TOKENS, WORDS, Sample, classification, ids_of

SIZES = {"vocab_size": WORDS, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": WIDE}


def adapter_samples():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(2)
    mask = torch.ones(BATCH, TOKENS, dtype=torch.int64)
    mask[1, 4:] = 0
    return [Sample("peft_lora", lora(), (ids_of(g), mask), torch.randint(0, CLASSES, (BATCH,), generator=g), classification)]


def lora():
    from peft import LoraConfig, get_peft_model
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(BertConfig(**SIZES, max_position_embeddings=TOKENS, num_labels=CLASSES))
    adapters = LoraConfig(task_type="SEQ_CLS", r=2, lora_alpha=4, lora_dropout=0.1, init_lora_weights=False, target_modules=["query", "value"])
    return get_peft_model(model, adapters)
