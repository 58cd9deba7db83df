#include "planner/reproduce/pipetransformer_tables.h"

#include <fmt/format.h>

#include "planner/named/pipe_transformer.h"
#include "planner/reproduce/pipetransformer_runs.h"
#include "planner/reproduce/rtx5000.h"

namespace frazil {
namespace {

constexpr double kPlottedBaseline = 350;  // samples/s, read off Fig. 9

// A plan of ViT-B/16 on two hosts.
struct VitPlan {
  int length = 8;
  int pipelines_per_host = 1;
  int frozen = 0;
  bool cached = false;
  int pipeline_batch = 400;
  int micro_batches = 16;
  int devices_per_host = 8;
};

double simulate_throughput(const VitPlan& plan) {
  const ModelProfile profile = make_rtx5000_vision(vit_b16(1000));
  const EpochModel model = make_epoch_model(
      profile, plan.frozen, plan.cached ? std::optional<int>(plan.frozen) : std::nullopt);
  const int batch_size = 2 * plan.pipelines_per_host * plan.pipeline_batch;
  const PipeTransformerShape shape{.length = plan.length,
                                   .pipelines_per_host = plan.pipelines_per_host,
                                   .batch_size = batch_size,
                                   .micro_batches = plan.micro_batches,
                                   .mask = model.mask};
  const Duration step = simulate_shape(model, shape, plan.devices_per_host).time;
  return batch_size * 1e9 / static_cast<double>(step.count());
}

// Returns a plan that runs forward alone on one device per host: all layers are frozen, and the
// head that still trains costs next to nothing.
VitPlan forward_only(int samples) {
  return {.length = 1,
          .frozen = kVitLayers,
          .pipeline_batch = samples,
          .micro_batches = 1,
          .devices_per_host = 1};
}

std::vector<ResultRow> list_cached_throughputs() {
  const std::string bound = "from a cache inside the process, before the released one";
  return {
      {"K 4, R 4, L_f 8, batch 320, cached", 1768,
       simulate_throughput({.length = 4,
                            .pipelines_per_host = 2,
                            .frozen = 8,
                            .cached = true,
                            .pipeline_batch = 320}),
       RowRole::kUpperBound, bound},
      {"K 2, R 8, L_f 10, batch 320, cached", 3936,
       simulate_throughput({.length = 2,
                            .pipelines_per_host = 4,
                            .frozen = 10,
                            .cached = true,
                            .pipeline_batch = 320}),
       RowRole::kUpperBound, bound},
      {"K 1, R 16, L_f 12, batch 320, cached", 16200,
       simulate_throughput({.length = 1,
                            .pipelines_per_host = 8,
                            .frozen = 12,
                            .cached = true,
                            .pipeline_batch = 320,
                            .micro_batches = 4}),
       RowRole::kUpperBound, bound},
  };
}

// Lists plans from the authors' notes.
std::vector<ResultRow> list_other_throughputs() {
  return {
      // The notes record batch 320 and 240, and that no more than 60 samples fit a device. So these
      // batches are those of both pipelines together.
      {"K 4, R 2 on 2 x 4, batch 160, 8 micro-batches", 326,
       simulate_throughput(
           {.length = 4, .pipeline_batch = 160, .micro_batches = 8, .devices_per_host = 4}),
       RowRole::kPrediction,
       "41 per device is more than 8 micro-batches in 4 stages (8/11) leave of the 52 above"},
      {"data parallel, 64 samples on each of 2 x 3", 260,
       simulate_throughput({.length = 1,
                            .pipelines_per_host = 3,
                            .pipeline_batch = 64,
                            .micro_batches = 1,
                            .devices_per_host = 3}),
       RowRole::kPrediction,
       "43 per device, where 2 x 4 devices with smaller batches have 52: a setting that is not "
       "recorded"},
      {"K 3, R 2 on 2 x 3, batch 120, 4 micro-batches", 294,
       simulate_throughput(
           {.length = 3, .pipeline_batch = 120, .micro_batches = 4, .devices_per_host = 3}),
       RowRole::kPrediction,
       "49 per device, more than the data parallelism of the row above: no bubble allows that"},
  };
}

}  // namespace

ResultTable reproduce_throughputs() {
  using Role = RowRole;
  const auto rate = [](const VitPlan& plan) { return simulate_throughput(plan); };
  ResultTable table{.title = "Throughput of single plans", .unit = "samples/s", .bar = 0.10};
  table.rows = {
      {"forward only, 64 samples, 2 devices", 2 * 64 / 0.471, rate(forward_only(64)),
       Role::kCalibration},
      {"forward only, 320 samples, 2 devices", 2 * 320 / 2.313, rate(forward_only(320)),
       Role::kCalibration},
      {"data parallel, 60 samples on each of 2 x 4", 416,
       rate({.length = 1,
             .pipelines_per_host = 4,
             .pipeline_batch = 60,
             .micro_batches = 1,
             .devices_per_host = 4}),
       Role::kCalibration},
      {"K 8, R 2, L_f 0, batch 400", 411, rate({})},
      {"K 8, R 2, L_f 0, batch 320", 437, rate({.pipeline_batch = 320})},
      {"K 4, R 4, L_f 6, batch 400, cache filled", 564,
       rate({.length = 4, .pipelines_per_host = 2, .frozen = 6})},
      {"K 4, R 4, L_f 6, batch 320, cache filled", 597,
       rate({.length = 4, .pipelines_per_host = 2, .frozen = 6, .pipeline_batch = 320})},
      {"K 2, R 8, L_f 10, batch 320, cache filled", 1056,
       rate({.length = 2, .pipelines_per_host = 4, .frozen = 10, .pipeline_batch = 320})},
      {"K 1, R 16, L_f 12, batch 320, cache filled", 2304,
       rate({.length = 1,
             .pipelines_per_host = 8,
             .frozen = 12,
             .pipeline_batch = 320,
             .micro_batches = 4})},
  };
  for (const auto& more : {list_cached_throughputs(), list_other_throughputs()}) {
    table.rows.insert(table.rows.end(), more.begin(), more.end());
  }
  return table;
}

ResultTable reproduce_ablation() {
  const Training training = imagenet_training();
  const auto frozen = freeze_schedule(kVitLayers, kPublishedAlpha, kPublishedEpochs);
  const auto base = simulate_baseline(training, kPublishedEpochs);
  const auto ratio = [&](const ElasticParts& parts) {
    return speed_up(base, simulate_run(training, frozen, parts), training.samples);
  };
  // Returns why a ratio to the simulated baseline is below one to the plotted baseline.
  const auto over_plot = [&](const ElasticParts& parts) {
    return fmt::format(
        "the plot's baseline has {} samples/s where the log of the same plan has 411; over {} this "
        "run is {:.2f}",
        kPlottedBaseline, kPlottedBaseline, ratio(parts) * base.front().rate() / kPlottedBaseline);
  };
  ResultTable table{.title = "Fig. 9: what each part adds, ViT-B/16 on ImageNet, alpha 1/3",
                    .unit = "speed-up over GPipe K 8, R 2",
                    .bar = 0.15};
  table.rows = {
      {"freeze only", 0.95, ratio(kFreezingAlone), RowRole::kPrediction,
       "it does strictly less than its baseline; no cause was published, and the released code "
       "cannot run it"},
      {"AutoPipe + AutoCache", 1.26, ratio(kWithoutReplicas), RowRole::kPrediction,
       over_plot(kWithoutReplicas)},
      {"AutoPipe + AutoDP", 2.27, ratio(kWithoutCache)},
      {"all", 2.83, ratio(kAllParts), RowRole::kPrediction, over_plot(kAllParts)},
  };
  return table;
}

ResultTable reproduce_whole_runs() {
  const Training training = cifar_training(10);
  const std::vector<int> by_hand{0, 6, 6, 8, 8, 8, 10, 10, 12, 12};
  const auto minutes = [](double ns) { return ns / 60e9; };
  const double base = wall_clock(simulate_baseline(training, kPublishedEpochs), training.samples);
  const double run = wall_clock(simulate_run(training, by_hand, kAllParts), training.samples);
  const double of_a_host =
      simulate_throughput({.length = 4, .pipeline_batch = 320, .devices_per_host = 4}) / 2;
  const std::string reason = "evaluating after each epoch is left out";
  ResultTable table{
      .title = "Ten epochs of CIFAR-10, transitions charged", .unit = "minutes", .bar = 0.10};
  table.rows = {
      {"K 8, R 2, no freezing", 24, minutes(base), RowRole::kPrediction, reason},
      {"frozen by hand, all parts", 10, minutes(run)},
      {"K 4 on one host of 4, no freezing", 56,
       minutes(static_cast<double>(kPublishedEpochs * training.samples) / of_a_host * 1e9)},
  };
  return table;
}

ResultTable reproduce_headline() {
  const Training imagenet = imagenet_training();
  const Training cifar100 = cifar_training(100);
  ResultTable table{.title = "Table 1, transitions charged", .unit = "speed-up"};
  table.rows = {
      {"ImageNet, ViT-B/16, alpha 1/3", 2.83,
       wall_clock_speed_up(imagenet,
                           freeze_schedule(kVitLayers, kPublishedAlpha, kPublishedEpochs)),
       RowRole::kPrediction, "as the bar `all` of Fig. 9 above"},
      {"CIFAR-100, ViT-B/16, alpha 1/4", 2.44,
       wall_clock_speed_up(cifar100, freeze_schedule(kVitLayers, 1.0 / 4, kPublishedEpochs)),
       RowRole::kPrediction, "the times in the same row of the table give 2.83: it mixes runs"},
      {"SQuAD 1.1, BERT-large, alpha 1/3, 3 epochs", 2.10,
       wall_clock_speed_up(squad_training(), freeze_schedule(bert_large().transformer.layers,
                                                             kPublishedAlpha, kSquadEpochs)),
       RowRole::kPrediction,
       "epoch 0 is as long as the baseline's, so 2.10 asks for 4.7 times its speed in the other "
       "two, of which the first still has K 8"},
  };
  return table;
}

ResultTable reproduce_micro_batches() {
  ResultTable table{.title = "Fig. 11: micro-batches of a pipeline, K 8, R 2, batch 400",
                    .unit = "samples/s"};
  int times = 1;
  for (const double published : {368, 410, 386, 340, 298, 286}) {
    table.rows.push_back({fmt::format("{} K", times), published,
                          simulate_throughput({.micro_batches = 8 * times}),
                          times == 6 ? RowRole::kCalibration : RowRole::kPrediction});
    ++times;
  }
  return table;
}

std::vector<ResultTable> reproduce_pipetransformer_tables() {
  std::vector<ResultTable> tables{reproduce_throughputs(), reproduce_ablation()};
  for (ResultTable& table : reproduce_epochs()) tables.push_back(std::move(table));
  tables.push_back(reproduce_whole_runs());
  tables.push_back(reproduce_headline());
  tables.push_back(reproduce_alpha_sweep());
  tables.push_back(reproduce_micro_batches());
  tables.push_back(reproduce_cache_crossover());
  return tables;
}

}  // namespace frazil
