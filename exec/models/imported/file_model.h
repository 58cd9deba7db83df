#pragma once
// A model of kind "file" (exec/models/choice/model_choice.h) is what frazil.export_model wrote
// (docs/model-file.md). These functions say of it what is asked of every kind.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "exec/models/imported/model_file.h"
#include "exec/models/named_tensor.h"
#include "exec/tensors/sample_form.h"
#include "exec/tensors/tensors.h"

namespace frazil {

struct FileModel {
  std::string path;
  std::shared_ptr<const ImportedModel> file;

  // Equal files are equal models, wherever they lie.
  friend bool operator==(const FileModel& a, const FileModel& b) {
    return a.file->hash == b.file->hash;
  }
};

// Throws InputError as read_model_file() does, and for a model that cannot be trained: with samples
// or labels of types that data files do not hold, with sizes besides the first that depend on n, or
// of a single block, where nothing is between first and head.
FileModel read_file_model(const std::filesystem::path& path);

// Returns what samples the model reads. What a graph does not say is guessed, and only data that
// are made up depend on that: one input of three dimensions holds images; integers that an
// embedding looks up are tokens, or segments or a mask where the name says so; labels are classes
// where the output that the loss reads has one more dimension.
SampleForm sample_form(const ImportedGraph& graph);

// Returns the weights under the names of the model's `state_dict`, a tied one once, and behind them
// what else a module needs to be loaded, but running statistics. `parameters`: by layer.
std::vector<NamedTensor> name_weights(const ImportedModel& model,
                                      const std::vector<const Tensors*>& parameters);

}  // namespace frazil
