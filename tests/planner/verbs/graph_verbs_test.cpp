// Tests `frazil plan --graph` and `frazil import` of layer files as processes.

#include <gtest/gtest.h>

#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostOfGraph = 1'000'000'000'000'000;

const std::string kGraph = R"({"maxSizePerFPGA": 1000, "maxFPGAs": 3, "maxCPUs": 0, "nodes": [
  {"id": 10, "name": "first", "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 5, "isBackwardNode": 0, "size": 600},
  {"id": 20, "name": "second", "supportedOnFpga": 1, "cpuLatency": 40, "fpgaLatency": 4, "isBackwardNode": 0, "size": 300},
  {"id": 30, "name": "third", "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1, "isBackwardNode": 0, "size": 100}],
 "edges": [
  {"sourceId": 10, "destId": 20, "cost": 0.25},
  {"sourceId": 20, "destId": 30, "cost": 2}]})";

const std::string kPipedream =
    "b -- ReLU -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=8.0, "
    "parameter_size=0.000\n"
    "a -- Input -- forward_compute_time=9.000, backward_compute_time=0.000, activation_size=8.0, "
    "parameter_size=0.000\n"
    "\ta -- b\n";

class GraphVerbs : public testing::Test {
 protected:
  void SetUp() override {
    write_text_file(folder_.path("graph.json"), kGraph);
    write_text_file(folder_.path("graph.txt"), kPipedream);
    write_text_file(folder_.path("layers.csv"),
                    "name,forward_ms,backward_ms,activation_bytes\na,1,2,3\nb,1,2,3\n");
  }

  void expect_refusal(const std::string& verb, const std::string& arguments, int code,
                      const std::string& sentence) const {
    SCOPED_TRACE(arguments);
    const Outcome outcome = folder_.run(verb, arguments);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "frazil " + verb + ": " + sentence + "\n");
    EXPECT_EQ(folder_.count_files(), 3U);
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(GraphVerbs, PlanPrintsLoadsCertificateAndIdleDevices) {
  const Outcome outcome = folder_.run("plan", "--graph graph.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "graph.json: 3 nodes, 2 edges, 3 parts that must stay whole, 4 ideals\n"
            "largest load 5.250000 ms, optimal\n"
            "\n"
            "on          nodes               load               work           transfer       "
            "memory  first node\n"
            "device 0        1        5.250000 ms        5.000000 ms        0.250000 ms        "
            "600 B  first\n"
            "device 1        2        5.250000 ms        5.000000 ms        0.250000 ms        "
            "400 B  second\n"
            "device 2   idle: the most loaded device holds one part, which must stay whole\n");
}

TEST_F(GraphVerbs, PlanSaysThatTheHostHoldsWhatNoDeviceHasTheMemoryFor) {
  std::string graph = kGraph;
  graph.replace(graph.find("1000"), 4, "50");
  graph.replace(graph.find("\"maxCPUs\": 0"), 12, "\"maxCPUs\": 1");
  write_text_file(folder_.path("graph.json"), graph);
  const Outcome outcome = folder_.run("plan", "--graph graph.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("host 0"), std::string::npos) << outcome.out;
  EXPECT_NE(
      outcome.out.find("idle: no device has the memory for any of the parts that the host holds\n"),
      std::string::npos)
      << outcome.out;
}

TEST_F(GraphVerbs, PlanAnswersAGraphInJson) {
  const Outcome outcome = folder_.run("plan", "--graph graph.json --devices 1 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("load_fs").integer(0, kMostOfGraph), 10'000'000'000'000);
  EXPECT_EQ(answer.required("lower_bound_fs").integer(0, kMostOfGraph), 10'000'000'000'000);
  EXPECT_EQ(answer.required("certificate").text(), "optimal");
  EXPECT_EQ(answer.required("idle_devices").integer(0, kMostOfGraph), 0);
  const auto stages = answer.required("stages").items();
  ASSERT_EQ(stages.size(), 1);
  JsonFields stage(stages[0]);
  EXPECT_EQ(stage.required("on").text(), "device");
  EXPECT_EQ(stage.required("memory_bytes").integer(0, kMostOfGraph), 1'000);
  EXPECT_EQ(stage.required("node_ids").items()[2].integer(0, 99), 30);
  EXPECT_EQ(folder_.run("plan", "--graph graph.json --devices 1 --json").out, outcome.out);
}

TEST_F(GraphVerbs, PlanSaysWhatItCouldNotProve) {
  const Outcome outcome = folder_.run("plan", "--graph graph.json --devices 2 --states 4");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("largest load 10.000000 ms, at most 90.4762 % above the optimum: no "
                             "split is below 5.250000 ms\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("idle: no better split was found within the states allowed\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(GraphVerbs, PlanRefusesBadGraphsAndFlags) {
  expect_refusal("plan", "--graph missing.json", 2,
                 "missing.json: found no such file, expected a readable file");
  expect_refusal("plan", "--graph graph.txt", 2, "graph.txt:1: found `b`, expected a JSON value");
  expect_refusal("plan", "--graph graph.json --cluster c.json", 2,
                 "command line: found --cluster with --graph, expected one or the other");
  for (const char* flag :
       {"--effort 5", "--budget 5", "--cache", "--explain", "--held plan.json"}) {
    const std::string all = flag;
    const std::string name = all.substr(0, all.find(' '));
    expect_refusal("plan", "--graph graph.json " + all, 2,
                   "command line: found " + name + " with --graph, expected one or the other");
  }
  expect_refusal("plan", "--graph graph.json --devices 0", 2,
                 "command line: found --devices 0, expected an integer from 1 to 1000000");
  expect_refusal("plan", "--devices 3", 2,
                 "command line: found --devices with --profile, expected one or the other");
}

TEST_F(GraphVerbs, ImportTakesPipedreamsGraphs) {
  const Outcome outcome =
      folder_.run("import", "pipedream graph.txt --out model.json --model small");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1 layer, 0 edges, micro-batch size 1\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("data loading: 9.000 ms\n"), std::string::npos) << outcome.out;
  const ModelProfile profile = read_model_profile(folder_.path("model.json"));
  EXPECT_EQ(profile.model, "small");
  EXPECT_EQ(profile.layers.front().costs.front().backward_input, std::chrono::milliseconds(2));
}

TEST_F(GraphVerbs, ImportTakesTablesOfLayers) {
  const Outcome outcome =
      folder_.run("import", "csv layers.csv --out model.json --micro-batch-size 3 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("layers").items().size(), 2U);
  const ModelProfile profile = read_model_profile(folder_.path("model.json"));
  EXPECT_EQ(profile.edges.front().bytes(3), Bytes{3});
}

TEST_F(GraphVerbs, ImportRefusesBadLayerFilesAndWritesNothing) {
  expect_refusal(
      "import", "pipedream layers.csv --out m.json", 2,
      "layers.csv:1: found `name,forward_ms,backward_ms,activation_b...`, expected `node "
      "-- description -- forward_compute_time=ms, backward_compute_time=ms, "
      "activation_size=bytes, parameter_size=bytes`");
  expect_refusal("import", "pipedream graph.txt --out graph.txt", 2,
                 "command line: found --out graph.txt for the file of the layers, expected another "
                 "file");
  expect_refusal("import", "csv layers.csv graph.txt --out m.json", 2,
                 "command line: found 2 files, expected one");
  expect_refusal("import", "csv layers.csv", 2,
                 "command line: found no --out, expected it to be given");
  expect_refusal("import", "csv layers.csv --out m.json --micro-batches 2", 2,
                 "command line: found --micro-batches with import csv, expected one or the other");
}

}  // namespace
}  // namespace frazil
