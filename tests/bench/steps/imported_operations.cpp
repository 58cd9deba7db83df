// What an operation of an imported model costs beside the same call in C++: 200 additions of 16
// floats each, the least of 400 rounds, both by turns; without and with an autograd graph. Prints
// one line for each.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "exec/devices/kernel_choice.h"
#include "exec/models/imported/layer_program.h"

namespace frazil {
namespace {

constexpr int kOperations = 200;
constexpr int kRounds = 400;
constexpr std::int64_t kWidth = 16;

// A safetensors file without tensors.
TensorFile empty_file() {
  const auto path = std::filesystem::temp_directory_path() /
                    ("imported-operations-" + std::to_string(::getpid()) + ".safetensors");
  const std::uint64_t size = 2;
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&size), sizeof size)
      << "{}";
  TensorFile file(path);
  std::filesystem::remove(path);
  return file;
}

ImportedModel make_chain_of_additions() {
  ImportedModel model{.graph = {}, .tensors = empty_file()};
  std::ostringstream schema;
  schema << c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor").schema();
  model.graph.schemas = {{"aten::add.Tensor", schema.str()}};
  ImportedLayer layer;
  layer.inputs = {"i0"};
  std::string last = "i0";
  for (int i = 0; i < kOperations; ++i) {
    const std::string made = "v" + std::to_string(i);
    ImportedNode node;
    node.op = "aten::add.Tensor";
    for (const std::string& name : {last, std::string("i0")}) {
      ImportedArgument argument;
      argument.kind = ImportedArgument::Kind::kValue;
      argument.text = name;
      node.arguments.push_back(std::move(argument));
    }
    node.results = {{.is_list = false, .names = {made}}};
    layer.nodes.push_back(std::move(node));
    last = made;
  }
  layer.outputs = {last};
  model.graph.layers.push_back(std::move(layer));
  return model;
}

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void compare(const LayerProgram& program, bool differentiates) {
  const c10::AutoGradMode mode(differentiates);
  const at::Tensor x = at::ones({kWidth}).set_requires_grad(differentiates);
  const Tensors inputs{x};
  const RandomKey key;
  double direct = std::numeric_limits<double>::max();
  double imported = direct;
  for (int round = 0; round < kRounds; ++round) {
    direct = std::min(direct, seconds_of([&] {
                        at::Tensor sum = x;
                        for (int i = 0; i < kOperations; ++i) sum = at::add(sum, x);
                      }));
    imported = std::min(imported, seconds_of([&] {
                          (void)program.run({LayerId{0}, {}, inputs, key, differentiates});
                        }));
  }
  constexpr double kMicroseconds = 1e6 / kOperations;
  std::printf("%s: %.3f us an operation, %.3f us direct, %.3f us more\n",
              differentiates ? "with autograd" : "without autograd", imported * kMicroseconds,
              direct * kMicroseconds, (imported - direct) * kMicroseconds);
}

int measure() {
  prepare_kernels();
  const ImportedModel model = make_chain_of_additions();
  const ImportedLayer& layer = model.graph.layers.front();
  const LayerProgram program(model,
                             {.inputs = layer.inputs,
                              .input_positions = {0},
                              .samples = {},
                              .parameters = layer.parameters,
                              .constants = layer.constants,
                              .buffers = layer.buffers,
                              .nodes = layer.nodes,
                              .outputs = layer.outputs},
                             Randomness::kKeyed);
  for (const bool differentiates : {false, true}) compare(program, differentiates);
  return 0;
}

}  // namespace
}  // namespace frazil

int main() { return frazil::measure(); }
