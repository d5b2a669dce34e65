"""Changed and random config.json of every family, always the same: the cases of configs.py. Needs Python alone.

A base is a config as transformers writes it now (stored/FAMILY.json), or the same with rope's keys as older versions wrote them. A change
takes a key away, makes it null, gives it another value, or adds a key of another family."""
import copy
import json
import random

from harness import load

BASES = ("mixtral", "olmoe", "qwen2_moe", "qwen3_moe", "dots1", "deepseek_v2", "deepseek_v2_lite", "deepseek_v3", "glm4_moe",
         "glm4_moe_air", "glm4_moe_lite", "solar_open", "minimax_m2", "gpt_oss", "llama4_text", "llama4_text_wide", "hy_v3",
         "ernie4_5_moe", "granitemoe", "granitemoeshared", "hunyuan_v1_moe", "flex_olmo", "exaone_moe", "afmoe", "sarvam_moe", "sarvam_mla",
         "llama", "mistral", "qwen3", "gemma", "gemma2", "gemma3_text", "qwen3_vl_moe_text", "mellum",
         "dbrx", "qwen2", "cohere2_moe", "cohere2_moe_rms")
WINDOWED, FULL, CHUNKED = "sliding_attention", "full_attention", "chunked_attention"
YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
ROPES = [{}, {"rope_theta": 777.0}, {"rope_type": "linear", "factor": 3.0}, {"type": "linear", "factor": 3.0, "rope_theta": 50.0}, YARN, LLAMA3,
         {**YARN, "mscale": 0.8, "mscale_all_dim": 0.6}, {**YARN, "beta_fast": 1.0, "beta_slow": 1.0}, {"rope_type": "dynamic", "factor": 2.0},
         {"rope_type": "linear"}, {"rope_type": "default", "factor": 4.0}]
