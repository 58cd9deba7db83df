#include "exec/models/imported/convert_arguments.h"

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include "exec/disk/tensor_file.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using ArgumentKind = ImportedArgument::Kind;
using c10::TypeKind;

using Hole = ArgumentHole;

bool is_training_flag(const c10::Argument& argument) {
  return argument.name() == "train" || argument.name() == "training" ||
         argument.name() == "use_input_stats";
}

const c10::Type& without_optional(const c10::Type& type) {
  const auto* const optional = type.castRaw<c10::OptionalType>();
  return optional == nullptr ? type : *optional->getElementType();
}

bool is_whole(TypeKind kind) {
  return kind == TypeKind::IntType || kind == TypeKind::SymIntType ||
         kind == TypeKind::ScalarTypeType || kind == TypeKind::LayoutType ||
         kind == TypeKind::MemoryFormatType;
}

std::optional<std::int64_t> find_layout(const std::string& name) {
  if (name == "strided") return static_cast<std::int64_t>(c10::Layout::Strided);
  return std::nullopt;
}

std::optional<std::int64_t> find_memory_format(const std::string& name) {
  using c10::MemoryFormat;
  const std::map<std::string, MemoryFormat> formats{
      {"contiguous", MemoryFormat::Contiguous},
      {"contiguous_format", MemoryFormat::Contiguous},
      {"preserve", MemoryFormat::Preserve},
      {"preserve_format", MemoryFormat::Preserve},
      {"channels_last", MemoryFormat::ChannelsLast},
      {"channels_last_3d", MemoryFormat::ChannelsLast3d}};
  const auto found = formats.find(name);
  if (found == formats.end()) return std::nullopt;
  return static_cast<std::int64_t>(found->second);
}

