#include "exec/run/gradient_watch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "exec/tensors/finite.h"

namespace frazil {

void GradientWatch::begin() {
  non_finite_.reset();
  magnitudes_.clear();
}

void GradientWatch::note(LayerId layer) {
  non_finite_ = std::max(layer, non_finite_.value_or(layer));
}

void GradientWatch::look(LayerId layer, const Tensors& gradients, UnreadNumbers* unread) {
  for (const at::Tensor& gradient : gradients) {
    if (unread != nullptr) {
      unread->add(largest_magnitude(gradient), [this, layer](double magnitude) {
        if (!std::isfinite(magnitude)) note(layer);
      });
    } else if (!gradient.is_cpu()) {
      magnitudes_.emplace_back(layer, largest_magnitude(gradient));
    } else if (!is_finite(gradient)) {
      return note(layer);
    }
  }
}

void GradientWatch::settle() {
  if (magnitudes_.empty()) return;
  Tensors all;
  for (const auto& [layer, magnitude] : magnitudes_) all.push_back(magnitude);
  const at::Tensor here = at::stack(all).cpu();
  const float* const values = here.const_data_ptr<float>();
  for (std::size_t i = 0; i < magnitudes_.size(); ++i) {
    if (!std::isfinite(values[i])) note(magnitudes_[i].first);
  }
  magnitudes_.clear();
}

}  // namespace frazil
