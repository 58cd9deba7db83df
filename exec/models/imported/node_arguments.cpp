#include "exec/models/imported/node_arguments.h"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <algorithm>

namespace frazil {

NodeArguments::NodeArguments(const ImportedNode& node, const c10::FunctionSchema& schema,
                             const Slots& slots, const std::string& file)
    : schema_(schema), values_(convert_arguments(node, schema, slots, file)) {}

NodeArguments::NodeArguments(NodeArguments&&) noexcept = default;

NodeArguments::~NodeArguments() = default;

void NodeArguments::let_go(const std::vector<std::size_t>& slots) {
  std::vector<std::size_t> kept;
  for (std::size_t h = values_.holes.size(); h-- > 0;) {
    ArgumentHole& hole = values_.holes[h];
    const auto is_in = [](const std::vector<std::size_t>& some, std::size_t slot) {
      return std::find(some.begin(), some.end(), slot) != some.end();
    };
    hole.is_last = hole.kind == ArgumentHole::Kind::kTensor && is_in(slots, hole.slots.front()) &&
                   !is_in(kept, hole.slots.front());
    kept.insert(kept.end(), hole.slots.begin(), hole.slots.end());
  }
}

void NodeArguments::fill(Stack& stack, Tensors& values, const ArgumentCall& call) const {
  stack.insert(stack.end(), values_.known.begin(), values_.known.end());
  for (const ArgumentHole& hole : values_.holes) fill(stack[hole.argument], hole, values, call);
}

void NodeArguments::fill(c10::IValue& value, const ArgumentHole& hole, Tensors& values,
                         const ArgumentCall& call) const {
  switch (hole.kind) {
    case ArgumentHole::Kind::kTensor: {
      at::Tensor& tensor = values[hole.slots.front()];
      // Counting references takes as long as all else here.
      value = hole.is_last ? c10::IValue(std::move(tensor)) : c10::IValue(tensor);
      return;
    }
    case ArgumentHole::Kind::kTensors: {
      c10::List<at::Tensor> list;
      for (const std::size_t slot : hole.slots) list.push_back(values[slot]);
      value = std::move(list);
      return;
    }
    case ArgumentHole::Kind::kOptionalTensors: {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::size_t slot : hole.slots) {
        list.push_back(slot == kNoSlot ? std::nullopt : std::optional(values[slot]));
      }
      value = std::move(list);
      return;
    }
    case ArgumentHole::Kind::kSize:
      value = hole.sizes.front().at(call.samples);
      return;
    case ArgumentHole::Kind::kRealSize:
      value = static_cast<double>(hole.sizes.front().at(call.samples));
      return;
    case ArgumentHole::Kind::kWrappedSize:
      value = wrap_number(hole.sizes.front().at(call.samples));
      return;
    case ArgumentHole::Kind::kSizes: {
      c10::List<std::int64_t> list;
      list.reserve(hole.sizes.size());
      for (const Polynomial& size : hole.sizes) list.push_back(size.at(call.samples));
      value = std::move(list);
      return;
    }
    case ArgumentHole::Kind::kDevice:
      value = call.device;
      return;
    case ArgumentHole::Kind::kTraining:
      value = call.training;
      return;
  }
}

bool NodeArguments::has(ArgumentHole::Kind kind) const {
  return std::any_of(values_.holes.begin(), values_.holes.end(),
                     [kind](const ArgumentHole& hole) { return hole.kind == kind; });
}

bool NodeArguments::depends_on_samples() const {
  return std::any_of(values_.holes.begin(), values_.holes.end(), [](const ArgumentHole& hole) {
    return std::any_of(hole.sizes.begin(), hole.sizes.end(),
                       [](const Polynomial& size) { return size.depends_on_samples(); });
  });
}

bool NodeArguments::depends_on_device() const { return has(ArgumentHole::Kind::kDevice); }

bool NodeArguments::depends_on_training() const { return has(ArgumentHole::Kind::kTraining); }

c10::IValue NodeArguments::known(const std::string& name) const {
  const std::optional<int> index = schema_.argumentIndexWithName(name);
  return index ? values_.known[static_cast<std::size_t>(*index)] : c10::IValue();
}

std::optional<std::size_t> NodeArguments::slot_of(std::size_t argument) const {
  for (const ArgumentHole& hole : values_.holes) {
    if (hole.argument == argument && hole.kind == ArgumentHole::Kind::kTensor)
      return hole.slots.front();
  }
  return std::nullopt;
}

}  // namespace frazil
