#include "converter/reference.h"

#include <algorithm>
#include <cmath>

namespace dragoman {
namespace {

// Eight partial sums let the compiler use vectors; the order does not matter at 53 bits.
double dot(const double* x, const float* w, size_t n) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (size_t j = 0; j < 8; ++j) sums[j] += x[i + j] * static_cast<double>(w[i + j]);
  double sum = 0;
  for (; i < n; ++i) sum += x[i] * static_cast<double>(w[i]);
  for (const double partial : sums) sum += partial;
  return sum;
}

// x W^T + b, shown to whoever wants to see it.
struct Affine {
  const SeeProduct& see;

  DoubleMatrix operator()(const DoubleMatrix& x, const LinearWeights& map, const std::vector<float>& bias) const;
  DoubleMatrix operator()(const DoubleMatrix& x, const LinearWeights& map) const { return (*this)(x, map, map.b); }
};

DoubleMatrix Affine::operator()(const DoubleMatrix& x, const LinearWeights& map, const std::vector<float>& bias) const {
  if (see) see(map, x);
  DoubleMatrix y(x.rows, map.n);
  for (size_t n = 0; n < map.n; ++n)
    for (size_t r = 0; r < x.rows; ++r)
      y.row(r)[n] = dot(x.row(r), map.w.data() + n * map.k, map.k) + static_cast<double>(bias[n]);
  return y;
}

// (x - mean) / sqrt(variance + epsilon) * gamma + beta, row by row.
DoubleMatrix layer_norm(DoubleMatrix x, const NormWeights& norm, double epsilon) {
  const auto d = static_cast<double>(x.cols);
  for (size_t r = 0; r < x.rows; ++r) {
    double* row = x.row(r);
    double mean = 0, variance = 0;
    for (size_t i = 0; i < x.cols; ++i) mean += row[i] / d;
    for (size_t i = 0; i < x.cols; ++i) variance += (row[i] - mean) * (row[i] - mean) / d;
    for (size_t i = 0; i < x.cols; ++i)
      row[i] = (row[i] - mean) / std::sqrt(variance + epsilon) * static_cast<double>(norm.gamma[i]) +
               static_cast<double>(norm.beta[i]);
  }
  return x;
}

void softmax(std::vector<double>& x) {
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - top);
  for (double& value : x) value /= sum;
}

// softmax(q k^T / sqrt(d_head)) v, head by head. q (T, d), k and v (S, d). Every query sees every key: in the encoder
// that is what is wanted, in the decoder later positions do not exist yet.
DoubleMatrix attention(const DoubleMatrix& q, const DoubleMatrix& k, const DoubleMatrix& v, size_t heads) {
  const size_t d_head = q.cols / heads;
  DoubleMatrix out(q.rows, q.cols);
  std::vector<double> weights(k.rows);
  for (size_t h = 0; h < heads; ++h) {
    for (size_t t = 0; t < q.rows; ++t) {
      const double* query = q.row(t) + h * d_head;
      for (size_t s = 0; s < k.rows; ++s) {
        const double* key = k.row(s) + h * d_head;
        double score = 0;
        for (size_t i = 0; i < d_head; ++i) score += query[i] * key[i];
        weights[s] = score / std::sqrt(static_cast<double>(d_head));
      }
      softmax(weights);
      for (size_t s = 0; s < v.rows; ++s)
        for (size_t i = 0; i < d_head; ++i) out.row(t)[h * d_head + i] += weights[s] * v.row(s)[h * d_head + i];
    }
  }
  return out;
}

double activate(double x, Activation activation) {
  constexpr double kSqrtHalf = 0.70710678118654752440, kSqrt2OverPi = 0.79788456080286535588;
  switch (activation) {
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return x * 0.5 * (1 + std::erf(x * kSqrtHalf));
    case Activation::kGeluTanh:
      return x * 0.5 * (1 + std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x)));
  }
  return x;
}

// W2 activation(W1 x + b1) + b2
DoubleMatrix feed_forward(const Affine& affine, const DoubleMatrix& x, const FeedForwardWeights& w,
                          Activation activation) {
  DoubleMatrix hidden = affine(x, w.in);
  for (double& value : hidden.values) value = activate(value, activation);
  return affine(hidden, w.out);
}

// Post-norm: LayerNorm(x + Sublayer(x)). Pre-norm: x + Sublayer(LayerNorm(x)).
template <class Sublayer>
DoubleMatrix residual(const DoubleMatrix& x, const NormWeights& norm, const Architecture& arch, Sublayer sublayer) {
  const double epsilon = static_cast<double>(arch.layer_norm_epsilon);
  const bool pre = arch.norm == NormPosition::kPre;
  DoubleMatrix y = sublayer(pre ? layer_norm(x, norm, epsilon) : x);
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += x.values[i];
  return pre ? y : layer_norm(std::move(y), norm, epsilon);
}

// embedding * scale + position, for ids at positions first, first + 1, ...
DoubleMatrix embed(const LinearWeights& table, const std::vector<float>& positions, double scale,
                   std::span<const int32_t> ids, size_t first) {
  DoubleMatrix x(ids.size(), table.k);
  for (size_t r = 0; r < ids.size(); ++r) {
    const float* row = table.w.data() + static_cast<size_t>(ids[r]) * table.k;
    const float* position = positions.data() + (first + r) * table.k;
    for (size_t i = 0; i < table.k; ++i)
      x.row(r)[i] = static_cast<double>(row[i]) * scale + static_cast<double>(position[i]);
  }
  return x;
}

