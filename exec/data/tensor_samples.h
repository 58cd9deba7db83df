#pragma once
// Samples of safetensors files, mapped and never read as a whole, so that they may be larger than
// memory. A file holds the inputs of a model, each [n, ...] in float32, int64 or bool, and
// `labels`; the text "inputs" of its metadata names the inputs, separated by commas, and may be
// left out if there is one. A file with the names of the model's inputs may have them in any order;
// other names stand for the inputs in the order in which the model reads them. The files of a part
// follow one another: sample 0 of the second file comes behind the last one of the first.

#include <string>
#include <vector>

#include "exec/data/dataset.h"
#include "exec/tensors/sample_form.h"
#include "exec/tensors/sample_source.h"

namespace frazil {

struct TensorFiles {
  std::vector<std::string> train;
  std::vector<std::string> test;
  std::vector<std::string> validation;  // may be empty
  Normalization normalization = {};     // of images
  friend bool operator==(const TensorFiles&, const TensorFiles&) = default;
};

// Throws InputError naming file and tensor for files that do not hold samples of this form: other
// inputs, types or shapes, some of the model's names in other places, names that differ from those
// of the part's first file, numbers of samples that differ within a file, token numbers or labels
// out of range, no sample, and no label that counts.
Dataset read_tensor_samples(const TensorFiles& files, const SampleForm& form);

}  // namespace frazil
