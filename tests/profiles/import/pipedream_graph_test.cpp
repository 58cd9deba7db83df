#include "profiles/import/pipedream_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/profiles/refusals.h"
#include "tests/support/public_data.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

ModelProfile read_graph(const std::string& text, const ImportOptions& options = {}) {
  return parse_pipedream_graph(text, "graph.txt", options).profile;
}

std::string node(const std::string& id, const std::string& description,
                 const std::string& values =
                     "forward_compute_time=1.000, "
                     "backward_compute_time=2.001, activation_size=100.0, "
                     "parameter_size=40.000") {
  return id + " -- " + description + " -- " + values + "\n";
}

// The graph is a diamond whose lines stand in no order: the loader, a convolution, two branches and
// their sum.
const std::string kDiamond =
    node("node10", "Add") +
    node("node2", "Conv2d(3, 64, kernel_size=(3, 3))",
         "forward_compute_time=22.316, backward_compute_time=6.405, activation_size=[64.0; 16.0], "
         "parameter_size=93184.000") +
    node("node1", "Input",
         "forward_compute_time=635.902, backward_compute_time=0.000, activation_size=154.000, "
         "parameter_size=0.000") +
    node("node9", "ReLU",
         "forward_compute_time=0.539, backward_compute_time=0.188, activation_size=30.000, "
         "parameter_size=0.000") +
    node("node3", "__getitem__(0)") +
    "\tnode9 -- node10\n\tnode2 -- node3\n\tnode1 -- node2\n\tnode2 -- node9\n\tnode2 -- node10\n";

