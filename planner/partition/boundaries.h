#pragma once
// Lists the places where PipeDream's partition may cut a model, and what it asks of each place. A
// boundary is an ideal of the layers; boundaries that are no better than another one of equal
// compute and parameters are left out.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/partition/ideals.h"
#include "profiles/model_profile.h"

namespace frazil {

struct Boundary {
  std::vector<bool> layers;     // before it
  std::int64_t compute = 0;     // ns of F, I and W of these layers
  std::int64_t parameters = 0;  // bytes
  // Bytes of activation as PipeDream's antichains count them. They count the last layers before the
  // boundary (no layer within reads them), and each layer that comes before such a last layer and
  // has a reader that does not, beyond the boundary or within. Each layer counts once, by the
  // largest of what its readers take. As in PipeDream's optimizer, layers without compute and
  // parameters do not count if nobody reads them and they have no loss, and count nothing if they
  // read nothing (an input).
  std::int64_t crossing = 0;
};

struct Boundaries {
  IdealLattice lattice;
  std::vector<Boundary> list;  // by ideal
};

// Lists the boundaries; none if there are more than `most`. With `near_order` only those are listed
// that are beginnings of the layers' order.
std::optional<Boundaries> list_boundaries(const ModelProfile& profile, int micro_batch_size,
                                          std::size_t most, bool near_order = false);

}  // namespace frazil
