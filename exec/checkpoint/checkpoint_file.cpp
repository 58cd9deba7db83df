#include "exec/checkpoint/checkpoint_file.h"

#include <ATen/ATen.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "exec/checkpoint/hashes.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "numbers are written as they are held");

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSizeBytes = 8;
constexpr std::size_t kHashBytes = 8;
constexpr std::size_t kLargestHeader = std::size_t{1} << 24;
constexpr std::size_t kBuffer = std::size_t{1} << 16;
constexpr std::int64_t kMostSteps = 999'999'999'999;

// Which moments a layer has, and how often it was updated.
struct LayerShape {
  bool first_moment = false;
  bool second_moment = false;
  std::int64_t updates = 0;
};

struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t bytes = 0;
};

std::size_t aligned(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

std::size_t float_size(const std::vector<std::int64_t>& shape) {
  std::size_t size = sizeof(float);
  for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
  return size;
}

std::vector<StoredTensor> list_tensors(const ModelSpec& model,
                                       const std::vector<LayerShape>& layers) {
  std::vector<StoredTensor> tensors;
  std::set<std::string> taken;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<StoredTensor> own;
    for (const ParameterSpec& parameter : model.layers[l].parameters) {
      std::string name = parameter.name;
      if (!taken.insert(name).second) name += "@" + std::to_string(l);
      own.push_back({std::move(name), parameter.shape, float_size(parameter.shape)});
    }
    const auto add = [&](const std::string& prefix) {
      for (const StoredTensor& tensor : own) {
        tensors.push_back({prefix + tensor.name, tensor.shape, tensor.bytes});
      }
    };
    add("");
    if (layers[l].first_moment) add("first_moment.");
    if (layers[l].second_moment) add("second_moment.");
  }
  return tensors;
}

using Json = nlohmann::ordered_json;

std::string position_text(const RunIdentity& run, const TrainingPosition& position,
                          const std::vector<LayerShape>& layers,
                          const std::vector<std::uint64_t>& hashes) {
  Json text{{"format", "frazil.checkpoint"},
            {"version", 1},
            {"model_hash", run.model_hash},
            {"run_hash", to_hex(run.run_hash)},
            {"step", position.step},
            {"steps", position.steps},
            {"epoch", position.epoch},
            {"step_in_epoch", position.step_in_epoch},
            {"epoch_loss_bits", to_hex(std::bit_cast<std::uint64_t>(position.epoch_loss))},
            {"epoch_samples", position.epoch_samples},
            {"learning_rate_bits", to_hex(std::bit_cast<std::uint64_t>(position.learning_rate))},
            {"mask", position.mask.text()},
            {"authority", position.authority}};
  // By layer: the count of moments of each parameter, then the count of updates.
  for (const LayerShape& layer : layers) {
    text["moments"].push_back(int{layer.first_moment} + int{layer.second_moment});
    text["updates"].push_back(layer.updates);
  }
  for (const std::uint64_t hash : hashes) text["tensor_hashes"].push_back(to_hex(hash));
  return text.dump();
}

Json entry(const char* type, const std::vector<std::int64_t>& shape, std::size_t begin,
           std::size_t size) {
  return {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, begin + size}}};
}

std::string header_text(const std::string& metadata, const std::vector<StoredTensor>& tensors) {
  Json header{{"__metadata__", {{"checkpoint", metadata}}}};
  std::size_t place = kHashBytes;
  std::size_t paddings = 0;
  header["header_hash"] = entry("U8", {kHashBytes}, 0, kHashBytes);
  for (const StoredTensor& tensor : tensors) {
    if (const std::size_t gap = aligned(place) - place; gap > 0) {
      header["padding." + std::to_string(paddings++)] =
          entry("U8", {static_cast<std::int64_t>(gap)}, place, gap);
    }
    header[tensor.name] = entry("F32", tensor.shape, aligned(place), tensor.bytes);
    place = aligned(place) + tensor.bytes;
  }
  std::string text = header.dump();
  text.resize(aligned(kSizeBytes + text.size()) - kSizeBytes, ' ');
  return text;
}

std::string size_text(std::size_t size) {
  const std::uint64_t number = size;
  std::string text(kSizeBytes, '\0');
  std::memcpy(text.data(), &number, kSizeBytes);
  return text;
}

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Small pieces become large writes.
class Writer {
 public:
  explicit Writer(File& file) : file_(file) {}

  void write(std::string_view bytes) {
    done_ += bytes.size();
    if (buffer_.size() + bytes.size() <= kBuffer) {
      buffer_ += bytes;
      return;
    }
    flush();
    if (bytes.size() > kBuffer) {
      file_.write(bytes);
    } else {
      buffer_ = bytes;
    }
  }
  void align() { write(std::string(aligned(done_) - done_, '\0')); }
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

