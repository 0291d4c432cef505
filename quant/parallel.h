// Independent items on all cores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace dragoman {

// f(begin, end) for contiguous pieces of [0, n), one for each core. Every item must be computed alone: then no result
// depends on how many cores there are. What one throws is thrown here, after all have ended.
template <class F>
void in_parallel(size_t n, const F& f) {
  const size_t pieces = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, std::max<size_t>(n, 1));
  std::vector<std::exception_ptr> thrown(pieces);
  const auto run = [&](size_t piece) {
    try {
      f(n * piece / pieces, n * (piece + 1) / pieces);
    } catch (...) {
      thrown[piece] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t piece = 1; piece < pieces; ++piece) {
      try {
        others.emplace_back(run, piece);
      } catch (const std::system_error&) {  // no thread to be had: the same, later
        run(piece);
      }
    }
    run(0);
  }
  for (const std::exception_ptr& exception : thrown) {
    if (exception) std::rethrow_exception(exception);
  }
}

}  // namespace dragoman
