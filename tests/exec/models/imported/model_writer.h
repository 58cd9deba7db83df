#pragma once
// Writes model files by hand, for tests of their reader.

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "exec/models/imported/model_file.h"
#include "exec/tensors/samples.h"

namespace frazil {

using Json = nlohmann::ordered_json;
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Writes a safetensors file, byte by byte as the format says.
void write_tensor_file(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});
// Writes any text as a header, and zeros behind it.
void write_raw_file(const std::filesystem::path& path, const std::string& header,
                    std::size_t data_bytes);

// A graph and the tensors that it names.
struct WrittenModel {
  Json graph;
  NamedTensors tensors;

  // Writes it with the schemas of the operations in it, as this libtorch has them, and reads it.
  std::shared_ptr<const ImportedModel> read() const;
  void write(const std::filesystem::path& path) const;
};

Json value(const std::string& name);  // {"v": name}
// A node with one result. More keys: node["random"] = 0.
Json make_node(const std::string& op, Json arguments, const std::string& result);
// Returns a file's name that no other test of this process has had.
std::filesystem::path fresh_path();

// Two layers: linear (6 to 8), dropout 0.25, tanh, then linear (8 to 5) and cross-entropy.
WrittenModel small_mlp();
// The same in C++, differentiated by autograd in one graph. `drop` is given the hidden values.
struct MlpStep {
  at::Tensor loss;
  at::Tensor output;
  Tensors gradients;  // of the four parameters
};
MlpStep run_small_mlp(const Samples& samples,
                      const std::function<at::Tensor(const at::Tensor&)>& drop);
// The same without dropout and tanh, but with batch normalisation behind the first map: momentum
// 0.2, running values 0.5 and 2, and a counter at 7, under "bn.running_mean" and so on.
WrittenModel normed_mlp();
Samples small_mlp_samples(std::int64_t count, std::uint64_t seed);

// Adds what eager PyTorch computes for 4 and for 3 samples: that of run_small_mlp under the default
// generator.
void add_mlp_witness(WrittenModel& model);
Fingerprint test_fingerprint();

}  // namespace frazil
