# SPDX-License-Identifier: Apache-2.0
"""Builds a tiny LLM with random weights, for a real vLLM; runs in a venv that has vLLM."""

import sys
from pathlib import Path

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}"
    '{% if add_generation_prompt %}<|assistant|>{% endif %}'
)


def build(folder: Path) -> None:
    """Write model and tokenizer: two layers of Qwen3, byte-level tokens, a chat template."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    specials = ['<|end|>', '<|system|>', '<|user|>', '<|assistant|>']
    words = {word: number for number, word in enumerate([*letters, *specials])}
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(specials)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=specials[0])
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=32768,
        eos_token_id=words[specials[0]],
        tie_word_embeddings=True,
    )
    Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


if __name__ == '__main__':
    build(Path(sys.argv[1]))
