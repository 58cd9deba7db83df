#include "exec/models/imported/resolved_node.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <unordered_set>

#include "exec/models/imported/keyed_operations.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kUnread = std::numeric_limits<std::size_t>::max();

// These have no kernel of their own, but give memory of their own.
bool gives_fresh_memory(const std::string& op) {
  static const std::unordered_set<std::string> kFresh{
      "aten::linear",     "aten::conv1d",     "aten::conv2d",
      "aten::conv3d",     "aten::layer_norm", "aten::group_norm",
      "aten::batch_norm", "aten::matmul",     "aten::scaled_dot_product_attention",
      "aten::embedding"};
  return kFresh.contains(op);
}

c10::OperatorHandle find_operator(const ImportedNode& node, const std::string& file) {
  const std::size_t dot = node.op.find('.');
  const std::string name = node.op.substr(0, dot);
  const std::string overload = dot == std::string::npos ? "" : node.op.substr(dot + 1);
  // Operations outside of aten may be anybody's, and this one opens files.
  const bool is_open = name.starts_with("aten::") && name != "aten::from_file";
  const auto found = is_open ? c10::Dispatcher::singleton().findSchema({name, overload})
                             : std::optional<c10::OperatorHandle>();
  if (found) return *found;
  throw InputError(file, 0, "the unknown operation " + place_of(node),
                   "an operation of libtorch's aten");
}

// Throws unless the operation is the one that was recorded.
void check_schema(const ImportedNode& node, const ImportedGraph& graph,
                  const c10::FunctionSchema& schema, const std::string& file) {
  const auto recorded =
      std::lower_bound(graph.schemas.begin(), graph.schemas.end(), node.op,
                       [](const auto& entry, const std::string& op) { return entry.first < op; });
  if (recorded == graph.schemas.end() || recorded->first != node.op) {
    throw InputError(file, 0, "no schema of " + place_of(node), "one in schemas");
  }
  std::ostringstream text;
  text << schema;
  if (recorded->second == text.str()) return;
  throw InputError(
      file, 0,
      "the schema " + recorded->second + " of " + place_of(node) + " as of torch " + graph.torch,
      text.str() + ", as this libtorch has it");
}

bool is_real_zero(const c10::IValue& value) { return value.isDouble() && value.toDouble() == 0; }

std::optional<at::Tensor> optional_tensor(const c10::IValue& value) {
  if (value.isNone()) return std::nullopt;
  return value.toTensor();
}

}  // namespace

ResolvedNode::ResolvedNode(const ImportedNode& node, const ImportedGraph& graph,
                           Randomness randomness, Slots& slots, const std::string& file)
    : node_(&node),
      file_(file),
      op_(std::make_shared<const c10::OperatorHandle>(find_operator(node, file))),
      randomness_(randomness),
      arguments_(node, op_->schema(), slots, file) {
  check_schema(node, graph, op_->schema(), file);
  kind_ = find_kind();
  if (draws() && !node.draw) fail("no random key for " + place_of(node), "the index of its draw");
  find_effects();
  find_kept();
  check_results(slots);
}

void ResolvedNode::fail(const std::string& found, const std::string& expected) const {
  throw InputError(file_, 0, found, expected);
}

ResolvedNode::Kind ResolvedNode::find_kind() const {
  const std::string& name = op_->schema().name();
  if (op_->schema().argumentIndexWithName("running_mean")) return Kind::kStatistics;
  const bool is_off = is_real_zero(arguments_.known("p"));
  const bool may_drop = arguments_.depends_on_training() && !is_off;
  if (name == "aten::dropout") return may_drop ? Kind::kDropout : Kind::kPlain;
  if (name == "aten::dropout_") return may_drop ? Kind::kDropoutInPlace : Kind::kPlain;
  if (name == "aten::feature_dropout") return may_drop ? Kind::kChannelDropout : Kind::kPlain;
  if (name == "aten::native_dropout") {
    const c10::IValue train = arguments_.known("train");
    const bool is_never = train.isBool() && !train.toBool();
    return is_never || is_off ? Kind::kPlain : Kind::kNativeDropout;
  }
  if (name == "aten::scaled_dot_product_attention") {
    return is_real_zero(arguments_.known("dropout_p")) ? Kind::kPlain : Kind::kAttention;
  }
  return find_other_kind();
}

