// Corpus BLEU (Papineni et al. 2002) with the 13a tokenisation of mteval-v13a, cased, one reference per line: the
// figure that sacreBLEU prints by default. Checked against a published score in tests/quality_test.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace dragoman::bench {

// Words and punctuation as mteval-v13a separates them.
std::vector<std::string> tokenize_13a(const std::string& line);

struct Bleu {
  double score = 0;            // 0..100
  double precision[4] = {};    // of 1-grams to 4-grams, in per cent
  double brevity_penalty = 0;  // 1 when the hypothesis is not shorter
  size_t hypothesis_length = 0, reference_length = 0;
};

// Both hold one sentence per element and have the same size.
Bleu corpus_bleu(std::span<const std::string> hypothesis, std::span<const std::string> reference);

}  // namespace dragoman::bench
