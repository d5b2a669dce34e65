#!/usr/bin/env python3
"""Writes stored/*.json: the results of transformers, in float64, for tiny models of every family. Needs torch and
transformers; the tests that read the results need neither.

    python3 tests/hf/generate.py [family ...]

Per family: config.json, names and shapes of the tensors as save_pretrained writes them (weights come from the names,
weights.py), tokens, the logits of two sequences, and the losses of three steps of AdamW on one."""
import hashlib
import json
import pathlib
import random
import sys
import tempfile

import torch
import transformers

sys.dont_write_bytecode = True
from predictor import WEIGHT, Predictor, add_shapes  # noqa: E402
from weights import is_packed, read_folder, source, values  # noqa: E402

T, V = 8, 40
NEAR = 2e-3  # Smallest distance of a router's choice to another one that we accept.

BASE = dict(vocab_size=V, hidden_size=16, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=T,
            bos_token_id=1, eos_token_id=2)


def around(kind):
    """A model that also reads images, and a text model in it."""
    vision = dict(depth=1, hidden_size=8, intermediate_size=8, num_heads=2, out_hidden_size=16, num_position_embeddings=4,
                  deepstack_visual_indexes=[0])
    return lambda **text: kind(text_config=text, vision_config=vision, tie_word_embeddings=False)


