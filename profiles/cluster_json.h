#pragma once
// The cluster file: "format": "frazil.cluster", "version": 1; integers, units in key names
// (memory_limit_bytes, latency_ns, bandwidth_bytes_per_second). A device names its host; a link
// gives the indices of its devices. These keys may be left out: time_ppm (1000000), overheads (0),
// process (that of the host), default_link (costs nothing), latency_ns and
// bandwidth_bytes_per_second (0), link_classes and its classes, links, commit_round_ns, provenance.
// The readers throw InputError with file, line and path.

#include <filesystem>
#include <string>
#include <string_view>

#include "profiles/cluster.h"

namespace frazil {

Cluster parse_cluster(std::string_view text, const std::string& file);
std::string to_json(const Cluster& cluster);  // equal clusters give equal bytes; round trips

Cluster read_cluster(const std::filesystem::path& path);

}  // namespace frazil
