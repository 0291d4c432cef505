// Says which tables it runs, so that the log of an emulated run shows what was executed, then runs the tests.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "kernels/kernels.h"

int main(int argc, char** argv) {
  std::printf("tables:");
  for (const dragoman::Kernels* kernels : dragoman::available_kernels()) std::printf(" %s", kernels->name);
  std::printf("\n");
  std::fflush(stdout);
  return doctest::Context(argc, argv).run();
}
