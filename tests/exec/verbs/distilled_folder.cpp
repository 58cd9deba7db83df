#include "tests/exec/verbs/distilled_folder.h"

#include <ATen/ATen.h>

#include "exec/disk/tensor_file.h"

namespace frazil {

void DistilledFolder::write_run(const std::string& name, const Json& model,
                                const Json& more) const {
  Json run = {{"format", "frazil.run"},
              {"version", 1},
              {"model", model},
              {"data", {{"kind", "synthetic"}, {"train_samples", 96}, {"test_samples", 32}}},
              {"optimizer", {{"kind", "adamw"}, {"learning_rate", 0.01}}},
              {"epochs", 4},
              {"batch_size", 16},
              {"micro_batch_size", 4}};
  run.update(more);
  write_text_file(path(name), run.dump(1) + "\n");
}

void DistilledFolder::profile(const std::string& run) const {
  const Outcome outcome = folder_.run("profile", "--run " + run +
                                                     " --devices 2 --rounds 1 --steps 2 --quiet "
                                                     "--out model.json --cluster-out cluster.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

nlohmann::json DistilledFolder::answer(const std::string& verb, const std::string& flags) const {
  const Outcome outcome = folder_.run(verb, flags + " --quiet --json");
  EXPECT_EQ(outcome.code, 0) << verb << " " << flags << ": " << outcome.err;
  return outcome.code == 0 ? Json::parse(outcome.out) : Json();
}

nlohmann::json DistilledFolder::train(const std::string& flags) const {
  return answer("train", "--run run.json --profile model.json --cluster cluster.json " + flags);
}

void DistilledFolder::write_plan(const std::vector<std::vector<int>>& pipelines,
                                 int steps_ahead) const {
  const Outcome planned = folder_.run(
      "plan",
      "--profile model.json --cluster cluster.json --batch 16 --micro-batch 4 --out plan.json");
  ASSERT_EQ(planned.code, 0) << planned.err;
  const std::size_t layers = Json::parse(read_text_file(path("model.json"))).at("layers").size();
  Json plan = Json::parse(read_text_file(path("plan.json")));
  plan["pipelines"] = Json::array();
  const int each = 4 / static_cast<int>(pipelines.size());
  int device = 0;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    Json stages = Json::array();
    for (std::size_t s = 0; s < pipelines[p].size(); ++s) {
      const int end = s + 1 < pipelines[p].size() ? pipelines[p][s + 1] : static_cast<int>(layers);
      stages.push_back({{"layers", {{pipelines[p][s], end - 1}}}, {"devices", {device++}}});
    }
    const int first = static_cast<int>(p) * each;
    plan["pipelines"].push_back(
        {{"stages", stages}, {"micro_batches", {{first, first + each - 1}}}});
  }
  plan["schedule"] = {{"name", "gpipe"}};
  if (steps_ahead > 0) plan["steps_ahead"] = steps_ahead;
  write_text_file(path("plan.json"), plan.dump());
}

void DistilledFolder::expect_equal(const std::string& a, const std::string& b,
                                   const std::string& prefix) const {
  const TensorFile one(path(a + "/weights.safetensors"));
  const TensorFile other(path(b + "/weights.safetensors"));
  int compared = 0;
  for (const TensorEntry& entry : one.header().tensors) {
    if (!entry.name.starts_with(prefix)) continue;
    EXPECT_TRUE(at::equal(one.view(entry.name), other.view(entry.name))) << entry.name;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

}  // namespace frazil
