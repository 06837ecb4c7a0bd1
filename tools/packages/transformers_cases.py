"""Models of Hugging Face's transformers from random weights: losses of training, tokens of generation, and the least seconds of a step."""

from __future__ import annotations

import tempfile
import time

import torch
import transformers
from transformers import (
    BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration, ViTConfig, ViTForImageClassification,
)  # fmt: skip

from tools.packages._cases import Result, case, least_time, train

transformers.logging.set_verbosity_error()


@case("transformers: BERT, training")
def _() -> Result:
    config = BertConfig(
        vocab_size=500,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForSequenceClassification(config).train()
    ids = torch.randint(0, 500, (8, 32))
    mask = torch.ones_like(ids)
    mask[:, 28:] = 0
    labels = torch.randint(0, 2, (8,))
    return train(model, lambda: model(input_ids=ids, attention_mask=mask, labels=labels).loss, 10)


@case("transformers: GPT-2, greedy generation with a cache")
def _() -> Result:
    model = GPT2LMHeadModel(GPT2Config(vocab_size=300, n_embd=128, n_layer=3, n_head=4, n_positions=128, bos_token_id=0, eos_token_id=None)).eval()
    ids = torch.randint(0, 300, (2, 8))
    tokens, seconds = least_time(lambda: model.generate(ids, max_new_tokens=40, do_sample=False, use_cache=True, pad_token_id=0))
    torch.manual_seed(1)
    sampled = model.generate(ids, max_new_tokens=20, do_sample=True, top_k=20, temperature=0.8, pad_token_id=0)
    beams = model.generate(ids, max_new_tokens=15, num_beams=3, do_sample=False, pad_token_id=0)
    return [tokens, sampled, beams], seconds


@case("transformers: Llama, greedy generation with a cache")
def _() -> Result:
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        eos_token_id=None,
    )
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 300, (2, 8))
    tokens, seconds = least_time(lambda: model.generate(ids, max_new_tokens=40, do_sample=False, use_cache=True, pad_token_id=0))
    torch.manual_seed(1)
    return [tokens, model.generate(ids, max_new_tokens=20, do_sample=True, top_p=0.9, pad_token_id=0)], seconds


@case("transformers: Llama, training with checkpoints")
def _() -> Result:
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=300,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=64,
        )
    )
    model.gradient_checkpointing_enable()
    model.train()
    ids = torch.randint(0, 300, (4, 32))
    return train(model, lambda: model(input_ids=ids, labels=ids).loss, 8)


@case("transformers: ViT, training")
def _() -> Result:
    config = ViTConfig(
        hidden_size=96, num_hidden_layers=3, num_attention_heads=4, intermediate_size=192, image_size=32, patch_size=8, num_labels=5, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = ViTForImageClassification(config).train()
    pixels, labels = torch.randn(8, 3, 32, 32), torch.randint(0, 5, (8,))
    return train(model, lambda: model(pixel_values=pixels, labels=labels).loss, 10)


@case("transformers: T5, training and generation")
def _() -> Result:
    model = T5ForConditionalGeneration(
        T5Config(vocab_size=200, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0)
    )
    ids, labels = torch.randint(2, 200, (4, 12)), torch.randint(2, 200, (4, 9))
    losses, seconds = train(model, lambda: model(input_ids=ids, labels=labels).loss, 8)
    return [losses, model.eval().generate(ids, max_new_tokens=12, do_sample=False)], seconds


@case("transformers: saving and loading")
def _() -> Result:
    model, ids = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_embd=32, n_layer=1, n_head=2)).eval(), torch.arange(10)[None]
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        model.save_pretrained(folder)
        again = GPT2LMHeadModel.from_pretrained(folder).eval()
        seconds = time.process_time() - start
    return [torch.equal(model(ids).logits, again(ids).logits), model(ids).logits[0, -1]], seconds
