#pragma once
// Turns the header of a checkpoint (exec/checkpoint/checkpoint_file.h) to text and back.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exec/checkpoint/checkpoint_file.h"

namespace frazil {

inline constexpr std::size_t kHeaderSizeBytes = 8;  // before the header
inline constexpr std::size_t kHeaderHashBytes = 8;  // at the beginning of the data

// Returns the least multiple of 64 that is at least `size`.
std::size_t align_up(std::size_t size);

// Says which moments and sums of gradients a layer has, and how often it was updated.
struct LayerShape {
  bool first_moment = false;
  bool second_moment = false;
  std::int64_t updates = 0;
  bool gradient_sums = false;
};

struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t bytes = 0;
  bool is_whole = false;  // int64, else float32
};

// Returns the tensors that a checkpoint of such layers holds, in order.
std::vector<StoredTensor> list_tensors(const ModelSpec& model,
                                       const std::vector<LayerShape>& layers);

// The text in the header: what no tensor says.
struct CheckpointMetadata {
  RunIdentity run;
  TrainingPosition position;
  std::vector<LayerShape> layers;
  std::vector<std::uint64_t> hashes;  // of the tensors of list_tensors
};

std::string to_json(const CheckpointMetadata& data);
// Throws InputError naming `file`.
CheckpointMetadata parse_metadata(std::string_view text, const std::string& file);

// Returns the whole header around that text, filled up to its aligned size.
std::string make_header(const std::string& metadata, const std::vector<StoredTensor>& tensors);
// Returns the text alone; the rest of the header is to be compared with make_header. Throws
// InputError naming `file`.
std::string find_metadata(std::string_view header, const std::string& file);

}  // namespace frazil
