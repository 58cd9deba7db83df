#include "exec/data/tensor_samples.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "tests/exec/models/imported/model_writer.h"

namespace frazil {
namespace {

// Two inputs of three numbers each, and labels from 0 to 4, of which -100 counts for nothing.
SampleForm two_inputs() {
  return {.inputs = {{InputMeaning::kNumbers, {3}}, {InputMeaning::kNumbers, {3}}},
          .input_names = {"left", "right"},
          .classes = 5,
          .ignored_label = -100};
}

using Inputs = std::vector<std::string>;  // each holds the number of its letters

std::string write_samples(const Inputs& inputs, const std::vector<std::int64_t>& labels) {
  const auto count = static_cast<std::int64_t>(labels.size());
  NamedTensors tensors{{"labels", at::tensor(labels)}};
  std::string order;
  for (const std::string& name : inputs) {
    tensors.emplace_back(name, at::full({count, 3}, static_cast<double>(name.size()), at::kFloat));
    order += (order.empty() ? "" : ",") + name;
  }
  const std::filesystem::path path = fresh_path();
  write_tensor_file(path, tensors, {{"inputs", order}});
  return path.string();
}

std::vector<double> first_numbers(const std::vector<std::string>& files) {
  const Dataset data =
      read_tensor_samples({.train = files, .test = files, .validation = {}}, two_inputs());
  std::vector<double> numbers;
  for (const at::Tensor& input : data.train.narrow(0, 1).inputs) {
    numbers.push_back(input.flatten()[0].item<double>());
  }
  return numbers;
}

std::string refusal(const std::vector<std::string>& files) {
  try {
    (void)read_tensor_samples({.train = files, .test = files, .validation = {}}, two_inputs());
  } catch (const InputError& error) {
    return "found " + error.found() + ", expected " + error.expected();
  }
  return "";
}

TEST(TensorSamples, AreTakenByTheNamesOfTheModelsInputs) {
  EXPECT_EQ(first_numbers({write_samples({"left", "right"}, {1})}), (std::vector<double>{4, 5}));
  EXPECT_EQ(first_numbers({write_samples({"right", "left"}, {1})}), (std::vector<double>{4, 5}));
  EXPECT_EQ(first_numbers({write_samples({"a", "bc"}, {1})}), (std::vector<double>{1, 2}))
      << "other names stand for the inputs in their order";
}

TEST(TensorSamples, WithSomeOfTheNamesInOtherPlacesAreRefused) {
  EXPECT_EQ(refusal({write_samples({"right", "x"}, {1})}),
            "found right as input 0, where the model reads left, expected all names of the model's "
            "inputs, or other ones in its order");
  const std::string first = write_samples({"a", "b"}, {1});
  EXPECT_EQ(refusal({first, write_samples({"b", "a"}, {1})}),
            "found the input b, expected a, as in " + first);
}

TEST(TensorSamples, OutOfRangeAreRefusedWithTheirNumber) {
  EXPECT_EQ(refusal({write_samples({"left", "right"}, {1, -100, 7, 9})}),
            "found 7 in labels of sample 2, expected numbers from 0 to 4");
}

TEST(TensorSamples, WithoutALabelThatCountsAreRefused) {
  const std::string none = write_samples({"left", "right"}, {-100, -100});
  EXPECT_EQ(refusal({none}),
            "found no label but -100, which is ignored, expected labels that count");
  EXPECT_EQ(refusal({none, write_samples({"left", "right"}, {3})}), "");
}

}  // namespace
}  // namespace frazil
