#pragma once
// Sailor's measured bandwidths: {"inter": {"GPU": {"4": [[c, ...], largest]}}, "intra": {...}}, by
// the number of GPUs of a node that send at once ("4"). The coefficients, highest power first, are
// of a polynomial in log2(message / 1 MB) that gives GB/s (10^6 and 10^9 bytes); `largest` is the
// most that was measured, in B/s.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct BandwidthFit {
  std::vector<double> coefficients;  // highest power first
  double largest = 0;                // bytes per second
  friend bool operator==(const BandwidthFit&, const BandwidthFit&) = default;
};

struct SailorLinks {
  // By the number of GPUs that send at once.
  std::map<int, BandwidthFit> between_nodes;
  std::map<int, BandwidthFit> within_node;
  friend bool operator==(const SailorLinks&, const SailorLinks&) = default;
};

// Of one kind of GPU. Throws InputError with file, line and path.
SailorLinks parse_sailor_links(std::string_view text, const std::string& file,
                               const std::string& gpu);

// Whole bytes per second, at most `largest`. Throws InputError where the polynomial has left its
// meaning: no message, or no bandwidth above zero.
BytesPerSecond bandwidth_at(const BandwidthFit& fit, Bytes message);

}  // namespace frazil
