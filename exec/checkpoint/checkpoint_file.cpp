#include "exec/checkpoint/checkpoint_file.h"

#include <ATen/ATen.h>
#include <fcntl.h>

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "exec/checkpoint/checkpoint_header.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "numbers are written as they are held");

constexpr std::size_t kLargestHeader = std::size_t{1} << 24;
constexpr std::size_t kBuffer = std::size_t{1} << 16;

std::string size_text(std::size_t size) {
  const std::uint64_t number = size;
  std::string text(kHeaderSizeBytes, '\0');
  std::memcpy(text.data(), &number, kHeaderSizeBytes);
  return text;
}

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Joins small pieces to large writes.
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
  void align() { write(std::string(align_up(done_) - done_, '\0')); }
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

 private:
  File& file_;
  std::string buffer_;
  std::size_t done_ = 0;
};

// Appends what is stored of a layer, on the host and in the order of list_tensors.
void collect(const LayerState& state, const LayerSpec& spec, Tensors& tensors) {
  std::vector<const ParameterSpec*> all;
  std::vector<const ParameterSpec*> trainable;
  for (const ParameterSpec& parameter : spec.parameters) {
    all.push_back(&parameter);
    if (parameter.trainable) trainable.push_back(&parameter);
  }
  for (const auto* some :
       {&state.parameters, &state.first_moment, &state.second_moment, &state.gradient_sums}) {
    if (some->empty()) continue;
    const std::vector<const ParameterSpec*>& described =
        some == &state.parameters ? all : trainable;
    ENSURE(some->size() == described.size(), "a tensor for each parameter");
    for (std::size_t p = 0; p < some->size(); ++p) {
      const at::Tensor& tensor = (*some)[p];
      ENSURE(tensor.scalar_type() == at::kFloat && tensor.sizes() == described[p]->shape,
             "state is as the model says");
      tensors.push_back(tensor.detach().cpu().contiguous());
    }
  }
  ENSURE(state.statistics.size() == spec.statistics.size(), "a tensor for each statistic");
  for (std::size_t s = 0; s < spec.statistics.size(); ++s) {
    const at::Tensor& tensor = state.statistics[s];
    const at::Tensor& described = spec.statistics[s].value;
    ENSURE(tensor.scalar_type() == described.scalar_type() && tensor.sizes() == described.sizes(),
           "statistics are as the model says");
    tensors.push_back(tensor.cpu().contiguous());
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
    const std::string padding = read_text(align_up(place_) - place_);
    if (padding.find_first_not_of('\0') != std::string::npos) refuse("padding that is not zero");
  }

 private:
  fs::path path_;
  File file_;
  std::size_t left_ = 0;
  std::size_t place_ = 0;
};

std::string read_header(Reader& reader) {
  const std::string size = reader.read_text(kHeaderSizeBytes);
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, size.data(), kHeaderSizeBytes);
  if (bytes > kLargestHeader || bytes > reader.left()) {
    reader.refuse("a header of " + std::to_string(bytes) + " bytes");
  }
  std::string header = reader.read_text(static_cast<std::size_t>(bytes));
  const std::string stored = reader.read_text(kHeaderHashBytes);
  const std::uint64_t hash = hash_text(size + header);
  if (std::memcmp(stored.data(), &hash, kHeaderHashBytes) != 0) {
    reader.refuse("a header whose hash does not hold");
  }
  return header;
}

void check_run(const CheckpointMetadata& data, const ModelSpec& model, const RunIdentity& run,
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
    at::Tensor tensor = at::empty(stored[i].shape, stored[i].is_whole ? at::kLong : at::kFloat);
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
    const std::size_t all = model.layers[l].parameters.size();
    const std::size_t trainable = all - find_untrainable(model.layers[l]).size();
    const auto take = [&](Tensors& some, std::size_t count) {
      const auto end = next + static_cast<std::ptrdiff_t>(count);
      some.assign(next, end);
      next = end;
    };
    take(layers[l].parameters, all);
    if (shapes[l].first_moment) take(layers[l].first_moment, trainable);
    if (shapes[l].second_moment) take(layers[l].second_moment, trainable);
    if (shapes[l].gradient_sums) take(layers[l].gradient_sums, trainable);
    take(layers[l].statistics, model.layers[l].statistics.size());
    layers[l].updates = shapes[l].updates;
  }
  return layers;
}

}  // namespace

std::uint64_t hash_weights(const std::vector<const LayerState*>& layers) {
  Tensors host;  // holds what the parts refer to
  std::vector<std::string_view> parts;
  for (const LayerState* const layer : layers) {
    for (const at::Tensor& parameter : layer->parameters) {
      host.push_back(parameter.detach().cpu().contiguous());
    }
    for (const at::Tensor& statistic : layer->statistics) {
      host.push_back(statistic.cpu().contiguous());
    }
  }
  for (const at::Tensor& tensor : host) parts.push_back(bytes_of(tensor));
  return hash_parts(parts);
}

void write_checkpoint(const FileSystem& files, const fs::path& path, const ModelSpec& model,
                      const RunIdentity& run, const TrainingPosition& position,
                      const std::vector<const LayerState*>& layers) {
  ENSURE(layers.size() == model.layers.size(), "a state for each layer");
  std::vector<LayerShape> shapes;
  Tensors tensors;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    collect(*layers[l], model.layers[l], tensors);
    shapes.push_back({.first_moment = !layers[l]->first_moment.empty(),
                      .second_moment = !layers[l]->second_moment.empty(),
                      .updates = layers[l]->updates,
                      .gradient_sums = !layers[l]->gradient_sums.empty()});
  }
  std::vector<std::uint64_t> hashes;
  for (const at::Tensor& tensor : tensors) hashes.push_back(hash_text(bytes_of(tensor)));
  const std::string header = make_header(to_json(CheckpointMetadata{run, position, shapes, hashes}),
                                         list_tensors(model, shapes));
  ENSURE(header.size() <= kLargestHeader, "a header that can be read back");
  const std::string begin = size_text(header.size()) + header;
  const std::uint64_t hash = hash_text(begin);

  File file(files, path, O_WRONLY | O_CREAT | O_EXCL);
  Writer writer(file);
  writer.write(begin);
  writer.write({reinterpret_cast<const char*>(&hash), kHeaderHashBytes});
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
  const CheckpointMetadata data = parse_metadata(metadata, path.string());
  check_run(data, model, run, reader);
  const std::vector<StoredTensor> stored = list_tensors(model, data.layers);
  if (stored.size() != data.hashes.size() || make_header(metadata, stored) != header) {
    reader.refuse("a header that is not that of this model's state");
  }
  return {data.position, share_out(read_tensors(reader, stored, data.hashes), model, data.layers)};
}

}  // namespace frazil
