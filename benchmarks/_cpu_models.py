"""Architectures of the CPU model benchmark: whole models of `transformers` at their published sizes
with random weights, and a recommender. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from _models import Case, Recommender
from torch import Tensor, nn


class OneOutput(nn.Module):
    """A model of `transformers` reduced to a named output, with fixed keyword arguments."""

    def __init__(self, model: nn.Module, output: str, *names: str, **fixed: object) -> None:
        super().__init__()
        self.model, self.output, self.names, self.fixed = model, output, names, fixed

    def forward(self, *inputs: Tensor) -> Tensor:
        """The named output."""
        given = dict(zip(self.names, inputs, strict=True))
        found: Tensor = getattr(self.model(**given, **self.fixed), self.output)
        return found


class DecodeStep(nn.Module):
    """The next token's logits after a sequence whose keys and values are known."""

    def __init__(self, model: nn.Module, past: int) -> None:
        super().__init__()
        self.model = model
        sizes = model.config
        shape = (sizes.n_layer, 1, sizes.n_head, past, sizes.n_embd // sizes.n_head)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(shape), persistent=False)

    def forward(self, token: Tensor) -> Tensor:
        """Logits of the next token."""
        from transformers import DynamicCache

        # Filled directly: the cache's own way starts from empty tensors, which OpenVINO refuses.
        cache = DynamicCache(config=self.model.config)
        for layer, keys, values in zip(cache.layers, self.keys, self.values, strict=True):
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys, values
        logits: Tensor = self.model(token, past_key_values=cache, logits_to_keep=1).logits
        return logits


class TrainingStep(nn.Module):
    """The loss of a masked-language model on its own input."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        """The scalar loss."""
        loss: Tensor = self.model(tokens, labels=tokens).loss
        return loss


def _tokens(vocabulary: int, *shape: int) -> Tensor:
    return torch.randint(vocabulary, shape)


def _bert_sizes(tiny: bool) -> dict[str, int]:
    if not tiny:
        return {}
    return {
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }


def _bert(tiny: bool) -> Case:
    from transformers import BertConfig, BertModel

    config = BertConfig(**_bert_sizes(tiny))
    model = BertModel(config, add_pooling_layer=False)
    tokens = _tokens(config.vocab_size, 1, 8 if tiny else 128)
    return Case(OneOutput(model, "last_hidden_state", "input_ids"), (tokens,))


def _bert_training(tiny: bool) -> Case:
    from transformers import BertConfig, BertForMaskedLM

    # Dropout would draw other numbers in each variant.
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = BertConfig(**_bert_sizes(tiny), **no_dropout)
    shape = (2, 8) if tiny else (2, 128)
    model = TrainingStep(BertForMaskedLM(config))
    return Case(model, (_tokens(config.vocab_size, *shape),), train=True)


def _gpt2(tiny: bool) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": 100, "n_embd": 32, "n_layer": 1, "n_head": 2} if tiny else {}
    return GPT2LMHeadModel(GPT2Config(**sizes))


def _prefill(tiny: bool) -> Case:
    model = _gpt2(tiny)
    tokens = _tokens(model.config.vocab_size, 1, 8 if tiny else 128)
    given = OneOutput(model, "logits", "input_ids", use_cache=False, logits_to_keep=1)
    return Case(given, (tokens,))


def _decode(tiny: bool) -> Case:
    model = _gpt2(tiny)
    step = DecodeStep(model, 8 if tiny else 128)
    return Case(step, (_tokens(model.config.vocab_size, 1, 1),))


def _vit(tiny: bool) -> Case:
    from transformers import ViTConfig, ViTModel

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 64, "image_size": 32}
    config = ViTConfig(**(sizes if tiny else {}))
    images = torch.randn(1, 3, config.image_size, config.image_size)
    model = ViTModel(config, add_pooling_layer=False)
    return Case(OneOutput(model, "last_hidden_state", "pixel_values"), (images,))


def _whisper(tiny: bool) -> Case:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    sizes = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6}
    sizes |= {"encoder_ffn_dim": 1536}
    if tiny:
        sizes = {"d_model": 32, "encoder_layers": 1, "encoder_attention_heads": 2}
        sizes |= {"encoder_ffn_dim": 64, "max_source_positions": 16}
    config = WhisperConfig(**sizes)
    sound = torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions)
    return Case(OneOutput(WhisperEncoder(config), "last_hidden_state", "input_features"), (sound,))


def _t5(tiny: bool) -> Case:
    from transformers import T5Config, T5Model

    sizes = {"vocab_size": 100, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1}
    config = T5Config(**(sizes | {"num_heads": 2} if tiny else {}))
    lengths = (8, 4) if tiny else (128, 32)
    names = ("input_ids", "decoder_input_ids")
    model = OneOutput(T5Model(config), "last_hidden_state", *names, use_cache=False)
    return Case(model, tuple(_tokens(config.vocab_size, 1, length) for length in lengths))


def _recommender(tiny: bool) -> Case:
    batch, rows = (4, 50) if tiny else (128, 20_000)
    model = Recommender(3, rows, 8, 32) if tiny else Recommender(26, rows, 64, 1024)
    return Case(model, (torch.randn(batch, 13), _tokens(rows, batch, len(model.tables))))


MODELS: dict[str, Callable[[bool], Case]] = {
    "bert-base 1x128": _bert,
    "gpt-2 prefill 1x128": _prefill,
    "gpt-2 decode 1, 128 before": _decode,
    "vit-b/16 x1": _vit,
    "whisper-tiny encoder 30 s": _whisper,
    "t5-small 1x128 to 32": _t5,
    "recommender x128": _recommender,
    "bert-base training step 2x128": _bert_training,
}


def build(name: str, seed: int, tiny: bool) -> Case:
    """Build a model with random weights and its input from a seed, in float32."""
    torch.manual_seed(seed)
    case = MODELS[name](tiny)
    return Case(case.module.train(case.train), case.inputs, case.train)
