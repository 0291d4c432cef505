// The Transformer of Vaswani et al. (2017) in double precision and plain loops, on the original weights. It shares no
// code with the kernels, the packing or the runtime: it is what they are measured against, written to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "converter/checkpoint.h"

namespace dragoman {

struct DoubleMatrix {
  size_t rows = 0, cols = 0;
  std::vector<double> values;

  DoubleMatrix() = default;
  DoubleMatrix(size_t r, size_t c) : rows(r), cols(c), values(r * c) {}
  double* row(size_t r) { return values.data() + r * cols; }
  const double* row(size_t r) const { return values.data() + r * cols; }
};

// Ids with eos. The decoder is fed `target` whatever it would have chosen.
struct SentencePair {
  std::vector<int32_t> source, target;  // neither empty, nor longer than `positions`
};

// Called with every product's weights and input, before it is computed.
using SeeProduct = std::function<void(const LinearWeights&, const DoubleMatrix& x)>;

// All sentences go through a layer before the next layer is needed. In this order: begin_encoder(), every encoder
// layer, begin_decoder(), every decoder layer, end_decoder().
class Reference {
 public:
  // Both must outlive this.
  Reference(const Checkpoint& checkpoint, std::span<const SentencePair> sentences, SeeProduct see = {});

  Status begin_encoder();
  void layer(const EncoderWeights& layer);
  Status begin_decoder();
  void layer(const DecoderWeights& layer);
  void end_decoder();

  // After begin_decoder(): the encoder's output, a row for each source id, sentence after sentence.
  const DoubleMatrix& memory() const { return memory_; }
  // After end_decoder(): what the output layer is fed, a row for each target id, sentence after sentence.
  const DoubleMatrix& hidden() const { return x_; }

 private:
  // Which rows of x are one sentence's.
  struct Rows {
    size_t begin, count;
  };
  DoubleMatrix affine(const DoubleMatrix& x, const LinearWeights& map) const;
  DoubleMatrix attention(const DoubleMatrix& q, std::span<const Rows> queries, const DoubleMatrix& k,
                         const DoubleMatrix& v, std::span<const Rows> keys, size_t heads, bool causal) const;
  DoubleMatrix feed_forward(const DoubleMatrix& x, const FeedForwardWeights& w) const;

  const Checkpoint& model_;
  std::span<const SentencePair> sentences_;
  SeeProduct see_;
  std::vector<Rows> sources_, targets_;
  DoubleMatrix x_, memory_;
};

// All of the above, layer after layer.
Status run_reference(Reference& reference, const Checkpoint& checkpoint);

// The output layer, some ids at a time: see(first, logits (hidden rows, ids from `first` on)), with the output bias.
Status for_each_logits(const Checkpoint& checkpoint, const DoubleMatrix& hidden,
                       const std::function<void(size_t first, const DoubleMatrix& logits)>& see);

}  // namespace dragoman
