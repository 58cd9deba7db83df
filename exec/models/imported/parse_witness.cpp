#include "exec/models/imported/parse_witness.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace frazil {
namespace {

constexpr std::int64_t kLargestCount = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kDigestDigits = 32;

WitnessGradient parse_gradient(const JsonCursor& at, const TensorHeader& tensors) {
  JsonFields fields(at);
  WitnessGradient seen;
  seen.parameter = fields.required("parameter").text();
  const JsonCursor digest = fields.required("digest");
  seen.digest = digest.text();
  if (seen.digest.size() != kDigestDigits) digest.fail(digest.describe(), "32 hex digits");
  seen.largest = fields.required("largest").real(0, std::numeric_limits<double>::max());
  seen.samples = find_tensor(fields.required("samples"), tensors).name;
  fields.finish();
  return seen;
}

WitnessCase parse_case(const JsonCursor& at, std::size_t inputs, const TensorHeader& tensors) {
  JsonFields fields(at);
  WitnessCase read;
  read.count = fields.required("n").integer(1, kLargestCount);
  read.seed = static_cast<std::uint64_t>(fields.required("seed").integer(0, kLargestCount));
  const JsonCursor given = fields.required("inputs");
  for (const JsonCursor& tensor : given.items()) {
    read.inputs.push_back(find_tensor(tensor, tensors).name);
  }
  if (read.inputs.size() != inputs) {
    given.fail(std::to_string(read.inputs.size()) + " tensors", "one for each input");
  }
  read.labels = find_tensor(fields.required("labels"), tensors).name;
  read.loss = find_tensor(fields.required("loss"), tensors).name;
  for (const JsonCursor& tensor : fields.required("outputs").items()) {
    read.outputs.push_back(find_tensor(tensor, tensors).name);
  }
  for (const JsonCursor& gradient : fields.required("gradients").items()) {
    read.gradients.push_back(parse_gradient(gradient, tensors));
  }
  fields.finish();
  return read;
}

Fingerprint parse_fingerprint(const JsonCursor& at) {
  JsonFields fields(at);
  Fingerprint read{.torch = fields.required("torch").text(),
                   .processor = fields.required("processor").text(),
                   .vendor = fields.required("vendor").text(),
                   .aten = fields.required("aten").text(),
                   .mkl = fields.required("mkl").text(),
                   .threads = fields.required("threads").integer(1, kLargestCount)};
  fields.finish();
  return read;
}

}  // namespace

const TensorEntry& find_tensor(const JsonCursor& name, const TensorHeader& tensors) {
  const TensorEntry* const entry = tensors.find(name.text());
  if (entry == nullptr) name.fail(name.describe(), "the name of a tensor of the file");
  return *entry;
}

Witness parse_witness(const JsonCursor& at, std::size_t inputs, const TensorHeader& tensors) {
  JsonFields fields(at);
  Witness witness;
  witness.fingerprint = parse_fingerprint(fields.required("fingerprint"));
  for (const JsonCursor& one : fields.required("cases").items()) {
    witness.cases.push_back(parse_case(one, inputs, tensors));
  }
  fields.finish();
  return witness;
}

}  // namespace frazil
