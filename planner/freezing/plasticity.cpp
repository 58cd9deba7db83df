#include "planner/freezing/plasticity.h"

#include <cmath>

#include "profiles/error.h"

namespace frazil {

std::vector<double> make_sketch(std::span<const double> outputs, std::size_t samples) {
  ENSURE(samples > 0 && outputs.size() % samples == 0, "as many features for every sample");
  const std::size_t features = outputs.size() / samples;
  std::vector<double> gram(samples * samples);
  for (std::size_t row = 0; row < samples; ++row) {
    double squares = 0;
    for (std::size_t column = 0; column < samples; ++column) {
      double product = 0;
      for (std::size_t f = 0; f < features; ++f) {
        product += outputs[row * features + f] * outputs[column * features + f];
      }
      gram[row * samples + column] = product;
      squares += product * product;
    }
    if (squares == 0) continue;
    for (std::size_t column = 0; column < samples; ++column) {
      gram[row * samples + column] /= std::sqrt(squares);
    }
  }
  return gram;
}

double plasticity(std::span<const double> now, std::span<const double> then) {
  ENSURE(now.size() == then.size() && !now.empty(), "two sketches of the same samples");
  double squares = 0;
  for (std::size_t i = 0; i < now.size(); ++i) squares += (now[i] - then[i]) * (now[i] - then[i]);
  return squares / static_cast<double>(now.size());
}

}  // namespace frazil
