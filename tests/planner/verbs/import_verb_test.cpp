// Tests frazil-import as a process: answers, exit codes, and nothing written on failure.

#include <gtest/gtest.h>

#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/support/program_folder.h"
#include "tests/traces/kineto/kineto_text.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostOfImport = 1'000'000'000'000;

class ImportVerb : public testing::Test {
 protected:
  void SetUp() override {
    const std::string text = KinetoText()
                                 .range("layer:a", 1, 0, 1000)
                                 .op("aten::linear", 1, 100, 900, 1)
                                 .range("stage b", 1, 1000, 3000)
                                 .op("aten::linear", 1, 1100, 2900, 3)
                                 .node("AddmmBackward0", 1, 4000, 4010, 4)
                                 .accumulate(1, 4010, 4020)
                                 .node("AddmmBackward0", 1, 4100, 4130, 2)
                                 .accumulate(1, 4130, 4140)
                                 .text();
    write_text_file(folder_.path("trace.json"), text);
    write_text_file(folder_.path("packed.json.gz"), pack(text));
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(ImportVerb, WritesAProfileThatOtherVerbsRead) {
  const Outcome outcome = folder_.run(
      "import", "kineto trace.json --out model.json --micro-batch-size 8 --model small --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const ModelProfile profile = read_model_profile(folder_.path("model.json"));
  EXPECT_EQ(profile.model, "small");
  ASSERT_EQ(profile.layers.size(), 1U);
  EXPECT_EQ(profile.layers[0].name, "layer:a");
  EXPECT_EQ(profile.layers[0].costs.front().micro_batch_size, 8);
  EXPECT_EQ(profile.provenance.at("traces"), "trace.json");

  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("model").text(), "small");
  EXPECT_EQ(answer.required("model_hash").text(), model_hash(profile));
  EXPECT_EQ(answer.required("layers_by").text(), "ranges");
  EXPECT_EQ(answer.required("time").text(), "host");
  EXPECT_EQ(answer.required("traces").integer(0, kMostOfImport), 1);
  EXPECT_EQ(answer.required("events").integer(0, kMostOfImport), 12);
  EXPECT_EQ(answer.required("steps").integer(0, kMostOfImport), 1);
  const JsonCursor layers = answer.required("layers");
  ASSERT_EQ(layers.items().size(), 1U);
  JsonFields layer(layers.items()[0]);
  EXPECT_EQ(layer.required("forward_ns").integer(0, kMostOfImport), 1000);
  EXPECT_EQ(layer.required("backward_input_ns").integer(0, kMostOfImport), 0);
  EXPECT_EQ(layer.required("backward_weight_ns").integer(0, kMostOfImport), 40);
  JsonFields operations(answer.required("operations"));
  EXPECT_EQ(operations.required("total_ns").integer(0, kMostOfImport), 800 + 1800 + 20 + 40);
  EXPECT_EQ(operations.required("attributed_ns").integer(0, kMostOfImport), 800 + 40);
  EXPECT_NEAR(operations.required("unattributed_share").real(0, 1), 1820.0 / 2660, 1e-12);
}

TEST_F(ImportVerb, TakesSeveralTracesPackedOrNotAnywhereOnTheLine) {
  const Outcome outcome = folder_.run(
      "import", "--out=model.json kineto packed.json.gz --model m trace.json --micro-batch-size 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("24 events of 2 traces"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("not attributed 68.42 %"), std::string::npos) << outcome.out;
}

TEST_F(ImportVerb, TakesLayersByAnotherPrefix) {
  const Outcome outcome = folder_.run(
      "import", "kineto trace.json --out model.json --layer-ranges stage --micro-batch-size 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_model_profile(folder_.path("model.json")).layers[0].name, "stage b");
}

TEST_F(ImportVerb, HelpListsNoFlagThatStandsForWords) {
  const Outcome outcome = folder_.run("import", "--help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.find("--word"), std::string::npos) << outcome.out;
  EXPECT_EQ(folder_.run("import", "kineto -h").out, outcome.out);
}

TEST_F(ImportVerb, RefusesBadInputAndWritesNothing) {
  const auto refuses = [&](const std::string& arguments, const std::string& sentence) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = folder_.run("import", arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.substr(0, sentence.size()), sentence);
    EXPECT_EQ(folder_.count_files(), 2U);
  };
  refuses("",
          "frazil import: command line: found nothing to import, expected kineto, pytorch-csv, "
          "sailor, pipedream or csv\n");
  refuses("chakra trace.json --out m.json",
          "frazil import: command line: found `chakra`, expected kineto, pytorch-csv, sailor, "
          "pipedream or csv\n");
  refuses("kineto --out m.json",
          "frazil import: command line: found no trace, expected at least one\n");
  refuses("kineto trace.json --plan p.json --out m.json",
          "frazil import: command line: found --plan with import kineto, expected one or the "
          "other\n");
  refuses(
      "kineto trace.json ./trace.json --out m.json",
      "frazil import: command line: found trace ./trace.json twice, expected each trace once\n");
  refuses("kineto packed.json.gz --out packed.json.gz",
          "frazil import: command line: found --out packed.json.gz for the file of a trace, "
          "expected another file\n");
  refuses("kineto trace.json --out ''",
          "frazil import: command line: found an empty --out, expected the name of a file\n");
  refuses("kineto trace.json", "frazil import: command line: found no --out, expected");
  refuses("kineto trace.json --out m.json --micro-batch-size 0",
          "frazil import: command line: found --micro-batch-size 0, expected an integer from 1");
  refuses("kineto trace.json --out m.json --layer-ranges none",
          "frazil import: trace.json: found no range in the counted steps, expected ranges whose "
          "names begin with \"none\"");
  refuses("kineto trace.json --out m.json",
          "frazil import: command line: found no --micro-batch-size, expected the samples of");
  refuses("kineto trace.json --out m.json --optimizer shampoo",
          "frazil import: command line: found --optimizer shampoo, expected adamw, adam, ");
  refuses("kineto missing.json --out m.json",
          "frazil import: missing.json: found no such file, expected a readable file");
  refuses("kineto trace.json --unknown x --out m.json", "frazil import: command line: ");
}

}  // namespace
}  // namespace frazil