FLAG = [True, False]
# Other values of a key. Some of them are refused by transformers, some by hecatec.
OTHERS = {
    "model_type": ["bloom"], "vocab_size": [48, 0], "hidden_size": [24, 32.0], "num_hidden_layers": [1, 2, 4], "num_attention_heads": [2, 8, 3],
    "num_key_value_heads": [1, 2, 4, 3], "head_dim": [6, 8, 5], "intermediate_size": [8, 20], "moe_intermediate_size": [8, 16],
    "intermediate_size_mlp": [8], "shared_expert_intermediate_size": [8], "max_position_embeddings": [6, 64], "rms_norm_eps": [1e-2, 1e-9, 0],
    "hidden_act": ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "swish", "quick_gelu", "tanh"], "tie_word_embeddings": FLAG,
    "rope_theta": [100.0, 500000, 1.0, 0], "partial_rotary_factor": [0.25, 0.5, 1.0, 2.0], "rope_parameters": ROPES, "rope_scaling": ROPES,
    "original_max_position_embeddings": [2, 64], "num_local_experts": [4, 6, 12], "num_experts": [4, 6, 12], "n_routed_experts": [4, 6, 12],
    "num_experts_per_tok": [1, 2, 4, 9], "experts_per_token": [1, 2], "n_shared_experts": [1, 3, 0], "n_group": [1, 2, 3], "topk_group": [1, 2, 9],
    "topk_method": ["greedy", "group_limited_greedy", "noaux_tc", "random"], "scoring_func": ["softmax", "sigmoid"], "norm_topk_prob": FLAG,
    "routed_scaling_factor": [0.5, 1.7, 0], "first_k_dense_replace": [0, 1, 2, 9], "mlp_layer_types": [["dense", "dense", "sparse"], ["sparse"] * 3, ["sparse", "dense", "sparse"], ["dense"], []], "rotary_dim": [2, 6, 8, 9], "moe_layer_freq": [1, 2], "decoder_sparse_step": [1, 2, 3, 0],
    "mlp_only_layers": [[0], [1, 2], [7], []], "moe_layers": [[1, 3], [0, 1, 2, 3], [2], []], "interleave_moe_layer_step": [1, 2, 3],
    "attention_bias": FLAG, "qkv_bias": FLAG, "mlp_bias": FLAG, "clip_qkv": [0.25, 0, -1], "use_qk_norm": FLAG, "sliding_window": [2, 5, 0],
    "use_sliding_window": FLAG, "max_window_layers": [0, 1, 5],
    "layer_types": [[FULL] * 3, [WINDOWED, FULL, WINDOWED], [FULL], [WINDOWED] * 4, [CHUNKED] * 4, []], "q_lora_rank": [6, None],
    "kv_lora_rank": [6], "qk_nope_head_dim": [4, 8], "qk_rope_head_dim": [2, 8, 3], "v_head_dim": [4, 8], "qk_head_dim": [4],
    "rope_interleave": FLAG, "swiglu_limit": [0.5, 3.0, 0], "swiglu_alpha": [1.0, 2.5], "attention_chunk_size": [2, 4, 100, None, 0],
    "no_rope_layers": [[], [1] * 4, [0] * 4, [0, 1, 1, 0], [1]], "no_rope_layer_interval": [2, 3, 1], "attn_temperature_tuning": FLAG,
    "floor_scale": [4, 100], "attn_scale": [0.9], "router_jitter_noise": [0.1, 0.0], "attention_dropout": [0.0, 0.1],
    "router_aux_loss_coef": [0.5, 0], "output_router_logits": FLAG, "num_nextn_predict_layers": [0, 1, 2], "per_layer_config": [{}, {"0": {"attention_bias": True}}],
    "dtype": ["float64", "bfloat16"], "torch_dtype": ["float32", "bfloat16"], "use_cache": FLAG, "pad_token_id": [0, 3], "bos_token_id": [7],
    "eos_token_id": [[3, 4]], "initializer_range": [0.5], "architectures": [["X"]], "transformers_version": ["4.30.0"], "pretraining_tp": [2],
    "ep_size": [2], "seq_aux": FLAG, "aux_loss_alpha": [0.5], "initial_context_length": [4], "chunk_size_feed_forward": [0],
    # Keys of no family here.
    "residual_multiplier": [2.0], "embedding_multiplier": [3.0], "logits_scaling": [2.0], "final_logit_softcapping": [3.0], "attn_logit_softcapping": [2.0],
    "query_pre_attn_scalar": [3], "rope_local_base_freq": [9.0], "hidden_activation": ["relu"], "num_mtp_layers": [0], "shared_intermediate_size": [8],
    "use_bias": FLAG, "norm_type": ["layernorm"], "qk_norm": FLAG, "use_grouped_topk": FLAG, "moe_topk": [1],
}
# Keys of some families alone.
FACTORS = {"embedding_multiplier": [1, 2.5, 0], "residual_multiplier": [1.0, 2.0, -1], "attention_multiplier": [0.5, 1, 0],
           "logits_scaling": [1.0, 3, 0], "shared_intermediate_size": [8, 0]}
WORDS = {"layer_types": [[FULL] * 4, [WINDOWED] * 4, [WINDOWED, FULL, FULL, WINDOWED], [FULL], []],
         "mlp_layer_types": [["dense", "dense", "sparse", "sparse"], ["sparse"] * 4, ["sparse", "dense"], []],
         "num_shared_experts": [1, 2, 0]}
GEMMA = {"hidden_activation": ["gelu", "relu", "silu", "tanh"], "query_pre_attn_scalar": [3, 8, 0], "attn_logit_softcapping": [3.0, 0.5, 0],
         "final_logit_softcapping": [3.0, 0.5, 0], "use_bidirectional_attention": FLAG, "mup_enabled": FLAG}
COHERE = {"expert_selection_fn": ["softmax", "sigmoid", "tanh"], "num_shared_experts": [0, 1, 3], "layer_norm_eps": [1e-2, 0],
          "shared_expert_combination_strategy": ["sum", "average", "mean"], "logit_scale": [1.0, 0.3, 0], "sliding_window_pattern": [2, 3, 1],
          "prefix_dense_sliding_window_pattern": [1, 2], "mlp_layer_types": [["sparse"] * 3, ["dense", "sparse", "sparse"]]}
