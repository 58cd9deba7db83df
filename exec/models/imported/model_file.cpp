#include "exec/models/imported/model_file.h"

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "exec/models/imported/parse_graph.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr const char* kKey = "frazil.model";
constexpr const char* kExpectedModel =
    "a model file, as frazil.export_model(model, ...) writes it in Python";

// Throws for what torch.save writes: an archive, or in older files a pickle.
void refuse_pickles(const std::filesystem::path& path) {
  std::array<char, kTensorHeaderSizeBytes + 1> bytes{};
  std::ifstream(path, std::ios::binary).read(bytes.data(), bytes.size());
  const std::string_view begin(bytes.data(), bytes.size());
  const bool is_archive = begin.starts_with("PK\x03\x04");
  // A safetensors file may begin so too, but then its JSON follows.
  const bool is_pickle =
      begin[0] == '\x80' && begin[1] >= 1 && begin[1] <= 5 && begin.back() != '{';
  if (!is_archive && !is_pickle) return;
  throw InputError(path.string(), 0, is_archive ? "an archive as torch.save writes it" : "a pickle",
                   kExpectedModel);
}

}  // namespace

ImportedModel read_model_file(const std::filesystem::path& path) {
  refuse_pickles(path);
  TensorFile tensors(path);
  const auto& metadata = tensors.header().metadata;
  const auto text = metadata.find(kKey);
  if (text == metadata.end()) {
    throw InputError(path.string(), 0, "tensors without a graph", kExpectedModel);
  }
  ImportedGraph graph = parse_graph(text->second, tensors.header(), path.string());
  const std::uint64_t hash = tensors.hash();
  return {std::move(graph), std::move(tensors), hash};
}

}  // namespace frazil
