// Any bytes are refused in a sentence, or are a journal whose records stand in order, that opens
// again with the same records. The journal lies in memory.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "exec/checkpoint/step_journal.h"
#include "tests/fuzz/property.h"

namespace frazil {
namespace {

// The run of the seeds.
constexpr std::uint64_t kRun = 0x0123456789abcdefU;

// A folder on a file system without a disk.
std::filesystem::path make_folder() {
  std::string folder = "/dev/shm/frazil-fuzz-XXXXXX";
  require(mkdtemp(folder.data()) != nullptr, "there is a folder in memory");
  return folder;
}

void fill(const std::filesystem::path& place, std::string_view text) {
  std::FILE* const file = std::fopen(place.c_str(), "wb");
  require(file != nullptr, "a file can be made");
  (void)std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

std::optional<std::vector<JournalRecord>> open_or_refuse(const std::filesystem::path& place) {
  static const FileSystem files = real_file_system();  // the journal keeps a reference
  try {
    const StepJournal journal(files, place, kRun, {.syncs = false});
    return journal.recovered();
  } catch (const InputError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos,
            "a refusal is one line");
    return std::nullopt;
  }
}

void check(std::string_view text) {
  static const std::filesystem::path folder = make_folder();
  const std::filesystem::path place = folder / "steps.journal";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::filesystem::remove(entry.path());
  }
  fill(place, text);
  const auto records = open_or_refuse(place);
  if (!records) return;
  Step before = -1;
  for (const JournalRecord& record : *records) {
    require(record.step > before, "records stand in the order of their steps");
    before = record.step;
  }
  require(open_or_refuse(place) == records, "a journal that was opened opens again");
}

}  // namespace
}  // namespace frazil

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  frazil::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
