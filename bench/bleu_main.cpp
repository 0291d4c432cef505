// dragoman-bleu HYPOTHESIS REFERENCE: corpus BLEU of two files, line by line.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "bench/bleu.h"

namespace {

bool read_lines(const char* path, std::vector<std::string>& lines) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return in.eof();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || argv[1][0] == '-') {
    std::FILE* out = argc > 1 && std::strcmp(argv[1], "--help") == 0 ? stdout : stderr;
    std::fputs(
        "usage: dragoman-bleu HYPOTHESIS REFERENCE\n\nCorpus BLEU of the lines of HYPOTHESIS against those of "
        "REFERENCE: cased, 13a tokenisation,\nas sacreBLEU computes it by default.\n",
        out);
    return out == stdout ? 0 : 2;
  }
  std::vector<std::string> lines[2];
  for (int i = 0; i < 2; ++i) {
    if (!read_lines(argv[i + 1], lines[i])) return std::fprintf(stderr, "%s cannot be read\n", argv[i + 1]), 1;
  }
  if (lines[0].size() != lines[1].size() || lines[0].empty()) {
    std::fprintf(stderr, "%s has %zu lines and %s has %zu: they must have the same number, at least one\n", argv[1],
                 lines[0].size(), argv[2], lines[1].size());
    return 1;
  }
  const dragoman::bench::Bleu bleu = dragoman::bench::corpus_bleu(lines[0], lines[1]);
  std::printf("BLEU %.2f  %.1f/%.1f/%.1f/%.1f  (brevity penalty %.3f, %zu words against %zu, %zu lines)\n", bleu.score,
              bleu.precision[0], bleu.precision[1], bleu.precision[2], bleu.precision[3], bleu.brevity_penalty,
              bleu.hypothesis_length, bleu.reference_length, lines[0].size());
}
