#include "tests/planner/support/linear_pipelines.h"

namespace frazil {
namespace {

using Times = std::vector<std::int64_t>;

LinearPipeline make_halved(const Times& f, const Times& i, const Times& w, std::int64_t hop,
                           int micro_batches, int in_flight) {
  LinearPipeline pipeline;
  for (std::size_t s = 0; s < f.size(); ++s) {
    pipeline.times.push_back({Duration{f[s]}, Duration{i[s]}, Duration{w[s]}});
  }
  pipeline.down.assign(f.size() - 1, Duration{hop});
  pipeline.up = pipeline.down;
  pipeline.micro_batches = micro_batches;
  pipeline.in_flight.assign(f.size(), in_flight);
  pipeline.release = ActivationRelease::kHalfAtInput;
  return pipeline;
}

}  // namespace

LinearPipeline draw_linear_pipeline(Random& random, int most_stages, int most_micro_batches) {
  LinearPipeline pipeline;
  const int stages = draw(random, 1, most_stages);
  const int least = draw(random, 0, 3) == 0 ? 0 : draw(random, 1, 20);
  const int most_hop = draw(random, 0, 2) * 15;
  for (int s = 0; s < stages; ++s) {
    const auto time = [&] { return Duration{draw(random, least, 30)}; };
    const Duration forward = time();
    const Duration input = time();
    pipeline.times.push_back({forward, input, time()});
    pipeline.in_flight.push_back(draw(random, 1, 2 * stages));
    if (s == 0) continue;
    pipeline.down.emplace_back(draw(random, 0, most_hop));
    pipeline.up.emplace_back(draw(random, 0, most_hop));
  }
  pipeline.micro_batches = draw(random, 1, most_micro_batches);
  if (draw(random, 0, 1) == 0) pipeline.release = ActivationRelease::kHalfAtInput;
  return pipeline;
}

LinearPipeline draw_equal_hops(Random& random, int most_stages, int most_micro_batches) {
  LinearPipeline pipeline = draw_linear_pipeline(random, most_stages, most_micro_batches);
  pipeline.in_flight.assign(pipeline.times.size(), pipeline.in_flight.front());
  const Duration hop = pipeline.down.empty() ? Duration{0} : pipeline.down.front();
  pipeline.down.assign(pipeline.down.size(), hop);
  pipeline.up = pipeline.down;
  return pipeline;
}

LinearPipeline draw_unequal_stages(std::uint64_t seed, StageTimes mean, Duration hop) {
  Random random(seed);
  Times f, i, w;
  const auto around = [&](Duration time) {
    return draw(random, time.count() * 7 / 10, time.count() * 13 / 10);
  };
  for (int s = 0; s < 8; ++s) {
    f.push_back(around(mean.forward));
    i.push_back(around(mean.backward_input));
    w.push_back(around(mean.backward_weight));
  }
  return make_halved(f, i, w, hop.count(), 16, 8);
}

std::vector<PublishedStages> published_stages() {
  const Times heavy_f{30715, 29233, 29106, 29078, 28850, 28919, 28924, 41678};
  const Times heavy_i{31308, 29344, 29357, 29455, 29217, 29384, 29354, 38731};
  const Times heavy_w{18746, 18789, 19062, 19367, 19455, 19967, 20096, 32833};
  const Times tiers{1000, 1000, 1000, 1000, 2000, 2000, 2000, 2000};
  const Times half_tiers{500, 500, 500, 500, 1000, 1000, 1000, 1000};
  const Times equal(8, 1000);
  const auto heavy = [&](int in_flight) {
    return make_halved(heavy_f, heavy_i, heavy_w, 473, 32, in_flight);
  };
  const auto slow_hops = [&](int in_flight) {
    return make_halved(equal, equal, equal, 500, 16, in_flight);
  };
  return {
      {"heavy last stage, K = 8", heavy(8), Duration{3623744}, Duration{3831880}},
      {"heavy last stage, K = 16", heavy(16), Duration{3623744}, Duration{3831880}},
      {"two tiers, fast first", make_halved(tiers, tiers, half_tiers, 31, 16, 8), Duration{85934},
       Duration{90217}},
      {"hops of half an F, K = 8", slow_hops(8), Duration{69000}, Duration{69000}},
      {"hops of half an F, K = 16", slow_hops(16), Duration{54000}, Duration{58500}},
  };
}

OrderProblem problem_of(const LinearPipeline& pipeline) {
  OrderProblem problem;
  problem.devices = static_cast<int>(pipeline.times.size());
  problem.micro_batches = pipeline.micro_batches;
  problem.times = pipeline.times;
  problem.in_flight = pipeline.in_flight.front();
  if (!pipeline.down.empty()) problem.hop = pipeline.down.front();
  return problem;
}

}  // namespace frazil
