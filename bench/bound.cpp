#include "bench/bound.h"

#include <algorithm>

namespace dragoman::bench {

double working_set(const ProfilePart& part, const Profile& profile) {
  if (part.kind == Kind::kOther || (part.encoder && part.kind == Kind::kAttention))
    return static_cast<double>(part.total.largest);  // made a moment ago
  const double decoder = static_cast<double>(profile.decoder_weights);
  // Between two readings of an encoder's weight a whole sentence is decoded.
  if (part.encoder) return decoder + static_cast<double>(profile.encoder_weights);
  double key_values = 0;
  for (const ProfilePart& other : profile.parts) {
    if (!other.encoder && other.kind == Kind::kAttention) key_values += static_cast<double>(other.total.bytes);
  }
  return decoder + key_values / static_cast<double>(std::max<uint64_t>(profile.steps, 1));
}

std::vector<size_t> working_sets(const Profile& profile) {
  std::vector<size_t> sets;
  for (const ProfilePart& part : profile.parts) {
    if (part.kind != Kind::kOther) sets.push_back(static_cast<size_t>(working_set(part, profile)));
  }
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  return sets;
}

Bound bound_of(const ProfilePart& part, const Profile& profile, const MachineLimits& limits) {
  const Counters& total = part.total;
  Bound bound;
  bound.memory = static_cast<double>(total.bytes) / limits.read_rate(working_set(part, profile));
  bound.arithmetic = static_cast<double>(total.s8) / limits.s8 + static_cast<double>(total.f32) / limits.f32;
  bound.seconds = std::max(bound.memory, bound.arithmetic);
  if (bound.memory > bound.arithmetic) bound.waiting = bound.memory;
  return bound;
}

Bound bound_of(const Profile& profile, const MachineLimits& limits) {
  Bound all;
  for (const bool encoder : {true, false}) {
    Bound side;
    for (const ProfilePart& part : profile.parts) {
      if (part.encoder != encoder || part.kind == Kind::kOther) continue;
      const Bound one = bound_of(part, profile, limits);
      side.memory += one.memory;
      side.arithmetic += one.arithmetic;
    }
    all.memory += side.memory;
    all.arithmetic += side.arithmetic;
    all.seconds += std::max(side.memory, side.arithmetic);
    if (side.memory > side.arithmetic) all.waiting += side.memory;
  }
  return all;
}

}  // namespace dragoman::bench