// Returns what to do with an operation that PyTorch says may draw.
ResolvedNode::Kind ResolvedNode::find_other_kind() const {
  const bool has_generator = op_->schema().argumentIndexWithName("generator").has_value();
  const bool is_dropout = op_->schema().name().find("dropout") != std::string::npos;
  if (!has_generator && !is_dropout && !op_->hasTag(at::Tag::nondeterministic_seeded)) {
    return Kind::kPlain;
  }
  const auto is_off = [this](const char* flag) {
    const c10::IValue recorded = arguments_.known(flag);
    return is_real_zero(recorded) || (recorded.isBool() && !recorded.toBool());
  };
  // Recurrent layers and attention draw nothing where their dropout is zero.
  if (is_off("dropout") || is_off("dropout_p") || is_off("train") || is_off("training")) {
    return Kind::kPlain;
  }
  if (has_generator) return Kind::kGenerator;
  fail("a random operation that takes no key: " + place_of(*node_),
       "dropout, attention with dropout or an operation with a generator");
}

void ResolvedNode::find_effects() {
  const c10::FunctionSchema& schema = op_->schema();
  bool is_noted = false;
  for (std::size_t a = 0; a < schema.arguments().size(); ++a) {
    const c10::AliasInfo* const alias = schema.arguments()[a].alias_info();
    const std::optional<std::size_t> slot = arguments_.slot_of(a);
    is_noted = is_noted || alias != nullptr;
    if (slot && alias != nullptr && alias->isWrite()) writes_.push_back(*slot);
  }
  const bool is_composite =
      op_->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  may_alias_ = is_noted || (is_composite && !gives_fresh_memory(schema.name()));
}

void ResolvedNode::check_results(Slots& slots) {
  const std::vector<c10::Argument>& returns = op_->schema().returns();
  if (node_->results.size() != returns.size()) {
    fail(std::to_string(node_->results.size()) + " results of " + place_of(*node_),
         std::to_string(returns.size()));
  }
  for (std::size_t r = 0; r < returns.size(); ++r) {
    const ImportedResult& result = node_->results[r];
    const c10::Type& type = *returns[r].type();
    const bool is_list = type.kind() == c10::TypeKind::ListType;
    const bool is_read = std::any_of(result.names.begin(), result.names.end(),
                                     [](const std::string& name) { return !name.empty(); });
    const bool is_tensor = type.kind() == c10::TypeKind::TensorType;
    if (is_list != result.is_list || (is_read && !is_list && !is_tensor)) {
      fail("a result of type " + type.str() + " of " + place_of(*node_),
           "a tensor, or a list of tensors as {\"list\": [...]}");
    }
    std::vector<std::size_t> places;
    for (const std::string& name : result.names) {
      places.push_back(name.empty() ? kUnread : slots.size());
      if (name.empty()) continue;
      makes_.push_back(slots.size());
      slots.emplace(name, slots.size());
    }
    if (!is_list) single_.push_back(places.front());
    results_.push_back(std::move(places));
  }
  if (single_.size() < results_.size()) single_.clear();
}

// Finds the running statistics of a normalisation that trains or evaluates as the call does.
void ResolvedNode::find_kept() {
  if (kind_ != Kind::kStatistics || !arguments_.depends_on_training()) return;
  for (const char* const name : {"running_mean", "running_var"}) {
    if (const auto slot = arguments_.slot_of(argument_index(name))) keeps_.push_back(*slot);
  }
}

// Has the operation put the statistics of its input, as they are, into tensors of their own: with a
// momentum of 1 nothing is left of the zeros there.
Tensors ResolvedNode::begin_statistics(Stack& stack, const NodeCall& call) const {
  if (!arguments_.depends_on_training()) return {};
  if (keeps_.empty()) {  // evaluation, too, can only normalise by the input
    for (const char* const flag : {"training", "train", "use_input_stats"}) {
      if (const auto index = op_->schema().argumentIndexWithName(flag)) {
        stack[static_cast<std::size_t>(*index)] = true;
      }
    }
    return {};
  }
  if (!call.arguments.training) return {};
  const at::Tensor& x = stack.front().toTensor();
  if (op_->schema().name() != "aten::instance_norm" && x.numel() <= x.size(1)) {
    throw InfeasibleError("layer " + std::to_string(call.layer.value) +
                          " cannot train on a micro-batch of one sample: " + place_of(*node_) +
                          " needs more than one value of each channel");
  }
  Tensors statistics;
  for (const char* const name : {"running_mean", "running_var"}) {
    c10::IValue& running = stack[argument_index(name)];
    if (running.isNone()) continue;
    statistics.push_back(at::zeros_like(running.toTensor()));
    running = statistics.back();
  }
  stack[argument_index("momentum")] = 1.0;
  return statistics;
}

bool ResolvedNode::detaches() const {
  return node_->has_no_gradient || op_->schema().name().starts_with("aten::detach");
}