 private:
  File& file_;
  std::string buffer_;
  std::size_t done_ = 0;
};

// What is stored of a layer, on the host and in the order of list_tensors.
void collect(const LayerState& state, const LayerSpec& spec, Tensors& tensors) {
  for (const auto* some : {&state.parameters, &state.first_moment, &state.second_moment}) {
    if (some->empty()) continue;
    ENSURE(some->size() == spec.parameters.size(), "a tensor for each parameter");
    for (std::size_t p = 0; p < some->size(); ++p) {
      const at::Tensor& tensor = (*some)[p];
      ENSURE(tensor.scalar_type() == at::kFloat && tensor.sizes() == spec.parameters[p].shape,
             "state is as the model says");
      tensors.push_back(tensor.detach().cpu().contiguous());
    }
  }
}

// Reads a file from its beginning to its end, and refuses it in one sentence.
class Reader {
 public:
  Reader(const FileSystem& files, const fs::path& path)
      : path_(path), file_(files, path, O_RDONLY) {
    left_ = static_cast<std::size_t>(file_.size());
  }

  [[noreturn]] void refuse(const std::string& found) const {
    throw InputError(path_.string(), 0, found, "a whole checkpoint of this run");
  }

  std::size_t left() const { return left_; }
  void read(void* bytes, std::size_t size) {
    if (size > left_ || file_.read(bytes, size) != size) refuse("a file that was cut short");
    left_ -= size;
    place_ += size;
  }
  std::string read_text(std::size_t size) {
    if (size > left_) refuse("a file that was cut short");
    std::string text(size, '\0');
    read(text.data(), size);
    return text;
  }
  void skip_padding() {
    const std::string padding = read_text(aligned(place_) - place_);
    if (padding.find_first_not_of('\0') != std::string::npos) refuse("padding that is not zero");
  }

 private:
  fs::path path_;
  File file_;
  std::size_t left_ = 0;
  std::size_t place_ = 0;
};

std::string read_header(Reader& reader) {
  const std::string size = reader.read_text(kSizeBytes);
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, size.data(), kSizeBytes);
  if (bytes > kLargestHeader || bytes > reader.left()) {
    reader.refuse("a header of " + std::to_string(bytes) + " bytes");
  }
  std::string header = reader.read_text(static_cast<std::size_t>(bytes));
  const std::string stored = reader.read_text(kHashBytes);
  const std::uint64_t hash = hash_text(size + header);
  if (std::memcmp(stored.data(), &hash, kHashBytes) != 0) {
    reader.refuse("a header whose hash does not hold");
  }
  return header;
}

std::uint64_t take_bits(JsonFields& fields, const std::string& key) {
  const JsonCursor value = fields.required(key);
  const auto bits = parse_hex(value.text());
  if (!bits) value.fail(value.describe(), "16 hex digits");
  return *bits;
}

double take_double(JsonFields& fields, const std::string& key) {
  return std::bit_cast<double>(take_bits(fields, key));
}

struct Metadata {
  RunIdentity run;
  TrainingPosition position;
  std::vector<LayerShape> layers;
  std::vector<std::uint64_t> hashes;
};

Metadata parse_metadata(std::string_view text, const std::string& file) {
  Metadata data;
  JsonFields fields(parse_json(text, file));
  expect_format(fields, "frazil.checkpoint", 1);
  data.run.model_hash = fields.required("model_hash").text();
  data.run.run_hash = take_bits(fields, "run_hash");
  TrainingPosition& position = data.position;
  position.step = fields.required("step").integer(0, kMostSteps);
  position.steps = fields.required("steps").integer(position.step, kMostSteps);
  position.epoch = static_cast<int>(
      fields.required("epoch").integer(0, std::numeric_limits<std::int32_t>::max()));
  position.step_in_epoch = fields.required("step_in_epoch").integer(0, kMostSteps);
  position.epoch_loss = take_double(fields, "epoch_loss_bits");
  position.epoch_samples = fields.required("epoch_samples").integer(0, kLargestQuantity);
  position.learning_rate = take_double(fields, "learning_rate_bits");
  const JsonCursor mask = fields.required("mask");
  position.mask = FreezeMask::parse(mask.text(), file, mask.line());
  position.authority = fields.required("authority").text();
  for (const JsonCursor& moments : fields.required("moments").items()) {
    const std::int64_t count = moments.integer(0, 2);
    data.layers.push_back({.first_moment = count > 0, .second_moment = count > 1});
  }
  const std::vector<JsonCursor> updates = fields.required("updates").items();
  for (std::size_t l = 0; l < std::min(updates.size(), data.layers.size()); ++l) {
    data.layers[l].updates = updates[l].integer(0, kMostSteps);
  }
  for (const JsonCursor& hash : fields.required("tensor_hashes").items()) {
    data.hashes.push_back(parse_hex(hash.text()).value_or(0));
  }
  fields.finish();
  return data;
}

