#include "runtime/text_split.h"

#include <doctest/doctest.h>

#include <string>

namespace dragoman {
namespace {

std::string first_part(const std::string& text, size_t limit) {
  return text.substr(0, best_cut(text, limit));
}

}  // namespace

TEST_CASE("text_split: sentences before clauses before words before characters") {
  CHECK(first_part("One two. Three, four five", 20) == "One two. ");
  CHECK(first_part("One two three, four five six", 24) == "One two three, ");
  CHECK(first_part("One two three four five six", 12) == "One two ");
  CHECK(first_part("Onetwothreefour", 6) == "Onetwo");
  CHECK(first_part("He said \"no.\" Then he left.", 20) == "He said \"no.\" ");
}

TEST_CASE("text_split: a sentence end near the beginning is not worth a tiny part") {
  CHECK(first_part("No. One two three four five six seven eight nine", 40) == "No. One two three four five six seven ");
}

TEST_CASE("text_split: characters are never cut") {
  const std::string text = "\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xb8\x96\xe7\x95\x8c";  // four characters of three bytes
  CHECK(best_cut(text, 12) == 12);
  CHECK(best_cut(text, 11) == 9);
  CHECK(best_cut(text, 4) == 3);
  CHECK(best_cut(text, 1) == 3);
  CHECK(first_part("\xe4\xbd\xa0\xe3\x80\x82\xe5\xa5\xbd\xe5\xa5\xbd", 9) == "\xe4\xbd\xa0\xe3\x80\x82");
}

TEST_CASE("text_split: a character whose end is missing waits for it") {
  CHECK(whole_characters("ab\xe4\xbd") == "ab");
  CHECK(whole_characters("ab\xe4") == "ab");
  CHECK(whole_characters("ab\xe4\xbd\xa0") == "ab\xe4\xbd\xa0");
  CHECK(whole_characters("ab\xf0\x9f\x98") == "ab");
  CHECK(whole_characters("ab\x80\x80\x80\x80") == "ab\x80\x80\x80\x80");
  CHECK(whole_characters("\xe4\xbd") == "\xe4\xbd");
  CHECK(whole_characters("") == "");
}

TEST_CASE("text_split: every cut is inside the text and makes progress") {
  const std::string odd[] = {
      " ", "      ", "\x80\x80\x80\x80", ". . . . ", "a", std::string(5, '\0'), "\xf0\x9f\x98\x80"};
  for (const std::string& text : odd) {
    for (size_t limit = 1; limit <= text.size(); ++limit) {
      const size_t cut = best_cut(text, limit);
      CHECK(cut >= 1);
      CHECK(cut <= text.size());
    }
  }
}

}  // namespace dragoman
