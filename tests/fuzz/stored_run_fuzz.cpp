// Any bytes are refused in a sentence by each reader of `frazil check`, or read, and again as the
// same: as a journal, as what decides a run's bits, as tensors and as a checkpoint. The file lies
// in memory.

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "analysis/check/stored_journal.h"
#include "analysis/check/stored_keys.h"
#include "analysis/check/stored_tensors.h"
#include "tests/fuzz/property.h"

namespace frazil {
namespace {

std::filesystem::path make_place() {
  std::string folder = "/dev/shm/frazil-fuzz-XXXXXX";
  require(mkdtemp(folder.data()) != nullptr, "there is a folder in memory");
  return std::filesystem::path(folder) / "stored";
}

void fill(const std::filesystem::path& place, std::string_view text) {
  std::FILE* const file = std::fopen(place.c_str(), "wb");
  require(file != nullptr, "a file can be made");
  (void)std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

// Returns the hash that a reader finds in a file; nothing if it refuses the file.
template <class Read>
std::optional<std::uint64_t> read_or_refuse(const std::filesystem::path& place, Read read) {
  try {
    return read(place);
  } catch (const InputError& error) {
    require(error.file() == place.string(), "a refusal names the file");
    require(std::string_view(error.what()).find('\n') == std::string_view::npos,
            "a refusal is one line");
    return std::nullopt;
  }
}

std::uint64_t hash_of_journal(const std::filesystem::path& place) {
  const StoredJournal journal = read_stored_journal(place);
  require(journal.lost >= 0 && journal.lost <= journal.steps, "no more steps are lost than were");
  require(journal.records.empty() || journal.records.rbegin()->first < journal.steps,
          "records are of steps that were done");
  return journal.run_hash;
}

std::uint64_t hash_of_tensors(const std::filesystem::path& place) {
  const StoredTensors tensors = read_stored_tensors(place);
  require(std::is_sorted(tensors.names.begin(), tensors.names.end()), "names are sorted");
  return tensors.weights_hash;
}

void check(std::string_view text) {
  static const std::filesystem::path place = make_place();
  fill(place, text);
  const auto twice = [&](auto read) {
    const auto first = read_or_refuse(place, read);
    require(read_or_refuse(place, read) == first, "a file is read as the same again");
  };
  twice(hash_of_journal);
  twice([](const auto& path) { return read_stored_keys(path).run_hash; });
  twice([](const auto& path) { return read_stored_kernels(path).last_hash; });
  twice(hash_of_tensors);
  twice([](const auto& path) { return read_stored_checkpoint(path).weights_hash; });
}

}  // namespace
}  // namespace frazil

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  frazil::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
