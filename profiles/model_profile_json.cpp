#include "profiles/model_profile_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>

#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/split_backward.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr int kModelVersion = 1;
constexpr const char* kModelFormat = "frazil.model";
constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kBf16};

std::int64_t take_count(JsonFields& fields, const std::string& key) {
  return fields.required(key).integer(0, kLargestQuantity);
}

std::int64_t take_count_or(JsonFields& fields, const std::string& key, std::int64_t absent) {
  const auto member = fields.optional(key);
  return member ? member->integer(0, kLargestQuantity) : absent;
}

bool take_flag(JsonFields& fields, const std::string& key) {
  const auto member = fields.optional(key);
  return member && member->boolean();
}

std::string take_new_name(const JsonCursor& name, std::set<std::string>& names) {
  if (name.text().empty()) name.fail(name.describe(), "a name");
  if (!names.insert(name.text()).second) {
    name.fail(name.describe() + " again", "names that differ");
  }
  return name.text();
}

// Reads an index from `first` on into a list of `count` things.
std::int32_t take_index(const JsonCursor& index, std::int64_t first, std::size_t count) {
  const auto last = static_cast<std::int64_t>(count) - 1;
  if (count == 0) index.fail(index.describe(), "an index into a list, which is empty");
  return static_cast<std::int32_t>(index.integer(first, last));
}

// Reads one of the names of `values`.
template <class Value, std::size_t kCount>
Value take_named(const JsonCursor& name, const Value (&values)[kCount]) {
  std::string all;
  for (const Value value : values) {
    if (name_of(value) == name.text()) return value;
    all += fmt::format("{}\"{}\"", all.empty() ? "" : ", ", name_of(value));
  }
  name.fail(name.describe(), "one of " + all);
}

// Fills the backward costs. Returns true when they are one number, which is backward_input then.
bool take_backward(JsonFields& fields, const JsonCursor& sample, CostSample& cost) {
  const auto whole = fields.optional("backward_ns");
  const auto input = fields.optional("backward_input_ns");
  const auto weight = fields.optional("backward_weight_ns");
  const auto alone = fields.optional("backward_weight_alone_ns");
  if (!whole) {
    if (!input || !weight) {
      sample.fail("a cost sample without a whole backward or both of its parts",
                  "\"backward_input_ns\" and \"backward_weight_ns\", or \"backward_ns\"");
    }
    cost.backward_input = Duration{input->integer(0, kLargestQuantity)};
    cost.backward_weight = Duration{weight->integer(0, kLargestQuantity)};
    cost.backward_weight_alone =
        alone ? Duration{alone->integer(0, kLargestQuantity)} : cost.backward_weight;
    return false;
  }
  if (input || weight || alone) {
    whole->fail("a whole backward beside its parts", "one or the other");
  }
  cost.backward_input = Duration{whole->integer(0, kLargestQuantity)};
  return true;
}

class ProfileReader {
 public:
  ModelProfile read(const JsonCursor& root) {
    JsonFields fields(root);
    expect_format(fields, kModelFormat, kModelVersion);
    profile_.model = fields.required("model").text();
    profile_.input_bytes_per_sample = {take_count_or(fields, "input_bytes_per_sample", 0)};
    if (const auto precision = fields.optional("precision")) {
      profile_.precision = take_named(*precision, kPrecisions);
    }
    profile_.backward_was_split_by_rule = take_flag(fields, "backward_was_split_by_rule");
    if (const auto doubts = fields.optional("doubts")) {
      for (const JsonCursor& doubt : doubts->items()) read_doubt(doubt);
    }
    if (const auto provenance = fields.optional("provenance")) {
      profile_.provenance = parse_provenance(*provenance);
    }
    std::set<std::string> names;
    for (const JsonCursor& name : fields.required("blocks").items()) {
      profile_.blocks.push_back(take_new_name(name, names));
    }
    const JsonCursor layers = fields.required("layers");
    for (const JsonCursor& layer : layers.items()) read_layer(layer);
    check_layers(layers);
    for (const JsonCursor& edge : fields.required("edges").items()) read_edge(edge);
    const auto order = [](const Edge& a, const Edge& b) {
      return std::tie(a.from, a.to, a.kind) < std::tie(b.from, b.to, b.kind);
    };
    std::sort(profile_.edges.begin(), profile_.edges.end(), order);
    if (const auto tied = fields.optional("tied")) {
      for (const JsonCursor& parameter : tied->items()) read_tied(parameter);
    }
    fields.finish();
    validate(profile_, root.file());
    split_backwards();
    return std::move(profile_);
  }