at::Tensor wrap(const at::Scalar& number) {
  at::Tensor tensor =
      at::scalar_tensor(number, at::TensorOptions().dtype(number.isFloatingPoint() ? at::kDouble
                                                          : number.isBoolean()     ? at::kBool
                                                                                   : at::kLong));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

// Converts one argument after the other.
class Converter {
 public:
  Converter(const ImportedNode& node, const c10::FunctionSchema& schema, const Slots& slots,
            const std::string& file)
      : node_(node), schema_(schema), slots_(slots), file_(file) {
    all_.known.resize(schema.arguments().size());
  }

  NodeValues convert() {
    const std::vector<c10::Argument>& wanted = schema_.arguments();
    std::vector<bool> is_given(wanted.size(), false);
    if (node_.arguments.size() > wanted.size()) {
      fail(std::to_string(node_.arguments.size()) + " arguments",
           "at most " + std::to_string(wanted.size()));
    }
    for (std::size_t i = 0; i < node_.arguments.size(); ++i) {
      convert(node_.arguments[i], i);
      is_given[i] = true;
    }
    for (const auto& [name, argument] : node_.named_arguments) {
      const std::optional<int> index = schema_.argumentIndexWithName(name);
      const auto place = static_cast<std::size_t>(index.value_or(0));
      if (!index || is_given[place]) fail("the argument " + name, "each argument once");
      convert(argument, place);
      is_given[place] = true;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (is_given[i]) continue;
      if (!wanted[i].default_value()) fail("no argument " + wanted[i].name(), "one");
      all_.known[i] = *wanted[i].default_value();
    }
    return std::move(all_);
  }

 private:
  void convert(const ImportedArgument& argument, std::size_t index) {
    index_ = index;
    const c10::Argument& wanted = schema_.arguments()[index];
    const bool is_set = argument.kind == ArgumentKind::kBool && argument.truth;
    if (is_set && is_training_flag(wanted)) {
      add_hole({.kind = Hole::Kind::kTraining, .argument = index});
      return;
    }
    all_.known[index] = convert(argument, *wanted.type(), wanted.N());
  }

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(file_, 0, found + " in " + place_of(node_), expected);
  }

  c10::IValue convert(const ImportedArgument& argument, const c10::Type& wanted,
                      std::optional<std::int32_t> length) {
    if (argument.kind == ArgumentKind::kNone || argument.kind == ArgumentKind::kGenerator) {
      if (wanted.kind() != TypeKind::OptionalType) mismatch();
      return {};
    }
    const c10::Type& type = without_optional(wanted);
    switch (type.kind()) {
      case TypeKind::TensorType:
        return convert_tensor(argument);
      case TypeKind::ListType:
        return convert_list(argument, *type.castRaw<c10::ListType>()->getElementType(), length);
      case TypeKind::FloatType:
        return convert_real(argument);
      case TypeKind::NumberType:
        if (argument.kind == ArgumentKind::kReal) return argument.real;
        if (argument.kind == ArgumentKind::kBool) return argument.truth;
        return convert_whole(argument);
      case TypeKind::BoolType:
        if (argument.kind != ArgumentKind::kBool) mismatch();
        return argument.truth;
      case TypeKind::StringType:
        if (argument.kind != ArgumentKind::kText) mismatch();
        return argument.text;
      case TypeKind::DeviceObjType:
        if (argument.kind != ArgumentKind::kDevice) mismatch();
        add_hole({.kind = Hole::Kind::kDevice, .argument = index_});
        return {};
      default:
        if (!is_whole(type.kind())) mismatch();
        return convert_whole(argument);
    }
  }

  c10::IValue convert_tensor(const ImportedArgument& argument) {
    switch (argument.kind) {
      case ArgumentKind::kValue:
        add_hole({.kind = Hole::Kind::kTensor, .argument = index_, .slots = {take(argument)}});
        return {};
      case ArgumentKind::kInteger:
        return wrap(argument.integer);
      case ArgumentKind::kReal:
        return wrap(argument.real);
      case ArgumentKind::kBool:
        return wrap(argument.truth);
      case ArgumentKind::kSize:
        add_hole({.kind = Hole::Kind::kWrappedSize, .argument = index_, .sizes = {argument.size}});
        return {};
      default:
        mismatch();
    }
  }

  c10::IValue convert_real(const ImportedArgument& argument) {
    if (argument.kind == ArgumentKind::kReal) return argument.real;
    if (argument.kind == ArgumentKind::kInteger) return static_cast<double>(argument.integer);
    if (argument.kind != ArgumentKind::kSize) mismatch();
    add_hole({.kind = Hole::Kind::kRealSize, .argument = index_, .sizes = {argument.size}});
    return {};
  }

  c10::IValue convert_whole(const ImportedArgument& argument) {
    switch (argument.kind) {
      case ArgumentKind::kInteger:
        return argument.integer;
      case ArgumentKind::kBool:
        return std::int64_t{argument.truth};
      case ArgumentKind::kType:
        return static_cast<std::int64_t>(scalar_type(argument.type));
      case ArgumentKind::kLayout:
        return or_mismatch(find_layout(argument.text));
      case ArgumentKind::kMemoryFormat:
        return or_mismatch(find_memory_format(argument.text));
      case ArgumentKind::kSize:
        if (!argument.size.depends_on_samples()) return argument.size.at(0);
        add_hole({.kind = Hole::Kind::kSize, .argument = index_, .sizes = {argument.size}});
        return {};
      default:
        mismatch();
    }
  }

  c10::IValue convert_list(const ImportedArgument& argument, const c10::Type& element,
                           std::optional<std::int32_t> length) {
    const std::vector<ImportedArgument> items =
        argument.kind == ArgumentKind::kList
            ? argument.items
            : std::vector<ImportedArgument>(static_cast<std::size_t>(length.value_or(1)), argument);
    switch (element.kind()) {
      case TypeKind::TensorType:
        return convert_tensors(items, Hole::Kind::kTensors);
      case TypeKind::OptionalType:
        return convert_tensors(items, Hole::Kind::kOptionalTensors);
      case TypeKind::BoolType: {
        c10::List<bool> flags;
        for (const ImportedArgument& item : items) {
          if (item.kind != ArgumentKind::kBool) mismatch();
          flags.push_back(item.truth);
        }
        return flags;
      }
      case TypeKind::FloatType: {
        c10::List<double> reals;
        for (const ImportedArgument& item : items) {
          if (item.kind == ArgumentKind::kSize) mismatch();
          reals.push_back(convert_real(item).toDouble());
        }
        return reals;
      }
      default:
        if (!is_whole(element.kind())) mismatch();
        return convert_sizes(items);
    }
  }

  c10::IValue convert_sizes(const std::vector<ImportedArgument>& items) {
    Hole hole{.kind = Hole::Kind::kSizes, .argument = index_};
    bool is_known = true;
    for (const ImportedArgument& item : items) {
      if (item.kind == ArgumentKind::kSize) {
        hole.sizes.push_back(item.size);
        is_known = is_known && !item.size.depends_on_samples();
      } else {
        hole.sizes.push_back({.number = convert_whole(item).toInt(), .terms = {}});
      }
    }
    if (!is_known) {
      add_hole(std::move(hole));
      return {};
    }
    c10::List<std::int64_t> sizes;
    for (const Polynomial& size : hole.sizes) sizes.push_back(size.at(0));
    return sizes;
  }

  c10::IValue convert_tensors(const std::vector<ImportedArgument>& items, Hole::Kind kind) {
    Hole hole{.kind = kind, .argument = index_};
    for (const ImportedArgument& item : items) {
      const bool is_left_out =
          item.kind == ArgumentKind::kNone && kind == Hole::Kind::kOptionalTensors;
      if (!is_left_out && item.kind != ArgumentKind::kValue) mismatch();
      hole.slots.push_back(is_left_out ? kNoSlot : take(item));
    }
    add_hole(std::move(hole));
    return {};
  }

  std::size_t take(const ImportedArgument& value) {
    const std::size_t slot = slots_.at(value.text);
    all_.reads.push_back(slot);
    return slot;
  }

  void add_hole(Hole hole) { all_.holes.push_back(std::move(hole)); }

  std::int64_t or_mismatch(std::optional<std::int64_t> number) const {
    if (!number) mismatch();
    return *number;
  }

  [[noreturn]] void mismatch() const {
    const c10::Argument& wanted = schema_.arguments()[index_];
    fail("an argument that does not fit " + wanted.name(), "a " + wanted.type()->str());
  }

  const ImportedNode& node_;
  const c10::FunctionSchema& schema_;
  const Slots& slots_;
  const std::string& file_;
  std::size_t index_ = 0;
  NodeValues all_;
};

}  // namespace

at::Tensor wrap_number(std::int64_t number) { return wrap(number); }

NodeValues convert_arguments(const ImportedNode& node, const c10::FunctionSchema& schema,
                             const Slots& slots, const std::string& file) {
  return Converter(node, schema, slots, file).convert();
}

}  // namespace frazil
