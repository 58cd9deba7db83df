#pragma once
// A folder in which runs are profiled, planned and trained by the programs on two devices, with
// batches of four micro-batches.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/program_folder.h"

namespace frazil {

class DistilledFolder : public testing::Test {
 protected:
  using Json = nlohmann::json;

  std::string path(const std::string& name) const { return folder_.path(name); }
  // Writes a run of 4 epochs over 96 samples; `more` are other keys.
  void write_run(const std::string& name, const Json& model,
                 const Json& more = Json::object()) const;
  // Leaves model.json and cluster.json.
  void profile(const std::string& run) const;
  Json answer(const std::string& verb, const std::string& flags) const;
  // Trains run.json on what profile() has left.
  Json train(const std::string& flags) const;
  // Writes plan.json: a pipeline for each list of first layers, whose stages lie on the devices
  // that follow one another; pipelines share the micro-batches.
  void write_plan(const std::vector<std::vector<int>>& pipelines, int steps_ahead = 0) const;
  // Expects equal bits of the tensors of two runs whose names begin so.
  void expect_equal(const std::string& a, const std::string& b, const std::string& prefix) const;

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

}  // namespace frazil
