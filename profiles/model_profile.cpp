#include "profiles/model_profile.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "profiles/error.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

Wide floor_divide(Wide numerator, Wide denominator) {
  const Wide quotient = numerator / denominator;
  return numerator % denominator < 0 ? quotient - 1 : quotient;
}

// A straight line through the costs of two micro-batch sizes, read exactly at a third size.
struct Segment {
  int low_size;  // 0 stands for "costs nothing" below a single sample
  int high_size;
  int wanted_size;

  // Returns the line's value rounded down, or zero where a prolonged line falls below zero.
  std::int64_t at(std::int64_t low, std::int64_t high, std::string_view key,
                  const std::string& layer) const {
    const Wide width = static_cast<Wide>(high_size) - low_size;
    const Wide sum = static_cast<Wide>(low) * (static_cast<Wide>(high_size) - wanted_size) +
                     static_cast<Wide>(high) * (static_cast<Wide>(wanted_size) - low_size);
    const Wide value = floor_divide(sum, width);
    if (value < 0) return 0;
    const bool prolonged = wanted_size < low_size || wanted_size > high_size;
    if (prolonged && value > kLargestQuantity) {
      throw InputError(
          fmt::format("layer \"{}\"", layer), 0,
          fmt::format("{} beyond {} at micro-batch size {}", key, kLargestQuantity, wanted_size),
          fmt::format("a size nearer to the measured {} and {}", low_size, high_size));
    }
    return static_cast<std::int64_t>(value);
  }
};

CostSample read_segment(const CostSample& low, const CostSample& high, const Segment& segment,
                        const std::string& layer) {
  const auto time = [&](Duration CostSample::*member, std::string_view key) {
    return Duration{segment.at((low.*member).count(), (high.*member).count(), key, layer)};
  };
  std::optional<Bytes> stash_frozen;
  if (low.stash_frozen && high.stash_frozen) {
    stash_frozen = Bytes{
        segment.at(low.stash_frozen->count, high.stash_frozen->count, "stash_frozen_bytes", layer)};
  }
  return {
      .micro_batch_size = segment.wanted_size,
      .forward = time(&CostSample::forward, "forward_ns"),
      .forward_frozen = time(&CostSample::forward_frozen, "forward_frozen_ns"),
      .backward_input = time(&CostSample::backward_input, "backward_input_ns"),
      .backward_weight = time(&CostSample::backward_weight, "backward_weight_ns"),
      .backward_weight_alone = time(&CostSample::backward_weight_alone, "backward_weight_alone_ns"),
      .stash = {segment.at(low.stash.count, high.stash.count, "stash_bytes", layer)},
      .stash_frozen = stash_frozen};
}

// Puts the length first, so that no two lists of names give one text.
void append_name(std::string& text, const std::string& name) {
  fmt::format_to(std::back_inserter(text), "{}:{}\n", name.size(), name);
}

std::string canonical_structure(const ModelProfile& profile) {
  std::string text;
  const auto out = std::back_inserter(text);
  append_name(text, profile.model);
  for (const std::string& block : profile.blocks) append_name(text, block);
  for (const Layer& layer : profile.layers) {
    fmt::format_to(out, "layer {} {} {} ", layer.block.value, layer.has_loss ? 1 : 0,
                   layer.parameters.count);
    append_name(text, layer.name);
    if (layer.untrainable.count == 0) continue;
    fmt::format_to(out, "untrainable {}{}\n", layer.untrainable.count,
                   layer.varies_in_training ? " varies" : "");
  }
  for (const Edge& edge : profile.edges) {
    fmt::format_to(out, "edge {} {} {}", edge.from.value, edge.to.value,
                   edge.kind == EdgeKind::kGradient ? "gradient" : "detached");
    for (const Bytes bytes : edge.tensor_bytes_per_sample) fmt::format_to(out, " {}", bytes.count);
    text += '\n';
  }
  for (const TiedParameter& tied : profile.tied) {
    fmt::format_to(out, "tied {}", tied.bytes.count);
    for (const LayerId layer : tied.layers) fmt::format_to(out, " {}", layer.value);
    text += ' ';
    append_name(text, tied.name);
    if (!tied.trainable) text += "untrainable\n";
  }
  if (profile.precision != Precision::kFp32) text += name_of(profile.precision);
  return text;
}

