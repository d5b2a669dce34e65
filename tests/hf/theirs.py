"""For configs.py: runs a config.json in transformers, in double precision. Needs torch and transformers."""
import copy
import os
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")
import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

import weights  # noqa: E402
from harness import POSITIONS  # noqa: E402

transformers.logging.set_verbosity(transformers.logging.CRITICAL)
torch.set_num_threads(1)


# Parts of names, in models and in folders.
MIXTRAL = (("mlp.gate.", "block_sparse_moe.gate."), ("mlp.e_score_", "block_sparse_moe.e_score_"))
GRANITE = (("block_sparse_moe.experts.gate_up_proj", "block_sparse_moe.input_linear.weight"),
           ("block_sparse_moe.experts.down_proj", "block_sparse_moe.output_linear.weight"), ("moe.router.weight", "moe.router.layer.weight"))
RENAMED = {
    "mixtral": MIXTRAL, "minimax_m2": MIXTRAL, "granitemoe": GRANITE, "granitemoeshared": GRANITE,
    "hy_v3": (("mlp.gate.weight", "mlp.router.gate.weight"), ("mlp.e_score_correction_bias", "mlp.expert_bias"),
              ("mlp.shared_experts.", "mlp.shared_mlp.")),
    "ernie4_5_moe": (("mlp.gate.moe_statics.", "mlp.moe_statics."),),
    "sarvam_moe": (("model.embed_tokens.", "model.word_embeddings."), (".self_attn.o_proj.", ".attention.dense."),
                   (".self_attn.q_norm.", ".attention.query_layernorm."), (".self_attn.k_norm.", ".attention.key_layernorm."),
                   (".mlp.gate.e_score_correction_bias", ".mlp.gate.expert_bias"),
                   *((f".self_attn.{which}_proj.", ".attention.query_key_value.") for which in "qkv")),
    "exaone_moe": (("mlp.gate.e_score_correction_bias", "mlp.e_score_correction_bias"),)}


class Wide:
    """torch, in which single precision is double: transformers computes norms, softmax and angles in float32."""
    float32 = float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


WIDE = Wide()


def widen():
    for name, module in list(sys.modules.items()):
        if name.startswith("transformers.") and getattr(module, "torch", None) is torch:
            module.torch = WIDE
    torch.Tensor.float = torch.Tensor.double


class Model:
    def __init__(self, model, tensors):
        self.model, self.tensors = model, tensors

    def logits(self, tokens):
        """Logits of two sequences; None: it cannot compute them."""
        ids = torch.tensor([tokens[:POSITIONS], tokens[POSITIONS:2 * POSITIONS]])
        try:
            with torch.no_grad():
                return self.model(input_ids=ids, use_cache=False).logits.double().reshape(-1).tolist()
        except Exception:  # Any error of its code for a config that makes no sense.
            return None


class Theirs:
    version = transformers.__version__

    def __init__(self):
        self.drawn = {}

    def values(self, name, shape):
        key = name, tuple(shape)
        if key not in self.drawn:
            numbers = weights.values(name, shape)
            self.drawn[key] = torch.tensor(numbers, dtype=torch.float64).reshape(shape), weights.pack("BF16", numbers)
        return self.drawn[key]

    def create(self, config):
        kind = CONFIG_MAPPING[config["model_type"]]
        made = kind.from_dict(copy.deepcopy(config))
        made._attn_implementation = made._experts_implementation = "eager"
        images = "text_config" in config
        return (transformers.AutoModelForImageTextToText if images else transformers.AutoModelForCausalLM).from_config(made)

    def build(self, config):
        """The model with weights from their names; None: transformers refuses the config."""
        try:
            if config["model_type"] not in self.drawn:  # The first one imports its code.
                self.create(config)
                self.drawn[config["model_type"]] = True
                widen()
            model = self.create(config).double().eval()
            for part in model.modules():
                if hasattr(part, "scalar_embed_scale"):  # It was rounded to single precision.
                    part.embed_scale.fill_(part.scalar_embed_scale)
        except Exception:
            return None
        tensors, tied, inside = {}, model.config.tie_word_embeddings, {}
        for name, own in model.state_dict().items():
            if tied and name == "lm_head.weight":
                continue
            # As folders call it. Experts lie together, as folders may have them.
            there = name
            for theirs, other in RENAMED.get(config["model_type"], ()):
                there = there.replace(theirs, other)
            inside.setdefault(there, []).append(own)
        for there, parts in inside.items():
            shape = [sum(len(part) for part in parts), *parts[0].shape[1:]]
            numbers, packed = self.values(there, shape)
            first = 0
            for part in parts:  # Parts of one tensor of a folder lie behind one another.
                part.copy_(numbers[first:first + len(part)])
                first += len(part)
            tensors[there] = "BF16", shape, packed
        return Model(model, tensors)
