"""A Marian model: .npz with the settings inside, and a vocabulary. y = x W + b, so matrices are transposed."""
import io
import json
import zipfile

import numpy

from synthetic import PIECES, pieces


def write_model(model, folder, alphas=None, ssru=False):
    """alphas: {name: number}, the scales of activations for Marian's int8...Alpha precisions.

    ssru: a recurrent decoder in place of its self-attention, as in Bergamot's students.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {"Wemb": model["model.shared.weight"], "decoder_ff_logit_out_b": model["final_logits_bias"]}
    for side, layers in ("encoder", model.encoder_layers), ("decoder", model.decoder_layers):
        for i in range(layers):
            tensors |= layer(model, f"model.{side}.layers.{i}", f"{side}_l{i + 1}", side == "decoder", ssru)
    tensors |= {name: numpy.array([alpha], numpy.float32) for name, alpha in (alphas or {}).items()}
    tensors["special:model.yml"] = numpy.frombuffer(settings(model, ssru).encode() + b"\0", numpy.int8)
    write_npz(tensors, folder / "model.npz")
    # One piece a line. As YAML it would take half of Marian's start-up to read.
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces()))


def layer(model, source, target, decoder, ssru):
    def linear(part, name, letter):
        return {f"{target}_{name}_W{letter}": model[f"{source}.{part}.weight"].T,
                f"{target}_{name}_b{letter}": model[f"{source}.{part}.bias"][None]}

    def norm(part, name):
        return {f"{target}_{name}_ln_scale": model[f"{source}.{part}.weight"][None],
                f"{target}_{name}_ln_bias": model[f"{source}.{part}.bias"][None]}

    tensors = {}
    attentions = {"self_attn": "self"} | ({"encoder_attn": "context"} if decoder else {})
    if decoder and ssru:  # Kim et al. 2019: c' = f c + (1 - f) x W with f = sigmoid(x Wf + bf); y = relu(c')
        del attentions["self_attn"]
        tensors |= {f"{target}_rnn_W": model[f"{source}.self_attn.out_proj.weight"].T}
        tensors |= linear("self_attn.q_proj", "rnn", "f") | norm("self_attn_layer_norm", "rnn_ffn")
    for part, name in attentions.items():
        for projection, letter in ("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("out_proj", "o"):
            tensors |= linear(f"{part}.{projection}", name, letter)
        tensors |= norm(f"{part}_layer_norm", name + "_Wo")
    tensors |= linear("fc1", "ffn", "1") | linear("fc2", "ffn", "2")
    return tensors | norm("final_layer_norm", "ffn_ffn")


def settings(model, ssru):
    """special:model.yml: the options of training that decide what is computed. Marian wants the unused ones too."""
    values = {
        "type": "transformer", "dim-vocabs": [PIECES, PIECES], "dim-emb": model.d, "input-types": [],
        "enc-depth": model.encoder_layers, "dec-depth": model.decoder_layers, "transformer-heads": model.heads,
        "transformer-dim-ffn": model.ffn, "transformer-decoder-dim-ffn": model.ffn, "transformer-ffn-depth": 2,
        "transformer-decoder-ffn-depth": 2, "transformer-ffn-activation": "relu", "transformer-preprocess": "",
        "transformer-postprocess": "dan", "transformer-postprocess-emb": "d", "transformer-postprocess-top": "",
        "transformer-decoder-autoreg": "self-attention", "transformer-tied-layers": [],
        "transformer-no-projection": False, "transformer-pool": False, "transformer-guided-alignment-layer": "last",
        "transformer-train-position-embeddings": False, "transformer-dim-aan": model.ffn, "transformer-aan-depth": 2,
        "transformer-aan-activation": "swish", "transformer-aan-nogate": False, "tied-embeddings": False,
        "tied-embeddings-src": False, "tied-embeddings-all": True, "layer-normalization": False, "right-left": False,
        "skip": False, "ulr": False, "ulr-dim-emb": 0, "ulr-trainable-transformation": False, "dim-rnn": 1024,
        "enc-type": "bidirectional", "enc-cell": "gru", "enc-cell-depth": 1, "dec-cell": "gru",
        "dec-cell-base-depth": 2, "dec-cell-high-depth": 1, "version": "v1.9.0",
    }
    if ssru:
        values |= {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in values.items())


def write_npz(tensors, path):
    """numpy.savez marks every member as larger than 4 GB may be, which Marian's reader does not understand."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, tensor in tensors.items():
            member = io.BytesIO()
            numpy.lib.format.write_array(member, numpy.ascontiguousarray(tensor), version=(1, 0))
            archive.writestr(name + ".npy", member.getvalue())