DoubleMatrix encode(const Affine& affine, const Checkpoint& model, std::span<const int32_t> source) {
  const Architecture& arch = model.arch;
  const double epsilon = static_cast<double>(arch.layer_norm_epsilon);
  DoubleMatrix x =
      embed(model.embedding_of_source(), model.encoder_positions, static_cast<double>(arch.embedding_scale), source, 0);
  if (model.has(kEncoderEmbeddingNorm)) x = layer_norm(std::move(x), model.encoder_embedding_norm, epsilon);
  for (const EncoderWeights& layer : model.encoder) {
    x = residual(x, layer.self.norm, arch, [&](const DoubleMatrix& y) {
      const auto& w = layer.self;
      return affine(attention(affine(y, w.q), affine(y, w.k), affine(y, w.v), arch.encoder_heads), w.out);
    });
    x = residual(x, layer.ffn.norm, arch,
                 [&](const DoubleMatrix& y) { return feed_forward(affine, y, layer.ffn, arch.activation); });
  }
  if (model.has(kEncoderFinalNorm)) x = layer_norm(std::move(x), model.encoder_norm, epsilon);
  return x;
}

void append(DoubleMatrix& to, const DoubleMatrix& rows) {
  to.values.insert(to.values.end(), rows.values.begin(), rows.values.end());
  to.rows += rows.rows;
  to.cols = rows.cols;
}

// The decoder, one position at a time. K and V of earlier positions do not change, so they are kept; the causal mask of
// the paper holds because later ones are not there.
class DecoderState {
 public:
  DecoderState(const Affine& see, const Checkpoint& model, const DoubleMatrix& memory)
      : affine(see), model_(model), self_(model.decoder.size()) {
    for (const DecoderWeights& layer : model.decoder)
      cross_.push_back({affine(memory, layer.cross.k), affine(memory, layer.cross.v)});
  }

  // (1, target_vocabulary) logits of the id that follows `id`.
  DoubleMatrix step(int32_t id) {
    const Architecture& arch = model_.arch;
    const double epsilon = static_cast<double>(arch.layer_norm_epsilon);
    const auto& positions = model_.has(kSharedPositions) ? model_.encoder_positions : model_.decoder_positions;
    DoubleMatrix x =
        embed(model_.target_embedding, positions, static_cast<double>(arch.embedding_scale), {&id, 1}, position_++);
    if (model_.has(kDecoderEmbeddingNorm)) x = layer_norm(std::move(x), model_.decoder_embedding_norm, epsilon);
    for (size_t i = 0; i < model_.decoder.size(); ++i) {
      const DecoderWeights& layer = model_.decoder[i];
      x = residual(x, layer.self.norm, arch, [&](const DoubleMatrix& y) {
        append(self_[i].k, affine(y, layer.self.k));
        append(self_[i].v, affine(y, layer.self.v));
        const DoubleMatrix q = affine(y, layer.self.q);
        return affine(attention(q, self_[i].k, self_[i].v, arch.decoder_heads), layer.self.out);
      });
      x = residual(x, layer.cross.norm, arch, [&](const DoubleMatrix& y) {
        const DoubleMatrix q = affine(y, layer.cross.q);
        return affine(attention(q, cross_[i].k, cross_[i].v, arch.decoder_heads), layer.cross.out);
      });
      x = residual(x, layer.ffn.norm, arch,
                   [&](const DoubleMatrix& y) { return feed_forward(affine, y, layer.ffn, arch.activation); });
    }
    if (model_.has(kDecoderFinalNorm)) x = layer_norm(std::move(x), model_.decoder_norm, epsilon);
    return affine(x, model_.output_layer(), model_.output_bias);
  }

 private:
  struct KeyValue {
    DoubleMatrix k, v;
  };
  const Affine& affine;
  const Checkpoint& model_;
  std::vector<KeyValue> self_, cross_;
  size_t position_ = 0;
};

}  // namespace

ReferenceRun Reference::run(std::span<const int32_t> source, size_t max_steps, std::span<const int32_t> forced) const {
  ReferenceRun result;
  const Affine affine{see_};
  result.memory = encode(affine, model_, source);
  DecoderState decoder(affine, model_, result.memory);
  int32_t id = static_cast<int32_t>(model_.arch.decoder_start);
  for (size_t step = 0; step < max_steps; ++step) {
    const DoubleMatrix logits = decoder.step(id);
    append(result.logits, logits);
    const auto best = std::max_element(logits.values.begin(), logits.values.end());
    result.ids.push_back(static_cast<int32_t>(best - logits.values.begin()));
    id = forced.empty() ? result.ids.back() : forced[step];
    if (forced.empty() && id == static_cast<int32_t>(model_.arch.eos)) break;
  }
  return result;
}

ReferenceRun Reference::greedy(std::span<const int32_t> source, size_t max_steps) const {
  return run(source, std::min<size_t>(max_steps, model_.arch.positions), {});
}

ReferenceRun Reference::follow(std::span<const int32_t> source, std::span<const int32_t> target) const {
  return run(source, target.size(), target);
}

}  // namespace dragoman