// The one text in the header: what else is there is compared with what must be.
std::string find_metadata(const std::string& header, const std::string& file) {
  JsonFields fields(parse_json(header, file));
  JsonFields metadata(fields.required("__metadata__"));
  return metadata.required("checkpoint").text();
}

void check_run(const Metadata& data, const ModelSpec& model, const RunIdentity& run,
               const Reader& reader) {
  if (data.run.model_hash != run.model_hash) {
    reader.refuse("a checkpoint of another model (" + data.run.model_hash + ")");
  }
  if (data.run.run_hash != run.run_hash) {
    reader.refuse("a checkpoint of another run: other data, settings, seed or length");
  }
  if (data.layers.size() != model.layers.size()) {
    reader.refuse(std::to_string(data.layers.size()) + " layers");
  }
}

Tensors read_tensors(Reader& reader, const std::vector<StoredTensor>& stored,
                     const std::vector<std::uint64_t>& hashes) {
  Tensors tensors;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    reader.skip_padding();
    if (stored[i].bytes > reader.left()) reader.refuse("a file that was cut short");
    at::Tensor tensor = at::empty(stored[i].shape, at::kFloat);
    reader.read(tensor.mutable_data_ptr(), stored[i].bytes);
    const std::string_view bytes = bytes_of(tensor);
    if (hash_text(bytes) != hashes[i]) {
      reader.refuse("the tensor " + stored[i].name + " whose hash does not hold");
    }
    tensors.push_back(std::move(tensor));
  }
  if (reader.left() > 0) reader.refuse("bytes after the last tensor");
  return tensors;
}

std::vector<LayerState> share_out(Tensors tensors, const ModelSpec& model,
                                  const std::vector<LayerShape>& shapes) {
  std::vector<LayerState> layers(shapes.size());
  auto next = tensors.begin();
  for (std::size_t l = 0; l < shapes.size(); ++l) {
    const auto take = [&](Tensors& some) {
      const auto end = next + static_cast<std::ptrdiff_t>(model.layers[l].parameters.size());
      some.assign(next, end);
      next = end;
    };
    take(layers[l].parameters);
    if (shapes[l].first_moment) take(layers[l].first_moment);
    if (shapes[l].second_moment) take(layers[l].second_moment);
    layers[l].updates = shapes[l].updates;
  }
  return layers;
}

}  // namespace

void write_checkpoint(const FileSystem& files, const fs::path& path, const ModelSpec& model,
                      const RunIdentity& run, const TrainingPosition& position,
                      const std::vector<const LayerState*>& layers) {
  ENSURE(layers.size() == model.layers.size(), "a state for each layer");
  std::vector<LayerShape> shapes;
  Tensors tensors;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    collect(*layers[l], model.layers[l], tensors);
    shapes.push_back(
        {!layers[l]->first_moment.empty(), !layers[l]->second_moment.empty(), layers[l]->updates});
  }
  std::vector<std::uint64_t> hashes;
  for (const at::Tensor& tensor : tensors) hashes.push_back(hash_text(bytes_of(tensor)));
  const std::string header =
      header_text(position_text(run, position, shapes, hashes), list_tensors(model, shapes));
  ENSURE(header.size() <= kLargestHeader, "a header that can be read back");
  const std::string begin = size_text(header.size()) + header;
  const std::uint64_t hash = hash_text(begin);

  File file(files, path, O_WRONLY | O_CREAT | O_EXCL);
  Writer writer(file);
  writer.write(begin);
  writer.write({reinterpret_cast<const char*>(&hash), kHashBytes});
  for (const at::Tensor& tensor : tensors) {
    writer.align();
    writer.write(bytes_of(tensor));
  }
  writer.flush();
  file.sync();
  file.close();
}

Checkpoint read_checkpoint(const FileSystem& files, const fs::path& path, const ModelSpec& model,
                           const RunIdentity& run) {
  Reader reader(files, path);
  const std::string header = read_header(reader);
  const std::string metadata = find_metadata(header, path.string());
  const Metadata data = parse_metadata(metadata, path.string());
  check_run(data, model, run, reader);
  const std::vector<StoredTensor> stored = list_tensors(model, data.layers);
  if (stored.size() != data.hashes.size() || header_text(metadata, stored) != header) {
    reader.refuse("a header that is not that of this model's state");
  }
  return {data.position, share_out(read_tensors(reader, stored, data.hashes), model, data.layers)};
}

}  // namespace frazil