 private:
  void read_doubt(const JsonCursor& cursor) {
    JsonFields fields(cursor);
    Doubt doubt;
    const JsonCursor fact = fields.required("fact");
    doubt.fact = take_named(fact, kDoubtedFacts);
    doubt.kind = take_named(fields.required("kind"), kDoubtKinds);
    doubt.reason = fields.required("reason").text();
    fields.finish();
    const auto is_same = [&](const Doubt& other) { return other.fact == doubt.fact; };
    if (std::any_of(profile_.doubts.begin(), profile_.doubts.end(), is_same)) {
      fact.fail(fact.describe() + " again", "each fact once");
    }
    note_doubt(profile_.doubts, std::move(doubt));
  }

  void split_backwards() {
    if (whole_backwards_.empty()) return;
    profile_.backward_was_split_by_rule = true;
    const GradientFlow flow = find_unfrozen_flow(profile_);
    for (const auto& [l, sample] : whole_backwards_) {
      Layer& layer = profile_.layers[l];
      CostSample& cost = layer.costs[sample];
      split_backward(cost.backward_input, layer, flow.layers[l], cost);
    }
  }

  void read_layer(const JsonCursor& cursor) {
    JsonFields fields(cursor);
    Layer layer;
    layer.name = take_new_name(fields.required("name"), layer_names_);
    layer.block = read_block(fields.required("block"));
    layer.has_loss = take_flag(fields, "has_loss");
    layer.parameters = {take_count(fields, "parameter_bytes")};
    if (const auto trains = fields.optional("trainable_parameter_bytes")) {
      layer.untrainable = layer.parameters - Bytes{trains->integer(0, layer.parameters.count)};
    }
    layer.varies_in_training = take_flag(fields, "varies_in_training");
    layer.optimizer_state = {take_count_or(fields, "optimizer_state_bytes", 0)};
    layer.update = Duration{take_count_or(fields, "update_ns", 0)};
    const JsonCursor costs = fields.required("costs");
    for (const JsonCursor& sample : costs.items()) read_cost(sample, layer);
    if (layer.costs.empty()) costs.fail("no cost sample", "at least one");
    fields.finish();
    profile_.layers.push_back(std::move(layer));
  }

  // Blocks are runs of layers, in order, none empty: the first layer is in block 0, any other in
  // the block of the layer before or the next block.
  BlockId read_block(const JsonCursor& cursor) const {
    const BlockId block(take_index(cursor, 0, profile_.blocks.size()));
    const std::int32_t previous = profile_.layers.empty() ? -1 : profile_.layers.back().block.value;
    if (block.value == previous || block.value == previous + 1) return block;
    cursor.fail(fmt::format("{} after a layer of block {}", cursor.describe(), previous),
                "blocks of consecutive layers, in order, none empty");
  }

  void check_layers(const JsonCursor& layers) const {
    if (profile_.layers.empty()) layers.fail("no layer", "at least one");
    const std::size_t blocks_used = profile_.layers.back().block.index() + 1;
    if (blocks_used != profile_.blocks.size()) {
      layers.fail(fmt::format("no layer in block {}", blocks_used), "a layer in every block");
    }
    const auto has_loss = [](const Layer& layer) { return layer.has_loss; };
    if (std::none_of(profile_.layers.begin(), profile_.layers.end(), has_loss)) {
      layers.fail("no layer with a loss", "at least one with `\"has_loss\": true`");
    }
  }

  void read_cost(const JsonCursor& cursor, Layer& layer) {
    JsonFields fields(cursor);
    CostSample cost;
    const JsonCursor size = fields.required("micro_batch_size");
    cost.micro_batch_size =
        static_cast<int>(size.integer(1, std::numeric_limits<std::int32_t>::max()));
    if (!layer.costs.empty() && cost.micro_batch_size <= layer.costs.back().micro_batch_size) {
      size.fail(fmt::format("{} after {}", size.describe(), layer.costs.back().micro_batch_size),
                "ascending micro-batch sizes");
    }
    cost.forward = Duration{take_count(fields, "forward_ns")};
    const auto frozen = fields.optional("forward_frozen_ns");
    cost.forward_frozen = frozen ? Duration{frozen->integer(0, kLargestQuantity)} : cost.forward;
    if (take_backward(fields, cursor, cost)) {
      whole_backwards_.emplace_back(profile_.layers.size(), layer.costs.size());
    }
    cost.stash = {take_count(fields, "stash_bytes")};
    if (const auto kept = fields.optional("stash_frozen_bytes")) {
      cost.stash_frozen = Bytes{kept->integer(0, kLargestQuantity)};
    }
    fields.finish();
    layer.costs.push_back(cost);
  }

