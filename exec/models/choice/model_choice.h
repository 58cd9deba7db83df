#pragma once
// What a run trains: "model" of a run configuration. It is a network
// (exec/models/choice/network_choice.h), or the distillation of one network into another
// (exec/models/choice/distillation_choice.h).

#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "exec/models/choice/distillation_choice.h"
#include "exec/models/choice/network_choice.h"
#include "exec/models/model.h"
#include "exec/models/named_tensor.h"
#include "exec/tensors/sample_form.h"

namespace frazil {

class JsonCursor;
class TensorFile;

using ModelChoice = std::variant<NetworkChoice, DistillationChoice>;

// Parses the object. Paths are taken from `folder`. Throws InputError for what cannot be made: an
// unknown kind, another kind's keys, networks that cannot be distilled, ...
ModelChoice parse_model(const JsonCursor& object, const std::filesystem::path& folder);
// Returns the text that parse_model() reads back as the same choice, on one line.
std::string to_json(const ModelChoice& choice);

// Returns how many blocks a freeze mask of the model has.
int count_blocks(const ModelChoice& choice);
// Returns what samples the model reads, with the labels that it is evaluated by.
SampleForm sample_form(const ModelChoice& choice);

// Returns the network that is evaluated and whose weights are kept: the student of a distillation,
// else the network itself.
const NetworkChoice& kept_network(const ModelChoice& choice);

// A file that decides what the model is.
struct ChosenFile {
  std::string key;  // in the configuration: "model", "model.teacher"
  std::shared_ptr<const ImportedModel> model;
};
// Returns the model files of the networks, ascending by key.
std::vector<ChosenFile> find_files(const ModelChoice& choice);

// Returns the file of a teacher's weights; empty if there is none.
std::string teacher_weights(const ModelChoice& choice);

// Makes the model, in fp32. Throws InputError if a teacher's weights cannot be read.
ModelSpec make_model(const ModelChoice& choice);

// Makes the file's tensors the start values of the kept network in `model`, as start_from() does
// (exec/models/choice/start_weights.h). Requires: `model` is make_model(choice).
void start_from(const TensorFile& file, const ModelChoice& choice, ModelSpec& model);

// Returns the weights of the kept network, under its own names. `parameters` are those of
// make_model(choice), by layer.
std::vector<NamedTensor> name_weights(const ModelChoice& choice,
                                      const std::vector<const Tensors*>& parameters);

}  // namespace frazil
