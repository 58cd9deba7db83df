#pragma once
// SampleForm says what samples a model reads (exec/tensors/samples.h): the tensors of one sample
// and what they mean, so that data can be made, or refused, without knowing the model.

#include <cstdint>
#include <vector>

#include "profiles/units.h"

namespace frazil {

enum class Element { kFloat32, kInt64 };

// kImage: [channels, height, width] of float32. The others are int64, one for each token of a
// sequence: ids of tokens; which part of the sample a token belongs to; 1 where a token stands and
// 0 where the sequence has ended.
enum class InputMeaning { kImage, kTokens, kSegments, kMask };

struct InputForm {
  InputMeaning meaning = InputMeaning::kImage;
  std::vector<std::int64_t> shape;  // of one sample
  std::int64_t end = 0;             // an int64 input holds numbers from 0 to below this

  Element element() const {
    return meaning == InputMeaning::kImage ? Element::kFloat32 : Element::kInt64;
  }
  Bytes bytes() const {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return Bytes{count * (element() == Element::kFloat32 ? 4 : 8)};
  }
  friend bool operator==(const InputForm&, const InputForm&) = default;
};

// kClass: one class of the whole sample. kNextToken: for each token the one that comes after it.
enum class LabelMeaning { kClass, kNextToken };

struct SampleForm {
  std::vector<InputForm> inputs;
  LabelMeaning labels = LabelMeaning::kClass;
  std::vector<std::int64_t> label_shape = {};  // of one sample's labels, int64
  std::int64_t classes = 0;                    // labels are from 0 to below this

  bool reads_images() const {
    return inputs.size() == 1 && inputs.front().meaning == InputMeaning::kImage;
  }
  Bytes input_bytes() const {
    Bytes sum{0};
    for (const InputForm& input : inputs) sum += input.bytes();
    return sum;
  }
  friend bool operator==(const SampleForm&, const SampleForm&) = default;
};

// Returns the form of one image and its class.
inline SampleForm image_form(std::int64_t channels, std::int64_t size, std::int64_t classes) {
  return {.inputs = {{InputMeaning::kImage, {channels, size, size}}}, .classes = classes};
}

}  // namespace frazil