TEST(PipedreamGraph, OrdersItsLayersAndLeavesTheLoaderOut) {
  const ModelProfile profile = read_graph(kDiamond);
  ASSERT_EQ(profile.layers.size(), 4);
  EXPECT_EQ(profile.layers[0].name, "node2 Conv2d(3, 64, kernel_size=(3, 3))");
  EXPECT_EQ(profile.layers[1].name, "node3 __getitem__(0)");
  EXPECT_EQ(profile.layers[2].name, "node9 ReLU");
  EXPECT_EQ(profile.layers[3].name, "node10 Add");
  EXPECT_EQ(profile.input_bytes_per_sample, Bytes{154});
  EXPECT_EQ(profile.provenance.at("data_loading_ns"), "635902000");
  nanoseconds forward{0};
  for (const Layer& layer : profile.layers) forward += layer.costs.front().forward;
  EXPECT_EQ(forward, nanoseconds(22'316'000 + 539'000 + 2 * 1'000'000));
}

TEST(PipedreamGraph, SplitsTheBackwardByTheRule) {
  const ModelProfile profile = read_graph(kDiamond);
  EXPECT_TRUE(profile.backward_was_split_by_rule);
  const CostSample& trained = profile.layers[3].costs.front();
  EXPECT_EQ(trained.backward_input, nanoseconds(1'000'500));
  EXPECT_EQ(trained.backward_weight, nanoseconds(1'000'500));
  const CostSample& untrained = profile.layers[2].costs.front();
  EXPECT_EQ(untrained.backward_input, nanoseconds(188'000));
  EXPECT_EQ(untrained.backward_weight, nanoseconds(0));
}

TEST(PipedreamGraph, CarriesAListAsSeveralTensors) {
  const ModelProfile profile = read_graph(kDiamond);
  ASSERT_EQ(profile.edges.size(), 4);
  const std::vector<Bytes> list{{64}, {16}};
  EXPECT_EQ(profile.edges[0].tensor_bytes_per_sample, list);
  EXPECT_EQ(profile.layers[2].costs.front().stash, Bytes{80});
  EXPECT_EQ(profile.layers[3].costs.front().stash, Bytes{110});
  EXPECT_EQ(profile.layers[0].costs.front().stash, Bytes{154});
}

TEST(PipedreamGraph, HasTheLossWhereNobodyReads) {
  const ModelProfile profile = read_graph(kDiamond);
  EXPECT_FALSE(profile.layers[1].has_loss);  // an element of a tuple that nobody wants
  EXPECT_TRUE(profile.layers[3].has_loss);
}

TEST(PipedreamGraph, TakesSizesAsThoseOfTheGivenSamples) {
  const ImportedProfile imported =
      parse_pipedream_graph(kDiamond, "graph.txt", {.model = "diamond", .micro_batch_size = 3});
  EXPECT_EQ(imported.profile.model, "diamond");
  EXPECT_EQ(imported.profile.layers[0].costs.front().micro_batch_size, 3);
  EXPECT_EQ(imported.profile.edges[0].tensor_bytes_per_sample, (std::vector<Bytes>{{22}, {6}}));
  EXPECT_NE(std::find(imported.notes.begin(), imported.notes.end(),
                      "tensors of no whole number of bytes a sample are rounded up"),
            imported.notes.end());
}

TEST(PipedreamGraph, ReadsTheSameBehindAByteOrderMarkWithOtherLineEndsAndBlankLines) {
  std::string text = "\xef\xbb\xbf\n";
  for (const char character : kDiamond)
    text += character == '\n' ? "\r\n\r\n" : std::string(1, character);
  EXPECT_EQ(read_graph(text), read_graph(kDiamond));
  EXPECT_EQ(read_graph(kDiamond.substr(0, kDiamond.size() - 1)), read_graph(kDiamond));
}

TEST(PipedreamGraph, ReadsTheSameWhateverTheOrderOfItsLines) {
  std::string reversed;
  for (std::size_t end = kDiamond.size(); end > 0;) {
    const std::size_t before = kDiamond.rfind('\n', end - 2);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    reversed += kDiamond.substr(begin, end - begin);
    end = begin;
  }
  EXPECT_EQ(read_graph(reversed), read_graph(kDiamond));
}

TEST(PipedreamGraph, KeepsSeparatorsAndBracketsOfADescription) {
  const std::string text = node("a", "Odd -- name, with [brackets; and] forward_compute_time=9");
  EXPECT_EQ(read_graph(text).layers[0].name,
            "a Odd -- name, with [brackets; and] forward_compute_time=9");
  EXPECT_EQ(read_graph(node("a", "")).layers[0].name, "a");
}

TEST(PipedreamGraph, PassesOverTheStageOfAnEarlierCut) {
  std::string text = node("a", "ReLU");
  text.insert(text.size() - 1, " -- stage_id=3");
  EXPECT_EQ(read_graph(text), read_graph(node("a", "ReLU")));
}

TEST(PipedreamGraph, TakesALayerThatOnlyBeginsLikeAnInputAsALayer) {
  EXPECT_EQ(read_graph(node("a", "InputNorm(3)") + node("b", "Input3")).layers.size(), 1);
  EXPECT_EQ(read_graph(node("a", "ReLU") + node("b", "Input") + "\ta -- b\n").layers.size(), 2);
}

TEST(PipedreamGraph, RefusesHostileFilesInOneSentence) {
  const std::string a = node("a", "ReLU");
  const std::string b = node("b", "ReLU");
  const std::string form =
      "`node -- description -- forward_compute_time=ms, backward_compute_time=ms, "
      "activation_size=bytes, parameter_size=bytes`";
  const std::string ms = "ms from 0 to 9007199254 with at most six decimals";
  const std::string bytes = "whole bytes from 0 to 9007199254740992";
  const std::string time = "forward_compute_time=1.000";
  const std::string size = "activation_size=100.0";
  const std::vector<Refusal> refusals = {
      {"empty", "", 1, "no text", "at least one line"},
      {"blank", "\n \r\n\t\n", 1, "no text", "at least one line"},
      {"byte order mark alone", "\xef\xbb\xbf", 1, "no text", "at least one line"},
      {"half a byte order mark", "\xef\xbb" + a, 1, "bytes that are not UTF-8", "UTF-8 text"},
      {"zero byte", a + std::string("b\0c\n", 4), 2, "a control character", "a line of text"},
      {"Latin-1", node("a", "R\xe9LU"), 1, "bytes that are not UTF-8", "UTF-8 text"},
      {"no separator", "nothing here\n", 1, "`nothing here`", form},
      {"cut line", a + "b -- ReLU", 2, "`b -- ReLU`", form},
      {"no values", "a -- b -- c\n", 1, "`c`", form},
      {"blank in a name", "a b -- ReLU" + a.substr(9), 1, "`a b` for a node",
       "a name without blanks"},
      {"nameless", " \n--  -- x\n", 2, "`--  -- x`", form},
      {"unit in a time", with(a, time, "forward_compute_time=1ms"), 1, "forward_compute_time `1ms`",
       ms},
      {"negative time", with(a, time, "forward_compute_time=-1.000"), 1,
       "forward_compute_time `-1.000`", ms},
      {"NaN", with(a, time, "forward_compute_time=nan"), 1, "forward_compute_time `nan`", ms},
      {"infinite", with(a, time, "forward_compute_time=inf"), 1, "forward_compute_time `inf`", ms},
      {"too large", with(a, time, "forward_compute_time=1e12"), 1, "forward_compute_time `1e12`",
       ms},
      {"finer than a nanosecond", with(a, time, "forward_compute_time=0.0000001"), 1,
       "forward_compute_time `0.0000001`", ms},
      {"half a byte", with(a, size, "activation_size=0.5"), 1, "activation_size `0.5`", bytes},
      {"empty list", with(a, size, "activation_size=[]"), 1, "activation_size ``", bytes},
      {"hole in a list", with(a, size, "activation_size=[1; ; 2]"), 1, "activation_size ` `",
       bytes},
      {"open list", with(a, size, "activation_size=[1; 2"), 1, "activation_size `[1; 2`",
       "a list that ends in `]`"},
      {"list with commas", with(a, size, "activation_size=[1, 2]"), 1, "`2]`", form},
      {"missing value", with(a, ", " + size, ""), 1, "a node without `activation_size`",
       "it to be given"},
      {"doubled value", with(a, size, size + ", " + size), 1, "`activation_size` again", "it once"},
      {"unknown value", with(a, size, "weight=3"), 1, "`weight=3`", form},
      {"node again", a + b + a, 3, "the node `a` again", "it once (first on line 1)"},
      {"edge again", a + b + "\ta -- b\n\ta -- b\n", 4, "the edge `a -- b` again",
       "it once (first on line 3)"},
      {"edge to nowhere", a + "\ta -- c\n", 2, "the unknown node `c`", "one of the file's nodes"},
      {"edge from nowhere", a + "\n\tc -- a\n", 3, "the unknown node `c`",
       "one of the file's nodes"},
      {"edge of one", a + "\ta\n", 2, "`a`", "an edge `node -- node`"},
      {"edge to itself", a + "\ta -- a\n", 2, "`a` reading itself", "no cycle"},
      {"cycle", a + b + node("c", "x") + "\ta -- b\n\tc -- a\n\tb -- c\n", 6,
       "the edge `b -- c`, which closes a cycle of 3 nodes", "a graph without cycles"},
      {"cycle that an input feeds", a + b + node("c", "Input") + "\tc -- a\n\ta -- b\n\tb -- a\n",
       6, "the edge `b -- a`, which closes a cycle of 2 nodes", "a graph without cycles"},
      {"inputs alone", node("a", "Input") + node("b", "Input0"), 0, "no node but inputs",
       "at least one layer"},
  };
  expect_each_refused(refusals, [](const std::string& text, const std::string& file) {
    parse_pipedream_graph(text, file, {});
  });
}

// Times are the ms with three decimals of the file, summed as whole microseconds.
TEST(PipedreamGraph, ReadsThePublicProfiles) {
  struct Expected {
    std::string name;
    std::size_t layers;
    std::size_t edges;
    std::int64_t total_ns;  // facts of the optimizer: its single-machine time
    std::string loading;
  };
  const std::vector<Expected> files = {{"vgg16", 40, 40, 672'535'000, "17972000"},
                                       {"alexnet", 22, 22, 85'321'000, "635902000"},
                                       {"resnet50", 176, 192, 443'419'000, "18962000"},
                                       {"gnmt", 45, 54, 89'416'000, "0"}};
  for (const Expected& expected : files) {
    const std::string name = "pipedream/" + expected.name + ".graph.txt";
    SKIP_WITHOUT_PUBLIC_DATA(name);
    SCOPED_TRACE(name);
    const ModelProfile profile = read_graph(read_text_file(public_data(name)));
    EXPECT_EQ(profile.layers.size(), expected.layers);
    EXPECT_EQ(profile.edges.size(), expected.edges);
    EXPECT_EQ(profile.provenance.at("data_loading_ns"), expected.loading);
    nanoseconds total{0};
    for (const Layer& layer : profile.layers) {
      const CostSample& cost = layer.costs.front();
      total += cost.forward + cost.backward_input + cost.backward_weight;
    }
    EXPECT_EQ(total, nanoseconds(expected.total_ns));
    EXPECT_EQ(parse_model_profile(to_json(profile), "again"), profile);
  }
}

}  // namespace
}  // namespace frazil