  void read_edge(const JsonCursor& cursor) {
    JsonFields fields(cursor);
    Edge edge;
    edge.from = LayerId(take_index(fields.required("from"), 0, profile_.layers.size()));
    const JsonCursor to = fields.required("to");
    edge.to = LayerId(take_index(to, 0, profile_.layers.size()));
    if (edge.to <= edge.from) {
      to.fail(to.describe(), fmt::format("a layer after {}", edge.from.value));
    }
    if (const auto kind = fields.optional("kind")) edge.kind = read_kind(*kind);
    if (!edges_seen_.insert({edge.from, edge.to, edge.kind}).second) {
      cursor.fail(fmt::format("the edge from {} to {} again", edge.from.value, edge.to.value),
                  "each edge once of its kind");
    }
    const JsonCursor tensors = fields.required("tensor_bytes_per_sample");
    for (const JsonCursor& tensor : tensors.items()) {
      edge.tensor_bytes_per_sample.push_back({tensor.integer(0, kLargestQuantity)});
    }
    if (edge.tensor_bytes_per_sample.empty()) tensors.fail("no tensor", "at least one");
    fields.finish();
    profile_.edges.push_back(std::move(edge));
  }

  static EdgeKind read_kind(const JsonCursor& kind) {
    if (kind.text() == "gradient") return EdgeKind::kGradient;
    if (kind.text() == "detached") return EdgeKind::kDetached;
    kind.fail(kind.describe(), "`\"gradient\"` or `\"detached\"`");
  }

  void read_tied(const JsonCursor& cursor) {
    JsonFields fields(cursor);
    TiedParameter tied;
    tied.name = take_new_name(fields.required("name"), tied_names_);
    tied.bytes = {take_count(fields, "bytes")};
    const JsonCursor layers = fields.required("layers");
    for (const JsonCursor& item : layers.items()) {
      const LayerId layer(take_index(item, 0, profile_.layers.size()));
      if (!tied.layers.empty() && layer <= tied.layers.back()) {
        item.fail(fmt::format("{} after {}", item.describe(), tied.layers.back().value),
                  "layers in ascending order, each once");
      }
      tied.layers.push_back(layer);
    }
    if (tied.layers.size() < 2) layers.fail("fewer than two layers", "two or more");
    if (const auto trains = fields.optional("trainable")) tied.trainable = trains->boolean();
    fields.finish();
    profile_.tied.push_back(std::move(tied));
  }

  ModelProfile profile_;
  std::vector<std::pair<std::size_t, std::size_t>> whole_backwards_;  // layer, sample
  std::set<std::string> layer_names_;
  std::set<std::string> tied_names_;
  std::set<std::tuple<LayerId, LayerId, EdgeKind>> edges_seen_;
};

// Writes a list of members, each on its own line, in `brackets`.
std::string on_lines(const std::vector<std::string>& items, const std::string& indent,
                     const char* brackets) {
  if (items.empty()) return brackets;
  std::string text(1, brackets[0]);
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "\n" : ",\n") + indent + "  " + items[i];
  }
  return text + "\n" + indent + brackets[1];
}