class ProfileCheck {
 public:
  ProfileCheck(const ModelProfile& profile, const std::string& file)
      : profile_(profile), file_(file) {}

  void check() const {
    if (profile_.layers.empty()) fail("no layer", "at least one");
    check_names();
    check_blocks();
    for (const Layer& layer : profile_.layers) check_costs(layer);
    check_edges();
    check_tied();
    check_count(profile_.input_bytes_per_sample.count, "an input of bytes per sample");
    const auto has_loss = [](const Layer& layer) { return layer.has_loss; };
    if (std::none_of(profile_.layers.begin(), profile_.layers.end(), has_loss)) {
      fail("no layer with a loss", "at least one");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(file_, 0, found, expected);
  }

  void check_name(std::set<std::string>& names, const std::string& name, const char* noun) const {
    if (name.empty()) fail(fmt::format("a {} without a name", noun), "a name");
    if (!names.insert(name).second) {
      fail(fmt::format("two {}s \"{}\"", noun, name), "names that differ");
    }
  }

  void check_names() const {
    std::set<std::string> blocks;
    for (const std::string& block : profile_.blocks) check_name(blocks, block, "block");
    std::set<std::string> layers;
    for (const Layer& layer : profile_.layers) check_name(layers, layer.name, "layer");
    std::set<std::string> tied;
    for (const TiedParameter& parameter : profile_.tied) {
      check_name(tied, parameter.name, "tied parameter");
    }
  }

  void check_count(std::int64_t count, const std::string& what) const {
    if (count < 0 || count > kLargestQuantity) {
      fail(fmt::format("{}: {}", what, count), fmt::format("0 to {}", kLargestQuantity));
    }
  }

  // Throws unless blocks are runs of layers, in order, none empty.
  void check_blocks() const {
    std::int32_t previous = -1;
    for (const Layer& layer : profile_.layers) {
      const std::int32_t block = layer.block.value;
      const std::string what = fmt::format("layer \"{}\" in block {}", layer.name, block);
      if (layer.block.index() >= profile_.blocks.size()) {
        fail(what, fmt::format("one of {} blocks", profile_.blocks.size()));
      }
      if (block != previous && block != previous + 1) {
        fail(fmt::format("{} after block {}", what, previous),
             "blocks of consecutive layers, in order, none empty");
      }
      previous = block;
    }
    if (static_cast<std::size_t>(previous) + 1 != profile_.blocks.size()) {
      fail(fmt::format("block {} without a layer", previous + 1), "a layer in every block");
    }
  }

  void check_costs(const Layer& layer) const {
    const std::string what = fmt::format("layer \"{}\"", layer.name);
    check_count(layer.parameters.count, what + " with parameter bytes");
    if (layer.untrainable.count < 0 || layer.untrainable > layer.parameters) {
      fail(fmt::format("{} with {} bytes of parameters that do not train", what,
                       layer.untrainable.count),
           fmt::format("0 to its {} bytes of parameters", layer.parameters.count));
    }
    check_count(layer.optimizer_state.count, what + " with optimizer state bytes");
    check_count(layer.update.count(), what + " with an update of ns");
    if (layer.costs.empty()) fail(what + " without costs", "at least one cost sample");
    int previous = 0;
    for (const CostSample& sample : layer.costs) {
      const std::string where =
          fmt::format("{} at micro-batch size {}", what, sample.micro_batch_size);
      if (sample.micro_batch_size <= previous) {
        fail(fmt::format("{} after {}", where, previous), "ascending sizes of at least 1");
      }
      previous = sample.micro_batch_size;
      check_count(sample.forward.count(), where + " with forward ns");
      check_count(sample.forward_frozen.count(), where + " with forward frozen ns");
      check_count(sample.backward_input.count(), where + " with backward input ns");
      check_count(sample.backward_weight.count(), where + " with backward weight ns");
      check_count(sample.backward_weight_alone.count(), where + " with backward weight alone ns");
      check_count(sample.stash.count, where + " with stash bytes");
      check_count(sample.kept(false).count, where + " with stash frozen bytes");
    }
  }

  void check_edges() const {
    const std::vector<Edge>& edges = profile_.edges;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const Edge& edge = edges[i];
      const std::string what =
          fmt::format("an edge from layer {} to {}", edge.from.value, edge.to.value);
      check_layer(edge.from, what);
      check_layer(edge.to, what);
      if (edge.from >= edge.to) fail(what, "an edge to a later layer");
      if (i > 0 && ends(edges[i - 1]) >= ends(edge)) {
        fail(what + (ends(edges[i - 1]) == ends(edge) ? " again" : " out of order"),
             "edges in ascending order of (from, to, kind), each once");
      }
      if (edge.tensor_bytes_per_sample.empty()) fail(what + " without a tensor", "at least one");
      for (const Bytes bytes : edge.tensor_bytes_per_sample) {
        check_count(bytes.count, what + " with a tensor of bytes");
      }
    }
  }