FAMILIES = {
    "mixtral": (transformers.MixtralConfig, dict(
        intermediate_size=12, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, head_dim=6,
        sliding_window=5, output_router_logits=True, router_aux_loss_coef=0.02)),
    "olmoe": (transformers.OlmoeConfig, dict(
        intermediate_size=12, num_key_value_heads=4, num_experts=6, num_experts_per_tok=3, clip_qkv=0.75,
        tie_word_embeddings=True)),
    "qwen2_moe": (transformers.Qwen2MoeConfig, dict(
        intermediate_size=20, moe_intermediate_size=12, shared_expert_intermediate_size=14, num_key_value_heads=2,
        num_experts=5, num_experts_per_tok=2, mlp_only_layers=[1], use_sliding_window=True, sliding_window=3,
        max_window_layers=2)),
    "qwen3_moe": (transformers.Qwen3MoeConfig, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, num_experts=6, num_experts_per_tok=2,
        head_dim=8, norm_topk_prob=True, decoder_sparse_step=2,
        rope_parameters={"rope_theta": 1e6, "rope_type": "yarn", "factor": 4.0,
                         "original_max_position_embeddings": 4})),
    "dots1": (transformers.Dots1Config, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, n_routed_experts=8,
        num_experts_per_tok=3, n_shared_experts=2, n_group=4, topk_group=2, first_k_dense_replace=1,
        norm_topk_prob=True, routed_scaling_factor=2.5, head_dim=8)),
    "deepseek_v2": (transformers.DeepseekV2Config, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=8, num_experts_per_tok=3, n_group=4,
        topk_group=2, topk_method="group_limited_greedy", routed_scaling_factor=1.5, first_k_dense_replace=1,
        rope_parameters={"rope_theta": 1e4, "rope_type": "yarn", "factor": 4.0, "mscale": 0.707, "mscale_all_dim": 0.707,
                         "original_max_position_embeddings": 4})),
    "deepseek_v2_lite": (transformers.DeepseekV2Config, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=10,
        qk_nope_head_dim=4, qk_rope_head_dim=6, v_head_dim=7, n_routed_experts=6, num_experts_per_tok=2, n_group=2,
        topk_group=1, topk_method="greedy")),
    "deepseek_v3": (transformers.DeepseekV3Config, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=8, num_experts_per_tok=3, n_group=4,
        topk_group=2, first_k_dense_replace=1, rms_norm_eps=1e-5, attention_bias=True,
        rope_parameters={"rope_theta": 1e4, "rope_type": "yarn", "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 0.9,
                         "original_max_position_embeddings": 4})),
    "deepseek_v3_mtp": (transformers.DeepseekV3Config, dict(
        intermediate_size=20, moe_intermediate_size=12, num_hidden_layers=2, num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=6, num_experts_per_tok=2, n_group=2,
        topk_group=1, first_k_dense_replace=1, num_nextn_predict_layers=1)),
    "glm4_moe_mtp": (transformers.Glm4MoeConfig, dict(
        intermediate_size=20, moe_intermediate_size=12, num_hidden_layers=2, num_key_value_heads=2, head_dim=8, n_routed_experts=6,
        num_experts_per_tok=2, first_k_dense_replace=1, use_qk_norm=True, tie_word_embeddings=True, num_nextn_predict_layers=1)),
    "glm4_moe": (transformers.Glm4MoeConfig, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, head_dim=8, n_routed_experts=6,
        num_experts_per_tok=2, first_k_dense_replace=1, routed_scaling_factor=2.5, attention_bias=True,
        use_qk_norm=True, rope_parameters={"rope_theta": 1e6, "rope_type": "default"})),
    "glm4_moe_air": (transformers.Glm4MoeConfig, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=1, head_dim=16, n_routed_experts=8,
        num_experts_per_tok=3, n_group=2, topk_group=1, partial_rotary_factor=0.75, tie_word_embeddings=True)),
    "kimi_k2": (transformers.DeepseekV3Config, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=8, num_experts_per_tok=3, n_group=1,
        topk_group=1, first_k_dense_replace=1, routed_scaling_factor=2.827,
        rope_parameters={"rope_theta": 5e4, "rope_type": "yarn", "factor": 32.0, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 1.0,
                         "beta_slow": 1.0, "original_max_position_embeddings": 4})),
    "glm4_moe_lite": (transformers.Glm4MoeLiteConfig, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=8, n_routed_experts=6, num_experts_per_tok=2)),
    "solar_open": (transformers.SolarOpenConfig, dict(
        moe_intermediate_size=12, num_key_value_heads=2, head_dim=8, n_routed_experts=6, num_experts_per_tok=2, attention_bias=True,
        rope_parameters={"rope_theta": 1e6, "rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 4})),
    "minimax_m2": (transformers.MiniMaxM2Config, dict(
        intermediate_size=12, num_key_value_heads=2, head_dim=8, num_local_experts=6, num_experts_per_tok=2, rotary_dim=4)),
    "gpt_oss": (transformers.GptOssConfig, dict(
        intermediate_size=12, num_key_value_heads=2, num_local_experts=5, num_experts_per_tok=2, head_dim=8,
        sliding_window=3, swiglu_limit=1.5, swiglu_alpha=1.6, output_router_logits=True, router_aux_loss_coef=0.02,
        rope_parameters={"rope_theta": 1.5e5, "rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
                         "truncate": False, "original_max_position_embeddings": 64})),
    "llama4_text": (transformers.Llama4TextConfig, dict(
        num_hidden_layers=4, intermediate_size=12, intermediate_size_mlp=20, num_key_value_heads=2, head_dim=8,
        num_local_experts=4, attention_chunk_size=3, rms_norm_eps=1e-5,
        rope_parameters={"rope_theta": 5e5, "rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 400})),
    "llama4_text_wide": (transformers.Llama4TextConfig, dict(
        num_hidden_layers=4, intermediate_size=12, intermediate_size_mlp=20, num_key_value_heads=4, head_dim=6,
        num_local_experts=8, num_experts_per_tok=2, interleave_moe_layer_step=2, use_qk_norm=False,
        attention_chunk_size=5, no_rope_layers=[1, 0, 1, 1], attention_bias=True, tie_word_embeddings=True,
        rope_parameters={"rope_theta": 5e5, "rope_type": "default"})),
    "hy_v3": (transformers.HYV3Config, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, head_dim=8, num_experts=6, num_experts_per_tok=2)),
    "ernie4_5_moe": (transformers.Ernie4_5_MoeConfig, dict(
        num_hidden_layers=4, intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, moe_num_experts=6, moe_k=2,
        moe_layer_interval=2)),
    "granitemoe": (transformers.GraniteMoeConfig, dict(
        intermediate_size=12, num_key_value_heads=2, num_local_experts=6, num_experts_per_tok=3, embedding_multiplier=12.0,
        residual_multiplier=0.22, attention_multiplier=0.0625, logits_scaling=6.0, tie_word_embeddings=True,
        output_router_logits=True, router_aux_loss_coef=0.02)),
    "granitemoeshared": (transformers.GraniteMoeSharedConfig, dict(
        intermediate_size=12, shared_intermediate_size=14, num_key_value_heads=2, num_local_experts=6, num_experts_per_tok=2,
        embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.3, logits_scaling=2.0, attention_bias=True)),
    "hunyuan_v1_moe": (transformers.HunYuanMoEV1Config, dict(
        intermediate_size=12, num_key_value_heads=2, head_dim=8, num_experts=6, moe_topk=[2, 2, 2], pad_token_id=None,
        rope_parameters={"rope_theta": 1e4, "rope_type": "dynamic", "alpha": 1000.0, "factor": 1.0})),
    "flex_olmo": (transformers.FlexOlmoConfig, dict(
        intermediate_size=12, num_key_value_heads=2, num_experts=5, num_experts_per_tok=3, pad_token_id=None)),
    "exaone_moe": (transformers.ExaoneMoeConfig, dict(
        num_hidden_layers=4, intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, head_dim=8, num_experts=6,
        num_experts_per_tok=2, sliding_window=3, sliding_window_pattern=4, pad_token_id=None)),
    "afmoe": (transformers.AfmoeConfig, dict(
        num_hidden_layers=4, intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, head_dim=8, num_experts=6,
        num_experts_per_tok=2, num_shared_experts=1, route_scale=1.7, sliding_window=3, global_attn_every_n_layers=4, mup_enabled=True)),
    "sarvam_moe": (transformers.SarvamMoEConfig, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, head_dim=8, n_routed_experts=6, num_experts_per_tok=2,
        attention_bias=True, pad_token_id=None)),
    "sarvam_mla": (transformers.SarvamMLAConfig, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=10, qk_nope_head_dim=6,
        qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=6, num_experts_per_tok=2)),
    "llama": (transformers.LlamaConfig, dict(
        intermediate_size=20, num_key_value_heads=2, head_dim=6, attention_bias=True,
        rope_parameters={"rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 400})),
    "mistral": (transformers.MistralConfig, dict(intermediate_size=20, num_key_value_heads=2, head_dim=8, sliding_window=3)),
    "qwen3": (transformers.Qwen3Config, dict(
        intermediate_size=20, num_key_value_heads=2, head_dim=8, tie_word_embeddings=True, use_sliding_window=True,
        sliding_window=3, max_window_layers=1)),
    "gemma": (transformers.GemmaConfig, dict(
        intermediate_size=20, num_key_value_heads=1, head_dim=8, pad_token_id=None)),
    "gemma2": (transformers.Gemma2Config, dict(
        intermediate_size=20, num_key_value_heads=2, head_dim=8, sliding_window=3, query_pre_attn_scalar=12, attn_logit_softcapping=0.7,
        final_logit_softcapping=2.0, pad_token_id=None)),
    "gemma3_text": (transformers.Gemma3TextConfig, dict(
        num_hidden_layers=4, intermediate_size=20, num_key_value_heads=2, head_dim=8, sliding_window=3, query_pre_attn_scalar=12,
        layer_types=["sliding_attention", "full_attention"] * 2, pad_token_id=None,
        rope_parameters={"full_attention": {"rope_theta": 1e6, "rope_type": "linear", "factor": 8.0},
                         "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}})),
    "cohere2_moe": (transformers.Cohere2MoeConfig, dict(
        intermediate_size=12, num_key_value_heads=2, head_dim=8, num_experts=6, num_experts_per_tok=2, num_shared_experts=2,
        expert_selection_fn="sigmoid", sliding_window=3, sliding_window_pattern=2, pad_token_id=None)),
    "cohere2_moe_rms": (transformers.Cohere2MoeConfig, dict(
        intermediate_size=12, num_key_value_heads=4, head_dim=6, num_experts=5, num_experts_per_tok=3, rms_norm_eps=1e-6,
        attention_bias=True, tie_word_embeddings=False, sliding_window=3, sliding_window_pattern=3, pad_token_id=None)),
    "qwen2": (transformers.Qwen2Config, dict(
        intermediate_size=20, num_key_value_heads=2, use_sliding_window=True, sliding_window=3, max_window_layers=1)),
    "dbrx": (lambda hidden_size, **own: transformers.DbrxConfig(d_model=hidden_size, **own), dict(
        attn_config=dict(kv_n_heads=2, clip_qkv=0.75, rope_theta=10000.0),
        ffn_config=dict(ffn_hidden_size=12, moe_num_experts=6, moe_top_k=2, moe_loss_weight=0.02))),
    "mellum": (transformers.MellumConfig, dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, num_experts=6, num_experts_per_tok=2, head_dim=8,
        sliding_window=3, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        mlp_layer_types=["dense", "sparse", "sparse"],
        rope_parameters={"full_attention": {"rope_theta": 5e5, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4},
                         "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}})),
    "qwen3_vl_moe_text": (around(transformers.Qwen3VLMoeConfig), dict(
        intermediate_size=20, moe_intermediate_size=12, num_key_value_heads=2, num_experts=6, num_experts_per_tok=2, head_dim=8,
        output_router_logits=True, router_aux_loss_coef=0.02,
        rope_parameters={"rope_theta": 5e6, "rope_type": "default", "mrope_section": [2, 1, 1], "mrope_interleaved": True})),
    "gpt_oss_mxfp4": (transformers.GptOssConfig, dict(
        hidden_size=96, intermediate_size=32, num_hidden_layers=2, num_key_value_heads=2, num_local_experts=4,
        num_experts_per_tok=2, head_dim=8, sliding_window=3, swiglu_limit=1.5)),
}


class Wide:
    """torch, in which single precision is double: transformers computes norms, softmax and angles in float32."""
    float32 = float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def widen():
    for name, module in list(sys.modules.items()):
        if name.startswith("transformers.") and getattr(module, "torch", None) is torch:
            module.torch = Wide()
    torch.Tensor.float = torch.Tensor.double


def packed(shapes):
    """The shapes of an expert's tensors in MXFP4."""
    out = {}
    for tensor, shape in shapes.items():
        if not tensor.endswith(("experts.gate_up_proj", "experts.down_proj")):
            out[tensor] = shape
            continue
        experts, inner, outer = shape
        out[tensor + "_blocks"] = [experts, outer, inner // 32, 16]
        out[tensor + "_scales"] = [experts, outer, inner // 32]
    return out


def class_of(config):
    return transformers.AutoModelForImageTextToText if hasattr(config, "text_config") else transformers.AutoModelForCausalLM


def create(name, salt):
    kind, own = FAMILIES[name]
    config = kind(**{**BASE, **own})
    predicts = name.endswith("_mtp")
    if predicts:
        config.num_hidden_layers += 1  # transformers knows no layer that predicts, but this is one more.
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    kind = class_of(config)
    model = kind.from_config(config).double().train()
    folder = pathlib.Path(tempfile.gettempdir()) / f"hecate-hf-{name}"
    model.save_pretrained(folder)
    shapes = {tensor: list(shape) for tensor, (_, shape, _) in sorted(read_folder(folder).items())}
    config_json = json.loads((folder / "config.json").read_text())
    load = dict(dtype=torch.float64, attn_implementation="eager", experts_implementation="eager")
    if name.endswith("_mxfp4"):
        shapes = packed(shapes)
        config_json["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
        (folder / "config.json").write_text(json.dumps(config_json))
        load["quantization_config"] = transformers.Mxfp4Config(dequantize=True)
    if predicts:
        config_json["num_hidden_layers"] -= 1
        add_shapes(shapes, config_json["num_hidden_layers"], config.hidden_size, V)
    own = {tensor: torch.tensor(values(source(tensor, shapes), shape, salt), dtype=torch.uint8 if is_packed(tensor) else torch.float64)
           .reshape(shape) for tensor, shape in shapes.items()}
    from safetensors.torch import save_file
    for file in folder.glob("*.safetensors"):
        file.unlink()
    save_file(own, folder / "model.safetensors", metadata={"format": "pt"})
    config_json.pop("dtype", None)
    if name == "kimi_k2":  # Its own code is DeepSeek-V3's.
        config_json["model_type"] = name
    model = kind.from_pretrained(folder, **load)
    if not predicts:
        return model, None, config_json, shapes
    model.config.num_hidden_layers -= 1
    return model, Predictor(model, own), config_json, shapes


def nearest(model, predictor, ids):
    """How far the router's least certain choice was from another one."""
    own = model.config.get_text_config()
    k = own.ffn_config.moe_top_k if hasattr(own, "ffn_config") else getattr(own, "num_experts_per_tok", None)
    if k is None:
        return 1.0
    logits = model(input_ids=ids, output_router_logits=True).router_logits
    k = k[0] if isinstance(k, list) else k
    if predictor:
        gate = predictor.layer.mlp.gate
        hook = gate.register_forward_hook(lambda _, given, made: logits.append(made[0]))
        logits = list(logits)
        predictor(model.model(input_ids=ids).last_hidden_state, ids)
        hook.remove()
    near = 1.0
    for layer in logits:
        if layer is None or layer.numel() == 0:
            continue
        ordered = layer.sort(dim=-1, descending=True).values
        near = min(near, float((ordered[:, k - 1] - ordered[:, k]).min()))
    return near


def losses(model, predictor, tokens):
    """The cross-entropy of each step, and behind it that of a predictor's token."""
    ids, targets = torch.tensor([tokens[:T]]), torch.tensor(tokens[1:T + 1])
    more = list(predictor.own.parameters()) if predictor else []
    own = model.config.get_text_config()
    optimizer = torch.optim.AdamW([*model.parameters(), *more], lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0)
    out = []
    for _ in range(3):
        result = model(input_ids=ids, output_router_logits=True)
        cross_entropy = torch.nn.functional.cross_entropy(result.logits[0], targets)
        out.append(float(cross_entropy))
        loss = cross_entropy
        if predictor:
            further = predictor.losses(torch.tensor([tokens[:T + 1]])).mean()
            out.append(float(further))
            loss = loss + WEIGHT * further  # Equation 25.
        if getattr(own, "output_router_logits", False):
            from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func
            auxiliary = load_balancing_loss_func(result.router_logits, own.num_local_experts,
                                                 own.num_experts_per_tok)
            loss = loss + own.router_aux_loss_coef * auxiliary
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return out


def digests(model, shapes):
    """Digests of the tensors that transformers made of those in MXFP4, as bf16."""
    return {tensor: hashlib.sha256(own.to(torch.bfloat16).view(torch.uint8).numpy().tobytes()).hexdigest()
            for tensor, own in sorted(model.state_dict().items()) if tensor + "_blocks" in shapes}


def evaluate(name, salt):
    model, predictor, config, shapes = create(name, salt)
    draw = random.Random(f"{name} tokens")
    tokens = [draw.randrange(V) for _ in range(2 * T + 1)]
    ids = torch.tensor([tokens[:T], tokens[T:2 * T]])
    near = nearest(model, predictor, ids)
    with torch.no_grad():
        logits = model(input_ids=ids).logits
    assert logits.dtype == torch.float64
    case = {"family": name, "transformers": transformers.__version__, "salt": salt, "near": near, "config": config,
            "tensors": shapes, "tokens": tokens, "logits": logits.reshape(-1).tolist()}
    if name.endswith("_mxfp4"):
        case["digests"] = digests(model, shapes)
    if predictor:
        sequences = torch.tensor([tokens[:T + 1], tokens[T:2 * T + 1]])
        case["mtp_losses"] = predictor.losses(sequences).tolist()
    return {**case, "losses": losses(model, predictor, tokens)}, near


def main():
    here = pathlib.Path(__file__).parent / "stored"
    for name in sys.argv[1:] or FAMILIES:
        config = FAMILIES[name][0](**{**BASE, **FAMILIES[name][1]})
        class_of(config).from_config(config)  # Imports.
        widen()
        salt, (result, near) = 0, evaluate(name, 0)
        while near < NEAR:
            salt += 1
            result, near = evaluate(name, salt)
        text = json.dumps(result).replace('], "', '],\n"')
        (here / f"{name}.json").write_text(text + "\n")
        print(name, len(text), "bytes, salt", salt, "near", near, "losses", result["losses"])


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
