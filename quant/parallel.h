// Independent items on all cores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace dragoman {

// f(begin, end) for contiguous pieces of [0, n), one for each core. Every item must be computed alone: then no result
// depends on how many cores there are.
template <class F>
void in_parallel(size_t n, const F& f) {
  const size_t pieces = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, std::max<size_t>(n, 1));
  std::vector<std::jthread> others;
  for (size_t i = 1; i < pieces; ++i) {
    const size_t begin = n * i / pieces, end = n * (i + 1) / pieces;
    try {
      others.emplace_back([&f, begin, end] { f(begin, end); });
    } catch (const std::system_error&) {  // no more threads: the same, later
      f(begin, end);
    }
  }
  f(size_t{0}, n / pieces);
}

}  // namespace dragoman
