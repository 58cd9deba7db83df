// Times an operation of an imported model and the same call in C++: 200 additions of 16 floats
// each, both by turns, the least of 20 turns in each of 40 rounds; without and with an autograd
// graph. Prints one line of JSON for each: by round the microseconds of an operation on either
// side.

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
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "exec/devices/kernel_choice.h"
#include "exec/models/imported/layer_program.h"

namespace frazil {
namespace {

constexpr int kOperations = 200;
constexpr int kRounds = 40;
constexpr int kTurns = 20;
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
  constexpr double kMicroseconds = 1e6 / kOperations;
  std::vector<double> imported;
  std::vector<double> direct;
  for (int round = 0; round < kRounds; ++round) {
    double least_imported = std::numeric_limits<double>::max();
    double least_direct = least_imported;
    for (int turn = 0; turn < kTurns; ++turn) {
      least_direct = std::min(least_direct, seconds_of([&] {
                                at::Tensor sum = x;
                                for (int i = 0; i < kOperations; ++i) sum = at::add(sum, x);
                              }));
      least_imported = std::min(least_imported, seconds_of([&] {
                                  (void)program.run({LayerId{0}, {}, inputs, key, differentiates});
                                }));
    }
    imported.push_back(least_imported * kMicroseconds);
    direct.push_back(least_direct * kMicroseconds);
  }
  const nlohmann::ordered_json record{
      {"autograd", differentiates}, {"imported_us", imported}, {"direct_us", direct}};
  std::printf("%s\n", record.dump().c_str());
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
