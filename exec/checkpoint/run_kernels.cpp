#include "exec/checkpoint/run_kernels.h"

#include <nlohmann/json.hpp>

#include "exec/checkpoint/run_files.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKernelsFormat = "frazil.kernels";

std::string text_of(const KernelFacts& facts) {
  std::string text;
  for (const std::string* const fact :
       {&facts.processor, &facts.vendor, &facts.features, &facts.aten, &facts.mkl, &facts.torch}) {
    text += *fact + "\n";
  }
  return text;
}

std::uint64_t hash_all_kernels(const std::vector<RunKernels>& kernels) {
  std::string text;
  for (const RunKernels& some : kernels) {
    text += std::to_string(some.from) + (some.other_bits ? " other\n" : " same\n");
    text += text_of(some.facts);
  }
  return hash_text(text);
}

RunKernels read_entry(const JsonCursor& entry) {
  JsonFields fields(entry);
  RunKernels kernels;
  kernels.from = fields.required("from_step").integer(0, kLargestQuantity);
  kernels.other_bits = fields.required("other_bits").boolean();
  kernels.facts = {.processor = fields.required("processor").text(),
                   .vendor = fields.required("vendor").text(),
                   .features = fields.required("features").text(),
                   .aten = fields.required("aten").text(),
                   .mkl = fields.required("mkl").text(),
                   .torch = fields.required("torch").text()};
  fields.finish();
  return kernels;
}

std::optional<std::vector<RunKernels>> parse_kernels(const std::string& text,
                                                     const std::string& file) {
  JsonFields fields(parse_json(text, file));
  expect_format(fields, kKernelsFormat, 1);
  const std::string hash = fields.required("hash").text();
  std::vector<RunKernels> kernels;
  for (const JsonCursor& entry : fields.required("kernels").items()) {
    kernels.push_back(read_entry(entry));
  }
  fields.finish();
  if (kernels.empty() || parse_hex(hash) != hash_all_kernels(kernels)) return std::nullopt;
  return kernels;
}

}  // namespace

std::uint64_t hash_kernels(const KernelFacts& facts) { return hash_text(text_of(facts)); }

std::optional<std::vector<RunKernels>> read_kernels(const FileSystem& files,
                                                    const fs::path& folder) {
  const fs::path place = folder / kKernelsFile;
  if (!is_in_folder(files, place)) return std::nullopt;
  try {
    return parse_kernels(read_file(files, place), place.string());
  } catch (const InputError&) {
    return std::nullopt;
  }
}

void write_kernels(const FileSystem& files, const fs::path& folder,
                   const std::vector<RunKernels>& kernels) {
  nlohmann::ordered_json text{
      {"format", kKernelsFormat}, {"version", 1}, {"hash", to_hex(hash_all_kernels(kernels))}};
  for (const RunKernels& some : kernels) {
    const KernelFacts& facts = some.facts;
    text["kernels"].push_back({{"from_step", some.from},
                               {"other_bits", some.other_bits},
                               {"processor", facts.processor},
                               {"vendor", facts.vendor},
                               {"features", facts.features},
                               {"aten", facts.aten},
                               {"mkl", facts.mkl},
                               {"torch", facts.torch}});
  }
  write_file(files, folder / kKernelsFile, text.dump(2) + "\n");
}

std::string tell_other_bits(const std::vector<RunKernels>& kernels) {
  std::string text;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (!kernels[i].other_bits) continue;
    text += (text.empty() ? "bits differ from step " : "; from step ") +
            std::to_string(kernels[i].from) + " on: " + describe(kernels[i].facts);
    if (i > 0) text += ", before " + describe(kernels[i - 1].facts);
  }
  return text;
}

}  // namespace frazil
