#include "tests/exec/models/imported/model_writer.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <set>
#include <sstream>

namespace frazil {
namespace {

std::string stored_type(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return "F32";
  if (tensor.scalar_type() == at::kLong) return "I64";
  return tensor.scalar_type() == at::kBool ? "BOOL" : "F64";
}

void collect_operations(const Json& nodes, std::set<std::string>& operations) {
  for (const Json& node : nodes) operations.insert(node.at("op").get<std::string>());
}

Json find_schemas(const Json& graph) {
  std::set<std::string> operations;
  for (const Json& layer : graph.at("layers")) {
    collect_operations(layer.at("nodes"), operations);
    if (layer.contains("evaluation")) collect_operations(layer.at("evaluation"), operations);
  }
  collect_operations(graph.at("loss").at("nodes"), operations);
  Json schemas = Json::object();
  for (const std::string& operation : operations) {
    const std::size_t dot = operation.find('.');
    const auto found = c10::Dispatcher::singleton().findSchema(
        {operation.substr(0, dot), dot == std::string::npos ? "" : operation.substr(dot + 1)});
    std::ostringstream text;
    if (found) text << found->schema();
    schemas[operation] = text.str();
  }
  return schemas;
}

NamedTensors mlp_tensors() {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(7);
  const auto draw = [&](at::IntArrayRef shape) {
    return at::empty(shape, at::kFloat).normal_(0, 0.5, generator);
  };
  return {{"first.weight", draw({8, 6})},
          {"first.bias", draw({8})},
          {"second.weight", draw({5, 8})},
          {"second.bias", draw({5})}};
}

std::string digest(const at::Tensor& tensor) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  EVP_Digest(tensor.const_data_ptr(), tensor.nbytes(), hash.data(), &size, EVP_sha256(), nullptr);
  std::ostringstream text;
  for (std::size_t i = 0; i < 16; ++i) {
    text << "0123456789abcdef"[hash[i] / 16] << "0123456789abcdef"[hash[i] % 16];
  }
  return text.str();
}

}  // namespace

void write_raw_file(const std::filesystem::path& path, const std::string& header,
                    std::size_t data_bytes) {
  std::ofstream file(path, std::ios::binary);
  const std::uint64_t size = header.size();
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << header << std::string(data_bytes, '\0');
}

void write_tensor_file(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t place = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", stored_type(tensor)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {place, place + tensor.nbytes()}}};
    place += tensor.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');
  write_raw_file(path, text, 0);
  std::ofstream file(path, std::ios::binary | std::ios::app);
  for (const auto& [name, tensor] : tensors) {
    file.write(static_cast<const char*>(tensor.contiguous().const_data_ptr()),
               static_cast<std::streamsize>(tensor.nbytes()));
  }
}

void WrittenModel::write(const std::filesystem::path& path) const {
  Json whole = graph;
  if (!whole.contains("schemas")) whole["schemas"] = find_schemas(graph);
  write_tensor_file(path, tensors, {{"format", "pt"}, {"frazil.model", whole.dump()}});
}

std::shared_ptr<const ImportedModel> WrittenModel::read() const {
  const std::filesystem::path path = fresh_path();
  write(path);
  auto model = std::make_shared<const ImportedModel>(read_model_file(path));
  std::filesystem::remove(path);  // it stays mapped
  return model;
}

Json value(const std::string& name) { return {{"v", name}}; }

Json make_node(const std::string& op, Json arguments, const std::string& result) {
  return {{"op", op},
          {"args", std::move(arguments)},
          {"kwargs", Json::object()},
          {"out", Json::array({result})},
          {"path", "a.module"},
          {"source", "model.py:31"}};
}

