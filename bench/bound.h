// The least time a run could take on this machine: what it must read, at the rate memory gives it; what it must
// multiply, at the rate of the fastest exact instructions; whichever takes longer.
#pragma once

#include <vector>

#include "bench/limits.h"
#include "bench/profile.h"

namespace dragoman::bench {

struct Bound {
  double memory = 0, arithmetic = 0;  // seconds, each alone
  double seconds = 0;                 // both, overlapping as well as they can
  double waiting = 0;                 // of these, where memory is the limit
  bool by_memory() const { return 2 * waiting > seconds; }
};

// Of one part. Its bytes come from a working set that decides which cache they can be in.
Bound bound_of(const ProfilePart& part, const Profile& profile, const MachineLimits& limits);

// Of the whole run: the products and attention. All else could be done in passing, so it counts as nothing here.
// The encoder's and the decoder's side overlap within themselves only.
Bound bound_of(const Profile& profile, const MachineLimits& limits);

// Bytes that come round again and again, a part's own among them.
double working_set(const ProfilePart& part, const Profile& profile);
// Those of all its products, growing, each once.
std::vector<size_t> working_sets(const Profile& profile);

}  // namespace dragoman::bench
