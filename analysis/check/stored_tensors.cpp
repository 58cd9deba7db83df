#include "analysis/check/stored_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>

#include "analysis/check/hash_stream.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLargestPlace = std::int64_t{1} << 53;
constexpr std::uint64_t kLargestHeader = std::uint64_t{1} << 26;
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr Step kMostSteps = 999'999'999'999;

struct Entry {
  std::string name;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

[[noreturn]] void refuse(const fs::path& path, const std::string& found) {
  throw InputError(path.string(), 0, found, "a whole safetensors file of this run");
}

std::string read_bytes(std::ifstream& file, std::size_t size, const fs::path& path) {
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<std::size_t>(file.gcount()) != size) refuse(path, "a file that was cut short");
  return bytes;
}

std::uint64_t number_of(const std::string& bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

Entry read_entry(const std::string& name, const JsonCursor& value) {
  JsonFields fields(value);
  const std::string type = fields.required("dtype").text();
  const std::map<std::string, std::int64_t> sizes{{"F32", 4}, {"I64", 8}, {"U8", 1}};
  if (!sizes.contains(type)) value.fail(type, "F32, I64 or U8");
  std::int64_t bytes = sizes.at(type);
  for (const JsonCursor& extent : fields.required("shape").items()) {
    bytes *= extent.integer(0, kLargestPlace / std::max(bytes, std::int64_t{1}));
  }
  const JsonCursor offsets = fields.required("data_offsets");
  const std::vector<JsonCursor> places = offsets.items();
  if (places.size() != 2) offsets.fail("other than two places", "begin and end");
  const Entry entry{name, places[0].integer(0, kLargestPlace), places[1].integer(0, kLargestPlace)};
  if (entry.end - entry.begin != bytes) offsets.fail("another size", fmt::format("{}", bytes));
  fields.finish();
  return entry;
}

std::vector<Entry> read_entries(const std::string& header, const fs::path& path,
                                StoredTensors& tensors) {
  JsonFields fields(parse_json(header, path.string()));
  std::vector<Entry> entries;
  for (const std::string& name : fields.keys()) {
    const JsonCursor value = fields.required(name);
    if (name != "__metadata__") {
      entries.push_back(read_entry(name, value));
      continue;
    }
    JsonFields texts(value);
    for (const std::string& key : texts.keys()) tensors.metadata[key] = texts.required(key).text();
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
  std::int64_t place = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != place) refuse(path, "tensors that do not lie one behind the other");
    place = entry.end;
  }
  return entries;
}

bool is_parameter(const std::string& name) {
  if (name == "header_hash") return false;
  for (const char* const prefix :
       {"padding.", "first_moment.", "second_moment.", "gradient_sum."}) {
    if (name.starts_with(prefix)) return false;
  }
  return true;
}

// Adds the names under which weights alone have a parameter: a checkpoint has query, key and value
// as one.
void add_names(const std::string& name, std::vector<std::string>& names) {
  constexpr std::string_view kFused = ".query_key_value.";
  const std::size_t place = name.find(kFused);
  if (place == std::string::npos) return names.push_back(name);
  for (const char* const part : {".query.", ".key.", ".value."}) {
    names.push_back(name.substr(0, place) + part + name.substr(place + kFused.size()));
  }
}

void add_bytes(std::ifstream& file, const Entry& entry, const fs::path& path, HashStream& hash) {
  for (std::int64_t left = entry.end - entry.begin; left > 0;) {
    const auto size = std::min(static_cast<std::size_t>(left), kPiece);
    hash.add(read_bytes(file, size, path));
    left -= static_cast<std::int64_t>(size);
  }
}

void read_tensor(std::ifstream& file, const Entry& entry, const fs::path& path, HashStream& weights,
                 StoredTensors& tensors) {
  const bool is_padding = entry.name.starts_with("padding.");
  const bool is_header_hash = entry.name == "header_hash";
  HashStream own;
  for (std::int64_t left = entry.end - entry.begin; left > 0;) {
    const auto size = std::min(static_cast<std::size_t>(left), kPiece);
    const std::string bytes = read_bytes(file, size, path);
    left -= static_cast<std::int64_t>(size);
    if (is_header_hash && size == 8) tensors.header_hash = number_of(bytes);
    if (is_padding) {
      tensors.has_clean_padding &= bytes.find_first_not_of('\0') == std::string::npos;
    }
    own.add(bytes);
    if (is_parameter(entry.name)) weights.add(bytes);
  }
  if (!is_padding && !is_header_hash) tensors.hashes.push_back(own.value());
}

}  // namespace

StoredTensors read_stored_tensors(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "a file that cannot be read");
  const std::string size = read_bytes(file, 8, path);
  if (number_of(size) > kLargestHeader) refuse(path, "a header that is too large");
  // Before memory is taken for what a few bytes claim.
  std::error_code error;
  const std::uintmax_t whole = fs::file_size(path, error);
  if (error || whole - 8 < number_of(size)) refuse(path, "a file that was cut short");
  const std::string header = read_bytes(file, number_of(size), path);
  StoredTensors tensors;
  tensors.begin_hash = hash_of(size + header);
  HashStream weights;
  for (const Entry& entry : read_entries(header, path, tensors)) {
    read_tensor(file, entry, path, weights, tensors);
    if (is_parameter(entry.name)) add_names(entry.name, tensors.names);
  }
  if (file.peek() != std::ifstream::traits_type::eof()) refuse(path, "bytes after the last tensor");
  tensors.weights_hash = weights.value();
  return tensors;
}

std::uint64_t hash_in_order(const fs::path& path, const std::vector<std::string>& names) {
  std::ifstream file(path, std::ios::binary);
  const std::uint64_t size = number_of(read_bytes(file, 8, path));
  StoredTensors unused;
  const std::vector<Entry> entries = read_entries(read_bytes(file, size, path), path, unused);
  HashStream weights;
  for (const std::string& name : names) {
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& each) { return each.name == name; });
    if (entry == entries.end()) refuse(path, "no tensor " + name);
    file.seekg(static_cast<std::streamoff>(8 + size) + entry->begin);
    add_bytes(file, *entry, path, weights);
  }
  return weights.value();
}

StoredCheckpoint read_stored_checkpoint(const fs::path& path) {
  const StoredTensors tensors = read_stored_tensors(path);
  if (tensors.header_hash != tensors.begin_hash) refuse(path, "a header whose hash does not hold");
  if (!tensors.has_clean_padding) refuse(path, "padding that is not zero");
  const auto text = tensors.metadata.find("checkpoint");
  if (text == tensors.metadata.end()) refuse(path, "no metadata of a checkpoint");
  JsonFields fields(parse_json(text->second, path.string()));
  StoredCheckpoint checkpoint;
  checkpoint.model_hash = fields.required("model_hash").text();
  checkpoint.run_hash = read_hex(fields.required("run_hash").text()).value_or(0);
  checkpoint.step = fields.required("step").integer(0, kMostSteps);
  checkpoint.mask = fields.required("mask").text();
  checkpoint.weights_hash = tensors.weights_hash;
  checkpoint.names = tensors.names;
  std::vector<std::uint64_t> hashes;
  for (const JsonCursor& hash : fields.required("tensor_hashes").items()) {
    hashes.push_back(read_hex(hash.text()).value_or(0));
  }
  if (hashes != tensors.hashes) refuse(path, "a tensor whose hash does not hold");
  return checkpoint;
}

}  // namespace frazil
