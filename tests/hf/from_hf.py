#!/usr/bin/env python3
"""from_hf.py: refusals and warnings of --from-hf, and its models for the config.json of public models at full size.
Environment: HECATEC."""
import json
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
from harness import HECATEC, load, run, tensors  # noqa: E402
import weights  # noqa: E402

# Each family has a file.
NAMES = sorted(file.stem for file in pathlib.Path(__file__).parents[2].glob("runtime/store/families/*.def"))
KNOWN = f"{', '.join(NAMES[:-1])} and {NAMES[-1]}"
COMMON = {"hidden_act": "silu", "torch_dtype": "bfloat16", "tie_word_embeddings": False, "hidden_size": 2048}
YARN = {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 4096}
DEEPSEEK = {
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_layer_freq": 1,
    "aux_loss_alpha": 0.001, "seq_aux": True, "ep_size": 1, "pretraining_tp": 1, "attention_bias": False,
    "attention_dropout": 0.0, "rms_norm_eps": 1e-6, "rope_theta": 10000, "max_position_embeddings": 163840}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
GLM = {
    "vocab_size": 151552, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": True,
    "partial_rotary_factor": 0.5, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
    "norm_topk_prob": True, "num_nextn_predict_layers": 1, "rms_norm_eps": 1e-5, "rope_theta": 1000000,
    "rope_scaling": None, "max_position_embeddings": 131072}
GPT_OSS = {
    "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "attention_bias": True, "attention_dropout": 0.0, "num_experts_per_tok": 4,
    "experts_per_token": 4, "sliding_window": 128, "swiglu_limit": 7.0, "rms_norm_eps": 1e-5, "rope_theta": 150000,
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                     "original_max_position_embeddings": 4096},
    "max_position_embeddings": 131072, "initial_context_length": 4096, "router_aux_loss_coef": 0.9,
    "output_router_logits": False, "torch_dtype": None, "pad_token_id": 199999, "eos_token_id": 200002, "use_cache": True,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}
LLAMA4 = {
    "vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
    "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "num_experts_per_tok": 1,
    "attention_bias": False, "attention_chunk_size": 8192, "attention_dropout": 0.0, "attn_scale": 0.1,
    "attn_temperature_tuning": True, "floor_scale": 8192, "no_rope_layers": [1, 1, 1, 0] * 12, "output_router_logits": False,
    "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
    "use_cache": True, "bos_token_id": 200000, "eos_token_id": [200001, 200007, 200008], "pad_token_id": 200018}
GEMMA = {"hidden_act": None, "tie_word_embeddings": None, "head_dim": 256, "rms_norm_eps": 1e-6, "attention_bias": False,
         "attention_dropout": 0.0, "max_position_embeddings": 8192, "pad_token_id": 0}
