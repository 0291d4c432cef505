#include "runtime/languages.h"
#include "runtime/text_split.h"

#include <algorithm>
#include <cstdio>

namespace dragoman {
namespace {

constexpr size_t kListed = 20;

size_t common_prefix(std::string_view a, std::string_view b) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(differ.first - a.begin());
}

}  // namespace

std::string_view list_languages(const Model& model, std::string_view near, size_t most, std::span<char> room) {
  const Tokenizer& tokenizer = model.source;
  near = beginning_of(near, 16);
  size_t total = 0, listed = 0, used = 0;
  for (int32_t id = -1; (id = tokenizer.next_language(id)) >= 0;) ++total;
  constexpr size_t kEnding = 32;  // " and 12345 more"
  for (size_t alike = near.size() + 1; alike-- > 0;) {
    for (int32_t id = -1; (id = tokenizer.next_language(id)) >= 0 && listed < most;) {
      const std::string_view name = tokenizer.language(id);
      if (common_prefix(name, near) != alike) continue;
      if (used + name.size() + 2 + kEnding > room.size()) break;
      used += static_cast<size_t>(std::snprintf(room.data() + used, room.size() - used, "%s%.*s", listed ? ", " : "",
                                                static_cast<int>(name.size()), name.data()));
      ++listed;
    }
  }
  if (listed < total && used + kEnding <= room.size()) {
    used += static_cast<size_t>(std::snprintf(room.data() + used, room.size() - used, " and %zu more", total - listed));
  }
  return {room.data(), used};
}

Result<int32_t> find_language(const Model& model, std::string_view name) {
  if (const std::string_view bare = bare_language(name); !bare.empty()) name = bare;
  const int shown = static_cast<int>(std::min<size_t>(name.size(), 40));
  if (!model.source.has_languages()) {
    return fail("this model has one target language and no name for it: do without the target language \"%.*s\"", shown,
                name.data());
  }
  const int32_t id = model.source.find_language(name);
  if (id >= 0) return id;
  char room[320];
  const std::string_view list = list_languages(model, name, kListed, room);
  return fail("this model does not translate into \"%.*s\"; it has %.*s", shown, name.data(),
              static_cast<int>(list.size()), list.data());
}

}  // namespace dragoman
