#include "exec/models/imported/witness.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <openssl/evp.h>

#include <array>
#include <mutex>
#include <set>
#include <vector>

#include "exec/disk/file_system.h"
#include "exec/disk/hashes.h"
#include "exec/models/imported/imported_model.h"
#include "exec/models/imported/replay.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostWitnessed = 256;  // elements of a gradient
constexpr std::size_t kDigestBytes = 16;

void seed_default_generator(std::uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_current_seed(seed);
}

std::string digest_of(const at::Tensor& gradient) {
  const at::Tensor values = gradient.contiguous();
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  const int made = EVP_Digest(values.const_data_ptr(), values.nbytes(), hash.data(), &size,
                              EVP_sha256(), nullptr);
  ENSURE(made == 1 && size >= kDigestBytes, "libcrypto has SHA-256");
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < kDigestBytes; ++i) {
    text += kHexDigits[hash[i] >> 4U];
    text += kHexDigits[hash[i] & 15U];
  }
  return text;
}

// Returns at most 256 elements at fixed places.
at::Tensor sample(const at::Tensor& gradient) {
  const at::Tensor flat = gradient.contiguous().flatten();
  const std::int64_t count = flat.numel();
  if (count <= kMostWitnessed) return flat;
  std::vector<std::int64_t> places;
  for (std::int64_t k = 0; k < kMostWitnessed; ++k) places.push_back(k * count / kMostWitnessed);
  return flat.index_select(0, at::tensor(places));
}

bool has_same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  return at::equal(a.contiguous().flatten().view(at::kByte),
                   b.contiguous().flatten().view(at::kByte));
}

// True if no element differs by more than the tolerance's part of `largest`.
bool is_near(const at::Tensor& found, const at::Tensor& expected, double largest) {
  if (found.sizes() != expected.sizes()) return false;
  if (found.numel() == 0) return true;
  const double off = (found.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
  return off <= kWitnessTolerance * largest;  // false for NaN
}

double largest_magnitude(const at::Tensor& values) {
  return values.numel() == 0 ? 0 : values.to(at::kDouble).abs().max().item<double>();
}

class WitnessCheck {
 public:
  WitnessCheck(const ImportedModel& model, const ModelSpec& spec, bool wants_bits)
      : model_(model), spec_(spec), wants_bits_(wants_bits) {}

  void check(const WitnessCase& expected) {
    case_ = &expected;
    Samples samples;
    for (const std::string& input : expected.inputs) {
      samples.inputs.push_back(model_.tensors.copy(input));
    }
    samples.labels = model_.tensors.copy(expected.labels);
    seed_default_generator(expected.seed);
    const RandomKey key;
    const Replay replay = replay_step(spec_, samples, key, /*splits=*/false);
    compare("the loss", replay.loss, model_.tensors.copy(expected.loss));
    for (std::size_t o = 0; o < expected.outputs.size(); ++o) {
      const std::string name = "output " + std::to_string(o);
      if (o >= replay.outputs.size()) refuse(name, "is not there");
      compare(name, replay.outputs[o], model_.tensors.copy(expected.outputs[o]));
    }
    std::set<std::string> compared;
    for (const WitnessGradient& gradient : expected.gradients) {
      compared.insert(key_of(gradient.parameter));
      compare(gradient, replay);
    }
    for (const ImportedParameter& parameter : model_.graph.parameters) {
      if (!parameter.trainable || compared.contains(key_of(parameter.name))) continue;
      refuse("the gradient of " + json_string(parameter.name), "has no witness");
    }
  }

 private:
  // Returns the name under which a replay has the gradient of a parameter.
  std::string key_of(const std::string& name) const {
    for (const ImportedParameter& parameter : model_.graph.parameters) {
      if (parameter.name != name && parameter.tensor != name) continue;
      return parameter.tied.empty() ? parameter.name : parameter.tied;
    }
    return name;
  }

  void compare(const std::string& name, const at::Tensor& found, const at::Tensor& expected) const {
    const bool holds = wants_bits_ ? has_same_bits(found, expected)
                                   : is_near(found, expected, largest_magnitude(expected));
    if (!holds) refuse(name, "differs from PyTorch's");
  }

  void compare(const WitnessGradient& expected, const Replay& replay) const {
    const std::string name = "the gradient of " + json_string(expected.parameter);
    const auto found = replay.gradients.find(key_of(expected.parameter));
    if (found == replay.gradients.end()) refuse(name, "is not computed");
    const at::Tensor& gradient = found->second;
    const bool holds =
        wants_bits_ ? digest_of(gradient) == expected.digest
                    : is_near(sample(gradient), model_.tensors.copy(expected.samples).flatten(),
                              expected.largest);
    if (!holds) refuse(name, "differs from PyTorch's");
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& why) const {
    throw InputError(model_.tensors.file(), 0,
                     what + " of " + std::to_string(case_->count) + " samples, which " + why,
                     wants_bits_
                         ? "the bits that PyTorch computed when the model was exported"
                         : "what PyTorch computed when the model was exported, within 0.001 "
                           "of the largest magnitude");
  }

  const ImportedModel& model_;
  const ModelSpec& spec_;
  bool wants_bits_;
  const WitnessCase* case_ = nullptr;
};

// Says what a folder remembers of one file under one fingerprint.
std::string make_memory(const ImportedModel& model, const Fingerprint& present,
                        WitnessVerdict verdict) {
  const std::string settings = present.torch + "\n" + present.vendor + "\n" + present.aten + "\n" +
                               present.mkl + "\n" + std::to_string(present.threads);
  return "frazil.witness 1 " + to_hex(model.hash) + " " + to_hex(hash_text(settings)) +
         (verdict == WitnessVerdict::kBits ? " bits\n" : " tolerance\n");
}

}  // namespace

