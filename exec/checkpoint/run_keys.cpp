#include "exec/checkpoint/run_keys.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "exec/checkpoint/run_files.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Keys = std::map<std::string, std::string>;

constexpr const char* kFormat = "frazil.run_keys";

std::optional<Keys> parse_keys(const std::string& text, const std::string& file) {
  JsonFields fields(parse_json(text, file));
  expect_format(fields, kFormat, 1);
  const std::string hash = fields.required("run_hash").text();
  JsonFields members(fields.required("keys"));
  Keys keys;
  for (const std::string& key : members.keys()) keys[key] = members.required(key).text();
  fields.finish();
  if (parse_hex(hash) != hash_keys(keys)) return std::nullopt;
  return keys;
}

std::optional<Keys> read_keys(const FileSystem& files, const fs::path& folder) {
  if (!is_in_folder(files, folder / kKeysFile)) return std::nullopt;
  try {
    return parse_keys(read_file(files, folder / kKeysFile), (folder / kKeysFile).string());
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// "steps 18, seed 1": what `some` has for the keys in which the two differ.
std::string tell_values(const Keys& some, const Keys& differing) {
  std::string text;
  for (const auto& [key, ignored] : differing) {
    const auto value = some.find(key);
    text += (text.empty() ? "" : ", ") + key + " " +
            (value == some.end() ? std::string("unset") : value->second);
  }
  return text;
}

Keys find_differing(const Keys& a, const Keys& b) {
  Keys differing;
  for (const auto& [mine, other] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    for (const auto& [key, value] : *mine) {
      const auto found = other->find(key);
      if (found == other->end() || found->second != value) differing[key] = value;
    }
  }
  return differing;
}

}  // namespace

std::uint64_t hash_keys(const Keys& keys) {
  std::string text;
  for (const auto& [key, value] : keys) text += json_string(key) + json_string(value) + "\n";
  return hash_text(text);
}

bool check_keys(const FileSystem& files, const fs::path& folder, const RunIdentity& run) {
  const std::optional<Keys> there = read_keys(files, folder);
  if (!there || run.keys.empty()) return false;
  const Keys differing = find_differing(*there, run.keys);
  if (differing.empty()) return true;
  throw InputError(folder.string(), 0, "a run begun with " + tell_values(*there, differing),
                   "this run's " + tell_values(run.keys, differing) + ", or another folder");
}

void write_keys(const FileSystem& files, const fs::path& folder, const RunIdentity& run) {
  const nlohmann::ordered_json text{
      {"format", kFormat}, {"version", 1}, {"run_hash", to_hex(run.run_hash)}, {"keys", run.keys}};
  write_file(files, folder / kKeysFile, text.dump(2) + "\n");
}

}  // namespace frazil
