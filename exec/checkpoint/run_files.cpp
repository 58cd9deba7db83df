#include "exec/checkpoint/run_files.h"

#include "exec/disk/kept_aside.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::size_t kDigits = 12;

}  // namespace

std::string checkpoint_name(Step step) {
  const std::string digits = std::to_string(step);
  ENSURE(step >= 0 && digits.size() <= kDigits, "a step that a file name can hold");
  return std::string(kPrefix) + std::string(kDigits - digits.size(), '0') + digits +
         std::string(kSuffix);
}

std::optional<Step> parse_checkpoint_name(std::string_view name) {
  if (name.size() != kPrefix.size() + kDigits + kSuffix.size()) return std::nullopt;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  Step step = 0;
  for (const char c : name.substr(kPrefix.size(), kDigits)) {
    if (c < '0' || c > '9') return std::nullopt;
    step = step * 10 + (c - '0');
  }
  return step;
}

bool tells_of_run(std::string_view name) {
  return name == kJournalFile || parse_checkpoint_name(name).has_value();
}

bool is_written_by_run(std::string_view name) {
  return tells_of_run(name) || tells_of_run(name_before_aside(name)) || name == kKeysFile ||
         name == kKernelsFile || name.starts_with(kHalfWritten);
}

}  // namespace frazil
