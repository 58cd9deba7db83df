#pragma once
// A NetworkChoice says which network a run trains or distils. The kinds are a closed set; nothing
// outside exec/models names one of them, but goes by these functions.
//   kind     network
//   vit      vision transformer (exec/models/vit.h); what a "model" without "kind" is
//   decoder  causal language model (exec/models/decoder.h)
//   encoder  bidirectional encoder with a mask (exec/models/encoder.h)
//   cnn      convolutional network with skips (exec/models/cnn.h)
//   mlp      perceptron of several layers (exec/models/mlp.h)
//   vgg      convolutions in stages, plain or depthwise separable (exec/models/convolutions/vgg.h)
//   mobilenet, supernet
//            cells in stages (exec/models/convolutions/mobilenet.h), and such a network that holds
//            all operations that its cells could have (exec/models/convolutions/supernet.h)
//   file     what frazil.export_model wrote in Python (exec/models/imported/file_model.h)
//
// A new kind is a struct of settings with defaults, an alternative of NetworkChoice, a name in
// kNetworkKinds, its keys in parse_network.cpp, and its line in each table of network_choice.cpp,
// which the compiler asks for.
//
// The blocks of any network, by which it freezes: block 0 is the first, which reads the samples;
// the last is the head, which carries the loss and never freezes; the L blocks between are what
// policies count (planner/freezing/freeze_schedule.h). A block's layers freeze together.

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "exec/models/cnn.h"
#include "exec/models/convolutions/mobilenet.h"
#include "exec/models/convolutions/supernet.h"
#include "exec/models/convolutions/vgg.h"
#include "exec/models/decoder.h"
#include "exec/models/encoder.h"
#include "exec/models/imported/file_model.h"
#include "exec/models/mlp.h"
#include "exec/models/model.h"
#include "exec/models/named_tensor.h"
#include "exec/models/vit.h"
#include "exec/tensors/sample_form.h"

namespace frazil {

class JsonFields;

using NetworkChoice = std::variant<VitConfig, DecoderConfig, EncoderConfig, CnnConfig, MlpConfig,
                                   VggConfig, MobilenetConfig, SupernetConfig, FileModel>;

// The names by alternative.
inline constexpr std::array<std::string_view, 9> kNetworkKinds{
    "vit", "decoder", "encoder", "cnn", "mlp", "vgg", "mobilenet", "supernet", "file"};

// Parses the keys of the network of this kind, a place in kNetworkKinds. A model file's path is
// taken from `folder`. Throws InputError for what cannot be made: a dim that heads do not divide, a
// file that is no model, ...
NetworkChoice parse_network(JsonFields& fields, std::size_t kind,
                            const std::filesystem::path& folder);
// Returns the text that parse_model() reads back as the same network, on one line. A vit is written
// without "kind", as in configurations from before there were others.
std::string to_json(const NetworkChoice& choice);

// Return how many blocks the network has, first and head included, and what samples it reads.
// Neither makes the network.
int count_blocks(const NetworkChoice& choice);
SampleForm sample_form(const NetworkChoice& choice);

// Returns the model file of a choice of kind "file"; null for others.
std::shared_ptr<const ImportedModel> find_file(const NetworkChoice& choice);

// Makes the network, in fp32.
ModelSpec make_network(const NetworkChoice& choice);

// Returns the weights with the names that readers of `weights.safetensors` expect, in the order of
// layers: views of `parameters`, which are those of make_network(choice), by layer.
std::vector<NamedTensor> name_weights(const NetworkChoice& choice,
                                      const std::vector<const Tensors*>& parameters);

}  // namespace frazil
