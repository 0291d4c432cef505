"""A HuggingFace MarianMT folder: what dragoman-convert reads."""
import json
import struct

from synthetic import EOS, PAD, PIECES, POSITIONS, pieces

# sentencepiece_model.proto: ModelProto.pieces = 1 {piece = 1, score = 2, type = 3}, trainer_spec = 2 {model_type = 3},
# normalizer_spec = 3 (empty: text stays as it is).
NORMAL, UNKNOWN, CONTROL, UNIGRAM = 1, 2, 3, 1


def write_folder(model, folder):
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(model.tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config(model), indent=1))
    # The word sign makes each piece a word of its own.
    spelt = [piece if piece.startswith("<") else "\u2581" + piece for piece in pieces()]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(spelt)}))
    for side in "source.spm", "target.spm":
        (folder / side).write_bytes(sentencepiece_model(spelt))


def config(model):
    return {
        "architectures": ["MarianMTModel"], "model_type": "marian", "is_encoder_decoder": True,
        "d_model": model.d, "encoder_layers": model.encoder_layers, "decoder_layers": model.decoder_layers,
        "encoder_attention_heads": model.heads, "decoder_attention_heads": model.heads,
        "encoder_ffn_dim": model.ffn, "decoder_ffn_dim": model.ffn, "activation_function": "relu",
        "scale_embedding": True, "static_position_embeddings": True, "normalize_before": False,
        "vocab_size": PIECES, "decoder_vocab_size": PIECES, "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True, "pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": PAD,
        "bad_words_ids": [[PAD]], "max_position_embeddings": POSITIONS, "num_beams": 1,
    }


def write_safetensors(tensors, path):
    """u64 length of the header, the header in JSON, then the tensors one after another."""
    header, offset = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, payload):
    """One field of a protobuf message: a number as a varint, bytes with their length."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def sentencepiece_model(spelt):
    kinds = {"<unk>": UNKNOWN, "</s>": CONTROL, "<pad>": CONTROL}
    out = []
    for i, piece in enumerate(spelt):
        score = varint(2 << 3 | 5) + struct.pack("<f", -float(i))
        out.append(field(1, field(1, piece.encode()) + score + field(3, kinds.get(piece, NORMAL))))
    return b"".join(out) + field(2, field(3, UNIGRAM)) + field(3, b"")
