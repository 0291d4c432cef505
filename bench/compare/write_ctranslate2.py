"""A CTranslate2 model directory, as its own converters lay out a Marian Transformer (binary version 6, revision 7).

model.bin: u32 version, spec name, u32 revision, u32 count; per variable its name, u8 rank, u32 dims, u8 type, u32
bytes, data; u32 count of aliases, each alias and the variable it stands for. Names are u16 length with NUL, text, NUL.
"""
import json
import struct

import numpy

from synthetic import pieces

TYPES = {"float32": 0, "int8": 1, "int16": 2}


def write_directory(model, folder, int8):
    folder.mkdir(parents=True, exist_ok=True)
    values, aliases = variables(model)
    if int8:
        values = quantized(values)
    write_binary(values, aliases, folder / "model.bin")
    (folder / "shared_vocabulary.json").write_text(json.dumps(pieces()))
    settings = {"unk_token": "<unk>", "bos_token": "<pad>", "eos_token": "</s>", "decoder_start_token": "<pad>",
                "add_source_bos": False, "add_source_eos": True, "layer_norm_epsilon": None}
    (folder / "config.json").write_text(json.dumps(settings, indent=1))


def variables(model):
    """({name: array}, {alias: name})"""
    values = {}
    for side in "encoder", "decoder":
        flags = {"pre_norm": 0, "activation": 0, "scale_embeddings": 1, "multi_query_attention": 0}
        if side == "decoder":
            flags |= {"start_from_zero_embedding": 1, "alibi": 0, "alibi_use_positive_positions": 0, "scale_alibi": 0}
        else:
            flags |= {"embeddings_merge": 0}
        values |= {f"{side}/{name}": numpy.int8(flag) for name, flag in flags.items()}
        values[f"{side}/num_heads"] = numpy.int16(model.heads)
    values |= {"decoder/alignment_layer": numpy.int16(-1), "decoder/alignment_heads": numpy.int16(1)}
    values["decoder/embeddings/weight"] = model["model.shared.weight"]
    values["decoder/projection/bias"] = model["final_logits_bias"][0]
    values["decoder/position_encodings/encodings"] = model["model.decoder.embed_positions.weight"]
    for side, layers in ("encoder", model.encoder_layers), ("decoder", model.decoder_layers):
        for i in range(layers):
            values |= layer(model, f"model.{side}.layers.{i}", f"{side}/layer_{i}", cross=side == "decoder")
    aliases = {"decoder/projection/weight": "decoder/embeddings/weight",
               "encoder/embeddings_0/weight": "decoder/embeddings/weight",
               "encoder/position_encodings/encodings": "decoder/position_encodings/encodings"}
    return values, aliases


def layer(model, source, target, cross):
    def linear(name, *parts):  # several parts: one fused product
        return {f"{target}/{name}/{key}": numpy.concatenate([model[f"{source}.{part}.{key}"] for part in parts])
                for key in ("weight", "bias")}

    def norm(name, part):
        return {f"{target}/{name}/layer_norm/gamma": model[f"{source}.{part}.weight"],
                f"{target}/{name}/layer_norm/beta": model[f"{source}.{part}.bias"]}

    values = linear("self_attention/linear_0", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    values |= linear("self_attention/linear_1", "self_attn.out_proj")
    values |= norm("self_attention", "self_attn_layer_norm")
    if cross:
        values |= linear("attention/linear_0", "encoder_attn.q_proj")
        values |= linear("attention/linear_1", "encoder_attn.k_proj", "encoder_attn.v_proj")
        values |= linear("attention/linear_2", "encoder_attn.out_proj")
        values |= norm("attention", "encoder_attn_layer_norm")
    values |= linear("ffn/linear_0", "fc1") | linear("ffn/linear_1", "fc2")
    return values | norm("ffn", "final_layer_norm")


def quantized(values):
    """Every matrix to int8, one scale a row, rounded to the nearest; stored = value * scale."""
    out = {}
    for name, value in values.items():
        out[name] = value
        if name.endswith("/weight"):
            largest = numpy.abs(value).max(axis=1)
            largest[largest == 0] = 127
            scale = (127 / largest).astype(numpy.float32)
            out[name] = numpy.rint(value * scale[:, None]).astype(numpy.int8)
            out[name + "_scale"] = scale
    return out


def write_binary(values, aliases, path):
    def text(string):
        return struct.pack("<H", len(string) + 1) + string.encode() + b"\0"

    with open(path, "wb") as file:
        file.write(struct.pack("<I", 6) + text("TransformerSpec") + struct.pack("<II", 7, len(values)))
        for name, value in sorted(values.items()):
            file.write(text(name) + struct.pack(f"<B{value.ndim}I", value.ndim, *value.shape))
            file.write(struct.pack("<BI", TYPES[value.dtype.name], value.nbytes) + value.tobytes())
        file.write(struct.pack("<I", len(aliases)))
        for alias, name in sorted(aliases.items()):
            file.write(text(alias) + text(name))
