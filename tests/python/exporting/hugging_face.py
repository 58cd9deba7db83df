"""Models of Hugging Face's transformers, from configurations alone: random weights, tiny widths."""

import torch
from models import BATCH, CLASSES, TOKENS, WORDS, Sample, classification, ids_of, next_token, spans

WIDTH = 8
WIDE = 16


def hugging_face_samples():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    ids, words = ids_of(g), ids_of(g)
    classes = torch.randint(0, CLASSES, (BATCH,), generator=g)
    images = torch.randn(BATCH, 3, 8, 8, generator=g)
    mask = torch.ones(BATCH, TOKENS, dtype=torch.int64)
    mask[1, 4:] = 0
    ends = torch.randint(0, TOKENS, (BATCH, 2), generator=g)
    return [
        Sample("hf_gpt2", gpt2(), (ids,), words, next_token),
        Sample("hf_llama", llama(), (ids,), words, next_token),
        Sample("hf_vit", vit(), (images,), classes, classification),
        Sample("hf_bert", bert(), (ids, mask), ends, spans),
        Sample("hf_t5", Seq2Seq(t5()), (ids, mask, words), words, next_token),
        Sample("hf_resnet", resnet(), (images.repeat(1, 1, 4, 4),), classes, classification),
    ]


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": WORDS, "n_positions": TOKENS, "n_embd": WIDTH, "n_layer": 2, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(**sizes, use_cache=False, bos_token_id=0, eos_token_id=0))


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": WORDS, "hidden_size": WIDTH, "intermediate_size": WIDE, "num_hidden_layers": 2}
    return LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, use_cache=False))


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": WIDE}
    drops = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    return ViTForImageClassification(ViTConfig(**sizes, **drops, image_size=8, patch_size=4, num_labels=CLASSES))


def bert():
    from transformers import BertConfig, BertForQuestionAnswering

    sizes = {"vocab_size": WORDS, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": WIDE}
    return BertForQuestionAnswering(BertConfig(**sizes, max_position_embeddings=TOKENS))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"vocab_size": WORDS, "d_model": WIDTH, "d_kv": 4, "d_ff": WIDE, "num_layers": 2, "num_heads": 2}
    return T5ForConditionalGeneration(T5Config(**sizes, use_cache=False, decoder_start_token_id=0))


class Seq2Seq(torch.nn.Module):
    """T5 with its mask given: without one, transformers makes a mask in eager mode alone, and then other sums are rounded."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask, decoder_ids):
        return self.model(input_ids=ids, attention_mask=mask, decoder_input_ids=decoder_ids).logits


def resnet():
    from transformers import ResNetConfig, ResNetForImageClassification

    sizes = {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "layer_type": "basic"}
    return ResNetForImageClassification(ResNetConfig(**sizes, num_labels=CLASSES))
