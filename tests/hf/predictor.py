"""For generate.py: prediction of a token more (multi-token prediction, arXiv:2412.19437, equations 21 to 25, of depth
1), which transformers does not train. The decoder layer is transformers', the last one of a model with one layer more.

The paper writes the hidden state in front of the embedding, released weights have the embedding there; and it leaves open
which hidden state. Released code hands on the one behind the last norm: the model's forward in vLLM (models/deepseek_v2.py,
deepseek_mtp.py) and in the modeling_deepseek.py beside weights of R1 ends with the norm, and its result is what hnorm takes."""
import torch

WEIGHT = 0.3  # The loss's: lambda of equation 25, for the first 10T tokens of DeepSeek-V3.


def add_shapes(shapes, layers, width, vocabulary):
    """The tensors beside those of the decoder layer `layers`, as released folders have them."""
    prefix = f"model.layers.{layers}."
    shapes[prefix + "eh_proj.weight"] = [width, 2 * width]
    for name in ("enorm", "hnorm", "shared_head.norm"):
        shapes[f"{prefix}{name}.weight"] = [width]
    for name in ("embed_tokens", "shared_head.head"):
        shapes[f"{prefix}{name}.weight"] = [vocabulary, width]


class Predictor(torch.nn.Module):
    def __init__(self, model, tensors):
        super().__init__()
        self.main = [model]  # No part of this one.
        self.at = model.config.num_hidden_layers
        prefix = f"model.layers.{self.at}."
        self.layer = model.model.layers[self.at]
        self.own = torch.nn.ParameterDict({
            name.split(".")[-1]: torch.nn.Parameter(tensors[f"{prefix}{name}.weight"].clone())
            for name in ("eh_proj", "enorm", "hnorm", "shared_head.norm")})

    def norm(self, x, name):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.main[0].config.rms_norm_eps) * self.own[name]

    def forward(self, hidden, following):
        """Logits of the tokens behind `following`, from the model's last hidden states."""
        model = self.main[0]
        both = torch.cat([self.norm(model.model.embed_tokens(following), "enorm"), self.norm(hidden, "hnorm")], dim=-1)
        x = both @ self.own["eh_proj"].T  # Equation 21.
        positions = torch.arange(x.shape[1]).unsqueeze(0)
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf"), dtype=x.dtype).triu(1)
        x = self.layer(x, attention_mask=mask[None, None], position_ids=positions,
                       position_embeddings=model.model.rotary_emb(x, positions))  # Equation 22.
        return model.lm_head(self.norm(x, "norm"))  # Equation 23.

    def losses(self, tokens):
        """Losses of sequences [batch, positions + 1]: cross-entropies of the tokens 2 ahead, which the last position
        has not. Equation 24 divides their sum by the positions; we take the mean of those that there are."""
        hidden = self.main[0].model(input_ids=tokens[:, :-1]).last_hidden_state
        logits = self(hidden, tokens[:, 1:])[:, :-1]
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 2:].flatten(), reduction="none")
