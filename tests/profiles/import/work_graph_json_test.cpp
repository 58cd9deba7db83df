#include "profiles/import/work_graph_json.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/profiles/refusals.h"
#include "tests/support/public_data.h"

namespace frazil {
namespace {

const std::string kGraph = R"({"maxSizePerFPGA": 1000.75, "maxFPGAs": 2, "maxCPUs": 1,
 "nodes": [
  {"id": 7, "name": "a", "supportedOnFpga": 1, "cpuLatency": 6.959999999999999, "fpgaLatency": 0.696, "isBackwardNode": 0, "colorClass": 3, "size": 100.0},
  {"id": 3, "supportedOnFpga": true, "cpuLatency": 0, "fpgaLatency": 2, "isBackwardNode": false, "size": 0.125, "layerId": 9},
  {"id": -1, "supportedOnFpga": 0, "cpuLatency": 1e-3, "fpgaLatency": 0.0, "isBackwardNode": 1, "colorClass": 3, "size": 8}],
 "edges": [
  {"sourceId": 7, "destId": 3, "cost": 5.820766091346741e-08, "size": 0.125},
  {"sourceId": 7, "destId": -1, "cost": 5.820766091346741e-08},
  {"sourceId": 3, "destId": -1, "cost": 0.25}]})";

TEST(WorkGraphJson, ReadsDecimalsAsIntegers) {
  const WorkGraph graph = parse_work_graph(kGraph, "graph.json");
  EXPECT_EQ(graph.devices, 2);
  EXPECT_EQ(graph.hosts, 1);
  EXPECT_EQ(graph.device_memory, Bytes{1000});
  ASSERT_EQ(graph.nodes.size(), 3);
  EXPECT_EQ(graph.nodes[0].name, "a");
  EXPECT_EQ(graph.nodes[0].load, WorkTime{696'000'000'000});
  EXPECT_EQ(graph.nodes[0].host_load, WorkTime{6'960'000'000'000});
  EXPECT_EQ(graph.nodes[0].colour, 3);
  EXPECT_EQ(graph.nodes[1].name, "3");
  EXPECT_EQ(graph.nodes[1].colour, std::nullopt);
  EXPECT_EQ(graph.nodes[1].memory, Bytes{1});
  EXPECT_EQ(graph.nodes[1].load, WorkTime{2'000'000'000'000});
  EXPECT_TRUE(graph.nodes[2].is_backward);
  EXPECT_FALSE(graph.nodes[2].runs_on_device);
  EXPECT_EQ(graph.nodes[2].host_load, WorkTime{1'000'000'000});
  EXPECT_EQ(graph.edges[0], (WorkEdge{0, 1, WorkTime{58'208}}));
  EXPECT_EQ(graph.edges[2], (WorkEdge{1, 2, WorkTime{250'000'000'000}}));
}

TEST(WorkGraphJson, RefusesHostileGraphsInOneSentence) {
  const std::string ms = "ms from 0 to 9007";
  const std::vector<Refusal> refusals = {
      {"empty", "", 1, "no text", "a JSON value"},
      {"cut", kGraph.substr(0, kGraph.size() - 1), 9, "unexpected end of the text",
       "a complete JSON value"},
      {"an array", "[]", 1, "an array at $", "an object"},
      {"no nodes", with(kGraph, "\"nodes\"", "\"nodez\""), 1, "an object without \"nodes\" at $",
       "the key \"nodes\"; did you mean it by \"nodez\"?"},
      {"no node",
       "{\"maxSizePerFPGA\": 1, \"maxFPGAs\": 2, \"maxCPUs\": 1, \"nodes\": [],\n"
       "\"edges\": []}",
       1, "no node at $.nodes", "at least one"},
      {"key again", with(kGraph, "\"maxCPUs\"", "\"maxFPGAs\""), 1, "the key \"maxFPGAs\" again",
       "it once (first on line 1)"},
      {"half a device", with(kGraph, "\"maxFPGAs\": 2", "\"maxFPGAs\": 2.5"), 1,
       "`2.5` at $.maxFPGAs", "an integer from 0 to 1000000"},
      {"negative limit", with(kGraph, "1000.75", "-1000"), 1, "`-1000` at $.maxSizePerFPGA",
       "bytes from 0 to 9007199254740992"},
      {"limit as text", with(kGraph, "1000.75", "\"1 GB\""), 1, "`\"1 GB\"` at $.maxSizePerFPGA",
       "a number"},
      {"negative latency", with(kGraph, "0.696", "-0.696"), 3, "`-0.696` at $.nodes[0].fpgaLatency",
       ms},
      {"NaN", with(kGraph, "0.696", "NaN"), 3, "`NaN`", "a JSON value"},
      {"endless", with(kGraph, "0.696", "1e300"), 3, "`1e300` at $.nodes[0].fpgaLatency", ms},
      {"latency as text", with(kGraph, "0.696", "\"0.696\""), 3,
       "`\"0.696\"` at $.nodes[0].fpgaLatency", "a number"},
      {"no latency", with(kGraph, "\"fpgaLatency\": 0.696, ", ""), 3,
       "an object without \"fpgaLatency\" at $.nodes[0]", "the key \"fpgaLatency\""},
      {"flag that is none", with(kGraph, "\"isBackwardNode\": 0", "\"isBackwardNode\": 2"), 3,
       "`2` at $.nodes[0].isBackwardNode", "an integer from 0 to 1"},
      {"id again", with(kGraph, "\"id\": 3", "\"id\": 7"), 4, "`7` again at $.nodes[1].id",
       "ids that differ"},
      {"id as text", with(kGraph, "\"id\": 3", "\"id\": \"3\""), 4, "`\"3\"` at $.nodes[1].id",
       "an integer from -9007199254740992 to 9007199254740992"},
      {"edge to nowhere", with(kGraph, "\"destId\": 3", "\"destId\": 4"), 7,
       "`4` at $.edges[0].destId", "the id of a node"},
      {"edge to itself", with(kGraph, "\"destId\": 3", "\"destId\": 7"), 7,
       "a node that reads itself at $.edges[0].destId", "no cycle"},
      {"edge again", with(kGraph, "\"sourceId\": 3", "\"sourceId\": 7"), 9,
       "an edge again at $.edges[2]", "each edge once"},
      {"two costs of one output",
       with(kGraph, "\"destId\": -1, \"cost\": 5.8", "\"destId\": -1, \"cost\": 6.8"), 8,
       "`6.820766091346741e-08` at $.edges[1].cost", "the cost of the other edges from node 7"},
      {"backward to forward",
       with(kGraph, "\"sourceId\": 3, \"destId\": -1", "\"sourceId\": -1, \"destId\": 3"), 9,
       "an edge from a backward to a forward node at $.edges[2].destId", "none of that kind"},
      {"cycle", with(kGraph, "\"sourceId\": 3, \"destId\": -1", "\"sourceId\": 3, \"destId\": 7"),
       9, "an edge that closes a cycle of 2 nodes at $.edges[2]", "a graph without cycles"},
  };
  expect_each_refused(refusals, parse_work_graph);
}

TEST(WorkGraphJson, RefusesSumsThatDoNotFit) {
  std::string text =
      R"({"maxSizePerFPGA": 1, "maxFPGAs": 1, "maxCPUs": 0, "edges": [], "nodes": [)";
  for (int i = 0; i < 600; ++i) {
    text += (i == 0 ? "\n" : ",\n");
    text += R"({"supportedOnFpga": 1, "cpuLatency": 9000, "fpgaLatency": 0, "size": 0, )"
            R"("isBackwardNode": 0, "id": )" +
            std::to_string(i) + "}";
  }
  expect_each_refused(
      {{"long", text + "]}", 514, "times whose sum is more than 2^62 fs at $.nodes[512].cpuLatency",
        "a shorter graph"}},
      parse_work_graph);
}

TEST(WorkGraphJson, ReadsThePublicGraphs) {
  struct Expected {
    std::string name;
    std::size_t nodes;
    std::size_t edges;
    int devices;
  };
  const std::vector<Expected> files = {{"LayerGraphs/bert24_training", 64, 110, 6},
                                       {"LayerGraphs/resnet50_training", 354, 386, 6},
                                       {"OperatorGraphs/bert_l-3_inference", 235, 250, 3}};
  for (const Expected& expected : files) {
    const std::string name = "dnn-partitioning/throughput-inputs/" + expected.name + ".json";
    SKIP_WITHOUT_PUBLIC_DATA(name);
    SCOPED_TRACE(name);
    const WorkGraph graph = read_work_graph(public_data(name));
    EXPECT_EQ(graph.nodes.size(), expected.nodes);
    EXPECT_EQ(graph.edges.size(), expected.edges);
    EXPECT_EQ(graph.devices, expected.devices);
    EXPECT_EQ(graph.hosts, 1);
    EXPECT_EQ(graph.device_memory, Bytes{17'185'374'208});
    EXPECT_EQ(std::any_of(graph.nodes.begin(), graph.nodes.end(),
                          [](const WorkNode& node) { return node.is_backward; }),
              expected.name.ends_with("training"));
  }
}

}  // namespace
}  // namespace frazil
