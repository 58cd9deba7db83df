#include "exec/disk/tensor_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

struct TypeFacts {
  TensorType type;
  std::string_view stored;  // as safetensors files name it
  std::string_view name;    // as PyTorch does
  std::size_t bytes;
};

constexpr std::array<TypeFacts, 10> kTypes{{{TensorType::kBool, "BOOL", "bool", 1},
                                            {TensorType::kUint8, "U8", "uint8", 1},
                                            {TensorType::kInt8, "I8", "int8", 1},
                                            {TensorType::kInt16, "I16", "int16", 2},
                                            {TensorType::kInt32, "I32", "int32", 4},
                                            {TensorType::kInt64, "I64", "int64", 8},
                                            {TensorType::kFloat16, "F16", "float16", 2},
                                            {TensorType::kBfloat16, "BF16", "bfloat16", 2},
                                            {TensorType::kFloat32, "F32", "float32", 4},
                                            {TensorType::kFloat64, "F64", "float64", 8}}};
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

const TypeFacts& facts_of(TensorType type) { return kTypes[static_cast<std::size_t>(type)]; }

std::string quote(const std::string& name) { return "tensor " + json_string(name); }

TensorType parse_stored_type(const JsonCursor& at, const std::string& name) {
  const std::string text = at.text();
  for (const TypeFacts& facts : kTypes) {
    if (facts.stored == text) return facts.type;
  }
  at.fail(at.describe() + " of " + quote(name), "BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64");
}

// Returns the bytes of a tensor; none if they are more than a file can have.
std::optional<std::uint64_t> count_bytes(const TensorEntry& entry) {
  std::int64_t bytes = static_cast<std::int64_t>(bytes_of_element(entry.type));
  for (const std::int64_t size : entry.shape) {
    if (size != 0 && bytes > kMost / size) return std::nullopt;
    bytes *= size;
  }
  return static_cast<std::uint64_t>(bytes);
}

TensorEntry parse_entry(const std::string& name, const JsonCursor& at, std::uint64_t data_size) {
  TensorEntry entry{.name = name, .shape = {}};
  JsonFields fields(at);
  entry.type = parse_stored_type(fields.required("dtype"), name);
  for (const JsonCursor& size : fields.required("shape").items()) {
    entry.shape.push_back(size.integer(0, kMost));
  }
  const JsonCursor places = fields.required("data_offsets");
  const std::vector<JsonCursor> ends = places.items();
  if (ends.size() != 2) places.fail("not two offsets of " + quote(name), "begin and end");
  entry.begin = static_cast<std::uint64_t>(ends[0].integer(0, kMost));
  entry.end = static_cast<std::uint64_t>(ends[1].integer(0, kMost));
  fields.finish();
  if (entry.end < entry.begin || entry.end > data_size) {
    places.fail(quote(name) + " from byte " + std::to_string(entry.begin) + " to " +
                    std::to_string(entry.end),
                "a place within the " + std::to_string(data_size) + " bytes of data");
  }
  const std::optional<std::uint64_t> bytes = count_bytes(entry);
  if (!bytes || *bytes != entry.end - entry.begin) {
    places.fail(quote(name) + " in " + std::to_string(entry.end - entry.begin) + " bytes",
                bytes ? std::to_string(*bytes) + " bytes for its type and shape"
                      : "a shape that a file can hold");
  }
  return entry;
}

// Throws unless the tensors, in the order of their places, fill the data.
void check_places(const TensorHeader& header, std::uint64_t data_size, const std::string& file) {
  std::uint64_t end = 0;
  const TensorEntry* last = nullptr;
  for (const TensorEntry& entry : header.tensors) {
    if (entry.begin < end) {
      throw InputError(file, 0, quote(entry.name) + " that overlaps " + quote(last->name),
                       "tensors one behind the other");
    }
    if (entry.begin > end) {
      throw InputError(
          file, 0,
          std::to_string(entry.begin - end) + " bytes of no tensor before " + quote(entry.name),
          "tensors one behind the other");
    }
    end = entry.end;
    last = &entry;
  }
  if (end != data_size) {
    throw InputError(file, 0, std::to_string(data_size - end) + " bytes behind the last tensor",
                     "data that end with it");
  }
}

}  // namespace

std::size_t bytes_of_element(TensorType type) { return facts_of(type).bytes; }

std::string_view name_of(TensorType type) { return facts_of(type).name; }

std::optional<TensorType> parse_tensor_type(std::string_view name) {
  for (const TypeFacts& facts : kTypes) {
    if (facts.name == name) return facts.type;
  }
  return std::nullopt;
}

const TensorEntry* TensorHeader::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorEntry& entry) { return entry.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

TensorHeader parse_tensor_header(std::string_view text, std::uint64_t data_size,
                                 const std::string& file) {
  TensorHeader header;
  JsonFields fields(parse_json(text, file));
  for (const std::string& key : fields.keys()) {
    const JsonCursor member = fields.required(key);
    if (key != "__metadata__") {
      header.tensors.push_back(parse_entry(key, member, data_size));
      continue;
    }
    JsonFields metadata(member);
    for (const std::string& name : metadata.keys()) {
      header.metadata[name] = metadata.required(name).text();
    }
  }
  // A tensor without bytes stands before the one that begins at its place.
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  check_places(header, data_size, file);
  return header;
}

}  // namespace frazil
