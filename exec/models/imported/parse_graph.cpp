#include "exec/models/imported/parse_graph.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "exec/models/imported/check_graph.h"
#include "exec/models/imported/parse_nodes.h"
#include "exec/models/imported/parse_witness.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostDimensions = 63;

std::vector<std::string> read_texts(const JsonCursor& list) {
  std::vector<std::string> texts;
  for (const JsonCursor& text : list.items()) texts.push_back(text.text());
  return texts;
}

std::size_t read_index(const JsonCursor& at, std::size_t size) {
  if (size == 0) at.fail(at.describe(), "nothing, since there is none to name");
  return static_cast<std::size_t>(at.integer(0, static_cast<std::int64_t>(size) - 1));
}

// Reads "p3" as 3.
std::size_t read_position(const JsonCursor& at, char kind, std::size_t size) {
  const std::string text = at.text();
  for (std::size_t i = 0; i < size; ++i) {
    if (text == kind + std::to_string(i)) return i;
  }
  at.fail(at.describe(), std::string(1, kind) + "0 and so on, one of " + std::to_string(size));
}

class GraphReader {
 public:
  GraphReader(JsonFields& fields, const TensorHeader& tensors)
      : fields_(fields), tensors_(tensors) {}

  ImportedGraph read() {
    expect_format(fields_, "frazil.model_file", 1);
    graph_.name = fields_.required("name").text();
    graph_.torch = fields_.required("torch").text();
    graph_.blocks = read_texts(fields_.required("blocks"));
    read_schemas();
    read_samples();
    read_values();
    // Edges come first, for they say what a layer reads.
    const std::vector<JsonCursor> layers = fields_.required("layers").items();
    read_edges(layers.size());
    for (const JsonCursor& layer : layers) read_layer(layer);
    if (graph_.layers.empty()) throw_empty();
    read_loss();
    if (const auto witness = fields_.optional("witness"); witness && !witness->is_null()) {
      graph_.witness = parse_witness(*witness, graph_.inputs.size(), tensors_);
    }
    check_graph(graph_, fields_);
    fields_.finish();
    return std::move(graph_);
  }

 private:
  [[noreturn]] void throw_empty() {
    const JsonCursor layers = fields_.required("layers");
    layers.fail("no layer", "at least one");
  }

  void read_schemas() {
    JsonFields schemas(fields_.required("schemas"));
    for (const std::string& op : schemas.keys()) {
      graph_.schemas.emplace_back(op, schemas.required(op).text());
    }
    std::sort(graph_.schemas.begin(), graph_.schemas.end());
  }

  void read_samples() {
    for (const JsonCursor& at : fields_.required("inputs").items()) {
      JsonFields input(at);
      ImportedInput read{.name = input.required("name").text(), .type = {}};
      read.type = parse_type(input);
      input.finish();
      graph_.inputs.push_back(std::move(read));
    }
    JsonFields labels(fields_.required("labels"));
    graph_.labels = parse_type(labels);
    labels.finish();
  }

  void read_values() {
    for (const JsonCursor& at : fields_.required("parameters").items()) read_parameter(at);
    for (const JsonCursor& at : fields_.required("constants").items()) {
      JsonFields constant(at);
      graph_.constants.push_back(find_tensor(constant.required("tensor"), tensors_).name);
      constant.finish();
    }
    for (const JsonCursor& at : fields_.required("buffers").items()) read_buffer(at);
    if (const auto kept = fields_.optional("kept")) {
      for (const JsonCursor& at : kept->items())
        graph_.kept.push_back(find_tensor(at, tensors_).name);
    }
  }

  void read_buffer(const JsonCursor& at) {
    JsonFields fields(at);
    ImportedBuffer buffer;
    buffer.name = fields.required("name").text();
    const JsonCursor tensor = fields.required("tensor");
    const TensorEntry& entry = find_tensor(tensor, tensors_);
    buffer.tensor = entry.name;
    buffer.is_counter = entry.type == TensorType::kInt64 && entry.shape.empty();
    if (!buffer.is_counter && entry.type != TensorType::kFloat32) {
      tensor.fail("a tensor of type " + std::string(name_of(entry.type)) + " for the buffer " +
                      json_string(buffer.name),
                  "float32 values, or a single int64 for a counter");
    }
    fields.finish();
    graph_.buffers.push_back(std::move(buffer));
  }

