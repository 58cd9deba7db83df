#pragma once
// Start values from a safetensors file: weights that another run left, or that were trained
// elsewhere. The file names them as `weights.safetensors` does (name_weights() in
// exec/models/choice/network_choice.h), which for the built-in kinds is as Hugging Face does.

#include "exec/disk/tensor_file.h"
#include "exec/models/choice/network_choice.h"

namespace frazil {

// Makes the file's tensors the start values (ParameterSpec::value) of all parameters of `model`;
// those that lie in the file as they are in the model stay views of it. One name is enough for a
// tied parameter. So are running statistics (StatisticSpec::value), of which counters may be left
// out. What else a model file has besides parameters may be left out, and stays as it is. The
// maps inside a decoder's blocks may lie as in the model, [out, in], or as GPT-2's Conv1D holds
// them, [in, out]; the shape of the first one tells.
//
// Throws InputError in one sentence, which names the file and a tensor, for a tensor that is
// missing or left over, of another shape, not float32, for a value that is not finite, for two
// names of a tied parameter with different values, and for other values of what is no parameter.
// Requires: `model` is make_network(choice).
void start_from(const TensorFile& file, const NetworkChoice& choice, ModelSpec& model);

}  // namespace frazil
