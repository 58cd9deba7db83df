#pragma once
// Sailor's measured bandwidths: {"inter": {"GPU": {"4": [[c, ...], largest]}}, "intra": {...}}, by
// the number of GPUs of a node that send at once ("4"). The coefficients, highest power first, make
// a polynomial in log2(message / 1 MB) that gives GB/s (1 MB is 10^6 and 1 GB 10^9 bytes).
// `largest` is the largest measured bandwidth in B/s.

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
  // Both maps are by the number of GPUs of a node that send at once.
  std::map<int, BandwidthFit> between_nodes;
  std::map<int, BandwidthFit> within_node;
  friend bool operator==(const SailorLinks&, const SailorLinks&) = default;
};

// Reads the fits of one kind of GPU and passes over other kinds. Throws InputError with file, line
// and path, also if "inter" or "intra" has no such GPU.
SailorLinks parse_sailor_links(std::string_view text, const std::string& file,
                               const std::string& gpu);

// Returns the bandwidth for a message, rounded to the nearest whole B/s; `largest` bounds it before
// the rounding. Throws InputError (without a file) for a message below 1 byte, and where the
// polynomial gives less than 1 B/s. A message beyond the measured sizes is not refused.
BytesPerSecond bandwidth_at(const BandwidthFit& fit, Bytes message);

}  // namespace frazil
