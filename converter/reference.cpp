#include "converter/reference.h"

#include <algorithm>
#include <cmath>

#include "quant/parallel.h"

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

// x W^T + b for the outputs whose rows of W and b these are.
DoubleMatrix product(const DoubleMatrix& x, std::span<const float> w, std::span<const float> bias) {
  DoubleMatrix y(x.rows, bias.size());
  in_parallel(bias.size(), [&](size_t begin, size_t end) {
    for (size_t n = begin; n < end; ++n)
      for (size_t r = 0; r < x.rows; ++r)
        y.row(r)[n] = dot(x.row(r), w.data() + n * x.cols, x.cols) + static_cast<double>(bias[n]);
  });
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

// Post-norm: LayerNorm(x + Sublayer(x)). Pre-norm: x + Sublayer(LayerNorm(x)).
template <class Sublayer>
DoubleMatrix residual(const DoubleMatrix& x, const NormWeights& norm, const Architecture& arch, Sublayer sublayer) {
  const double epsilon = static_cast<double>(arch.layer_norm_epsilon);
  const bool pre = arch.norm == NormPosition::kPre;
  DoubleMatrix y = sublayer(pre ? layer_norm(x, norm, epsilon) : x);
  for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += x.values[i];
  return pre ? y : layer_norm(std::move(y), norm, epsilon);
}

// embedding * scale + position, for ids at positions 0, 1, ...; appended to x.
Status embed(const Checkpoint& model, Table table, const std::vector<float>& positions, std::span<const int32_t> ids,
             DoubleMatrix& x) {
  x.cols = model.arch.d_model;
  const double scale = static_cast<double>(model.arch.embedding_scale);
  for (size_t at = 0; at < ids.size(); ++at) {
    const Result<std::vector<float>> row = model.weights->rows(table, static_cast<size_t>(ids[at]), 1);
    if (!row) return row.error();
    const float* position = positions.data() + at * x.cols;
    for (size_t i = 0; i < x.cols; ++i)
      x.values.push_back(static_cast<double>((*row)[i]) * scale + static_cast<double>(position[i]));
    ++x.rows;
  }
  return Done{};
}

double epsilon_of(const Checkpoint& model) {
  return static_cast<double>(model.arch.layer_norm_epsilon);
}

}  // namespace

Reference::Reference(const Checkpoint& checkpoint, std::span<const SentencePair> sentences, SeeProduct see)
    : model_(checkpoint), sentences_(sentences), see_(std::move(see)) {
  size_t source = 0, target = 0;
  for (const SentencePair& sentence : sentences) {
    sources_.push_back({source, sentence.source.size()});
    targets_.push_back({target, sentence.target.size()});
    source += sentence.source.size();
    target += sentence.target.size();
  }
}

DoubleMatrix Reference::affine(const DoubleMatrix& x, const LinearWeights& map) const {
  if (see_) see_(map, x);
  return product(x, map.w, map.b);
}

// softmax(q k^T / sqrt(d_head)) v, head by head, within each sentence. causal: position t sees those up to t.
DoubleMatrix Reference::attention(const DoubleMatrix& q, std::span<const Rows> queries, const DoubleMatrix& k,
                                  const DoubleMatrix& v, std::span<const Rows> keys, size_t heads, bool causal) const {
  const size_t d_head = q.cols / heads;
  DoubleMatrix out(q.rows, q.cols);
  const auto attend = [&](size_t h, Rows query_rows, Rows key_rows) {
    for (size_t t = 0; t < query_rows.count; ++t) {
      const double* query = q.row(query_rows.begin + t) + h * d_head;
      std::vector<double> weights(causal ? t + 1 : key_rows.count);
      for (size_t s = 0; s < weights.size(); ++s) {
        const double* key = k.row(key_rows.begin + s) + h * d_head;
        double score = 0;
        for (size_t i = 0; i < d_head; ++i) score += query[i] * key[i];
        weights[s] = score / std::sqrt(static_cast<double>(d_head));
      }
      softmax(weights);
      double* to = out.row(query_rows.begin + t) + h * d_head;
      for (size_t s = 0; s < weights.size(); ++s)
        for (size_t i = 0; i < d_head; ++i) to[i] += weights[s] * v.row(key_rows.begin + s)[h * d_head + i];
    }
  };
  in_parallel(heads, [&](size_t begin, size_t end) {
    for (size_t h = begin; h < end; ++h)
      for (size_t i = 0; i < queries.size(); ++i) attend(h, queries[i], keys[i]);
  });
  return out;
}

// W2 activation(W1 x + b1) + b2
DoubleMatrix Reference::feed_forward(const DoubleMatrix& x, const FeedForwardWeights& w) const {
  DoubleMatrix hidden = affine(x, w.in);
  for (double& value : hidden.values) value = activate(value, model_.arch.activation);
  return affine(hidden, w.out);
}

