// The roofline (Williams, Waterman and Patterson 2009) of this machine, with our products and attention on it.
#pragma once

#include <string>

#include "bench/measure.h"

namespace dragoman::bench {

// An SVG image: multiply-adds per second over multiply-adds per byte, both logarithmic. A point cannot be above the
// roof it belongs to. Of the first instruction set and number of threads.
std::string roofline_svg(const Results& results);

}  // namespace dragoman::bench
