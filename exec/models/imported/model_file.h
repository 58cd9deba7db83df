#pragma once
// A model file (docs/model-file.md) is a safetensors file whose metadata hold a graph. It holds no
// code: a file with pickled weights is not a model.

#include <cstdint>
#include <filesystem>

#include "exec/disk/tensor_file.h"
#include "exec/models/imported/imported_graph.h"

namespace frazil {

struct ImportedModel {
  ImportedGraph graph;
  TensorFile tensors;
  std::uint64_t hash = 0;  // of the whole file
};

// Throws InputError in one sentence: exec/models/imported/parse_graph.h says for what. A file that
// torch.save or torch.export.save wrote is refused with how to export the model.
ImportedModel read_model_file(const std::filesystem::path& path);

}  // namespace frazil