Status Reference::begin_encoder() {
  x_ = {};
  for (const SentencePair& sentence : sentences_) {
    const Status done = embed(model_, model_.source_table(), model_.encoder_positions, sentence.source, x_);
    if (!done) return done;
  }
  if (model_.has(kEncoderEmbeddingNorm))
    x_ = layer_norm(std::move(x_), model_.encoder_embedding_norm, epsilon_of(model_));
  return Done{};
}

void Reference::layer(const EncoderWeights& layer) {
  const Architecture& arch = model_.arch;
  x_ = residual(x_, layer.self.norm, arch, [&](const DoubleMatrix& y) {
    const auto& w = layer.self;
    const DoubleMatrix q = affine(y, w.q), k = affine(y, w.k), v = affine(y, w.v);
    return affine(attention(q, sources_, k, v, sources_, arch.encoder_heads, false), w.out);
  });
  x_ = residual(x_, layer.ffn.norm, arch, [&](const DoubleMatrix& y) { return feed_forward(y, layer.ffn); });
}

Status Reference::begin_decoder() {
  memory_ = model_.has(kEncoderFinalNorm) ? layer_norm(std::move(x_), model_.encoder_norm, epsilon_of(model_))
                                          : std::move(x_);
  x_ = {};
  const auto& positions = model_.has(kSharedPositions) ? model_.encoder_positions : model_.decoder_positions;
  for (const SentencePair& sentence : sentences_) {
    std::vector<int32_t> fed{static_cast<int32_t>(model_.arch.decoder_start)};  // the target, one step later
    fed.insert(fed.end(), sentence.target.begin(), sentence.target.end() - 1);
    const Status done = embed(model_, Table::kTargetEmbedding, positions, fed, x_);
    if (!done) return done;
  }
  if (model_.has(kDecoderEmbeddingNorm))
    x_ = layer_norm(std::move(x_), model_.decoder_embedding_norm, epsilon_of(model_));
  return Done{};
}

void Reference::layer(const DecoderWeights& layer) {
  const Architecture& arch = model_.arch;
  x_ = residual(x_, layer.self.norm, arch, [&](const DoubleMatrix& y) {
    const auto& w = layer.self;
    const DoubleMatrix q = affine(y, w.q), k = affine(y, w.k), v = affine(y, w.v);
    return affine(attention(q, targets_, k, v, targets_, arch.decoder_heads, true), w.out);
  });
  x_ = residual(x_, layer.cross.norm, arch, [&](const DoubleMatrix& y) {
    const auto& w = layer.cross;
    const DoubleMatrix q = affine(y, w.q), k = affine(memory_, w.k), v = affine(memory_, w.v);
    return affine(attention(q, targets_, k, v, sources_, arch.decoder_heads, false), w.out);
  });
  x_ = residual(x_, layer.ffn.norm, arch, [&](const DoubleMatrix& y) { return feed_forward(y, layer.ffn); });
}

void Reference::end_decoder() {
  if (model_.has(kDecoderFinalNorm)) x_ = layer_norm(std::move(x_), model_.decoder_norm, epsilon_of(model_));
}

Status run_reference(Reference& reference, const Checkpoint& checkpoint) {
  if (const Status begun = reference.begin_encoder(); !begun) return begun;
  for (size_t i = 0; i < checkpoint.arch.encoder_layers; ++i) {
    const Result<EncoderWeights> layer = checkpoint.weights->encoder_layer(i);
    if (!layer) return layer.error();
    reference.layer(*layer);
  }
  if (const Status begun = reference.begin_decoder(); !begun) return begun;
  for (size_t i = 0; i < checkpoint.arch.decoder_layers; ++i) {
    const Result<DecoderWeights> layer = checkpoint.weights->decoder_layer(i);
    if (!layer) return layer.error();
    reference.layer(*layer);
  }
  reference.end_decoder();
  return Done{};
}

Status for_each_logits(const Checkpoint& checkpoint, const DoubleMatrix& hidden,
                       const std::function<void(size_t first, const DoubleMatrix& logits)>& see) {
  constexpr size_t kIds = 4096;
  const std::span<const float> bias = checkpoint.output_bias;
  for (size_t first = 0; first < bias.size(); first += kIds) {
    const size_t count = std::min(kIds, bias.size() - first);
    const Result<std::vector<float>> rows = checkpoint.weights->rows(checkpoint.output_table(), first, count);
    if (!rows) return rows.error();
    see(first, product(hidden, *rows, bias.subspan(first, count)));
  }
  return Done{};
}

}  // namespace dragoman
