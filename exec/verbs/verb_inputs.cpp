#include "exec/verbs/verb_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "exec/devices/device_numerics.h"
#include "exec/devices/kernel_choice.h"
#include "exec/devices/kernel_facts.h"
#include "exec/devices/numerics.h"
#include "exec/devices/step_fault.h"
#include "exec/measuring/process_memory.h"
#include "exec/models/imported/witness.h"
#include "exec/program/step_program.h"
#include "planner/verbs/kernels_flag.h"
#include "planner/verbs/known_words.h"
#include "profiles/error.h"

namespace frazil {

RunConfig read_config(const Flags& flags) {
  RunConfig config = read_run_config(required_text(flags, "run"));
  choose_seed(flags, config);
  return config;
}

void choose_seed(const Flags& flags, RunConfig& config) {
  constexpr int kLargestSeed = 1'000'000'000;
  if (flags.count("seed") == 0) return;
  config.seed = static_cast<std::uint64_t>(integer_or(flags, "seed", 0, 0, kLargestSeed));
}

namespace {

std::vector<int> read_gpus(const std::string& list) {
  constexpr int kMostGpus = 1024;
  std::vector<int> gpus = checked_flags("--gpus", list, 0, kMostGpus - 1);
  std::vector<int> sorted = gpus;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw InputError("--gpus", 0, "GPU " + std::to_string(*twice) + " twice", "each GPU once");
  }
  return gpus;
}

}  // namespace

DeviceChoice read_processors(const Flags& flags, const std::string& word) {
  DeviceChoice choice;
  const std::string kind = optional_text(flags, "device").value_or(word);
  if (known_name("--device", kind, kDeviceWords) == "cuda") choice.kind = DeviceKind::kCuda;
  if (const auto gpus = optional_text(flags, "gpus")) {
    if (choice.kind == DeviceKind::kCpu) refuse_flags("--gpus without --device cuda", "both");
    choice.gpus = read_gpus(*gpus);
  }
  const char* const waits = std::getenv("FRAZIL_GPU_WAITS");
  choice.waits = waits != nullptr && std::string(waits) == "1";
  check_devices(choice);
  return choice;
}

void refuse_unwatched_guard(const RunConfig& config, const std::string& file) {
  if (!config.freeze.decorators.guard || config.data.validation_percent > 0) return;
  throw InputError(file, 0, "a validation guard over data with \"validation_percent\" 0",
                   "some to validate with: the test samples decide nothing");
}

void refuse_beside_join(const Flags& flags, const std::set<std::string>& allowed) {
  if (flags.count("join") == 0) return;
  for (const auto& [name, value] : flags) {
    if (value.defaulted() || name == "join" || allowed.contains(name)) continue;
    refuse_flags("--join with --" + name, "--join alone, or with --token-file");
  }
}

void refuse_larger_batch(const RunConfig& config, const Dataset& data, const std::string& file) {
  const std::int64_t samples = data.train.count();
  if (config.batch_size <= samples) return;
  throw InputError(file, 0, "a batch of " + std::to_string(config.batch_size) + " samples",
                   "at most the " + std::to_string(samples) + " there are to train on");
}

void check_machine(const std::string& verb, const DeviceChoice& choice, int devices, bool quiet) {
  if (quiet) return;
  // A cluster may have more devices than there are cores; these share them.
  const int tried =
      choice.kind == DeviceKind::kCpu ? std::min(devices, count_devices(choice)) : devices;
  std::optional<std::string> broken = check_numerics();
  if (!broken) broken = check_numerics(ComputeDevices(choice, tried));
  if (broken) std::fprintf(stderr, "frazil %s: %s\n", verb.c_str(), broken->c_str());
  if (tried == devices) return;
  std::fprintf(
      stderr,
      "frazil %s: %d devices share the %d core%s of this machine in slices of time, so what "
      "is measured here takes longer than with a core for each\n",
      verb.c_str(), devices, tried, tried == 1 ? "" : "s");
}

namespace {

std::string check_witness(const std::string& verb,
                          const std::shared_ptr<const ImportedModel>& model, bool quiet) {
  const KernelFacts kernels = present_kernels();
  const Fingerprint present{.torch = kernels.torch,
                            .processor = kernels.processor,
                            .vendor = kernels.vendor,
                            .aten = kernels.aten,
                            .mkl = kernels.mkl};
  const WitnessVerdict verdict = check_witness_once(model, present, cache_folder());
  const std::string told = "checked " + describe(verdict) + " against PyTorch";
  if (quiet || verdict == WitnessVerdict::kBits) return told;
  const Fingerprint& made = model->graph.witness->fingerprint;
  std::fprintf(stderr,
               "frazil %s: the model file was %s, not bit for bit: it was exported with %s of ATen "
               "and %s of MKL on %s with torch %s, and here are %s\n",
               verb.c_str(), told.c_str(), made.aten.c_str(), made.mkl.c_str(), made.vendor.c_str(),
               made.torch.c_str(), describe(kernels).c_str());
  return told;
}

}  // namespace

std::string check_model_file(const std::string& verb, const RunConfig& config, bool quiet) {
  std::string told;
  for (const ChosenFile& file : find_files(config.model)) {
    told += (told.empty() ? "" : "; ") + check_witness(verb, file.model, quiet);
  }
  return told;
}

void check_output_folder(const std::string& folder) {
  // The nearest folder that exists is tried, by making a folder in it that is removed at once:
  // permissions alone do not tell for every user and file system.
  std::error_code error;
  std::filesystem::path place = std::filesystem::absolute(folder);
  while (!std::filesystem::exists(place, error) && !error && place.has_relative_path()) {
    place = place.parent_path();
  }
  const bool is_folder = !error && std::filesystem::is_directory(place, error);
  if (!is_folder && !error && std::filesystem::exists(place, error)) {
    const bool is_itself = place == std::filesystem::absolute(folder);
    throw InputError(folder, 0, is_itself ? "a file" : "the file " + place.string() + " on the way",
                     "a folder for the results, or a name that is free");
  }
  std::string probe = (place / ".frazil.XXXXXX").string();
  if (!is_folder) {
    throw InputError(folder, 0, "a place that cannot be written", "a folder for the results");
  }
  if (::mkdtemp(probe.data()) == nullptr) {
    fail_system(folder, errno, "mkdir", "a folder for the results");
  }
  ::rmdir(probe.c_str());
}

void check_output_file(const std::string& file) {
  const std::filesystem::path parent = std::filesystem::absolute(file).parent_path();
  check_output_folder(parent.string());
  if (std::filesystem::is_directory(file)) {
    throw InputError(file, 0, "a folder", "a file to write");
  }
  if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
    throw InputError(file, 0, "a special file", "a file to write");
  }
}

ExitCode run_with_torch(const Flags& flags, const std::function<ExitCode()>& body) {
  try {
    prepare_kernels(wants_portable_kernels(flags) ? Kernels::kPortable : Kernels::kFastest);
    keep_freed_memory();
    return body();
  } catch (...) {
    rethrow_told();
  }
}

std::string command_text(int argc, char** argv) {
  // The front door calls a program by its subcommand alone.
  std::string verb = std::filesystem::path(argc > 0 ? argv[0] : "").filename().string();
  const std::string prefix = "frazil-";
  if (verb.starts_with(prefix)) verb.erase(0, prefix.size());
  std::string text = "frazil " + verb;
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return to_one_line(text);
}

}  // namespace frazil
