#pragma once
// Cells: what a MOVE action carries (state of layers, activations, cached features), and the places
// it goes between. The text form is in traces/action.h.

#include <cstdint>
#include <optional>
#include <utility>

#include "profiles/units.h"

namespace frazil {

enum class CellKind : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kActivation,
  kStash,
  kKeyValue,
  kFeatures,
  kInput
};

struct Place {
  enum class Kind : std::uint8_t { kDevice, kHost, kDisk };
  Kind kind = Kind::kHost;
  DeviceId device;  // of kDevice

  friend bool operator==(const Place&, const Place&) = default;
};

// What a MOVE carries, from where to where.
struct CellMove {
  CellKind cell = CellKind::kParameters;
  std::optional<std::pair<LayerId, LayerId>> layers;  // closed
  std::optional<std::int32_t> version;                // of the weights
  Place from;
  Place to;

  friend bool operator==(const CellMove&, const CellMove&) = default;
};

}  // namespace frazil
