#include "exec/models/imported/imported_graph.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

[[noreturn]] void fail_size(std::int64_t samples) {
  throw InfeasibleError("a size that " + std::to_string(samples) +
                        " samples give the model is too large");
}

std::int64_t add(std::int64_t a, std::int64_t b, std::int64_t samples) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) fail_size(samples);
  return sum;
}

std::int64_t multiply(std::int64_t a, std::int64_t b, std::int64_t samples) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) fail_size(samples);
  return product;
}

std::int64_t divide_down(std::int64_t value, std::int64_t divisor) {
  const std::int64_t quotient = value / divisor;
  return value % divisor < 0 ? quotient - 1 : quotient;
}

}  // namespace

std::int64_t Polynomial::at(std::int64_t samples) const {
  switch (kind) {
    case Kind::kNumber:
      return number;
    case Kind::kSamples:
      return samples;
    case Kind::kSum: {
      std::int64_t sum = 0;
      for (const Polynomial& term : terms) sum = add(sum, term.at(samples), samples);
      return sum;
    }
    case Kind::kProduct: {
      std::int64_t product = 1;
      for (const Polynomial& term : terms) product = multiply(product, term.at(samples), samples);
      return product;
    }
    case Kind::kQuotient:
      return divide_down(terms.front().at(samples), number);
  }
  ENSURE(false, "a polynomial is of one of its kinds");
}

bool Polynomial::depends_on_samples() const {
  return kind == Kind::kSamples ||
         std::any_of(terms.begin(), terms.end(),
                     [](const Polynomial& term) { return term.depends_on_samples(); });
}

bool gives_same_bits(const Fingerprint& a, const Fingerprint& b) {
  return a.torch == b.torch && a.vendor == b.vendor && a.aten == b.aten && a.mkl == b.mkl &&
         a.threads == b.threads;
}

std::string place_of(const ImportedNode& node) {
  std::string place = node.op;
  if (!node.path.empty()) place += " of " + node.path;
  if (!node.source.empty()) place += " (" + node.source + ")";
  return place;
}

}  // namespace frazil
