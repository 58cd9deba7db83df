#include "profiles/import/layer_csv.h"

#include <gtest/gtest.h>

#include "profiles/model_profile_json.h"
#include "tests/profiles/refusals.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

ModelProfile read_table(const std::string& text, const ImportOptions& options = {}) {
  return parse_layer_csv(text, "layers.csv", options).profile;
}

const std::string kTable =
    "name,forward_ms,backward_ms,activation_bytes,parameter_bytes\n"
    "conv,0.539,2.001,44302336,93184\n"
    "\"ReLU, in place\",0.1,0.188,30,0\n"
    "head,1,3,4000,400\n";

TEST(LayerCsv, ReadsAChain) {
  const ModelProfile profile = read_table(kTable);
  ASSERT_EQ(profile.layers.size(), 3);
  EXPECT_EQ(profile.layers[1].name, "ReLU, in place");
  EXPECT_EQ(profile.layers[0].costs.front().forward, nanoseconds(539'000));
  EXPECT_EQ(profile.layers[0].costs.front().backward_input, nanoseconds(0));
  EXPECT_EQ(profile.layers[0].costs.front().backward_weight, nanoseconds(2'001'000));
  EXPECT_EQ(profile.layers[1].costs.front().backward_input, nanoseconds(188'000));
  EXPECT_EQ(profile.layers[1].costs.front().backward_weight, nanoseconds(0));
  EXPECT_EQ(profile.layers[2].costs.front().backward_input, nanoseconds(1'500'000));
  EXPECT_EQ(profile.layers[2].costs.front().backward_weight, nanoseconds(1'500'000));
  EXPECT_EQ(profile.layers[1].costs.front().stash, Bytes{44'302'336});
  EXPECT_EQ(profile.layers[2].parameters, Bytes{400});
  EXPECT_FALSE(profile.layers[1].has_loss);
  EXPECT_TRUE(profile.layers[2].has_loss);
  ASSERT_EQ(profile.edges.size(), 2);
  EXPECT_EQ(profile.edges[1].tensor_bytes_per_sample, std::vector<Bytes>{{30}});
  EXPECT_TRUE(profile.backward_was_split_by_rule);
  EXPECT_EQ(parse_model_profile(to_json(profile), "again"), profile);
}

TEST(LayerCsv, TakesEveryQuantityInTheUnitOfItsColumn) {
  const ModelProfile profile = read_table(
      "block,activation_KiB,name,backward_input_us,backward_weight_ns,forward_s,update_ms,"
      "parameter_MB,optimizer_state_GiB,stash_kB\n"
      "one,1.5,a,2.5,7,0.000000003,0.25,0.000004,2,0.3\n"
      "one,0,b,0,0,0,0,0,0,0\n"
      "two,0,c,0,0,0,0,0,0,0\n");
  const Layer& layer = profile.layers[0];
  EXPECT_EQ(layer.costs.front().forward, nanoseconds(3));
  EXPECT_EQ(layer.costs.front().backward_input, nanoseconds(2'500));
  EXPECT_EQ(layer.costs.front().backward_weight, nanoseconds(7));
  EXPECT_EQ(layer.update, nanoseconds(250'000));
  EXPECT_EQ(layer.parameters, Bytes{4});
  EXPECT_EQ(layer.optimizer_state, Bytes{std::int64_t{2} << 30});
  EXPECT_EQ(layer.costs.front().stash, Bytes{300});
  EXPECT_EQ(profile.edges[0].tensor_bytes_per_sample, std::vector<Bytes>{{1'536}});
  EXPECT_EQ(profile.blocks, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(profile.layers[2].block, BlockId(1));
  EXPECT_FALSE(profile.backward_was_split_by_rule);
}

TEST(LayerCsv, ReadsTheSameBehindAByteOrderMarkWithOtherLineEndsAndBlanks) {
  std::string text = "\xef\xbb\xbf";
  for (const char character : kTable) {
    text += character == '\n' ? " \r\n\r\n" : std::string(1, character);
  }
  EXPECT_EQ(read_table(text), read_table(kTable));
  EXPECT_EQ(read_table(kTable.substr(0, kTable.size() - 1)), read_table(kTable));
}

TEST(LayerCsv, DoublesAQuoteInAQuotedCell) {
  EXPECT_EQ(read_table(with(kTable, "ReLU, in", "the \"\"ReLU\"\", in")).layers[1].name,
            "the \"ReLU\", in place");
}

TEST(LayerCsv, TakesSizesAsThoseOfTheGivenSamples) {
  const ModelProfile profile = read_table(kTable, {.model = "m", .micro_batch_size = 64});
  EXPECT_EQ(profile.edges[0].tensor_bytes_per_sample, std::vector<Bytes>{{692'224}});
  EXPECT_EQ(profile.edges[1].tensor_bytes_per_sample, std::vector<Bytes>{{1}});
  EXPECT_EQ(profile.layers[0].costs.front().micro_batch_size, 64);
}

TEST(LayerCsv, RoundsDecimalsOfABinaryUnitUpToBytes) {
  const std::string table =
      "name,forward_ms,backward_ms,activation_MiB,parameter_KiB\n"
      "a,1,2,0.1,1.5\n"
      "b,1,2,0.5,90.3\n";
  const ImportedProfile import = parse_layer_csv(table, "layers.csv", {});
  EXPECT_EQ(import.profile.edges[0].tensor_bytes_per_sample.front(), Bytes{104'858});
  EXPECT_EQ(import.profile.layers[0].parameters, Bytes{1'536});
  EXPECT_EQ(import.profile.layers[1].parameters, Bytes{92'468});
  const std::string note = "sizes of no whole number of bytes are rounded up";
  EXPECT_EQ(std::count(import.notes.begin(), import.notes.end(), note), 1);
}

TEST(LayerCsv, RefusesHostileTablesInOneSentence) {
  const std::string columns =
      "name, block, forward_<t>, backward_<t>, backward_input_<t>, backward_weight_<t>, "
      "update_<t>, activation_<b>, parameter_<b>, optimizer_state_<b> or stash_<b> (<t>: s ms us "
      "ns; <b>: bytes kB MB GB KiB MiB GiB)";
  const std::string ns = "ms that are a whole number of ns from 0 to 9007199254740992";
  const std::string bytes = "bytes that are a whole number of bytes from 0 to 9007199254740992";
  const std::vector<Refusal> refusals = {
      {"empty", "", 1, "no text", "at least one line"},
      {"header alone", kTable.substr(0, kTable.find('\n')), 1, "a header alone",
       "a line for each layer"},
      {"no header", kTable.substr(kTable.find('\n') + 1), 1, "the column `conv`", columns},
      {"time without a unit", with(kTable, "forward_ms", "forward"), 1, "the column `forward`",
       columns},
      {"unknown unit", with(kTable, "forward_ms", "forward_min"), 1, "the column `forward_min`",
       columns},
      {"size in ms", with(kTable, "activation_bytes", "activation_ms"), 1,
       "the column `activation_ms`", columns},
      {"unnamed column", with(kTable, "name,", "name,,"), 1, "the column ``", columns},
      {"column again", with(kTable, "backward_ms", "forward_us"), 1,
       "the column `forward_us` beside `forward_ms`", "each quantity once"},
      {"no name", with(kTable, "name", "block"), 1, "no column of `name`", columns},
      {"no backward", with(kTable, "backward_ms", "update_ms"), 1, "no column of `backward`",
       columns},
      {"half a split", with(kTable, "backward_ms", "backward_input_ms"), 1,
       "no column of `backward_weight`", columns},
      {"whole and part", with(kTable, "parameter_bytes", "backward_weight_ms"), 1,
       "a whole backward beside its parts", "one or the other"},
      {"many cells", with(kTable, "400\n", "400" + std::string(5000, ',') + "\n"), 4, "5005 cells",
       "5, as the header has"},
      {"commas alone", ",,,,", 1, "the column ``", columns},
      {"short line", with(kTable, ",4000", ""), 4, "4 cells", "5, as the header has"},
      {"long line", with(kTable, "400\n", "400,\n"), 4, "6 cells", "5, as the header has"},
      {"semicolons", with(kTable, "conv,0.539,", "conv;0.539;"), 2, "3 cells",
       "5, as the header has"},
      {"open quote", with(kTable, "place\"", "place"), 3, "`\"ReLU, in place,0.1,0.188,30,0`",
       "each quote closed before a comma or the end"},
      {"text behind a quote", with(kTable, "place\"", "place\" x"), 3,
       "`\"ReLU, in place\" x,0.1,0.188,30,0`", "each quote closed before a comma or the end"},
      {"unnamed layer", with(kTable, "conv", ""), 2, "an empty name", "a name"},
      {"layer again", with(kTable, "head", "conv"), 4, "the layer `conv` again",
       "names that differ"},
      {"empty cell", with(kTable, "0.539", ""), 2, "forward_ms ``", ns},
      {"unit in a cell", with(kTable, "0.539", "0.539ms"), 2, "forward_ms `0.539ms`", ns},
      {"negative", with(kTable, "0.539", "-0.539"), 2, "forward_ms `-0.539`", ns},
      {"NaN", with(kTable, "0.539", "NaN"), 2, "forward_ms `NaN`", ns},
      {"finer than a nanosecond", with(kTable, "0.539", "0.5390001"), 2, "forward_ms `0.5390001`",
       ns},
      {"half a byte", with(kTable, "4000", "4000.5"), 4, "activation_bytes `4000.5`", bytes},
      {"too large", with(kTable, "44302336", "1e16"), 2, "activation_bytes `1e16`", bytes},
      {"no whole bytes",
       with(with(kTable, "activation_bytes", "activation_KiB"), "4000", "0.0000003"), 4,
       "activation_KiB `0.0000003`", "KiB" + bytes.substr(5)},
      {"zero byte", with(kTable, "conv", std::string("c\0v", 3)), 2, "a control character",
       "a line of text"},
      {"Latin-1", with(kTable, "conv", "c\xf6v"), 2, "bytes that are not UTF-8", "UTF-8 text"},
      {"block again",
       "name,block,forward_ms,backward_ms,activation_bytes\na,x,1,1,1\nb,y,1,1,1\nc,x,1,1,1\n", 4,
       "the block `x` again", "blocks of consecutive layers"},
  };
  expect_each_refused(refusals, [](const std::string& text, const std::string& file) {
    parse_layer_csv(text, file, {});
  });
}

}  // namespace
}  // namespace frazil
