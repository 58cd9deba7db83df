#pragma once
// Models that stock PyTorch has exported, as files of a folder.

#include <filesystem>
#include <memory>
#include <vector>

#include "exec/models/imported/model_file.h"
#include "tests/exec/models/test_models.h"

namespace frazil {

// Returns the model files of the folder that FRAZIL_EXPORTED_MODELS names, sorted; none without.
// Files that begin with "bad-" are there to be refused and are left out.
std::vector<std::filesystem::path> exported_files();
std::shared_ptr<const ImportedModel> read_shared(const std::filesystem::path& path);
Fingerprint present_fingerprint();

// Returns the batch of a case of the witness.
Samples witness_samples(const ImportedModel& model, std::size_t index);

// The model with samples drawn from those of its witness.
TestModel exported_model(const std::shared_ptr<const ImportedModel>& model);

}  // namespace frazil
