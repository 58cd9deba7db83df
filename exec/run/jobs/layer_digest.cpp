#include "exec/run/jobs/layer_digest.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {

std::vector<std::uint64_t> hash_by_layer(std::vector<LayerDigest> digests, std::size_t layers) {
  std::sort(digests.begin(), digests.end());
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (i > 0 && digests[i].layer == digests[i - 1].layer) {
      ENSURE(digests[i].hash == digests[i - 1].hash, "replicas hold the same bits");
      continue;
    }
    ENSURE(digests[i].layer.index() == hashes.size(), "every layer has a digest");
    hashes.push_back(digests[i].hash);
  }
  ENSURE(hashes.size() == layers, "every layer has a digest");
  return hashes;
}

}  // namespace frazil