  void read_parameter(const JsonCursor& at) {
    JsonFields fields(at);
    ImportedParameter parameter;
    parameter.name = fields.required("name").text();
    for (const JsonCursor& size : fields.required("shape").items()) {
      parameter.shape.push_back(size.integer(0, kMost));
    }
    parameter.trainable = fields.required("trainable").boolean();
    parameter.tied = fields.required("tied").text();
    const JsonCursor tensor = fields.required("tensor");
    const TensorEntry& entry = find_tensor(tensor, tensors_);
    if (entry.type != TensorType::kFloat32 || entry.shape != parameter.shape) {
      tensor.fail("a tensor of type " + std::string(name_of(entry.type)) + " for the parameter " +
                      json_string(parameter.name),
                  "float32 values in the parameter's shape");
    }
    parameter.tensor = entry.name;
    fields.finish();
    graph_.parameters.push_back(std::move(parameter));
  }

  void read_edges(std::size_t layers) {
    for (const JsonCursor& at : fields_.required("edges").items()) {
      JsonFields fields(at);
      ImportedEdge edge;
      const JsonCursor from = fields.required("from");
      edge.from = read_index(from, layers);
      edge.to = read_index(fields.required("to"), layers);
      if (edge.from >= edge.to) from.fail(from.describe(), "a layer before the edge's end");
      const JsonCursor kind = fields.required("kind");
      edge.carries_gradients = kind.text() == "gradient";
      if (!edge.carries_gradients && kind.text() != "detached") {
        kind.fail(kind.describe(), "gradient or detached");
      }
      const JsonCursor outputs = fields.required("outputs");
      for (const JsonCursor& output : outputs.items()) {
        edge.outputs.push_back(static_cast<std::size_t>(output.integer(0, kMost)));
      }
      if (edge.outputs.empty()) outputs.fail("no output", "the outputs that pass over the edge");
      fields.finish();
      const auto place = [](const ImportedEdge& e) {
        return std::tuple(e.from, e.to, !e.carries_gradients);
      };
      if (!graph_.edges.empty() && place(graph_.edges.back()) >= place(edge)) {
        from.fail("an edge out of order", "edges sorted by from, to and kind, gradients first");
      }
      graph_.edges.push_back(std::move(edge));
    }
  }

  SamplesPlace read_samples_place(const JsonCursor& at, std::size_t inputs) const {
    const std::vector<JsonCursor> items = at.items();
    if (items.size() != 2) at.fail(at.describe(), "an input and a dimension");
    return {read_index(items[0], inputs),
            static_cast<std::size_t>(items[1].integer(0, kMostDimensions))};
  }

  std::vector<std::size_t> read_positions(const JsonCursor& list, char kind, std::size_t size,
                                          std::set<std::string>& defined) const {
    std::vector<std::size_t> positions;
    for (const JsonCursor& at : list.items()) {
      positions.push_back(read_position(at, kind, size));
      if (!defined.insert(at.text()).second) at.fail(at.describe() + " again", "each value once");
    }
    return positions;
  }

