#pragma once
// The nodes of a layer, or of the loss, made ready once: operations found, arguments converted,
// what depends on nothing computed. A program is constant and shared by all threads.

#include <cstddef>
#include <string>
#include <vector>

#include "exec/models/imported/model_file.h"
#include "exec/models/imported/parameter_flow.h"
#include "exec/models/model.h"

namespace frazil {

// What a program is made of. All that is named belongs to the model, which outlives the program.
struct ProgramSource {
  const std::vector<std::string>& inputs;
  // By input: which of the call's tensors it is.
  std::vector<std::size_t> input_positions;
  SamplesPlace samples;
  const std::vector<std::size_t>& parameters;
  const std::vector<std::size_t>& constants;
  const std::vector<std::size_t>& buffers;
  const std::vector<ImportedNode>& nodes;
  const std::vector<std::string>& outputs;
  // The nodes keep the buffers that are no counters, each by one normalisation, and nothing else
  // reads these: in training.
  bool keeps_statistics = false;
};

class LayerProgram {
 public:
  // Throws InputError as ResolvedNode does, where an operation on constants fails, and for buffers
  // that are not kept as `source` says.
  LayerProgram(const ImportedModel& model, const ProgramSource& source, Randomness randomness);

  // Throws as ResolvedNode::run does.
  Tensors run(const LayerCall& call) const;

  // Returns the momentum of each buffer; 0 for a counter.
  const std::vector<double>& momenta() const { return momenta_; }
  // True if each parameter is read by one operation that `run` tells a listener of.
  bool has_seams() const { return flow_.has_seams; }
  bool draws() const;  // in training
  bool draws_in_evaluation() const;
  std::size_t nodes() const { return nodes_.size(); }  // without those that were computed

 private:
  // A value that is the same in each call.
  struct Fixed {
    std::size_t slot;
    at::Tensor value;
    bool is_written;  // each call works on a copy
  };
  struct Input {
    std::size_t slot;
    std::size_t position;  // in the call's inputs
    bool is_written;
  };
  // An operation that exec/models/parametric_operations.h or linear_without_bias.h has, and so
  // needs no engine in W.
  enum class Known : std::uint8_t { kNone, kLinear, kLayerNorm };
  struct Step {
    std::vector<std::size_t> last_reads;  // slots let go after the node, if not by it
    const ParameterJoin* join = nullptr;
    Known known = Known::kNone;
    std::size_t input = 0;              // slot, of a known operation
    std::vector<std::size_t> own = {};  // weight and, if any, bias, as indices in the layer
    double epsilon = 0;
  };

  void fold(Tensors& values, const std::vector<bool>& is_fixed);
  void find_written(const ImportedModel& model, const ProgramSource& source);
  void find_last_reads();
  void find_joins(const ProgramSource& source);
  void find_statistics(const ImportedModel& model, const ProgramSource& source);
  void hand_out_statistics(const Tensors& values, const LayerCall& call) const;
  void find_known(Step& step) const;
  at::Tensor perform_known(const Step& step, const at::Tensor& x, const LayerCall& call) const;
  void begin(const LayerCall& call, Tensors& values) const;
  bool run_known(const Step& step, Tensors& values, const LayerCall& call) const;
  void tell(const Step& step, const Tensors& values, const LayerCall& call) const;

  std::vector<ResolvedNode> nodes_;
  std::vector<Step> steps_;  // by node
  std::vector<Input> inputs_;
  std::size_t first_parameter_ = 0;  // slot
  std::size_t parameters_ = 0;
  std::size_t first_buffer_ = 0;  // slot
  std::vector<double> momenta_;
  std::vector<Fixed> fixed_;
  std::size_t slots_ = 0;
  std::vector<std::size_t> outputs_;
  std::vector<std::size_t> written_parameters_;  // indices in the layer; each call works on copies
  SamplesPlace samples_;                         // the input is a position in the call
  ParameterFlow flow_;
};

}  // namespace frazil