OTHERS_OF = {
    "cohere2_moe": COHERE, "cohere2_moe_rms": COHERE,
    "dbrx": {"d_model": [24, 0], "n_heads": [2, 8, 3], "n_layers": [1, 2], "max_seq_len": [6, 64], "kv_n_heads": [1, 4, 3], "attn_pdrop": [0.1],
             "moe_num_experts": [4, 8], "moe_top_k": [1, 3, 9], "ffn_hidden_size": [8, 16], "moe_jitter_eps": [0, 0.1], "moe_loss_weight": [0.5],
             "moe_normalize_expert_weights": [1, 2.0], "ffn_act_fn": [{"name": "silu"}, {"name": "gelu"}], "resid_pdrop": [0.1], "emb_pdrop": [0.1]},
    "mellum": {"layer_types": [[FULL] * 3, [WINDOWED] * 3, [FULL, WINDOWED, FULL], [FULL], []], "num_mtp_layers": [0, 1], "rope_parameters": [
        {}, {FULL: {"rope_type": "linear", "factor": 3.0, "rope_theta": 50.0}, WINDOWED: {"rope_type": "default", "rope_theta": 9.0}},
        {FULL: {"rope_theta": 9.0}, WINDOWED: None}, {FULL: {"rope_type": "default"}, WINDOWED: {"rope_type": "default"}}, {"rope_theta": 777.0}]},
    "gemma": GEMMA, "gemma2": GEMMA,
    "gemma3_text": {**GEMMA, **WORDS, "sliding_window_pattern": [2, 3, 1], "rope_local_base_freq": [9.0, 500.0, 0], "rope_scaling": [
        {}, {"rope_type": "linear", "factor": 3.0}, {"rope_theta": 50.0}, {"type": "linear", "factor": 3.0}, {"rope_type": "linear"}, YARN],
        "rope_parameters": [{}, {FULL: {"rope_type": "linear", "factor": 3.0}}, {WINDOWED: {"rope_theta": 9.0}}, {FULL: None, WINDOWED: YARN},
                            {"rope_theta": 777.0}, {"rope_type": "linear", "factor": 3.0}]},
    "hy_v3": {"num_shared_experts": [1, 2, 0], "router_scaling_factor": [0.5, 1, 0], "enable_moe_fp32_combine": FLAG},
    "ernie4_5_moe": {"moe_num_experts": [4, 8], "moe_k": [1, 3, 9], "moe_num_shared_experts": [1, 0], "moe_layer_interval": [1, 2, 3, 0],
                     "moe_layer_start_index": [0, 1, 2, 5], "moe_layer_end_index": [-1, 3, 2, 9], "moe_norm_min": [1e-12, 0.5], "use_bias": FLAG},
    "granitemoe": FACTORS, "granitemoeshared": FACTORS,
    "hunyuan_v1_moe": {"moe_topk": [1, 3, [2, 1, 2], [3, 3, 3], [2], 9], "num_shared_expert": [2], "use_qk_norm": FLAG},
    "sarvam_mla": {"num_shared_experts": [1, 2], "num_mtp_layers": [0, 1]},
    "sarvam_moe": {"num_shared_experts": [1, 2], "use_qkv_bias": FLAG, "num_mtp_layers": [0, 1]},
    "exaone_moe": {**WORDS, "sliding_window_pattern": [2, "LLLG", None]},
    "afmoe": {**WORDS, "num_dense_layers": [0, 2, 9], "route_scale": [1, 0.3, 0], "global_attn_every_n_layers": [2, 1], "mup_enabled": FLAG},
}
ROPE_OTHERS = {
    "rope_type": ["default", "linear", "yarn", "llama3", "dynamic"], "type": ["linear", "yarn"], "rope_theta": [50.0], "factor": [1, 2.5, 0.5],
    "beta_fast": [1, 4, 64, 0], "beta_slow": [1, 2, 0, 64], "mscale": [0, 0.5, 1.0], "mscale_all_dim": [0, 0.5, 1.0], "attention_factor": [0.5, 1.0, 2.0],
    "truncate": FLAG, "original_max_position_embeddings": [2, 64, 1], "low_freq_factor": [0.5, 2.0], "high_freq_factor": [2.0, 1.0, 8.0],
    "partial_rotary_factor": [0.5, 1.0],
}


