"""The model that every system runs: seeded random weights under the names of a HuggingFace MarianMT checkpoint.

Linear layers are (outputs, inputs) as in PyTorch: y = x W^T + b. The writers beside this file turn the same dictionary
into what each system reads.
"""
import numpy

PIECES = 32000
EOS, UNK, PAD = 0, 1, PIECES - 1  # Marian demands eos 0 and unk 1; MarianMT checkpoints have pad last
POSITIONS = 512
# Far below every logit (they are below 10), and not so far that rounding it would show in a sum.
NEVER = -1000.0
# What a sublayer adds to what passes by it. Louder ones forget the last piece, and all sentences end in one loop.
BRANCH = 0.3

# encoder layers, decoder layers, d_model, feed-forward, heads: as dragoman-bench --synthetic has them.
SHAPES = {
    "tiny": (6, 2, 256, 1536, 8),
    "base-memory": (6, 4, 384, 1536, 8),
    "base": (6, 6, 512, 2048, 8),
    "big": (6, 6, 1024, 4096, 16),
}


class Model:
    """name, sizes and tensors of one shape."""

    def __init__(self, name, seed=42):
        self.name = name
        self.encoder_layers, self.decoder_layers, self.d, self.ffn, self.heads = SHAPES[name]
        self.random = numpy.random.default_rng(seed)
        self.tensors = {}
        self._embedding()
        for i in range(self.encoder_layers):
            self._attention(f"model.encoder.layers.{i}.self_attn")
            self._feed_forward(f"model.encoder.layers.{i}")
        for i in range(self.decoder_layers):
            self._attention(f"model.decoder.layers.{i}.self_attn")
            self._attention(f"model.decoder.layers.{i}.encoder_attn")
            self._feed_forward(f"model.decoder.layers.{i}")
        positions = sinusoids(POSITIONS, self.d)
        self.tensors["model.encoder.embed_positions.weight"] = positions
        self.tensors["model.decoder.embed_positions.weight"] = positions

    def __getitem__(self, name):
        return self.tensors[name]

    def _normal(self, shape, deviation):
        return self.random.standard_normal(shape, dtype=numpy.float32) * numpy.float32(deviation)

    def _embedding(self):
        # Variance 1/d: times sqrt(d), as all systems scale it, that is of unit size. The decoder starts from pad, which
        # is a row of zeros in MarianMT and no embedding at all in Marian.
        embedding = self._normal((PIECES, self.d), self.d ** -0.5)
        embedding[PAD] = 0
        bias = self._normal((1, PIECES), 0.01)
        bias[0, [EOS, UNK, PAD]] = NEVER
        self.tensors["model.shared.weight"] = embedding
        self.tensors["final_logits_bias"] = bias

    def _linear(self, name, outputs, inputs, gain=1):
        # Glorot and Bengio 2010: outputs as large as inputs, so that no layer explodes or dies. Normal and not uniform:
        # as trained weights are, and kinder to int8 products that saturate.
        self.tensors[name + ".weight"] = self._normal((outputs, inputs), gain * (2 / (outputs + inputs)) ** 0.5)
        self.tensors[name + ".bias"] = self._normal((outputs,), 0.01)

    def _norm(self, name):
        # Random signs. With ones alone, the tied embedding makes every piece predict itself, for ever: sentences of one
        # piece would be equal in systems that compute different things.
        self.tensors[name + ".weight"] = numpy.where(self.random.random(self.d) < 0.5, -1, 1).astype(numpy.float32)
        self.tensors[name + ".bias"] = numpy.zeros(self.d, numpy.float32)

    def _attention(self, name):
        for part, gain in ("q_proj", 1), ("k_proj", 1), ("v_proj", 1), ("out_proj", BRANCH):
            self._linear(f"{name}.{part}", self.d, self.d, gain)
        self._norm(name + "_layer_norm")

    def _feed_forward(self, name):
        self._linear(name + ".fc1", self.ffn, self.d)
        self._linear(name + ".fc2", self.d, self.ffn, BRANCH)
        self._norm(name + ".final_layer_norm")


def sinusoids(positions, d):
    """(positions, d): sines, then cosines, with Marian's frequencies.

    Marian computes them as 10000^(-i / (d/2 - 1)) and cannot be told otherwise; the others read this table.
    """
    rate = 10000.0 ** (-numpy.arange(d // 2) / (d / 2 - 1))
    angle = numpy.arange(positions)[:, None] * rate
    return numpy.concatenate([numpy.sin(angle), numpy.cos(angle)], axis=1).astype(numpy.float32)


def pieces():
    """The piece of every id: its number, so that one file of numbers is the input of every system."""
    return ["</s>", "<unk>"] + [str(i) for i in range(2, PAD)] + ["<pad>"]


def sources(count, length, seed=1):
    """count sources of length - 1 ids each: every system adds eos itself."""
    random = numpy.random.default_rng(seed)
    return random.integers(UNK + 1, PAD, (count, length - 1)).tolist()
