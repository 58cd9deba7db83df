#pragma once
// The small transformer with one fault in the middle of its third step, in a layer of the second of
// two stages. When the run has ended, every tensor, thread and file must be gone, above all the
// tensors that its layers have met.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "exec/models/model.h"

namespace frazil {

inline constexpr Step kFailingStep = 2;
inline constexpr int kFailingMicroBatch = 1;
inline constexpr std::size_t kFailingLayer = 5;

// Sees tensors without keeping them.
class MetTensors {
 public:
  void add(const Tensors& tensors);
  std::size_t count() const { return met_.size(); }
  bool all_gone() const;

 private:
  std::mutex mutex_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> met_;
};

enum class FaultPlace {
  kForward,
  kLoss,
  kBackward,        // B, or I where a stage splits its backward
  kBackwardWeight,  // W
  kRecompute,       // R
  // Nothing is called here. The layer's W, which nobody looks at, hands out a gradient that the
  // place cannot add up or apply: one that lacks a row, one of another type.
  kReduction,
  kUpdate,
};

// Calls `fault` at `place`. `met` must outlive the model.
ModelSpec make_failing(FaultPlace place, const std::function<void()>& fault, MetTensors& met);

// Notes what a process has before a run that fails; afterwards the process must have that and no
// more.
class Surroundings {
 public:
  Surroundings();
  // Waits for threads to go, and says what there is more or less of than before; "" if nothing.
  std::string change() const;

 private:
  std::ptrdiff_t threads_;
  std::ptrdiff_t files_;
  std::int64_t allocations_;  // of tensors, whoever holds them
};

}  // namespace frazil
