#include "exec/checkpoint/weights_file.h"

#include <ATen/ATen.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "profiles/error.h"
#include "profiles/units.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "numbers are written as they are held");

constexpr std::size_t kHeaderAlignment = 8;

// Returns the size of the header and the header.
std::string make_begin(const std::vector<NamedTensor>& weights,
                       const std::map<std::string, std::string>& metadata) {
  Json header{{"__metadata__", metadata}};
  header["__metadata__"]["format"] = "pt";
  std::size_t place = 0;
  for (const auto& [name, tensor] : weights) {
    const bool is_whole = tensor.scalar_type() == at::kLong;
    ENSURE((is_whole || tensor.scalar_type() == at::kFloat) && !header.contains(name),
           "float32 or int64 tensors whose names differ");
    const std::size_t end = place + tensor.nbytes();
    header[name] = {{"dtype", is_whole ? "I64" : "F32"},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {place, end}}};
    place = end;
  }
  std::string text = header.dump();
  text.resize(divide_up(text.size(), kHeaderAlignment) * kHeaderAlignment, ' ');
  const std::uint64_t size = text.size();
  std::string begin(sizeof size, '\0');
  std::memcpy(begin.data(), &size, sizeof size);
  return begin + text;
}

}  // namespace

void write_weights(const FileSystem& files, const fs::path& path,
                   const std::vector<NamedTensor>& weights,
                   const std::map<std::string, std::string>& metadata) {
  replace_file(files, path, [&](File& file) {
    file.write(make_begin(weights, metadata));
    for (const NamedTensor& weight : weights) {
      const at::Tensor host = weight.tensor.detach().cpu().contiguous();
      file.write({static_cast<const char*>(host.const_data_ptr()), host.nbytes()});
    }
  });
}

}  // namespace frazil
