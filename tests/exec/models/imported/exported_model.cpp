#include "tests/exec/models/imported/exported_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>

#include "exec/devices/kernel_facts.h"
#include "exec/models/imported/imported_model.h"

namespace frazil {

namespace fs = std::filesystem;

std::vector<fs::path> exported_files() {
  std::vector<fs::path> files;
  const char* const folder = std::getenv("FRAZIL_EXPORTED_MODELS");
  if (folder == nullptr) return files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool is_refused = entry.path().filename().string().starts_with("bad-");
    if (!is_refused && entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::shared_ptr<const ImportedModel> read_shared(const fs::path& path) {
  return std::make_shared<const ImportedModel>(read_model_file(path));
}

Fingerprint present_fingerprint() {
  const KernelFacts kernels = present_kernels();
  return {.torch = kernels.torch,
          .processor = kernels.processor,
          .vendor = kernels.vendor,
          .aten = kernels.aten,
          .mkl = kernels.mkl};
}

Samples witness_samples(const ImportedModel& model, std::size_t index) {
  const WitnessCase& one = model.graph.witness->cases.at(index);
  Samples samples;
  for (const std::string& input : one.inputs) samples.inputs.push_back(model.tensors.copy(input));
  samples.labels = model.tensors.copy(one.labels);
  return samples;
}

TestModel exported_model(const std::shared_ptr<const ImportedModel>& model) {
  TestModel test{.spec = make_imported(model), .samples = {}, .mask = {}};
  const Samples all = witness_samples(*model, 0);
  test.samples = [all](const StepShape& shape) {
    return draw_micro_batches(shape, [&all](at::Generator& generator, std::int64_t n) {
      const at::Tensor rows = draw_integers({n}, all.count(), generator);
      Samples drawn;
      for (const at::Tensor& input : all.inputs)
        drawn.inputs.push_back(input.index_select(0, rows));
      drawn.labels = all.labels.index_select(0, rows);
      return drawn;
    });
  };
  test.mask = std::string(test.spec.blocks.size(), '1');
  return test;
}

}  // namespace frazil
