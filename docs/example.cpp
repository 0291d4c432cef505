// Translates standard input line by line, 8 lines side by side. Usage: example MODEL.dgm < lines
//   c++ -std=c++20 example.cpp $(pkg-config --cflags --libs dragoman) -o example
#include <cstdio>
#include <dragoman.hpp>
#include <iostream>
#include <string>

namespace dg = dragoman::v1;

// The current line, and where the translations go.
struct Lines {
  std::string line;
  bool have = false;

  static int peek(void* user, dragoman_input* input) {
    Lines& self = *static_cast<Lines*>(user);
    if (!self.have) self.have = static_cast<bool>(std::getline(std::cin, self.line));
    if (!self.have) return 0;
    *input = {self.line.data(), self.line.size(), 1};
    return 1;
  }
  static void take(void* user, size_t bytes) {
    Lines& self = *static_cast<Lines*>(user);
    self.line.erase(0, bytes);
    self.have = !self.line.empty();
  }
  static void part(void*, const dragoman_output* output) {
    std::cout.write(output->text, static_cast<std::streamsize>(output->bytes)) << (output->line_end ? '\n' : ' ');
  }
};

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s MODEL.dgm < lines\n", argv[0]), 2;
  dg::Error error;
  const dg::Model model = dg::Model::open(argv[1], error);
  dg::Translator translator = dg::Translator::start(model, {.slots = 8, .threads = 1}, error);
  if (!translator) return std::fprintf(stderr, "%s\n", error.text), 1;

  Lines lines;
  translator.translate_lines({Lines::peek, Lines::take, Lines::part, &lines});
}
