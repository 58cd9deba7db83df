#pragma once
// Where PipeDream's partition may cut a model, and what it asks of each place. A boundary is an
// ideal of the layers; those that are no better than another of equal compute and parameters are
// left out.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/partition/ideals.h"
#include "profiles/model_profile.h"

namespace frazil {

struct Boundary {
  std::vector<bool> layers;     // before it
  std::int64_t compute = 0;     // ns of F, I and W of these
  std::int64_t parameters = 0;  // bytes
  // Bytes of activation as PipeDream's antichains have it: of the last layers before the boundary
  // (nothing within reads them), and of what comes before one of them and has a reader that does
  // not, beyond the boundary or within. Each layer once, by the largest of what its readers take.
  // Layers without compute and parameters: as its optimizer does, none that nobody reads and that
  // has no loss, and nothing of one that reads nothing (an input).
  std::int64_t crossing = 0;
};

struct Boundaries {
  IdealLattice lattice;
  std::vector<Boundary> list;  // by ideal
};

// None when there are more than `most`; with `near_order` only those that are beginnings of the
// layers' order.
std::optional<Boundaries> list_boundaries(const ModelProfile& profile, int micro_batch_size,
                                          std::size_t most, bool near_order = false);

}  // namespace frazil
