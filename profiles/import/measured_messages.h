#pragma once
// Reads what messages and all-reduces between two devices took, by size, and makes a link of it.
// The file has a JSON object a line, as tests/gpu/run.sh writes it of NCCL (nccl.jsonl):
//   {"part":"p2p","bytes":1024,"one_way_us":5.2,...}
//   {"part":"all_reduce","bytes":1024,"us":11.8,...}
// Lines of other parts, and other members, are left out.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/cluster.h"

namespace frazil {

struct SizedTime {
  std::int64_t bytes = 0;
  Duration time{0};
};

struct MeasuredMessages {
  std::vector<SizedTime> messages;     // one way
  std::vector<SizedTime> all_reduces;  // of two devices
};

// Throws InputError with the line: no JSON object, a size or a time out of range; and for fewer
// than two sizes of messages.
MeasuredMessages parse_measured_messages(std::string_view text, const std::string& file);
MeasuredMessages read_measured_messages(const std::filesystem::path& path);

struct FittedLink {
  Link link;
  double worst_error = 0;  // of a message: the largest share by which the link's time is off
};

// Returns the link whose times, latency + bytes / bandwidth, have the least sum of squares of
// relative errors. A latency that would be below 0 is 0; a bandwidth that no message shows is
// unlimited. Requires: at least two sizes.
FittedLink fit_link(const std::vector<SizedTime>& messages);

// Returns what the link makes of an all-reduce of two devices: two steps of half the bytes.
Duration price_pair_reduce(const Link& link, std::int64_t bytes);

}  // namespace frazil