std::string layer_text(const Layer& layer) {
  std::vector<std::string> costs;
  for (const CostSample& cost : layer.costs) {
    costs.push_back(fmt::format(
        R"({{"micro_batch_size": {}, "forward_ns": {}, "forward_frozen_ns": {}, )"
        R"("backward_input_ns": {}, )"
        R"("backward_weight_ns": {}, "backward_weight_alone_ns": {}, "stash_bytes": {}{}}})",
        cost.micro_batch_size, cost.forward.count(), cost.forward_frozen.count(),
        cost.backward_input.count(), cost.backward_weight.count(),
        cost.backward_weight_alone.count(), cost.stash.count,
        cost.stash_frozen ? fmt::format(R"(, "stash_frozen_bytes": {})", cost.stash_frozen->count)
                          : ""));
  }
  const std::string trains =
      layer.untrainable.count == 0
          ? ""
          : fmt::format(R"("trainable_parameter_bytes": {}, )", layer.trainable().count);
  const std::vector<std::string> members = {
      fmt::format(R"("name": {}, "block": {}, "has_loss": {}{})", json_string(layer.name),
                  layer.block.value, layer.has_loss,
                  layer.varies_in_training ? R"(, "varies_in_training": true)" : ""),
      fmt::format(R"("parameter_bytes": {}, {}"optimizer_state_bytes": {}, "update_ns": {})",
                  layer.parameters.count, trains, layer.optimizer_state.count,
                  layer.update.count()),
      R"("costs": )" + on_lines(costs, "      ", "[]"),
  };
  return on_lines(members, "    ", "{}");
}

std::string edge_text(const Edge& edge) {
  std::vector<std::int64_t> tensors;
  for (const Bytes bytes : edge.tensor_bytes_per_sample) tensors.push_back(bytes.count);
  return fmt::format(R"({{"from": {}, "to": {}, "kind": "{}", "tensor_bytes_per_sample": [{}]}})",
                     edge.from.value, edge.to.value,
                     edge.kind == EdgeKind::kGradient ? "gradient" : "detached",
                     fmt::join(tensors, ", "));
}

std::string doubt_text(const Doubt& doubt) {
  return fmt::format(R"({{"fact": "{}", "kind": "{}", "reason": {}}})", name_of(doubt.fact),
                     name_of(doubt.kind), json_string(doubt.reason));
}

std::string tied_text(const TiedParameter& tied) {
  std::vector<std::int32_t> layers;
  for (const LayerId layer : tied.layers) layers.push_back(layer.value);
  return fmt::format(R"({{"name": {}, "bytes": {}, "layers": [{}]{}}})", json_string(tied.name),
                     tied.bytes.count, fmt::join(layers, ", "),
                     tied.trainable ? "" : R"(, "trainable": false)");
}

template <class Item, class ToText>
std::string list_text(const std::vector<Item>& items, ToText to_text) {
  std::vector<std::string> texts;
  std::transform(items.begin(), items.end(), std::back_inserter(texts), to_text);
  return on_lines(texts, "  ", "[]");
}

}  // namespace

Provenance parse_provenance(const JsonCursor& object) {
  JsonFields fields(object);
  Provenance provenance;
  for (const std::string& key : fields.keys()) provenance[key] = fields.required(key).text();
  return provenance;
}

std::string to_json(const Provenance& provenance) {
  std::vector<std::string> members;
  for (const auto& [key, text] : provenance) {
    members.push_back(json_string(key) + ": " + json_string(text));
  }
  return on_lines(members, "  ", "{}");
}

ModelProfile parse_model_profile(std::string_view text, const std::string& file) {
  return ProfileReader().read(parse_json(text, file));
}

std::string to_json(const ModelProfile& profile) {
  std::vector<std::string> members = {
      fmt::format(R"("format": "{}")", kModelFormat),
      fmt::format(R"("version": {})", kModelVersion),
      R"("model": )" + json_string(profile.model),
      R"("provenance": )" + to_json(profile.provenance),
      fmt::format(R"("backward_was_split_by_rule": {})", profile.backward_was_split_by_rule),
      fmt::format(R"("input_bytes_per_sample": {})", profile.input_bytes_per_sample.count),
      R"("blocks": )" + list_text(profile.blocks, json_string),
      R"("layers": )" + list_text(profile.layers, layer_text),
      R"("edges": )" + list_text(profile.edges, edge_text),
      R"("tied": )" + list_text(profile.tied, tied_text),
  };
  if (profile.precision != Precision::kFp32) {
    members.push_back(fmt::format(R"("precision": "{}")", name_of(profile.precision)));
  }
  if (!profile.doubts.empty()) {
    members.push_back(R"("doubts": )" + list_text(profile.doubts, doubt_text));
  }
  return on_lines(members, "", "{}") + "\n";
}

ModelProfile read_model_profile(const std::filesystem::path& path) {
  return parse_model_profile(read_text_file(path), path.string());
}

void write_model_profile(const ModelProfile& profile, const std::filesystem::path& path) {
  validate(profile, path.string());
  write_text_file(path, to_json(profile));
}

}  // namespace frazil
