#include "exec/run/stages/forward_pass.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace frazil {
namespace {

class ForwardPass {
 public:
  ForwardPass(const ForwardPart& part, Communicator& communicator, Step number)
      : part_(part),
        communicator_(communicator),
        number_(number),
        readers_(part.model.layers.size()) {
    for (const ModelEdge& edge : part.model.edges) {
      const DeviceId from = runs_on(edge.from);
      const DeviceId to = runs_on(edge.to);
      std::vector<DeviceId>& readers = readers_[edge.from.index()];
      if (to != from && std::find(readers.begin(), readers.end(), to) == readers.end()) {
        readers.push_back(to);
      }
    }
  }

  // Goes through the layers in their order, as every device does: messages between two devices are
  // then received in the order in which they are sent, and no device waits for one that waits.
  void run(int micro_batch, const Samples& samples, const LayerVisitor& visit) {
    const std::vector<LayerSpec>& layers = part_.model.layers;
    std::vector<Tensors> outputs(layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const LayerId layer{l};
      if (runs_on(layer) == part_.device) {
        const Tensors read = read_inputs(part_.model, layer, outputs, samples.inputs);
        const LayerState& state = part_.state.at(part_.layer_of[l]);
        outputs[l] = layers[l].forward({.layer = layer,
                                        .parameters = state.parameters,
                                        .inputs = read,
                                        .key = {},
                                        .statistics = &state.statistics});
        visit(layer, micro_batch, samples, outputs[l]);
        for (const DeviceId reader : readers_[l]) {
          communicator_.send(reader.value, tag_of(layer, micro_batch), outputs[l]);
        }
      } else if (is_read(layer)) {
        outputs[l] = communicator_.receive(runs_on(layer).value, tag_of(layer, micro_batch));
      }
    }
  }

 private:
  DeviceId runs_on(LayerId layer) const { return part_.runs_on[layer.index()]; }

  bool is_read(LayerId layer) const {
    const std::vector<DeviceId>& readers = readers_[layer.index()];
    return std::find(readers.begin(), readers.end(), part_.device) != readers.end();
  }

  Tag tag_of(LayerId layer, int micro_batch) const {
    return {.kind = MessageKind::kLayerOutput,
            .stage = layer.value,
            .index = micro_batch,
            .step = number_};
  }

  const ForwardPart& part_;
  Communicator& communicator_;
  Step number_;
  std::vector<std::vector<DeviceId>> readers_;  // on other devices, by layer
};

}  // namespace

void run_forward(const ForwardPart& part, const SampleSource& samples, int size,
                 Communicator& communicator, Step number, const LayerVisitor& visit) {
  const c10::NoGradGuard no_grad;
  const bool has_part =
      std::find(part.runs_on.begin(), part.runs_on.end(), part.device) != part.runs_on.end();
  if (!has_part) return;
  ForwardPass pass(part, communicator, number);
  int micro_batch = 0;
  for (std::int64_t first = 0; first < samples.count(); first += size, ++micro_batch) {
    const Samples there =
        samples.narrow(first, std::min<std::int64_t>(size, samples.count() - first));
    const std::unique_ptr<const Samples> brought = part.compute.bring(there);
    pass.run(micro_batch, brought ? *brought : there, visit);
  }
}

}  // namespace frazil