def older(config):
    """The same config as it was written before rope had an object for all of it."""
    config = copy.deepcopy(config)
    rope = config.pop("rope_parameters")
    if FULL in rope:
        config["rope_local_base_freq"] = rope[WINDOWED]["rope_theta"]
        config["rope_theta"] = rope[FULL].pop("rope_theta")
        config["rope_scaling"] = rope[FULL]
        return config
    config["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if "rope_type" in rope:
        rope["type"] = rope.pop("rope_type")
    config["rope_scaling"] = None if rope.get("type", "default") == "default" else rope
    return config


def bases(family):
    config = load(family)["config"]
    config = config.get("text_config", config)
    return {"": config, "older": older(config)}


def around(family, config):
    """The config of a model that also reads images around one of its text model, where the family has one."""
    outer = load(family)["config"]
    return {**outer, "text_config": config} if "text_config" in outer else config


def name_of(*parts):
    return " ".join(part if isinstance(part, str) else json.dumps(part) for part in parts)


def of_key(place, key, there, others):
    """(what, how) for one key of an object, `place` being what leads to it."""
    if there:
        yield name_of(*place, key, "removed"), lambda at: at.pop(key)
    yield name_of(*place, key, "null"), lambda at: at.__setitem__(key, None)
    for value in others:
        yield name_of(*place, key, "=", value), lambda at, value=value: at.__setitem__(key, copy.deepcopy(value))


def others_of(family):
    return {**OTHERS, **OTHERS_OF.get(family, {})}


OBJECTS = ("attn_config", "ffn_config")  # Objects with keys of the model.


def sections(config, key):
    """Paths of the objects of rope: one, or one for each kind of layers."""
    section = config.get(key)
    if not section:
        return []
    kinds = [kind for kind in (FULL, WINDOWED) if isinstance(section.get(kind), dict)]
    return [[key, kind] for kind in kinds] or [[key]]


def inside(config, path):
    for key in path:
        config = config[key]
    return config


def changes(family):
    """{name: config} of the bases and of every change of one key."""
    found, values = {}, others_of(family)
    for base, config in bases(family).items():
        found[base] = config
        # From the older config only keys that are not the same in the other.
        own = {key for key in config if not base or "rope" in key or key == "partial_rotary_factor"}
        for key in sorted(own | set() if base else own | set(values)):
            others = [value for value in values.get(key, []) if value != config.get(key, ...)]
            for what, change in of_key([base] if base else [], key, key in config, others):
                found[what] = copy.deepcopy(config)
                change(found[what])
        for path in sections(config, "rope_scaling" if base else "rope_parameters"):
            own = inside(config, path)
            for key in sorted(set(own) | set(ROPE_OTHERS)):
                others = [value for value in ROPE_OTHERS.get(key, []) if value != own.get(key, ...)]
                for what, change in of_key([base, *path] if base else path, key, key in own, others):
                    found[what] = copy.deepcopy(config)
                    change(inside(found[what], path))
    for name in OBJECTS:
        own = found[""].get(name, {})
        for key in sorted(own):
            for what, change in of_key([name], key, True, [value for value in values.get(key, []) if value != own[key]]):
                found[what] = copy.deepcopy(found[""])
                change(found[what][name])
    return {what: around(family, config) for what, config in found.items() if not what or config not in (found[""],)}


def random_config(family, seed):
    """Several keys of a base changed at once, most of them its own."""
    draw = random.Random(f"{family} {seed}")
    config, others = copy.deepcopy(draw.choice(list(bases(family).values()))), others_of(family)
    own = sorted(key for key in others if key in config and key != "model_type")
    for _ in range(draw.randint(1, 6)):
        key = draw.choice(own if draw.random() < 0.85 else sorted(others))
        config[key] = copy.deepcopy(draw.choice(others[key]))
        if draw.random() < 0.05:
            config[key] = None
    section = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
    if isinstance(config.get(section), dict) and config[section] and draw.random() < 0.5:
        key = draw.choice(sorted(ROPE_OTHERS))
        inside(config, draw.choice(sections(config, section)))[key] = draw.choice(ROPE_OTHERS[key])
    return around(family, config)


if __name__ == "__main__":
    print(sum(len(changes(family)) for family in BASES), {family: len(changes(family)) for family in BASES})
