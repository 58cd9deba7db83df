#include "exec/data/tensor_samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "exec/disk/tensor_file.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::string_view kLabels = "labels";
constexpr const char* kOrder = "inputs";  // in the metadata

[[noreturn]] void fail(const TensorFile& file, const std::string& found,
                       const std::string& expected) {
  throw InputError(file.file(), 0, found, expected);
}

std::string in_brackets(const std::vector<std::int64_t>& shape) {
  std::string text = "[n";
  for (const std::int64_t size : shape) text += ", " + std::to_string(size);
  return text + "]";
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string> list_inputs(const TensorFile& file) {
  const auto order = file.header().metadata.find(kOrder);
  if (order != file.header().metadata.end()) return split(order->second);
  std::vector<std::string> names;
  for (const TensorEntry& entry : file.header().tensors) {
    if (entry.name != kLabels) names.push_back(entry.name);
  }
  if (names.size() == 1) return names;
  fail(file, std::to_string(names.size()) + " tensors besides labels and no order of them",
       "\"inputs\" in the metadata, with their names in the order in which the model reads them");
}

// Returns the names of the file's inputs in the model's order.
std::vector<std::string> order_inputs(const TensorFile& file, const SampleForm& form) {
  std::vector<std::string> names = list_inputs(file);
  if (names.size() != form.inputs.size()) {
    fail(file, std::to_string(names.size()) + " inputs",
         std::to_string(form.inputs.size()) + ", as the model reads them");
  }
  const std::vector<std::string>& own = form.input_names;
  if (std::is_permutation(names.begin(), names.end(), own.begin(), own.end())) return own;
  for (std::size_t i = 0; i < names.size() && !own.empty(); ++i) {
    if (names[i] == own[i] || std::find(own.begin(), own.end(), names[i]) == own.end()) continue;
    fail(file, names[i] + " as input " + std::to_string(i) + ", where the model reads " + own[i],
         "all names of the model's inputs, or other ones in its order");
  }
  return names;
}

// Returns a view of the tensor, whose rows are samples of this type and shape.
at::Tensor view_rows(const TensorFile& file, std::string_view name, TensorType type,
                     const std::vector<std::int64_t>& shape) {
  const TensorEntry* const entry = file.header().find(name);
  const std::string expected = std::string(name_of(type)) + " " + in_brackets(shape);
  if (entry == nullptr) fail(file, "no tensor " + std::string(name), expected);
  const bool has_rows = !entry->shape.empty();
  const std::vector<std::int64_t> own(entry->shape.begin() + (has_rows ? 1 : 0),
                                      entry->shape.end());
  if (!has_rows || entry->type != type || own != shape) {
    fail(file,
         "tensor " + std::string(name) + " of " + std::string(name_of(entry->type)) + " " +
             (has_rows ? in_brackets(own) : "[]"),
         expected);
  }
  return file.view(name);
}

// Refuses what a model would look up behind the end of a table.
void check_range(const TensorFile& file, std::string_view name, const at::Tensor& numbers,
                 std::int64_t end, std::optional<std::int64_t> ignored = std::nullopt) {
  if (numbers.numel() == 0) return;
  if (!ignored) {
    const auto [least, most] = numbers.aminmax();
    if (least.item<std::int64_t>() >= 0 && most.item<std::int64_t>() < end) return;
  }
  at::Tensor is_outside = numbers.lt(0).logical_or_(numbers.ge(end));
  if (ignored) is_outside.logical_and_(numbers.ne(*ignored));
  const at::Tensor outside = is_outside.nonzero();
  if (outside.size(0) == 0) return;
  const auto found = numbers.masked_select(is_outside)[0].item<std::int64_t>();
  fail(file,
       std::to_string(found) + " in " + std::string(name) + " of sample " +
           std::to_string(outside[0][0].item<std::int64_t>()),
       "numbers from 0 to " + std::to_string(end - 1));
}

TensorType type_of(Element element) {
  switch (element) {
    case Element::kFloat32:
      return TensorType::kFloat32;
    case Element::kInt64:
      return TensorType::kInt64;
    case Element::kBool:
      return TensorType::kBool;
  }
  ENSURE(false, "unknown element");
}

at::Tensor view_input(const TensorFile& file, const std::string& name, const InputForm& form) {
  at::Tensor rows = view_rows(file, name, type_of(form.element), form.shape);
  if (form.end > 0) check_range(file, name, rows, form.end);
  return rows;
}

at::Tensor view_labels(const TensorFile& file, const SampleForm& form) {
  at::Tensor labels = view_rows(file, kLabels, type_of(form.label_element), form.label_shape);
  if (form.classes == 0) return labels;
  check_range(file, kLabels, labels, form.classes, form.ignored_label);
  return labels;
}

Samples view_samples(const TensorFile& file, const std::vector<std::string>& names,
                     const SampleForm& form) {
  Samples samples;
  samples.labels = view_labels(file, form);
  for (std::size_t i = 0; i < names.size(); ++i) {
    samples.inputs.push_back(view_input(file, names[i], form.inputs[i]));
    if (samples.inputs.back().size(0) != samples.count()) {
      fail(file, std::to_string(samples.inputs.back().size(0)) + " samples in " + names[i],
           std::to_string(samples.count()) + ", as there are labels");
    }
  }
  return samples;
}

SampleSource view_part(const std::vector<std::string>& files, const SampleForm& form,
                       const Normalization& normalization) {
  std::vector<Samples> places;
  places.reserve(files.size());
  std::int64_t count = 0;
  bool has_label = files.empty() || !form.ignored_label;
  std::vector<std::string> names;  // in the first file
  for (const std::string& path : files) {
    const TensorFile file(path);
    const std::vector<std::string> own = order_inputs(file, form);
    if (names.empty()) names = own;
    if (own != names) {
      const auto other = std::mismatch(own.begin(), own.end(), names.begin());
      fail(file, "the input " + *other.first, *other.second + ", as in " + files.front());
    }
    places.push_back(view_samples(file, own, form));
    count += places.back().count();
    has_label = has_label || places.back().labels.ne(*form.ignored_label).any().item<bool>();
  }
  if (count == 0 && !files.empty()) {
    throw InputError(files.front(), 0, "no sample", "at least one");
  }
  if (!has_label) {
    throw InputError(files.front(), 0,
                     "no label but " + std::to_string(*form.ignored_label) + ", which is ignored",
                     "labels that count");
  }
  return SampleSource(std::move(places), normalization);
}

}  // namespace

Dataset read_tensor_samples(const TensorFiles& files, const SampleForm& form) {
  Dataset data{.name = "tensors", .train = {}, .test = {}};
  data.train = view_part(files.train, form, files.normalization);
  data.test = view_part(files.test, form, files.normalization);
  if (!files.validation.empty()) {
    data.validation = view_part(files.validation, form, files.normalization);
  }
  return data;
}

}  // namespace frazil
