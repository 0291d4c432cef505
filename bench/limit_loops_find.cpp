// Which sets of loops this build has: one per table of kernels.
#include <cstring>
#include <initializer_list>

#include "bench/limit_loops.h"

namespace dragoman::bench {

#define DRAGOMAN_LIMIT(tag) extern const LimitLoops kLimit##tag;
DRAGOMAN_LIMITS
#undef DRAGOMAN_LIMIT

const LimitLoops* find_limit_loops(const char* isa) {
#define DRAGOMAN_LIMIT(tag) &kLimit##tag,
  for (const LimitLoops* loops : {DRAGOMAN_LIMITS}) {
    if (std::strcmp(loops->isa, isa) == 0) return loops;
  }
  return nullptr;
}

}  // namespace dragoman::bench