std::filesystem::path fresh_path() {
  static int count = 0;
  return std::filesystem::path(::testing::TempDir()) /
         ("model-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".safetensors");
}

WrittenModel small_mlp() {
  WrittenModel model;
  model.tensors = mlp_tensors();
  Json& graph = model.graph;
  graph = {{"format", "frazil.model_file"}, {"version", 1}, {"name", "mlp"}, {"torch", "2.11.0"}};
  graph["blocks"] = {"first", "second"};
  graph["inputs"] = Json::array({{{"name", "x"}, {"dtype", "float32"}, {"shape", {"n", 6}}}});
  graph["labels"] = {{"dtype", "int64"}, {"shape", {"n"}}};
  graph["parameters"] = Json::array();
  for (const auto& [name, tensor] : model.tensors) {
    graph["parameters"].push_back({{"name", name},
                                   {"tensor", name},
                                   {"shape", tensor.sizes().vec()},
                                   {"trainable", true},
                                   {"tied", ""}});
  }
  graph["constants"] = Json::array();
  graph["buffers"] = Json::array();
  Json dropout = make_node("aten::dropout", {value("v0"), 0.25, true}, "v1");
  dropout["random"] = 0;
  const auto layer = [](const std::string& name, int block, Json parameters, const char* input,
                        Json nodes, const char* output, int width) {
    return Json{{"name", name},
                {"block", block},
                {"parameters", std::move(parameters)},
                {"buffers", Json::array()},
                {"constants", Json::array()},
                {"inputs", {input}},
                {"batch", {0, 0}},
                {"outputs", {output}},
                {"output_types", Json::array({{{"dtype", "float32"}, {"shape", {"n", width}}}})},
                {"mixes_samples", false},
                {"nodes", std::move(nodes)}};
  };
  graph["layers"] = Json::array(
      {layer("first", 0, {"p0", "p1"}, "i0",
             Json::array({make_node("aten::linear", {value("i0"), value("p0"), value("p1")}, "v0"),
                          dropout, make_node("aten::tanh", Json::array({value("v1")}), "v2")}),
             "v2", 8),
       layer(
           "second", 1, {"p2", "p3"}, "v2",
           Json::array({make_node("aten::linear", {value("v2"), value("p2"), value("p3")}, "v3")}),
           "v3", 5)});
  graph["edges"] = Json::array({{{"from", 0}, {"to", 1}, {"kind", "gradient"}, {"outputs", {0}}}});
  graph["loss"] = {
      {"kind", "graph"},
      {"inputs", {"o0", "labels"}},
      {"batch", {0, 0}},
      {"nodes",
       Json::array({make_node("aten::cross_entropy_loss", {value("o0"), value("labels")}, "v4")})},
      {"out", "v4"},
      {"ignore_index", -100}};
  return model;
}

WrittenModel normed_mlp() {
  WrittenModel written = small_mlp();
  written.tensors.emplace_back("bn.running_mean", at::full({8}, 0.5F));
  written.tensors.emplace_back("bn.running_var", at::full({8}, 2.0F));
  written.tensors.emplace_back("bn.num_batches_tracked", at::scalar_tensor(7, at::kLong));
  for (const char* name : {"bn.running_mean", "bn.running_var", "bn.num_batches_tracked"}) {
    written.graph["buffers"].push_back({{"name", name}, {"tensor", name}});
  }
  Json& layer = written.graph["layers"][0];
  layer["buffers"] = {"b0", "b1", "b2"};
  layer["mixes_samples"] = true;
  layer["nodes"] = Json::array(
      {make_node("aten::linear", {value("i0"), value("p0"), value("p1")}, "v0"),
       make_node("aten::batch_norm",
                 {value("v0"), nullptr, nullptr, value("b0"), value("b1"), true, 0.2, 1e-5, true},
                 "v2")});
  return written;
}

MlpStep run_small_mlp(const Samples& samples,
                      const std::function<at::Tensor(const at::Tensor&)>& drop) {
  Tensors parameters;
  for (const auto& [name, tensor] : mlp_tensors()) {
    parameters.push_back(tensor.clone().set_requires_grad(true));
  }
  const at::Tensor hidden =
      drop(at::linear(samples.inputs.at(0), parameters[0], parameters[1])).tanh();
  const at::Tensor output = at::linear(hidden, parameters[2], parameters[3]);
  const at::Tensor loss = at::cross_entropy_loss(output, samples.labels);
  return {loss.detach(), output.detach(), torch::autograd::grad({loss}, parameters)};
}

Samples small_mlp_samples(std::int64_t count, std::uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return {{at::empty({count, 6}, at::kFloat).normal_(0, 1, generator)},
          at::empty({count}, at::kLong).random_(0, 5, generator)};
}

Fingerprint test_fingerprint() {
  return {.torch = "2.11.0", .processor = "any", .vendor = "v", .aten = "a", .mkl = "m"};
}

void add_mlp_witness(WrittenModel& model) {
  const Fingerprint settings = test_fingerprint();
  Json cases = Json::array();
  for (const std::int64_t count : {4, 3}) {
    constexpr std::uint64_t kSeed = 1234;
    const Samples samples = small_mlp_samples(count, static_cast<std::uint64_t>(count));
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    generator.set_current_seed(kSeed);
    const MlpStep step =
        run_small_mlp(samples, [](const at::Tensor& x) { return at::dropout(x, 0.25, true); });
    const std::string prefix = "frazil.witness." + std::to_string(cases.size()) + ".";
    const auto add = [&](const std::string& name, const at::Tensor& tensor) {
      model.tensors.emplace_back(prefix + name, tensor);
      return prefix + name;
    };
    Json gradients = Json::array();
    for (std::size_t p = 0; p < step.gradients.size(); ++p) {
      const at::Tensor& gradient = step.gradients[p];
      gradients.push_back({{"parameter", model.graph["parameters"][p]["name"]},
                           {"digest", digest(gradient.contiguous())},
                           {"largest", gradient.abs().max().item<float>()},
                           {"samples", add("gradient." + std::to_string(p), gradient.flatten())}});
    }
    cases.push_back({{"n", count},
                     {"seed", kSeed},
                     {"inputs", {add("input.0", samples.inputs[0])}},
                     {"labels", add("labels", samples.labels)},
                     {"loss", add("loss", step.loss)},
                     {"outputs", {add("output.0", step.output)}},
                     {"gradients", gradients}});
  }
  model.graph["witness"] = {{"fingerprint",
                             {{"torch", settings.torch},
                              {"processor", settings.processor},
                              {"vendor", settings.vendor},
                              {"aten", settings.aten},
                              {"mkl", settings.mkl},
                              {"threads", settings.threads}}},
                            {"cases", cases}};
}

}  // namespace frazil