  void check_tied() const {
    for (const TiedParameter& tied : profile_.tied) {
      const std::string what = fmt::format("the tied parameter \"{}\"", tied.name);
      check_count(tied.bytes.count, what + " of bytes");
      if (tied.layers.size() < 2) fail(what + " in fewer than two layers", "two or more");
      for (std::size_t i = 0; i < tied.layers.size(); ++i) {
        check_layer(tied.layers[i], what);
        if (i > 0 && tied.layers[i - 1] >= tied.layers[i]) {
          fail(what + " with layers out of order", "layers in ascending order, each once");
        }
      }
    }
  }

  void check_layer(LayerId layer, const std::string& what) const {
    if (layer.index() >= profile_.layers.size()) {
      fail(fmt::format("{} with layer {}", what, layer.value),
           fmt::format("one of {} layers", profile_.layers.size()));
    }
  }

  static std::tuple<LayerId, LayerId, EdgeKind> ends(const Edge& edge) {
    return {edge.from, edge.to, edge.kind};
  }

  const ModelProfile& profile_;
  const std::string& file_;
};

}  // namespace

Bytes Edge::bytes(int micro_batch_size) const {
  Wide sum = 0;
  for (const Bytes bytes : tensor_bytes_per_sample) {
    sum += static_cast<Wide>(bytes.count) * micro_batch_size;
  }
  if (sum > kLargestQuantity) {
    throw InputError(fmt::format("edge from layer {} to {}", from.value, to.value), 0,
                     fmt::format("tensor_bytes_per_sample of more than {} bytes at micro-batch "
                                 "size {}",
                                 kLargestQuantity, micro_batch_size),
                     "a smaller micro-batch");
  }
  return {static_cast<std::int64_t>(sum)};
}

LayerCost cost_at(const Layer& layer, int micro_batch_size) {
  ENSURE(micro_batch_size >= 1, "a micro-batch holds at least one sample");
  ENSURE(!layer.costs.empty(), "a layer has at least one cost sample");
  const std::vector<CostSample>& costs = layer.costs;
  const auto place = std::lower_bound(
      costs.begin(), costs.end(), micro_batch_size,
      [](const CostSample& sample, int size) { return sample.micro_batch_size < size; });
  if (place != costs.end() && place->micro_batch_size == micro_batch_size) return {*place, false};
  const bool extrapolated = place == costs.begin() || place == costs.end();
  if (costs.size() == 1) {
    const CostSample& only = costs.front();
    const Segment segment{0, only.micro_batch_size, micro_batch_size};
    const CostSample nothing{.micro_batch_size = 0, .stash = {}, .stash_frozen = Bytes{}};
    return {read_segment(nothing, only, segment, layer.name), extrapolated};
  }
  const auto high = std::clamp(place, costs.begin() + 1, costs.end() - 1);
  const CostSample& low = *(high - 1);
  const Segment segment{low.micro_batch_size, high->micro_batch_size, micro_batch_size};
  return {read_segment(low, *high, segment, layer.name), extrapolated};
}

std::string model_hash(const ModelProfile& profile) {
  const std::string text = canonical_structure(profile);
  return fmt::format("{:016x}", XXH64(text.data(), text.size(), 0));
}

void validate(const ModelProfile& profile, const std::string& file) {
  ProfileCheck(profile, file).check();
}

}  // namespace frazil
