#pragma once
// SampleForm says what samples a model reads (exec/tensors/samples.h): the tensors of one sample
// and what they mean, so that data can be made, or refused, without knowing the model.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiles/units.h"

namespace frazil {

enum class Element { kFloat32, kInt64, kBool };

inline std::int64_t bytes_of(Element element) {
  switch (element) {
    case Element::kFloat32:
      return 4;
    case Element::kInt64:
      return 8;
    case Element::kBool:
      return 1;
  }
  return 0;
}

// kImage: [channels, height, width] of float32. The next three are one number for each token of a
// sequence: ids of tokens; which part of the sample a token belongs to; 1 where a token stands and
// 0 where the sequence has ended. kNumbers: anything else.
enum class InputMeaning { kImage, kTokens, kSegments, kMask, kNumbers };

struct InputForm {
  InputMeaning meaning = InputMeaning::kImage;
  std::vector<std::int64_t> shape;  // of one sample
  std::int64_t end = 0;  // an int64 input holds numbers from 0 to below this; 0: any numbers
  Element element = Element::kFloat32;

  Bytes bytes() const {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return Bytes{count * bytes_of(element)};
  }
  friend bool operator==(const InputForm&, const InputForm&) = default;
};

// Returns the form of one number for each of so many tokens.
inline InputForm token_form(InputMeaning meaning, std::int64_t tokens, std::int64_t end) {
  return {.meaning = meaning, .shape = {tokens}, .end = end, .element = Element::kInt64};
}

// kClass: one class of the whole sample. kNextToken: for each token the one that comes after it.
// kOther: whatever the model's loss makes of them.
enum class LabelMeaning { kClass, kNextToken, kOther };

struct SampleForm {
  std::vector<InputForm> inputs;
  std::vector<std::string> input_names = {};  // by input; empty for a model that names none
  LabelMeaning labels = LabelMeaning::kClass;
  std::vector<std::int64_t> label_shape = {};  // of one sample's labels
  std::int64_t classes = 0;                    // labels are from 0 to below this; 0: any
  Element label_element = Element::kInt64;
  std::optional<std::int64_t> ignored_label = {};  // counts for nothing, and need be no class

  bool reads_images() const {
    return inputs.size() == 1 && inputs.front().meaning == InputMeaning::kImage;
  }
  // True if samples are square images of classes.
  bool tells_images_apart() const {
    return reads_images() && inputs.front().shape[1] == inputs.front().shape[2] &&
           labels == LabelMeaning::kClass && classes > 1;
  }
  // True if samples are sequences of tokens, each of a class or with the next token for each.
  bool tells_tokens_apart() const {
    int token_inputs = 0;
    for (const InputForm& input : inputs) {
      if (input.meaning == InputMeaning::kTokens) ++token_inputs;
      const bool is_made = input.meaning == InputMeaning::kTokens ||
                           input.meaning == InputMeaning::kSegments ||
                           input.meaning == InputMeaning::kMask;
      if (!is_made || input.element != Element::kInt64 || input.shape != inputs.front().shape) {
        return false;
      }
    }
    return token_inputs == 1 && labels != LabelMeaning::kOther && classes > 1;
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