  // Throws unless the inputs are those of the layer's edges, or of the model.
  void read_inputs(const JsonCursor& at, ImportedLayer& layer, std::set<std::string>& defined) {
    const std::size_t index = graph_.layers.size();
    layer.inputs = read_texts(at);
    std::vector<std::string> expected;
    bool has_edges = false;
    for (const ImportedEdge& edge : graph_.edges) {
      if (edge.to != index) continue;
      has_edges = true;
      const ImportedLayer& from = graph_.layers[edge.from];
      for (const std::size_t output : edge.outputs) {
        if (output >= from.outputs.size()) {
          at.fail("an edge that carries output " + std::to_string(output) + " of layer " +
                      json_string(from.name),
                  "one of its " + std::to_string(from.outputs.size()) + " outputs");
        }
        const bool is_real = from.output_types[output].type >= TensorType::kFloat16;
        if (edge.carries_gradients && !is_real) {
          at.fail("a gradient edge that carries integers from layer " + json_string(from.name),
                  "a detached edge");
        }
        expected.push_back(from.outputs[output]);
      }
    }
    if (has_edges && layer.inputs.size() != expected.size()) {
      at.fail(std::to_string(layer.inputs.size()) + " inputs",
              "the " + std::to_string(expected.size()) + " tensors of the layer's edges");
    }
    const std::vector<JsonCursor> items = at.items();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!has_edges) {
        read_position(items[i], 'i', graph_.inputs.size());
      } else if (const std::string name = layer.inputs[i];
                 name.substr(0, name.find('#')) != expected[i]) {
        items[i].fail(items[i].describe(), json_string(expected[i]) + ", as the edge carries");
      }
      if (!defined.insert(layer.inputs[i]).second) {
        items[i].fail(items[i].describe() + " again", "each input once");
      }
    }
    if (layer.inputs.empty()) at.fail("no input", "at least one");
  }

  void read_layer(const JsonCursor& at) {
    JsonFields fields(at);
    ImportedLayer layer;
    layer.name = fields.required("name").text();
    layer.block = read_index(fields.required("block"), graph_.blocks.size());
    std::set<std::string> defined;
    layer.parameters =
        read_positions(fields.required("parameters"), 'p', graph_.parameters.size(), defined);
    layer.buffers = read_positions(fields.required("buffers"), 'b', graph_.buffers.size(), defined);
    layer.constants =
        read_positions(fields.required("constants"), 'c', graph_.constants.size(), defined);
    read_inputs(fields.required("inputs"), layer, defined);
    layer.samples = read_samples_place(fields.required("batch"), layer.inputs.size());
    layer.mixes_samples = fields.required("mixes_samples").boolean();
    const auto evaluated = fields.optional("mixes_in_evaluation");
    layer.mixes_in_evaluation = evaluated ? evaluated->boolean() : layer.mixes_samples;
    const std::set<std::string> before = defined;
    layer.nodes = parse_nodes(fields.required("nodes"), defined);
    std::set<std::string> also_defined = defined;
    if (const auto nodes = fields.optional("evaluation"); nodes && !nodes->is_null()) {
      also_defined = before;
      layer.evaluation = parse_nodes(*nodes, also_defined);
    }
    const JsonCursor outputs = fields.required("outputs");
    for (const JsonCursor& output : outputs.items()) {
      layer.outputs.push_back(output.text());
      if (!defined.contains(output.text()) || !also_defined.contains(output.text())) {
        output.fail(output.describe(), "a value of the layer");
      }
    }
    const JsonCursor types = fields.required("output_types");
    for (const JsonCursor& type : types.items()) {
      JsonFields members(type);
      layer.output_types.push_back(parse_type(members));
      members.finish();
    }
    if (layer.outputs.empty() || layer.output_types.size() != layer.outputs.size()) {
      types.fail(std::to_string(layer.output_types.size()) + " types of " +
                     std::to_string(layer.outputs.size()) + " outputs",
                 "one for each output, and at least one output");
    }
    fields.finish();
    graph_.layers.push_back(std::move(layer));
  }

  void read_loss() {
    const JsonCursor at = fields_.required("loss");
    JsonFields fields(at);
    const JsonCursor kind = fields.required("kind");
    if (kind.text() != "graph") kind.fail(kind.describe(), "graph");
    ImportedLoss& loss = graph_.loss;
    std::set<std::string> defined;
    const std::size_t outputs = graph_.layers.back().outputs.size();
    for (const JsonCursor& input : fields.required("inputs").items()) {
      loss.inputs.push_back(input.text());
      if (input.text() != "labels") read_position(input, 'o', outputs);
      if (!defined.insert(input.text()).second) input.fail(input.describe(), "each input once");
    }
    loss.samples = read_samples_place(fields.required("batch"), loss.inputs.size());
    if (const auto constants = fields.optional("constants")) {
      loss.constants = read_positions(*constants, 'c', graph_.constants.size(), defined);
    }
    const JsonCursor nodes = fields.required("nodes");
    loss.nodes = parse_nodes(nodes, defined);
    for (const ImportedNode& node : loss.nodes) {
      if (node.draw) nodes.fail(place_of(node) + ", which draws,", "a loss without random draws");
    }
    const JsonCursor result = fields.required("out");
    loss.result = result.text();
    if (!defined.contains(loss.result)) result.fail(result.describe(), "a value of the loss");
    if (const auto ignored = fields.optional("ignore_index"); ignored && !ignored->is_null()) {
      loss.ignored_label = ignored->integer(-kMost, kMost);
    }
    if (const auto counted = fields.optional("counted")) {
      loss.counted = counted->text();
      if (!defined.contains(loss.counted))
        counted->fail(counted->describe(), "a value of the loss");
    }
    fields.finish();
  }

  JsonFields& fields_;
  const TensorHeader& tensors_;
  ImportedGraph graph_;
};

}  // namespace

ImportedGraph parse_graph(std::string_view text, const TensorHeader& tensors,
                          const std::string& file) {
  JsonFields fields(parse_json(text, file));
  return GraphReader(fields, tensors).read();
}

}  // namespace frazil