void ResolvedNode::run(Tensors& values, Stack& stack, const NodeCall& call) const {
  arguments_.fill(stack, values, call.arguments);
  Tensors statistics;
  try {
    if (kind_ == Kind::kStatistics) statistics = begin_statistics(stack, call);
    if (node_->has_no_gradient) {
      const c10::NoGradGuard no_grad;
      perform(stack, call);
    } else {
      perform(stack, call);
    }
  } catch (c10::Error& error) {
    error.add_context("in " + place_of(*node_));
    throw;
  }
  take_results(stack, values);
  for (std::size_t s = 0; s < statistics.size(); ++s) values[keeps_[s]] = std::move(statistics[s]);
}

double ResolvedNode::momentum() const { return arguments_.known("momentum").toDouble(); }

std::size_t ResolvedNode::argument_index(std::string_view name) const {
  return static_cast<std::size_t>(op_->schema().argumentIndexWithName(name).value());
}

void ResolvedNode::perform(Stack& stack, const NodeCall& call) const {
  if (kind_ == Kind::kPlain) return op_->callBoxed(stack);
  perform_special(stack, call);
}

void ResolvedNode::perform_special(Stack& stack, const NodeCall& call) const {
  if (kind_ == Kind::kAttention && !call.arguments.training) {
    // It has no flag for training; modules pass a rate of zero instead.
    stack[argument_index("dropout_p")] = 0.0;
    op_->callBoxed(stack);
    return;
  }
  if (randomness_ == Randomness::kKeyed && draws()) return draw(stack, call);
  op_->callBoxed(stack);
}

void ResolvedNode::draw(Stack& stack, const NodeCall& call) const {
  const DrawPlace place{call.layer, static_cast<std::uint64_t>(*node_->draw)};
  const auto argument = [&](std::string_view name) -> const c10::IValue& {
    return stack[argument_index(name)];
  };
  const auto answer = [&stack](std::initializer_list<at::Tensor> results) {
    stack.assign(results.begin(), results.end());
  };
  if (kind_ == Kind::kAttention) {
    const double rate = argument("dropout_p").toDouble();
    const Attention attention{.query = argument("query").toTensor(),
                              .key = argument("key").toTensor(),
                              .value = argument("value").toTensor(),
                              .mask = optional_tensor(argument("attn_mask")),
                              .is_causal = argument("is_causal").toBool(),
                              .scale = argument("scale").toOptional<double>(),
                              .groups_queries = argument("enable_gqa").toBool()};
    return answer({attend(attention, [&](const at::Tensor& weights) {
      return drop_by_key(weights, rate, place, call.key);
    })});
  }
  if (kind_ == Kind::kGenerator) {
    if (call.key.rows) {
      throw InfeasibleError("layer " + std::to_string(call.layer.value) +
                            " cannot work on a slice of a micro-batch: " + place_of(*node_) +
                            " draws for all of it");
    }
    stack[argument_index("generator")] = make_generator(place, call.key);
    return op_->callBoxed(stack);
  }
  const c10::IValue& train = argument("train");
  if (train.isBool() && !train.toBool()) return op_->callBoxed(stack);
  const at::Tensor x = stack.front().toTensor();
  const double rate = argument("p").toDouble();
  if (kind_ == Kind::kDropout) return answer({drop_by_key(x, rate, place, call.key)});
  if (kind_ == Kind::kDropoutInPlace)
    return answer({drop_in_place_by_key(x, rate, place, call.key)});
  if (kind_ == Kind::kChannelDropout) {
    return answer({drop_channels_by_key(x, rate, place, call.key)});
  }
  auto [output, mask] = native_drop_by_key(x, rate, place, call.key);
  answer({std::move(output), std::move(mask)});
}

void ResolvedNode::take_results(Stack& stack, Tensors& values) const {
  if (single_.empty()) return take_lists(stack, values);
  for (std::size_t r = 0; r < single_.size(); ++r) {
    if (single_[r] != kUnread) values[single_[r]] = std::move(stack[r]).toTensor();
  }
  stack.clear();
}

void ResolvedNode::take_lists(Stack& stack, Tensors& values) const {
  for (std::size_t r = 0; r < results_.size(); ++r) {
    const std::vector<std::size_t>& places = results_[r];
    if (!node_->results[r].is_list) {
      if (places.front() != kUnread) values[places.front()] = std::move(stack[r]).toTensor();
      continue;
    }
    const c10::List<at::Tensor> list = std::move(stack[r]).toTensorList();
    if (list.size() != places.size()) {
      throw InfeasibleError(place_of(*node_) + " gives " + std::to_string(list.size()) +
                            " tensors where " + std::to_string(places.size()) + " were recorded");
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] != kUnread) values[places[i]] = list.get(i);
    }
  }
  stack.clear();
}

}  // namespace frazil
