#include "analysis/check/stored_keys.h"

#include <fmt/format.h>

#include <map>

#include "analysis/check/hash_stream.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"
#include "profiles/units.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

struct KernelsEntry {
  std::string header;  // "<step> same" or "<step> other", and an end of line
  std::string facts;   // a line each
  std::string words;
};

KernelsEntry read_kernels_entry(const JsonCursor& cursor) {
  JsonFields fields(cursor);
  KernelsEntry entry;
  const bool other = fields.required("other_bits").boolean();
  const Step from = fields.required("from_step").integer(0, kLargestQuantity);
  entry.header = fmt::format("{} {}\n", from, other ? "other" : "same");
  for (const char* const key : {"processor", "vendor", "features", "aten", "mkl", "torch"}) {
    entry.facts += fields.required(key).text() + "\n";
  }
  entry.words = fmt::format("{} of ATen, {} of MKL, torch {}, on {}",
                            fields.required("aten").text(), fields.required("mkl").text(),
                            fields.required("torch").text(), fields.required("processor").text());
  fields.finish();
  return entry;
}

}  // namespace

StoredKeys read_stored_keys(const fs::path& path) {
  JsonFields fields(parse_json(read_text_file(path), path.string()));
  expect_format(fields, "frazil.run_keys", 1);
  const auto stated = read_hex(fields.required("run_hash").text());
  JsonFields keys(fields.required("keys"));
  fields.finish();
  std::map<std::string, std::string> sorted;
  for (const std::string& key : keys.keys()) sorted[key] = keys.required(key).text();
  HashStream hash;
  for (const auto& [key, value] : sorted) hash.add(json_string(key) + json_string(value) + "\n");
  return {hash.value(), stated == hash.value()};
}

StoredKernels read_stored_kernels(const fs::path& path) {
  JsonFields fields(parse_json(read_text_file(path), path.string()));
  expect_format(fields, "frazil.kernels", 1);
  const auto stated = read_hex(fields.required("hash").text());
  HashStream all;
  StoredKernels kernels;
  for (const JsonCursor& cursor : fields.required("kernels").items()) {
    const KernelsEntry entry = read_kernels_entry(cursor);
    all.add(entry.header + entry.facts);
    kernels.last_hash = hash_of(entry.facts);
    kernels.words = entry.words;
  }
  fields.finish();
  kernels.holds = stated == all.value();
  return kernels;
}

}  // namespace frazil
