// Plans four equal layers on two devices and prints the best step in nanoseconds.

#include <cstdio>

#include "planner/search/search.h"
#include "profiles/cluster.h"
#include "profiles/import/layer_csv.h"

int main() {
  const frazil::ImportedProfile import = frazil::parse_layer_csv(
      "name,forward_ms,backward_ms,activation_kB,parameter_kB\n"
      "a,1,2,0,1\nb,1,2,0,1\nc,1,2,0,1\nd,1,2,0,1\n",
      "layers.csv", {});
  const frazil::Cluster cluster = frazil::make_uniform_cluster(2, frazil::Bytes{1 << 30}, {});
  frazil::SearchOptions options;
  options.batch_size = 8;
  options.micro_batch_sizes = {1};
  options.mask = frazil::FreezeMask::all_active(static_cast<int>(import.profile.blocks.size()));
  const frazil::Ranking ranking = frazil::search_plans({import.profile, cluster}, options);
  const frazil::Candidate* const best = ranking.best();
  if (best == nullptr) return 1;
  std::printf("%lld\n", static_cast<long long>(best->makespan.count()));
  return 0;
}
