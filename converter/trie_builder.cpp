#include "converter/trie_builder.h"

#include <algorithm>
#include <compare>
#include <map>

namespace dragoman {
namespace {

class Builder {
 public:
  explicit Builder(std::vector<std::pair<std::string, uint32_t>> keys) : keys_(std::move(keys)) {
    if (!std::is_sorted(keys_.begin(), keys_.end())) std::sort(keys_.begin(), keys_.end());
  }

  std::vector<TrieUnit> build() {
    nodes_.push_back({});  // node 0: no children
    const uint32_t root = collect(0, keys_.size(), 0);
    bases_.resize(nodes_.size());
    grow();
    taken_[0] = true;       // the root's unit
    base_taken_[0] = true;  // stands for "no children"
    bases_[root] = find_base(nodes_[root]);
    units_[0].link = bases_[root] << 9;
    // Level by level: the nodes that every lookup passes lie side by side.
    std::vector<uint32_t> queue = {root};
    for (size_t next = 0; next < queue.size(); ++next) {
      const uint32_t base = bases_[queue[next]];
      for (const Child& child : nodes_[queue[next]]) {
        uint32_t& child_base = bases_[child.node];
        if (child.node != 0 && child_base == 0) {
          child_base = find_base(nodes_[child.node]);
          if (child_base == 0) return {};
          queue.push_back(child.node);
        }
        units_[base ^ child.label] = {child_base << 9 | kTrieUsed | child.label, child.value};
      }
    }
    return std::move(units_);
  }

 private:
  struct Child {
    uint8_t label;
    uint32_t value;
    uint32_t node;
    auto operator<=>(const Child&) const = default;
  };
  using Node = std::vector<Child>;

  // The node of the keys [begin, end), which share their first `depth` bytes. Equal nodes are one: SentencePiece's
  // 225,000 normalisation rules have 262,000 nodes, of which few are different.
  uint32_t collect(size_t begin, size_t end, size_t depth) {
    Node node;
    if (keys_[begin].first.size() == depth) ++begin;  // its value is in the parent
    while (begin < end) {
      const char label = keys_[begin].first[depth];
      size_t last = begin;
      while (last < end && keys_[last].first[depth] == label) ++last;
      const bool ends = keys_[begin].first.size() == depth + 1;
      const uint32_t value = ends ? keys_[begin].second : kNoValue;
      node.push_back({uint8_t(label), value, collect(begin, last, depth + 1)});
      begin = last;
    }
    if (node.empty()) return 0;
    const auto [it, is_new] = known_.emplace(std::move(node), uint32_t(nodes_.size()));
    if (is_new) nodes_.push_back(it->first);
    return it->second;
  }

  void grow() {
    units_.resize(units_.size() + kTrieBlock, {0, kNoValue});
    taken_.resize(units_.size());
    base_taken_.resize(units_.size());
  }

  // Takes the first base from a hint on whose units are free for all children; 0 if the trie is full. Hints only move
  // forward, so the search is linear; they are kept per number of children, so that small nodes fill the holes that
  // large ones left. The hint of single children lags behind, as a free unit one byte cannot use suits another.
  uint32_t find_base(const Node& node) {
    uint32_t& hint = hints_[std::min<size_t>(node.size(), kHints) - 1];
    for (uint32_t at = hint;; ++at) {
      if (at >= units_.size()) {
        if (units_.size() >= kMaxTrieUnits) return 0;
        grow();
      }
      if (taken_[at]) continue;
      const uint32_t base = at ^ node[0].label;
      const auto is_taken = [&](const Child& child) { return bool(taken_[base ^ child.label]); };
      if (base_taken_[base] || std::any_of(node.begin(), node.end(), is_taken)) continue;
      base_taken_[base] = true;
      for (const Child& child : node) taken_[base ^ child.label] = true;
      hint = std::max(hint, at - std::min(at, node.size() == 1 ? kLag : 0));
      return base;
    }
  }

  static constexpr size_t kHints = 16;
  static constexpr uint32_t kLag = 256;  // fills 99% instead of 80% of the units; more gains nothing
  std::vector<std::pair<std::string, uint32_t>> keys_;
  std::vector<Node> nodes_;
  std::map<Node, uint32_t> known_;
  std::vector<uint32_t> bases_;  // of the nodes; 0: not placed
  std::vector<TrieUnit> units_;
  std::vector<bool> taken_, base_taken_;
  uint32_t hints_[kHints] = {};
};

}  // namespace

std::vector<TrieUnit> build_trie(std::vector<std::pair<std::string, uint32_t>> keys) {
  if (keys.empty()) return {};
  return Builder(std::move(keys)).build();
}

}  // namespace dragoman
