#include "runtime/command/line_out.h"

#include <cstdio>

namespace dragoman::command {

void LineWriter::part(const Output& part) {
  if (!started_) {
    if (style_.json) out_.put(style_.ids ? "{\"ids\": [" : "{\"text\": \"");
    keep_.clear();
    started_ = true;
    has_text_ = has_ids_ = false;
    flags_ = 0;
    source_ids_ = target_ids_ = 0;
    score_ = seconds_ = 0;
  }
  if (style_.ids || style_.json) put_ids(part.ids);
  if (!style_.ids || style_.json) put_text(part.text);
  flags_ |= part.flags;
  source_ids_ += part.source_ids.size();
  target_ids_ += part.ids.size();
  score_ += part.score;
  seconds_ += part.encode_seconds + part.decode_seconds;
  if (part.line_end) end_line();
}

// A part that is not empty, one space after the part before.
void LineWriter::put_text(std::string_view text) {
  if (text.empty()) return;
  const std::string_view space = has_text_ ? " " : "";
  has_text_ = true;
  if (style_.json && style_.ids) {
    keep_.put(space);
    return put_json_text(keep_, text);
  }
  out_.put(space);
  if (style_.json) return put_json_text(out_, text);
  // A line of output is one line whatever the model says, and with scores it has one tab.
  for (const char c : text) out_.put(c == '\n' || c == '\r' || (c == '\t' && style_.scores) ? ' ' : c);
}

void LineWriter::put_ids(std::span<const int32_t> ids) {
  if (!style_.ids) return keep_ids(ids);
  for (const int32_t id : ids) {
    if (has_ids_) out_.put(style_.json ? ", " : " ");
    out_.put_integer(id);
    has_ids_ = true;
  }
}

void LineWriter::keep_ids(std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    char digits[24];
    if (has_ids_) keep_.put(", ");
    keep_.put(decimal(id, digits));
    has_ids_ = true;
  }
}

void LineWriter::end_line() {
  if (style_.json) {
    end_json();
  } else if (style_.scores) {
    out_.put('\t');
    if (target_ids_ > 0) out_.put_fixed(mean_score(), 6);
  }
  out_.put('\n');
  ++counts_.lines;
  counts_.flagged += flags_ != 0;
  counts_.tokens += target_ids_;
  for (size_t i = 0; i < LineCounts::kFlags; ++i) counts_.by_flag[i] += flags_ >> i & 1;
  started_ = bad_ = false;
}

void LineWriter::end_json() {
  out_.put(style_.ids ? "], \"text\": " : "\", \"ids\": ");
  if (keep_.overflow()) {
    out_.put("null");
  } else {
    out_.put(style_.ids ? '"' : '[');
    out_.put(keep_.text());
    out_.put(style_.ids ? '"' : ']');
  }
  put_status();
  out_.put(", \"source_tokens\": ");
  out_.put_integer(static_cast<int64_t>(source_ids_));
  out_.put(", \"target_tokens\": ");
  out_.put_integer(static_cast<int64_t>(target_ids_));
  out_.put(", \"ms\": ");
  out_.put_fixed(seconds_ * 1e3, 3);
  if (style_.scores) {
    out_.put(", \"score\": ");
    if (target_ids_ > 0) {
      out_.put_fixed(mean_score(), 6);
    } else {
      out_.put("null");
    }
  }
  out_.put('}');
}

void LineWriter::put_status() {
  out_.put(", \"status\": [");
  bool some = false;
  const auto put_name = [&](std::string_view name) {
    out_.put(some ? ", \"" : "\"");
    out_.put(name);
    out_.put('"');
    some = true;
  };
  for (size_t i = 0; i < LineCounts::kFlags; ++i) {
    if (flags_ >> i & 1) put_name(flag_names()[i].json);
  }
  if (bad_) put_name("bad_ids");
  if (!some) put_name("ok");
  out_.put(']');
}

void say_summary(const LineCounts& counts, bool see_json) {
  if (counts.flagged == 0) return;
  char list[600] = "";
  size_t used = 0;
  for (size_t i = 0; i < LineCounts::kFlags && used < sizeof list; ++i) {
    if (counts.by_flag[i] == 0) continue;
    const int wrote = std::snprintf(list + used, sizeof list - used, "%s%llu %s", used ? ", " : "",
                                    static_cast<unsigned long long>(counts.by_flag[i]), flag_names()[i].person);
    used += static_cast<size_t>(wrote);
  }
  say("%llu of %llu line%s: %s%s", static_cast<unsigned long long>(counts.flagged),
      static_cast<unsigned long long>(counts.lines), counts.lines == 1 ? "" : "s", list,
      see_json ? " (--json shows in which lines)" : "");
}

}  // namespace dragoman::command