WitnessVerdict check_witness(const std::shared_ptr<const ImportedModel>& model,
                             const Fingerprint& present) {
  const std::optional<Witness>& witness = model->graph.witness;
  if (!witness || witness->cases.size() < 2) {
    throw InputError(model->tensors.file(), 0, "a model without a witness of two batches",
                     "a model file, as frazil.export_model(model, ...) writes it in Python");
  }
  const bool wants_bits = gives_same_bits(witness->fingerprint, present);
  try {
    const ModelSpec spec = make_imported(model, Randomness::kEager);
    WitnessCheck check(*model, spec, wants_bits);
    for (const WitnessCase& expected : witness->cases) check.check(expected);
  } catch (const c10::Error& error) {
    throw InputError(model->tensors.file(), 0,
                     "an operation that fails: " + to_one_line(error.what_without_backtrace()),
                     "a model that runs as it did when it was exported");
  } catch (const InfeasibleError& error) {
    throw InputError(model->tensors.file(), 0, error.what(),
                     "a model that runs as it did when it was exported");
  }
  return wants_bits ? WitnessVerdict::kBits : WitnessVerdict::kTolerance;
}

WitnessVerdict check_witness_once(const std::shared_ptr<const ImportedModel>& model,
                                  const Fingerprint& present,
                                  const std::optional<std::filesystem::path>& folder) {
  if (!folder) return check_witness(model, present);
  const FileSystem files = real_file_system();
  const std::string of_bits = make_memory(*model, present, WitnessVerdict::kBits);
  const std::string of_tolerance = make_memory(*model, present, WitnessVerdict::kTolerance);
  const std::filesystem::path path = *folder / "witness" / (to_hex(hash_text(of_bits)) + ".txt");
  try {
    const std::string kept = read_file(files, path);
    if (kept == of_bits) return WitnessVerdict::kBits;
    if (kept == of_tolerance) return WitnessVerdict::kTolerance;
  } catch (const InputError&) {
    // Nothing is remembered.
  }
  const WitnessVerdict verdict = check_witness(model, present);
  try {
    make_folders(files, path.parent_path());
    write_file(files, path, verdict == WitnessVerdict::kBits ? of_bits : of_tolerance);
  } catch (const InputError&) {
    // The next reader replays again.
  }
  return verdict;
}

std::string describe(WitnessVerdict verdict) {
  return verdict == WitnessVerdict::kBits ? "bit for bit" : "to a tolerance of 0.001";
}

}  // namespace frazil
