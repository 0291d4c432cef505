#include "converter/calibration.h"

#include <algorithm>

#include "converter/arbitrary_ids.h"

namespace dragoman {
namespace {

double count_weights(const Architecture& arch) {
  const double d = arch.d_model;
  return arch.encoder_layers * (4 * d * d + 2 * d * arch.encoder_ffn) +
         arch.decoder_layers * (8 * d * d + 2 * d * arch.decoder_ffn);
}

// Ids that a translation is made of. Some models forbid pieces of the other language by their bias alone (-100).
std::vector<int32_t> producible_ids(const Checkpoint& checkpoint) {
  const std::vector<float>& bias = checkpoint.output_bias;
  const float least = *std::max_element(bias.begin(), bias.end()) - 20;
  std::vector<int32_t> ids;
  for (size_t id = 0; id < bias.size(); ++id) {
    if (bias[id] >= least && id != checkpoint.arch.eos) ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace

// 8 to 31 ids with eos each; fewer for larger models, whose reference takes longer.
std::vector<SentencePair> calibration_sentences(const Checkpoint& checkpoint) {
  const Architecture& arch = checkpoint.arch;
  const size_t count = std::clamp<size_t>(static_cast<size_t>(1e9 / count_weights(arch)), 32, 128);
  const std::vector<int32_t> producible = producible_ids(checkpoint);
  std::vector<SentencePair> sentences;
  for (size_t i = 0; i < count; ++i) {
    const size_t length = std::min<size_t>(7 + i % 24, arch.positions - 1);
    SentencePair& sentence = sentences.emplace_back();
    sentence.source = arbitrary_ids(arch, arch.source_vocabulary, length, 1000 + i);
    for (const int32_t pick : arbitrary_ids(arch, arch.target_vocabulary, length, 2000 + i))
      sentence.target.push_back(producible.empty() ? pick : producible[static_cast<size_t>(pick) % producible.size()]);
    for (std::vector<int32_t>* ids : {&sentence.source, &sentence.target})
      ids->push_back(static_cast<int32_t>(arch.eos));
  }
  return sentences;
}

}  // namespace dragoman
