// Any text is refused in a sentence, or is the graph of a model file all of whose names lead
// somewhere.

#include <cstddef>
#include <cstdint>

#include "exec/models/imported/parse_graph.h"
#include "tests/fuzz/round_trip.h"

namespace {

void check_sizes(const std::vector<frazil::Polynomial>& sizes) {
  constexpr std::int64_t kSamples = 3;
  for (const frazil::Polynomial& size : sizes) {
    try {
      (void)size.at(kSamples);
    } catch (const frazil::InfeasibleError&) {
      // A size may be larger than any tensor's.
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace frazil;
  // The tensors that the seeds name.
  static const TensorHeader kTensors =
      parse_tensor_header(R"({"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                          R"("b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]},)"
                          R"("c":{"dtype":"I64","shape":[1],"data_offsets":[24,32]}})",
                          32, "tensors");
  const auto parse = [](std::string_view text, const std::string& file) {
    return parse_graph(text, kTensors, file);
  };
  const auto graph = read_or_refuse({reinterpret_cast<const char*>(data), size}, parse);
  if (!graph) return 0;
  require(!graph->layers.empty(), "a model has a layer");
  for (const ImportedLayer& layer : graph->layers) {
    require(layer.block < graph->blocks.size(), "a layer has a block");
    require(layer.samples.input < layer.inputs.size(), "n is read from an input");
    require(layer.outputs.size() == layer.output_types.size(), "an output has a type");
    for (const ImportedType& type : layer.output_types) check_sizes(type.shape);
  }
  for (const ImportedEdge& edge : graph->edges) {
    require(edge.from < edge.to && edge.to < graph->layers.size(), "an edge runs forward");
    for (const std::size_t output : edge.outputs) {
      require(output < graph->layers[edge.from].outputs.size(), "an edge carries an output");
    }
  }
  return 0;
}
