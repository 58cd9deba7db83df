#pragma once
// Writes the cluster files that the tests hand to programs.

#include <filesystem>

#include "profiles/cluster_json.h"
#include "profiles/text_file.h"

namespace frazil {

// Throws InputError, and writes nothing, if the cluster is not valid.
inline void write_cluster(const Cluster& cluster, const std::filesystem::path& path) {
  validate(cluster, path.string());
  write_text_file(path, to_json(cluster));
}

}  // namespace frazil
