#include "bench/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace dragoman::bench {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_point(char c) {
  return c == '.' || c == ',';
}
// The ASCII punctuation that always stands alone: all but the apostrophe, comma, hyphen and full stop.
bool is_separate(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Rewrites every non-overlapping pair of characters for which `match` holds, left to right, as `before` x `between` y
// `after`: what a regular expression of two groups does.
template <class Match>
std::string rewrite_pairs(const std::string& text, const Match& match, const char* before, const char* between,
                          const char* after) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && match(text[i], text[i + 1])) {
      out += before;
      out += text[i];
      out += between;
      out += text[++i];
      out += after;
    } else {
      out += text[i];
    }
  }
  return out;
}

using Counts = std::map<std::vector<std::string>, size_t>;

Counts count_ngrams(const std::vector<std::string>& words, size_t n) {
  Counts counts;
  for (size_t i = 0; i + n <= words.size(); ++i) ++counts[{words.begin() + i, words.begin() + i + n}];
  return counts;
}

}  // namespace

std::vector<std::string> tokenize_13a(const std::string& line) {
  std::string text = replace_all(line, "<skipped>", "");
  text = replace_all(text, "&quot;", "\"");
  text = replace_all(text, "&amp;", "&");
  text = replace_all(text, "&lt;", "<");
  text = " " + replace_all(text, "&gt;", ">") + " ";
  std::string spaced;
  for (const char c : text) {
    if (is_separate(c)) {
      spaced += {' ', c, ' '};
    } else {
      spaced += c;
    }
  }
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return !is_digit(a) && is_point(b); }, "", " ", " ");
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return is_point(a) && !is_digit(b); }, " ", " ", "");
  spaced = rewrite_pairs(
      spaced, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ", " ");
  std::vector<std::string> words;
  std::string word;
  for (const char c : spaced + " ") {
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

Bleu corpus_bleu(std::span<const std::string> hypothesis, std::span<const std::string> reference) {
  Bleu bleu;
  size_t matched[4] = {}, total[4] = {};
  for (size_t i = 0; i < hypothesis.size(); ++i) {
    const auto words = tokenize_13a(hypothesis[i]), wanted = tokenize_13a(reference[i]);
    bleu.hypothesis_length += words.size();
    bleu.reference_length += wanted.size();
    for (size_t n = 1; n <= 4; ++n) {
      const Counts have = count_ngrams(words, n), want = count_ngrams(wanted, n);
      for (const auto& [ngram, count] : have) {
        total[n - 1] += count;
        const auto found = want.find(ngram);
        if (found != want.end()) matched[n - 1] += std::min(count, found->second);
      }
    }
  }
  double log_sum = 0;
  for (size_t n = 0; n < 4; ++n) {
    bleu.precision[n] = total[n] ? 100.0 * static_cast<double>(matched[n]) / static_cast<double>(total[n]) : 0;
    log_sum += std::log(bleu.precision[n] / 100) / 4;
  }
  const double ratio = static_cast<double>(bleu.reference_length) / static_cast<double>(bleu.hypothesis_length);
  bleu.brevity_penalty = bleu.hypothesis_length == 0 ? 0 : ratio > 1 ? std::exp(1 - ratio) : 1;
  bleu.score = 100 * bleu.brevity_penalty * std::exp(log_sum);
  return bleu;
}

}  // namespace dragoman::bench
