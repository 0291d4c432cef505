// The .dgm loader on files that are damaged, cut short or made to do harm (C4).
#include "runtime/model.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "tests/hostile.h"
#include "tests/support.h"

namespace dragoman::test {
namespace {

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(in)), {});
  const auto* first = reinterpret_cast<const std::byte*>(content.data());
  return {first, first + content.size()};
}

std::string refusal(std::span<const std::byte> file) {
  auto model = std::make_unique<Model>();
  const Status opened = open_model(file, "model.dgm", *model);
  return opened ? "" : opened.error().text;
}

// [begin, end) ranges that every open checks.
std::vector<std::pair<size_t, size_t>> checked_ranges(const Model& model) {
  std::vector<std::pair<size_t, size_t>> ranges{{0, sizeof(FileHeader) + model.sections.size_bytes()}};
  for (const Section& s : model.sections) {
    if (s.kind != SectionKind::kTensor) ranges.push_back({s.offset, s.offset + s.bytes});
  }
  return ranges;
}

}  // namespace

TEST_CASE("model: every single-byte change of what is checked at open is refused") {
  const std::string path = model_path("tiny-int8");
  const LoadedModel good = load_model(path);
  AlignedBytes file(read_file(path));
  std::mt19937 random(1);
  size_t changes = 0, accepted = 0;
  std::set<std::string> sentences;
  for (const auto& [begin, end] : checked_ranges(*good)) {
    for (size_t i = begin; i < end; ++i) {
      const std::byte old = file.span()[i];
      file.span()[i] ^= static_cast<std::byte>(1 + random() % 255);
      const std::string sentence = refusal(file.span());
      ++changes;
      accepted += sentence.empty();
      sentences.insert(sentence);
      file.span()[i] = old;
    }
  }
  MESSAGE(changes << " single-byte changes, " << accepted << " accepted; " << sentences.size()
                  << " different sentences");
  CHECK(accepted == 0);
  CHECK(refusal(file.span()) == "");
}

TEST_CASE("model: every truncation is refused") {
  const std::string path = model_path("tiny-int8");
  const std::vector<std::byte> whole = read_file(path);
  AlignedBytes aligned(whole);
  size_t accepted = 0;
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) accepted += refusal(aligned.span().first(bytes)).empty();
  CHECK(accepted == 0);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{1000}, whole.size() - 1}) {
    AlignedBytes cut(
        std::span<const std::byte>(whole).first(bytes));  // its own allocation: a sanitizer sees a read beyond
    const std::string sentence = refusal(cut.span());
    MESSAGE(bytes << " bytes: " << sentence);
    CHECK(!sentence.empty());
  }
}

TEST_CASE("model: random changes with mended checksums never crash") {
  const char* rounds_text = std::getenv("DRAGOMAN_MUTATIONS");
  const int rounds = rounds_text ? std::atoi(rounds_text) : 1500;
  std::mt19937_64 random(2);
  size_t opened = 0, total = 0;
  for (const char* name : {"tiny-int8", "tiny-none"}) {
    const LoadedModel good = load_model(model_path(name));
    const std::vector<std::byte> whole = read_file(model_path(name));
    const auto ranges = checked_ranges(*good);
    AlignedBytes file(whole);
    for (int round = 0; round < rounds; ++round) {
      std::memcpy(file.span().data(), whole.data(), whole.size());
      const size_t edits = 1 + random() % 4;
      for (size_t e = 0; e < edits; ++e) {
        const auto& [begin, end] = ranges[random() % ranges.size()];
        // Mostly the places that steer, sometimes any byte of the file.
        const size_t at = random() % 8 ? begin + random() % (end - begin) : random() % whole.size();
        const uint32_t values[] = {0, 1, 0xff, 0x7f, 0x80, static_cast<uint32_t>(random())};
        const uint32_t value = values[random() % 6];
        const size_t width = std::min<size_t>(size_t{1} << random() % 3, whole.size() - at);
        for (size_t i = 0; i < width; ++i) {
          file.span()[at + i] = static_cast<std::byte>(value < 256 && value != 1 ? value : value >> (8 * i));
        }
      }
      mend_checksums(file.span());
      opened += exercise(file.span(), "Good morning, \xc3\xa4\xff 123.", round % 32 == 0);
      ++total;
    }
  }
  MESSAGE(total << " changed files, " << opened << " of them opened and used");
  CHECK(opened > 0);
  CHECK(opened < total);
}

TEST_CASE("model: other people's files get a sentence") {
  const std::string text =
      "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n" + std::string(100, ' ');
  AlignedBytes file(std::as_bytes(std::span(text.data(), text.size())));
  MESSAGE(refusal(file.span()));
  CHECK(refusal(file.span()).find("not a dragoman model") != std::string::npos);
}

TEST_CASE("model: a weight of -128, a pair beyond the limit and a changed tensor are found by verify") {
  const std::string path = model_path("tiny-int8");
  const LoadedModel good = load_model(path);
  CHECK(verify_tensors(*good, "model.dgm"));
  AlignedBytes file(read_file(path));
  for (const Section& s : good->sections) {
    if (s.layout != Layout::kPanelsS8) continue;
    const auto pair = file.span().subspan(s.offset + s.bytes - 2, 2);
    const std::byte old[] = {pair[0], pair[1]};
    for (const auto& [first, second] : {std::pair{-128, 0}, {1, -128}, {127, 3}, {-65, -65}}) {
      for (const bool mended : {false, true}) {
        pair[0] = static_cast<std::byte>(first);
        pair[1] = static_cast<std::byte>(second);
        if (mended) mend_checksums(file.span(), /*tensors=*/true);
        Model model;
        REQUIRE(open_model(file.span(), "model.dgm", model));
        const Status verified = verify_tensors(model, "model.dgm");
        REQUIRE(!verified);
        MESSAGE(verified.error().text);
        CHECK((std::string(verified.error().text).find("-128 or two neighbours") != std::string::npos) == mended);
        pair[0] = old[0];
        pair[1] = old[1];
        mend_checksums(file.span(), /*tensors=*/true);
      }
    }
    return;
  }
}

TEST_CASE("model: a stored column sum that is wrong is found by verify") {
  const std::string path = model_path("tiny-int8");
  const LoadedModel good = load_model(path);
  size_t found = 0, sums = 0;
  for (const Section& s : good->sections) {
    if (s.layout != Layout::kVectorI32) continue;
    AlignedBytes file(read_file(path));
    file.span()[s.offset + s.bytes - 4] ^= std::byte{1};  // of the last column
    mend_checksums(file.span(), /*tensors=*/true);
    Model model;
    REQUIRE(open_model(file.span(), "model.dgm", model));
    const Status verified = verify_tensors(model, "model.dgm");
    found += !verified && std::string(verified.error().text).find("sums") != std::string::npos;
    ++sums;
  }
  CHECK(sums > 20);
  CHECK(found == sums);
}

TEST_CASE("model: sections on top of each other and too many of them are refused at once") {
  const std::vector<std::byte> whole = read_file(model_path("tiny-int8"));
  for (const bool many : {false, true}) {
    AlignedBytes file(whole);
    FileHeader header;
    std::memcpy(&header, file.span().data(), sizeof header);
    Section* sections = reinterpret_cast<Section*>(file.span().data() + sizeof header);
    if (many) header.section_count = kMaxSections + 1;
    if (!many) sections[2].offset = sections[1].offset;
    std::memcpy(file.span().data(), &header, sizeof header);
    mend_checksums(file.span());
    const std::string sentence = refusal(file.span());
    MESSAGE(sentence);
    CHECK(!sentence.empty());
  }
}

}  // namespace dragoman::test