# Family, parameters, and the model's config.json.
FULL = {
    "Hy3-preview": ("hy_v3", 295033528320, {
        "vocab_size": 120832, "hidden_size": 4096, "intermediate_size": 13312, "moe_intermediate_size": 1536, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "num_experts": 192, "num_experts_per_tok": 8,
        "num_shared_experts": 1, "router_scaling_factor": 2.826, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072}),
    "ERNIE-4.5-21B-A3B": ("ernie4_5_moe", 21825436160, {
        "vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 28,
        "num_attention_heads": 20, "num_key_value_heads": 4, "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1, "moe_layer_end_index": 27, "moe_layer_interval": 1, "use_bias": False, "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0, "tie_word_embeddings": True, "max_position_embeddings": 131072}),
    "granite-3.0-1b-a400m": ("granitemoe", 1334628352, {
        "vocab_size": 49155, "hidden_size": 1024, "intermediate_size": 512, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 8, "num_local_experts": 32, "num_experts_per_tok": 8, "attention_multiplier": 0.015625,
        "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 6.0, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "tie_word_embeddings": True, "max_position_embeddings": 4096}),
    "Hunyuan-A13B": ("hunyuan_v1_moe", 80393183232, {
        "vocab_size": 128167, "hidden_size": 4096, "intermediate_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "num_experts": 64, "moe_topk": [8] * 32, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "rope_scaling": {"alpha": 1000.0, "factor": 1.0, "type": "dynamic"}, "tie_word_embeddings": True,
        "max_position_embeddings": 32768}),
    "FlexOlmo-7x7B": ("flex_olmo", 33270665216, {
        "vocab_size": 100352, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "num_experts": 7, "num_experts_per_tok": 5, "rms_norm_eps": 1e-6, "rope_theta": 500000.0,
        "max_position_embeddings": 4096}),
    "K-EXAONE-236B": ("exaone_moe", 236571150336, {
        "vocab_size": 153600, "hidden_size": 6144, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 48,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
        "num_shared_experts": 1, "first_k_dense_replace": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5, "n_group": 1,
        "topk_group": 1, "sliding_window": 128, "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 12,
        "rms_norm_eps": 1e-5, "rope_theta": 1000000, "max_position_embeddings": 262144}),
    "Trinity-Mini": ("afmoe", 26123970560, {
        "vocab_size": 200192, "intermediate_size": 6144, "moe_intermediate_size": 1024, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
        "num_shared_experts": 1, "num_dense_layers": 2, "route_scale": 2.826, "sliding_window": 2048, "mup_enabled": True,
        "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 8, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "max_position_embeddings": 131072}),
    "Mixtral-8x7B": ("mixtral", 46702792704, {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
        "rms_norm_eps": 1e-5, "rope_theta": 1e6, "sliding_window": None, "router_aux_loss_coef": 0.02,
        "max_position_embeddings": 32768}),
    "OLMoE-1B-7B": ("olmoe", 6919161856, {
        "vocab_size": 50304, "intermediate_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16,
        "num_key_value_heads": 16, "num_experts": 64, "num_experts_per_tok": 8, "norm_topk_prob": False,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "clip_qkv": None, "max_position_embeddings": 4096}),
    "Qwen1.5-MoE-A2.7B": ("qwen2_moe", 14315784192, {
        "vocab_size": 151936, "intermediate_size": 5632, "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 16, "num_experts": 60, "num_experts_per_tok": 4, "rms_norm_eps": 1e-6,
        "rope_theta": 1e6, "use_sliding_window": False, "sliding_window": 32768, "max_window_layers": 21}),
    "Qwen3-30B-A3B": ("qwen3_moe", 30532122624, {
        "vocab_size": 151936, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
        "num_experts_per_tok": 8, "norm_topk_prob": True, "mlp_only_layers": [], "rms_norm_eps": 1e-6,
        "rope_theta": 1e6, "rope_scaling": None, "attention_bias": False, "max_position_embeddings": 40960}),
    "dots.llm1": ("dots1", 142774373888, {  # And 7808 of selection biases, which are not trained.
        "vocab_size": 152064, "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 32, "n_routed_experts": 128,
        "num_experts_per_tok": 6, "n_shared_experts": 2, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
        "norm_topk_prob": True, "routed_scaling_factor": 2.5, "rms_norm_eps": 1e-5, "rope_theta": 1e7,
        "sliding_window": None, "max_window_layers": 62}),
    "DeepSeek-V2": ("deepseek_v2", 235741434880, {
        **DEEPSEEK, "vocab_size": 102400, "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536,
        "num_hidden_layers": 60, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
        "n_routed_experts": 160, "num_experts_per_tok": 6, "n_shared_experts": 2, "first_k_dense_replace": 1,
        "n_group": 8, "topk_group": 3, "norm_topk_prob": False, "routed_scaling_factor": 16.0,
        "scoring_func": "softmax", "topk_method": "group_limited_greedy", "rope_scaling": {**YARN, "mscale": 0.707,
                                                                                            "mscale_all_dim": 0.707}}),
    "DeepSeek-V2-Lite": ("deepseek_v2", 15706484224, {
        **DEEPSEEK, "vocab_size": 102400, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "q_lora_rank": None,
        "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2, "first_k_dense_replace": 1,
        "n_group": 1, "topk_group": 1, "norm_topk_prob": False, "routed_scaling_factor": 1.0,
        "scoring_func": "softmax", "topk_method": "greedy", "rope_scaling": {**YARN, "mscale": 0.707,
                                                                              "mscale_all_dim": 0.707}}),
    # 671,026,404,352 and 11,610,067,968 of the layer that predicts a token more.
    "DeepSeek-V3": ("deepseek_v3", 682636472320, {
        **DEEPSEEK, "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
        "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
        "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3,
        "n_group": 8, "topk_group": 4, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid", "topk_method": "noaux_tc", "num_nextn_predict_layers": 1,
        "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0},
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}),
    # 352,797,814,784 and 3,988,069,632 of the layer.
    "GLM-4.5": ("glm4_moe", 356785884416, {
        **GLM, "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 92,
        "n_routed_experts": 160, "first_k_dense_replace": 3, "routed_scaling_factor": 2.5, "use_qk_norm": True}),
    # 106,852,245,504 and 2,375,059,456.
    "GLM-4.5-Air": ("glm4_moe", 109227304960, {
        **GLM, "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 46,
        "n_routed_experts": 128, "first_k_dense_replace": 1, "routed_scaling_factor": 1.0, "use_qk_norm": False}),
    "Kimi-K2": ("kimi_k2", 1026408209408, {
        **DEEPSEEK, "vocab_size": 163840, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
        "num_hidden_layers": 61, "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536,
        "n_routed_experts": 384, "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 1,
        "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.827,
        "scoring_func": "sigmoid", "topk_method": "noaux_tc", "num_nextn_predict_layers": 0, "rope_theta": 50000.0,
        "rope_scaling": {**YARN, "beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0, "mscale": 1.0, "mscale_all_dim": 1.0}}),
    "GLM-4.7-Flash": ("glm4_moe_lite", 29943390976, {
        "vocab_size": 154880, "hidden_size": 2048, "intermediate_size": 10240, "moe_intermediate_size": 1536, "num_hidden_layers": 47,
        "num_attention_heads": 20, "num_key_value_heads": 20, "n_shared_experts": 1, "n_routed_experts": 64, "kv_lora_rank": 512,
        "q_lora_rank": 768, "qk_rope_head_dim": 64, "v_head_dim": 256, "qk_nope_head_dim": 192, "n_group": 1, "topk_group": 1,
        "num_experts_per_tok": 4, "norm_topk_prob": True, "routed_scaling_factor": 1.8, "first_k_dense_replace": 1,
        "topk_method": "noaux_tc", "rms_norm_eps": 1e-5, "rope_theta": 1000000, "max_position_embeddings": 202752}),
    "Solar-Open-100B": ("solar_open", 102651793408, {
        "vocab_size": 196608, "hidden_size": 4096, "moe_intermediate_size": 1280, "num_hidden_layers": 48, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_routed_experts": 128,
        "norm_topk_prob": True, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072}),
    "MiniMax-M2": ("minimax_m2", 228689748992, {
        "vocab_size": 200064, "hidden_size": 3072, "intermediate_size": 1536, "num_hidden_layers": 62, "num_attention_heads": 48,
        "num_key_value_heads": 8, "head_dim": 128, "rotary_dim": 64, "num_local_experts": 256, "num_experts_per_tok": 8,
        "rms_norm_eps": 1e-6, "rope_theta": 5000000, "max_position_embeddings": 196608}),
    "Llama-3.1-8B": ("llama", 8030261248, {
        "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": 131072,
        "attention_bias": False, "mlp_bias": False, "pretraining_tp": 1, "rope_scaling": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}}),
    "Mistral-7B-v0.1": ("mistral", 7241732096, {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "sliding_window": 4096,
        "max_position_embeddings": 32768}),
    "Qwen2.5-7B": ("qwen2", 7615616512, {
        "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
        "num_key_value_heads": 4, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "max_window_layers": 28, "sliding_window": 131072,
        "use_sliding_window": False, "max_position_embeddings": 131072}),
    "Qwen3-8B": ("qwen3", 8190735360, {
        "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6, "rope_theta": 1000000, "max_window_layers": 36,
        "sliding_window": None, "use_sliding_window": False, "max_position_embeddings": 40960}),
    "Command-MoE": ("cohere2_moe", 207453233152, {  # The sizes that transformers takes by default, and a shared expert.
        "tie_word_embeddings": None, "vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "num_experts": 8, "num_experts_per_tok": 2,
        "num_shared_experts": 1, "max_position_embeddings": 8192}),
    "DBRX": ("dbrx", 131596523520, {
        "hidden_act": None, "hidden_size": None, "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768, "vocab_size": 100352,
        "attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "model_type": "", "rope_theta": 500000}, "emb_pdrop": 0.0, "resid_pdrop": 0.0,
        "ffn_config": {"ffn_hidden_size": 10752, "model_type": "", "moe_jitter_eps": 0, "moe_loss_weight": 0.05, "moe_num_experts": 16,
                       "moe_top_k": 4}}),
    "Mellum-12B": ("mellum", 12149923072, {
        "vocab_size": 98304, "hidden_size": 2304, "intermediate_size": 7168, "moe_intermediate_size": 896, "num_hidden_layers": 28,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 64, "num_experts_per_tok": 8,
        "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 7, "sliding_window": 1024, "max_position_embeddings": 131072}),
    "Qwen3-VL-30B-A3B": ("qwen3_vl_moe_text", 30532122624, {  # Its text_config. Images are not counted.
        "tie_word_embeddings": None, "vocab_size": 151936, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
        "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "rms_norm_eps": 1e-6, "rope_theta": 5000000,
        "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
        "max_position_embeddings": 262144}),
    "gemma-7b": ("gemma", 8537680896, {
        **GEMMA, "vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 16, "hidden_act": "gelu"}),
    "gemma-2-2b": ("gemma2", 2614341888, {
        **GEMMA, "vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "sliding_window": 4096, "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0, "hidden_activation": "gelu_pytorch_tanh"}),
    "gemma-3-1b": ("gemma3_text", 999885952, {
        **GEMMA, "vocab_size": 262144, "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26, "num_attention_heads": 4,
        "num_key_value_heads": 1, "sliding_window": 512, "sliding_window_pattern": 6, "query_pre_attn_scalar": 256,
        "rope_theta": 1000000, "rope_local_base_freq": 10000, "max_position_embeddings": 32768}),
    "gemma-3-4b": ("gemma3_text", 3880263168, {  # Its text_config. Images are not counted.
        "hidden_act": None, "tie_word_embeddings": None, "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "sliding_window": 1024, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}),
    "gpt-oss-20b": ("gpt_oss", 20914757184, {
        **GPT_OSS, "num_hidden_layers": 24, "num_local_experts": 32,
        "layer_types": ["sliding_attention", "full_attention"] * 12}),
    "gpt-oss-120b": ("gpt_oss", 116829156672, {
        **GPT_OSS, "num_hidden_layers": 36, "num_local_experts": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 18}),
    "Llama-4-Scout": ("llama4_text", 107769861120, {  # Image towers are not counted.
        **LLAMA4, "num_local_experts": 16, "interleave_moe_layer_step": 1, "moe_layers": [*range(48)], "use_qk_norm": True,
        "max_position_embeddings": 10485760, "rope_scaling": {
            "rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0,
            "original_max_position_embeddings": 8192}}),
    "Llama-4-Maverick": ("llama4_text", 400711848960, {
        **LLAMA4, "num_local_experts": 128, "interleave_moe_layer_step": 2, "moe_layers": [*range(1, 48, 2)],
        "use_qk_norm": False, "max_position_embeddings": 1048576, "rope_scaling": None}),
}
# Tensors of the files as they were released, without scales of 8 bits: with the selection biases, which are not trained, and with
# embedding and head once more for the layer that predicts.
RELEASED = {"DeepSeek-V3": 684489845504, "GLM-4.5": 358337791296, "GLM-4.5-Air": 110468824832}

# A change of a key in a family's tiny model (None: it is removed), and the message. The line is that of the key.
REFUSED = [
    ("mixtral", "model_type", "bloom", f"`model_type` is not yet known; {KNOWN} are"),
    ("mixtral", "model_type", "qwen3moe", f"`model_type` is not yet known; {KNOWN} are; qwen3_moe is the nearest"),
    ("glm4_moe_lite", "mlp_layer_types", ["sparse", "dense", "sparse"], "`mlp_layer_types` must have dense or sparse for each layer, the dense ones first"),
    ("minimax_m2", "output_router_logits", True, "`output_router_logits` must be false: its loss is of other scores than the router's"),
    ("mixtral", "vocab_size", -3, "`vocab_size` must be a whole number from 1 on"),
    ("mixtral", "hidden_size", "16", "`hidden_size` must be a whole number from 1 on"),
    ("mixtral", "num_key_value_heads", 3, "`num_key_value_heads` must divide num_attention_heads"),
    ("mixtral", "num_attention_heads", 32, "`num_attention_heads` leaves heads of no even width"),
    ("mixtral", "num_experts_per_tok", 5, "`num_experts_per_tok` is more than there are experts"),
    ("mixtral", "hidden_act", "elu", "`hidden_act` is not known; silu, gelu, gelu_new and relu are"),
    ("qwen3_moe", "num_experts_per_tok", 8, "`num_experts_per_tok` is more than there are experts"),
    ("mixtral", "num_experts", 3, "`num_experts` must be num_local_experts"),
    ("deepseek_v2", "mlp_bias", True, "`mlp_bias` must be false: experts have no biases"),
    ("llama", "mlp_bias", True, "`mlp_bias` must be false: MLPs have no biases"),
    ("deepseek_v3", "head_dim", 16, "`head_dim` must be qk_rope_head_dim: rope rotates that many"),
    ("mixtral", "per_layer_config", {"0": {}}, "`per_layer_config` must be empty: layers have one config"),
    ("mixtral", "attention_dropout", 0.1, "`attention_dropout` must be 0: attention has no dropout"),
    ("mixtral", "router_jitter_noise", 1, "`router_jitter_noise` must be at least 0 and less than 1"),
    ("mixtral", "router_aux_loss_coef", -1, "`router_aux_loss_coef` must not be negative"),
    ("mixtral", "rms_norm_eps", 0, "`rms_norm_eps` must be above 0"),
    ("mixtral", "tie_word_embeddings", 1, "`tie_word_embeddings` must be true or false"),
    ("mixtral", "rope_parameters", {"rope_theta": 0}, "`rope_theta` must be above 0"),
    ("mixtral", "rope_parameters", [], "`rope_parameters` must be an object"),
    ("mixtral", "rope_parameters", {"rope_type": "longrope", "factor": 8.0},
     "`rope_type` is not yet known; default, linear, yarn and llama3 are"),
    ("llama4_text", "rope_parameters", {**LLAMA3, "low_freq_factor": 0}, "`low_freq_factor` must be above 0"),
    ("llama4_text", "rope_parameters", {**LLAMA3, "high_freq_factor": 0.5},
     "`high_freq_factor` must not be less than low_freq_factor"),
    ("llama4_text", "floor_scale", 8,
     "`floor_scale` must be more than the 8 positions: not yet there is a factor of queries by position"),
    ("llama4_text", "attention_chunk_size", 0, "`attention_chunk_size` must be a whole number from 1 on"),
    ("llama4_text", "no_rope_layers", [1, 0], "`no_rope_layers` must have one for each layer"),
    ("llama4_text", "no_rope_layers", [1, 1, 2, 0], "`no_rope_layers` may hold 1, a layer with rope, and 0, one without"),
    ("llama4_text", "layer_types", ["full_attention"] * 4,
     "`layer_types` must be chunked_attention for layers with rope, full_attention for others"),
    ("llama4_text", "moe_layers", [0, 3], "`moe_layers` must be every so many-th layer: the others are not yet there"),
    ("llama4_text", "moe_layers", [], "`moe_layers` must be every so many-th layer: the others are not yet there"),
    ("llama4_text", "router_jitter_noise", 0.1, "`router_jitter_noise` must be 0: transformers does not look at it"),
    ("mixtral", "rope_parameters", {"rope_type": "yarn", "factor": 0.5}, "`factor` must be at least 1"),
    ("mixtral", "rope_parameters", {"rope_theta": 1e4, "partial_rotary_factor": 0.5},
     "`partial_rotary_factor` must be 1 in this family"),
    ("olmoe", "clip_qkv", 0, "`clip_qkv` must be above 0"),
    ("dots1", "layer_types", ["full_attention"], "`layer_types` must have one for each layer"),
    ("dots1", "layer_types", ["full_attention", "linear_attention", "full_attention"],
     "`layer_types` may hold full_attention and sliding_attention"),
    ("qwen2_moe", "layer_types", None, "`use_sliding_window` needs layer_types: the layers that have it"),
    ("dots1", "n_group", 3, "`n_group` must divide the experts"),
    ("dots1", "topk_group", 5, "`topk_group` is more than there are groups"),
    ("dots1", "routed_scaling_factor", 0, "`routed_scaling_factor` must be above 0"),
    ("dots1", "first_k_dense_replace", 1.5, "`first_k_dense_replace` must be a number of layers"),
    ("qwen2_moe", "mlp_only_layers", [3], "`mlp_only_layers` must hold numbers of layers"),
    ("qwen2_moe", "mlp_only_layers", 3, "`mlp_only_layers` must be an array"),
    ("qwen3_moe", "rms_norm_eps", "small", "`rms_norm_eps` must be a number"),
    ("deepseek_v2", "scoring_func", "sigmoid", "`scoring_func` must be softmax"),
    ("deepseek_v2", "topk_method", "noaux_tc", "`topk_method` must be greedy or group_limited_greedy"),
    ("deepseek_v2", "norm_topk_prob", True, "`norm_topk_prob` must be false: its meaning is not settled"),
    ("deepseek_v3", "num_key_value_heads", 2, "`num_key_value_heads` must be num_attention_heads: each head has its keys"),
    ("deepseek_v3", "qk_rope_head_dim", 5, "`qk_rope_head_dim` must be even"),
    ("deepseek_v3", "rope_interleave", "no", "`rope_interleave` must be true or false"),
    ("deepseek_v3", "rope_parameters", {"rope_type": "yarn", "factor": 4.0, "mscale": -1.0,
                                        "original_max_position_embeddings": 4}, "`mscale` must be from 0 to 100"),
    ("deepseek_v3", "scoring_func", "softmax", "`scoring_func` must be sigmoid"),
    ("deepseek_v3", "topk_method", "greedy", "`topk_method` must be noaux_tc"),
    ("deepseek_v3", "topk_group", 1, "`topk_group` has too few experts for num_experts_per_tok"),
    ("glm4_moe", "rope_parameters", {"partial_rotary_factor": 1.5}, "`partial_rotary_factor` must be above 0 and at most 1"),
    ("glm4_moe", "head_dim", 6, "`num_attention_heads` leaves heads of which no even part is rotated"),
    ("glm4_moe", "use_qk_norm", 1, "`use_qk_norm` must be true or false"),
    ("deepseek_v3", "num_nextn_predict_layers", 2,
     "`num_nextn_predict_layers` must be 0 or 1: the input of a second one is not settled"),
    ("deepseek_v3", "moe_layer_freq", 2, "`moe_layer_freq` must be 1"),
    ("gpt_oss", "swiglu_limit", 0, "`swiglu_limit` must be above 0"),
    ("gpt_oss", "swiglu_alpha", -1, "`swiglu_alpha` must be above 0"),
    ("gpt_oss", "experts_per_token", 3, "`experts_per_token` must be num_experts_per_tok"),
    ("dbrx", "ffn_config", {"moe_top_k": 2, "moe_num_experts": 6, "ffn_hidden_size": 12, "moe_jitter_eps": 0.1},
     "`moe_jitter_eps` must be 0: it would change the experts' input, too"),
    ("cohere2_moe", "expert_selection_fn", "tanh", "`expert_selection_fn` must be softmax or sigmoid"),
    ("cohere2_moe", "shared_expert_combination_strategy", "mean", "`shared_expert_combination_strategy` must be sum or average"),
    ("cohere2_moe", "mlp_layer_types", ["dense", "sparse", "sparse"],
     "`mlp_layer_types` must be sparse: not yet there is how others rotate"),
    ("dbrx", "attn_config", {"rope_theta": 1e4, "kv_n_heads": 3}, "`kv_n_heads` must divide num_attention_heads"),
    ("gemma2", "query_pre_attn_scalar", 0, "`query_pre_attn_scalar` must be above 0"),
    ("gemma2", "use_bidirectional_attention", True, "`use_bidirectional_attention` must be false: positions see earlier ones alone"),
    ("gemma3_text", "rope_parameters", {"rope_theta": 1e4}, "`rope_parameters` may hold full_attention and sliding_attention, got rope_theta"),
    ("gemma3_text", "rope_parameters", {"full_attention": {"rope_type": "linear", "factor": 0.5}}, "`factor` must be at least 1"),
    ("gemma3_text", "rope_scaling", {"type": "linear", "factor": 8.0}, "`type` must be called rope_type in this family"),
]
# Without these a model would be another one.
NEEDED = [*[("gpt_oss", key) for key in ("rope_parameters", "head_dim", "num_key_value_heads", "layer_types", "sliding_window",
                                         "num_local_experts")],
          ("deepseek_v2", "topk_method"), ("glm4_moe", "norm_topk_prob"), ("deepseek_v3", "kv_lora_rank"), ("deepseek_v3", "q_lora_rank"), ("deepseek_v3", "topk_group")]


def write(folder, config):
    folder.mkdir(exist_ok=True)
    text = json.dumps(config, indent=2)
    (folder / "config.json").write_text(text)
    return text


def line_of(text, key):
    return 1 + text[:text.index(f'"{key}"')].count("\n")


def check_refusals(work):
    for family, key, value, wanted in REFUSED:
        config = load(family)["config"]
        if key == "num_attention_heads":
            config.pop("head_dim")
        config[key] = value
        text = write(work / "bad", config)
        said = run(HECATEC, f"--from-hf={work}/bad", "-o", work / "none.moe", code=1).stderr
        named = wanted.split("`")[1]
        place = f"config.json:{line_of(text, named)}:"
        if not re.search(re.escape(place) + r"\d+: error: " + re.escape(wanted) + "\n", said):
            sys.exit(f"{key} = {value}: wanted {place} {wanted}\ngot: {said}")
        assert not (work / "none.moe").exists(), key
        assert "topk_group" not in said or "topk_group" in config, said  # A key that does not stand there.
    for family, key in NEEDED:
        config = load(family)["config"]
        config.pop(key)
        write(work / "bad", config)
        said = run(HECATEC, f"--from-hf={work}/bad", code=1).stderr
        assert f"config.json: error: there is no `{key}`\n" in said, said
    for text, wanted in [("{\n  3", "config.json:2: error: "), ("[]", "config.json:1: error: an object is expected"),
                         ("", "config.json': it is empty"), ('{"model_type": "olmoe"}', "there is no `vocab_size`")]:
        (work / "bad" / "config.json").write_text(text)
        said = run(HECATEC, f"--from-hf={work}/bad", code=1)
        assert wanted in said.stderr and not said.stdout, said
    assert "No such file" in run(HECATEC, f"--from-hf={work}/nowhere", code=1).stderr
    run(HECATEC, f"--from-hf={work}/bad", "model.moe", code=2)
    run(HECATEC, f"--from-hf={work}/bad", "-o", f"{work}/bad/config.json", code=2)


def check_windows(work):
    """Which layers have a window: a period, some layers, those from one on."""
    sliding, full = "sliding_attention", "full_attention"
    for types, most, wanted in (([sliding, full] * 2, 4, "if i % 2 == 0 {"), ([full, sliding, full, full], 4, "if i == 1 {"),
                                (None, 3, "if i >= 3 {"), (None, 4, None), ([full] * 4, 1, None)):
        config = {**load("dots1")["config"], "num_hidden_layers": 4, "layer_types": types, "max_window_layers": most,
                  "sliding_window": 7}
        write(work / "window", config)
        said = run(HECATEC, f"--from-hf={work}/window").stdout
        assert (wanted in said and "window = 7)" in said) if wanted else "window = 7" not in said, (wanted, said)


def check_pattern(work):
    """Each so many-th layer has no window, unless layer_types say it; angles of both kinds."""
    sliding, full = "sliding_attention", "full_attention"
    for pattern, types, wanted in ((None, None, "if i != 5 {"), (3, None, "if i % 3 != 2 {"),
                                   (3, [full, sliding] * 3, "if i % 2 == 1 {")):
        config = {**load("gemma3_text")["config"], "num_hidden_layers": 6, "layer_types": types, "sliding_window_pattern": pattern}
        if not pattern:
            config.pop("sliding_window_pattern")
        write(work / "pattern", config)
        said = run(HECATEC, f"--from-hf={work}/pattern").stdout
        for part in (wanted, "window = 3)", "let local_theta = 10000 ", "theta = local_theta)", "theta = theta, scaling = linear(8))"):
            assert part in said, (part, said)


def check_local(work):
    """Which layers see a chunk; defaults; how many positions there may be."""
    for own, wanted in (({}, ["if i != 3 {", "chunk = 3)", "dim P = 8192 - T"]), ({"no_rope_layer_interval": 2}, ["if i % 2 == 0 {"]),
                        ({"attention_chunk_size": None, "layer_types": None}, ["chunk = T)"]),
                        ({"no_rope_layers": [0, 0, 0, 0], "layer_types": None}, ["x = x + attention(rmsnorm(x, eps = eps))"])):
        config = {**load("llama4_text")["config"], **own}
        if "no_rope_layer_interval" in own:
            config.update(no_rope_layers=None, layer_types=None)
        write(work / "local", config)
        said = run(HECATEC, f"--from-hf={work}/local", "-o", work / "local.moe")
        said = (work / "local.moe").read_text()
        for part in wanted:
            assert part in said, (part, said)
    said = run(HECATEC, "-fsyntax-only", "-D", "T=8192", work / "local.moe", code=1).stderr
    line = next(i for i, text in enumerate((work / "local.moe").read_text().splitlines(), 1) if "8192 - T" in text)
    assert f"local.moe:{line}:" in said, said
    config = {**load("llama4_text")["config"], "attn_temperature_tuning": False}
    write(work / "local", config)
    assert "8192 - T" not in run(HECATEC, f"--from-hf={work}/local").stdout


def check_latent(work):
    """Optional parts of attention: queries' latent vector, biases, YaRN's factor of scores, pairs of neighbours."""
    config = load("deepseek_v3")["config"]
    write(work / "latent", config)
    said = run(HECATEC, f"--from-hf={work}/latent").stdout
    for part in ("wq_a[D, Q]", "bkv_a", "scale = mscale * mscale / sqrt(A)", "interleaved = true", "let predictors = 1"):
        assert part in said, part
    config.update(q_lora_rank=None, attention_bias=False, rope_parameters={"rope_theta": 1e4}, rope_interleave=False,
                  num_nextn_predict_layers=0)
    write(work / "latent", config)
    said = run(HECATEC, f"--from-hf={work}/latent").stdout
    assert "wq[D, H, A]" in said and "eps = eps" in said, said
    for part in ("wq_a", "bkv_a", "mscale", "interleaved", "predictor", "mtp"):
        assert part not in said, part


def check_predictor(work):
    """The layer that predicts a token more is there where config.json says so, and the weights do not say otherwise."""
    case = load("glm4_moe_mtp")
    own = tensors(case)
    mark = "model.layers.2.eh_proj.weight"
    rest = {name: t for name, t in own.items() if name != mark}
    for name, held, shards, wanted in (("one", own, 1, 1), ("shards", own, 2, 1), ("less", rest, 1, 0), ("fewer", rest, 2, 0)):
        weights.write_folder(work / name, case["config"], held, shards)
        said = run(HECATEC, f"--from-hf={work}/{name}").stdout
        assert f"let predictors = {wanted} " in said and "h = mtp: predictor(x, embed[ahead(ids, 1)])" in said, said
    for bytes_ in (b"", b"12345678[", b"12345678[]"):  # Programs report broken files.
        (work / "one" / "model.safetensors").write_bytes(bytes_)
        assert "let predictors = 1 " in run(HECATEC, f"--from-hf={work}/one").stdout


def check_rotated(work):
    """How much of a head is rotated: by default half of it, all of it for null."""
    for factor, wanted in ((..., "dim R = 4, N = A - R"), (0.25, "dim R = 2, N = A - R"), (1, "q = rope(rmsnorm("), (None, "q = rope(rmsnorm(")):
        config = {**load("glm4_moe")["config"], "rope_parameters": {"rope_theta": 1e6}, "partial_rotary_factor": factor}
        if factor is ...:
            config.pop("partial_rotary_factor")
        write(work / "rotated", config)
        said = run(HECATEC, f"--from-hf={work}/rotated").stdout
        assert wanted in said and ("dim R" in said) == (factor in (..., 0.25)), (wanted, said)


def check_thetas(work):
    """Two keys of DBRX must agree; the place is that of rope's own."""
    config = load("dbrx")["config"]
    config["rope_parameters"] = {"rope_theta": 5e5}
    text = write(work / "thetas", config)
    said = run(HECATEC, f"--from-hf={work}/thetas", code=1).stderr
    line = 1 + text[:text.rindex('"rope_theta"')].count("\n")
    assert f"config.json:{line}:" in said and "error: `rope_theta` must be the other one, 10000\n" in said, said


def check_standards(work):
    """A family's defaults where config.json is silent."""
    config = load("gpt_oss")["config"]
    for key in ("swiglu_limit", "swiglu_alpha", "attention_bias", "rms_norm_eps"):
        config.pop(key)
    config["rope_parameters"].pop("rope_theta")
    write(work / "standards", config)
    said = run(HECATEC, f"--from-hf={work}/standards").stdout
    for wanted in ("let limit = 7, alpha = 1.702", "eps = 1e-05, theta = 150000", "x @ wq + bq", "@ wo + bo"):
        assert wanted in said, (wanted, said)


def check_warning(work):
    config = {**load("olmoe")["config"], "third_multiplier": 2.0, "another": False, "sliding_window": 3}
    text = write(work / "odd", config)
    said = run(HECATEC, f"--from-hf={work}/odd")
    wanted = f"config.json:{line_of(text, 'third_multiplier')}:"
    assert wanted in said.stderr and "warning: `third_multiplier` is not known" in said.stderr, said
    assert "another" not in said.stderr and "model olmoe(" in said.stdout, said
    assert f"config.json:{line_of(text, 'sliding_window')}:" in said.stderr, said
    assert re.search(r"warning: `sliding_window` is a key of \w+, not of olmoe: it is not obeyed", said.stderr), said
    assert "window" not in said.stdout, said
    config = load("dbrx")["config"]
    config["attn_config"]["sinks"] = 3
    text = write(work / "odd", config)
    said = run(HECATEC, f"--from-hf={work}/odd").stderr
    assert f"config.json:{line_of(text, 'sinks')}:" in said and "warning: `sinks` is not known" in said, said


def check_full(work):
    for name, (family, parameters, own) in FULL.items():
        folder = work / name
        write(folder, {"model_type": family, **COMMON, **own})
        text, program = work / f"{name}.moe", work / name / "program"
        assert not run(HECATEC, f"--from-hf={folder}", "-o", text).stderr
        run(HECATEC, "-O0", text, "-o", program)
        said = run(program, "info").stdout
        assert f"({parameters})" in said, said
        assert "precision = bf16" in text.read_text(), name
        if name in RELEASED:
            sparse = own["num_hidden_layers"] - own["first_k_dense_replace"] + 1
            again = 2 * own.get("vocab_size", GLM["vocab_size"]) * own["hidden_size"]
            assert parameters + again + sparse * own["n_routed_experts"] == RELEASED[name], name
        if family != "mixtral":
            continue
        said = run(HECATEC, "--explain=memory", "--set", "cluster.nodes=4", "--set", "cluster.devices=8", text).stdout
        assert re.search(r"GiB  together", said) and "parameters, gradients and states of a device" in said, said


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        check_refusals(work)
        check_windows(work)
        check_pattern(work)
        check_latent(work)
        check_predictor(work)
        check_local(work)
        check_rotated(work)
        check_thetas(work)
        check_standards(work)
        check_warning(work)
        check_full(work)


if __name__ == "__main__":
    main()
