// MarianMT folders made at test time: random weights of any architecture the converter knows, with the tokenizer of
// tests/data/tiny. Everything can be changed before it is written, so that a test can also make a folder that is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/reference.h"

namespace dragoman::test {

struct SyntheticModel {
  uint32_t encoder_layers = 1, decoder_layers = 1;
  uint32_t d_model = 32;
  uint32_t encoder_heads = 2, decoder_heads = 2;
  uint32_t encoder_ffn = 48, decoder_ffn = 48;
  uint32_t positions = 64;
  uint32_t extra_pieces = 0;                // ids beyond the fixture's 400: 5 makes the vocabulary no multiple of 16
  std::vector<std::string> languages = {};  // target languages: pieces ">>deu<<" after those
  std::string activation = "relu";
  bool scale_embedding = true, pre_norm = false, embedding_norm = false, final_norm = false;
  bool shared_embeddings = true, tied_output = true;
  bool separate_vocabularies = false;  // target_vocab.json, with 403 pieces: others than vocab.json, fewer or more
  bool stored_positions = false;       // a table of random numbers, another one for each side
  bool tied_copies = false;            // the file repeats tied tensors, as pytorch_model.bin does
  std::string dtype = "F32";           // or F16, BF16
  uint32_t seed = 1;
};

struct SyntheticTensor {
  std::vector<uint64_t> shape;
  std::vector<float> values;  // multiples of 1/128 below 2: the same numbers in F32, F16 and BF16
};

// A temporary folder, gone with the object. Change what you like, then write().
class SyntheticFolder {
 public:
  explicit SyntheticFolder(const SyntheticModel& model);
  ~SyntheticFolder();
  SyntheticFolder(const SyntheticFolder&) = delete;
  SyntheticFolder& operator=(const SyntheticFolder&) = delete;

  void write() const;
  void write_file(const std::string& name, const std::string& content) const;
  void remove_file(const std::string& name) const;
  std::string file(const std::string& name) const { return path + "/" + name; }

  std::string path;
  std::string dtype;
  nlohmann::json config, generation, tokenizer_config, vocabulary, target_vocabulary;
  std::map<std::string, SyntheticTensor> tensors;

 private:
  void add_vocabularies(const SyntheticModel& model);
  void add_config(const SyntheticModel& model);
  void add_tensors(const SyntheticModel& model);
};

// The bytes of a .safetensors file.
std::string safetensors_bytes(const std::map<std::string, SyntheticTensor>& tensors, const std::string& dtype);
// A safetensors file with this header, whatever it says, and this many bytes of data.
std::string safetensors_bytes(const std::string& header, size_t data_bytes);

std::string read_bytes(const std::string& path);

// The id that the double-precision reference finds best at each step, the decoder having been fed the target before it.
std::vector<int32_t> best_after(const Checkpoint& model, const SentencePair& sentence);

}  // namespace dragoman::test
