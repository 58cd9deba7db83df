#pragma once
// Cells are what a MOVE action carries (state of layers, activations, a stash of saved activations,
// cached features); places are where it carries them from and to. The text form is in
// traces/action.h.

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
  DeviceId device;  // used by kDevice alone

  friend bool operator==(const Place&, const Place&) = default;
};

// The cell of a MOVE, and the places it goes between.
struct CellMove {
  CellKind cell = CellKind::kParameters;
  std::optional<std::pair<LayerId, LayerId>> layers;  // a closed interval
  std::optional<std::int32_t> version;                // version of the weights
  Place from;
  Place to;

  friend bool operator==(const CellMove&, const CellMove&) = default;
};

}  // namespace frazil
