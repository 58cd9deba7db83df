// Tests what Frazil says of files that it cannot read: the whole of every sentence, by file format.

#include <gtest/gtest.h>

#include <vector>

#include "profiles/cluster_json.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/profiles/model_fixture.h"

namespace frazil {
namespace {

struct BadText {
  std::string name;
  std::string text;
  int line;
  std::string found;
  std::string expected;
};

// A valid file with its first `before` replaced by `after`.
struct Damage {
  std::string name;
  std::string before;
  std::string after;
  int line;
  std::string found;
  std::string expected;
};

template <class Parse>
void expect_refusals(const std::vector<BadText>& cases, Parse parse) {
  for (const BadText& bad : cases) {
    SCOPED_TRACE(bad.name);
    try {
      parse(bad.text);
      ADD_FAILURE() << "taken";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "bad.json");
      EXPECT_EQ(error.line(), bad.line);
      EXPECT_EQ(error.found(), bad.found);
      EXPECT_EQ(error.expected(), bad.expected);
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

std::vector<BadText> damaged(const std::string& whole, const std::vector<Damage>& damages) {
  std::vector<BadText> cases;
  for (const Damage& damage : damages) {
    std::string text = whole;
    const std::size_t place = text.find(damage.before);
    if (place == std::string::npos) {
      ADD_FAILURE() << damage.name << ": the file has no " << damage.before;
      continue;
    }
    text.replace(place, damage.before.size(), damage.after);
    cases.push_back({damage.name, text, damage.line, damage.found, damage.expected});
  }
  return cases;
}

TEST(BadInput, JsonThatIsNone) {
  const std::string whole_value = "a complete JSON value";
  const std::string end = "unexpected end of the text";
  const std::vector<BadText> cases = {
      {"empty", "", 1, "no text", "a JSON value"},
      {"blank", " \n\n ", 1, "no text", "a JSON value"},
      {"cut object", "{\n\"a\": 1", 2, end, whole_value},
      {"cut array", "[1,\n2,", 2, end, whole_value},
      {"cut after a newline", "[1,\n", 1, end, whole_value},
      {"cut string", "[\"abc", 1, "unexpected end of the text in a string", whole_value},
      {"cut literal", "[tru", 1, "`tru`", "a JSON value"},
      {"cut number", "[1.", 1, "`1.`", "a JSON number"},
      {"text after the end", "{}\n{}", 2, "`{`", "nothing after the JSON value"},
      {"word after the end", "{} x", 1, "`x`", "nothing after the JSON value"},
      {"zero byte", std::string("1\n\0", 3), 2, "a zero byte", "JSON text"},
      {"doubled key", "{\"a\": 1,\n\"b\": 2,\n\"a\": 3}", 3, "the key \"a\" again",
       "it once (first on line 1)"},
      {"doubled key below", "[{\"a\": {\"b\": 1, \"b\": 1}}]", 1, "the key \"b\" again",
       "it once (first on line 1)"},
      {"NaN", "[1,\nNaN]", 2, "`NaN`", "a JSON value"},
      {"Infinity", "[Infinity]", 1, "`Infinity`", "a JSON value"},
      {"minus infinity", "[-Infinity]", 1, "`-Infinity`", "a JSON number"},
      {"nan", "nan", 1, "`nan`", "a JSON value"},
      {"too large a real", "[1e999]", 1, "`1e999` at $[0]", "a number that fits a 64-bit float"},
      {"too small a real", "[-1e999\n]", 1, "`-1e999` at $[0]",
       "a number that fits a 64-bit float"},
      {"2^63", "9223372036854775808", 1, "`9223372036854775808` at $",
       "an integer that fits 64 bits"},
      {"below -2^63", "[\n-9223372036854775809]", 2, "`-9223372036854775809` at $[0]",
       "an integer that fits 64 bits"},
      {"2^64", "18446744073709551616", 1, "`18446744073709551616` at $",
       "an integer that fits 64 bits"},
      {"10^20 below keys",
       "{\"layers\": [{\"a\": [1, 2]}, 7, {\"b\": {}, \"bytes\": [[], [{}, 1], "
       "\n100000000000000000000]}]}",
       2, "`100000000000000000000` at $.layers[2].bytes[2]", "an integer that fits 64 bits"},
      {"1e999 below a key", "{\"a\": {\"b c\": 1e999}}", 1, "`1e999` at $.a[\"b c\"]",
       "a number that fits a 64-bit float"},
      {"leading zero", "[01]", 1, "`1`", "`,` or `]`"},
      {"leading plus", "[+1]", 1, "`+1`", "a JSON value"},
      {"leading dot", "[.5]", 1, "`.5`", "a JSON value"},
      {"lone minus", "[-]", 1, "`-`", "a JSON number"},
      {"hexadecimal", "[0x10]", 1, "`0x10`", "`,` or `]`"},
      {"comment", "[1, // one\n2]", 1, "`/`", "a JSON value"},
      {"single quotes", "{'a': 1}", 1, "`'`", "a key in double quotes"},
      {"bare key", "{a: 1}", 1, "`a`", "a key in double quotes"},
      {"comma at the end", "[1,\n]", 2, "`]`", "a JSON value"},
      {"comma before a brace", "{\"a\": 1,}", 1, "`}`", "a key in double quotes"},
      {"no colon", "{\"a\" 1}", 1, "`1`", "`:` after the key"},
      {"no comma", "[1\n2]", 2, "`2`", "`,` or `]`"},
      {"no comma in an object", "{\"a\": 1 \"b\": 2}", 1, "`\"b\"`", "`,` or `}`"},
      {"wrong bracket", "[1}", 1, "`}`", "`,` or `]`"},
      {"bad UTF-8 in a string", "[\"a\xff\"]", 1, "bytes that are not UTF-8 in a string",
       "UTF-8 text"},
      {"overlong UTF-8", "[\"\xc0\xaf\"]", 1, "bytes that are not UTF-8 in a string", "UTF-8 text"},
      {"bad UTF-8 outside", "[\xfe]", 1, "`\\xfe`", "a JSON value"},
      {"half a byte order mark", "\xef\xbb{}", 1, "a part of a byte order mark", "UTF-8 text"},
      {"newline in a string", "[\"a\nb\"]", 1, "a control character in a string",
       "its escape, such as `\\n`"},
      {"unknown escape", "[\"\\q\"]", 1, "an escape that JSON does not know in a string",
       "a valid escape, such as `\\n`"},
      {"lone surrogate", "[\"\\ud800\"]", 1, "an escape that JSON does not know in a string",
       "a valid escape, such as `\\n`"},
  };
  expect_refusals(cases, [](const std::string& text) { parse_json(text, "bad.json"); });
}

TEST(BadInput, ModelProfilesThatAreNone) {
  const std::string count = "an integer from 0 to 9007199254740992";
  const std::vector<Damage> damages = {
      {"another format", "frazil.model", "frazil.plan", 2, "`\"frazil.plan\"` at $.format",
       "`\"frazil.model\"`"},
      {"another version", "\"version\": 1", "\"version\": 2", 3, "`2` at $.version", "version 1"},
      {"version as text", "\"version\": 1", "\"version\": \"1\"", 3, "`\"1\"` at $.version",
       "version 1"},
      {"unknown key", "\"model\"", "\"modle\"", 1, "an object without \"model\" at $",
       "the key \"model\"; did you mean it by \"modle\"?"},
      {"extra key", "\"blocks\"", "\"block\": 1,\n\"blocks\"", 11, "the unknown key \"block\" at $",
       "no keys but \"format\", \"version\", \"model\", \"input_bytes_per_sample\", "
       "\"precision\", \"backward_was_split_by_rule\", \"doubts\", \"provenance\", \"blocks\", "
       "\"layers\", "
       "\"edges\", \"tied\""},
      {"real bytes", "784", "784.0", 10, "`784.0` at $.input_bytes_per_sample", count},
      {"negative bytes", "784", "-784", 10, "`-784` at $.input_bytes_per_sample", count},
      {"minus zero", "784", "-0", 10, "`-0` at $.input_bytes_per_sample", count},
      {"too many bytes", "784", "9007199254740993", 10,
       "`9007199254740993` at $.input_bytes_per_sample", count},
      {"provenance that is no text", "\"one core\"", "1", 7, "`1` at $.provenance.device",
       "a string"},
      {"flag that is none", "rule\": false", "rule\": 0", 9, "`0` at $.backward_was_split_by_rule",
       "`true` or `false`"},
      {"doubled block", "\"block 1\"", "\"embedding\"", 13, "`\"embedding\"` again at $.blocks[1]",
       "names that differ"},
      {"unnamed layer", "\"name\": \"embed\"", "\"name\": \"\"", 18, "`\"\"` at $.layers[0].name",
       "a name"},
      {"doubled layer", "\"attention\"", "\"embed\"", 26, "`\"embed\"` again at $.layers[1].name",
       "names that differ"},
      {"unknown block", "\"block\": 2", "\"block\": 3", 35, "`3` at $.layers[2].block",
       "an integer from 0 to 2"},
      {"blocks out of order", "\"block\": 2", "\"block\": 0", 35,
       "`0` after a layer of block 1 at $.layers[2].block",
       "blocks of consecutive layers, in order, none empty"},
      {"block without a layer", "\"block\": 2", "\"block\": 1", 16,
       "no layer in block 2 at $.layers", "a layer in every block"},
      {"no loss", "true", "false", 16, "no layer with a loss at $.layers",
       "at least one with `\"has_loss\": true`"},
      {"no parameter bytes", "\"parameter_bytes\": 400, ", "", 17,
       "an object without \"parameter_bytes\" at $.layers[0]", "the key \"parameter_bytes\""},
      {"unsorted costs", "\"micro_batch_size\": 4", "\"micro_batch_size\": 1", 22,
       "`1` after 1 at $.layers[0].costs[1].micro_batch_size", "ascending micro-batch sizes"},
      {"empty micro-batch", "\"micro_batch_size\": 1", "\"micro_batch_size\": 0", 21,
       "`0` at $.layers[0].costs[0].micro_batch_size", "an integer from 1 to 2147483647"},
      {"huge micro-batch", "\"micro_batch_size\": 1", "\"micro_batch_size\": 2147483648", 21,
       "`2147483648` at $.layers[0].costs[0].micro_batch_size", "an integer from 1 to 2147483647"},
      {"negative time", "\"forward_ns\": 1000", "\"forward_ns\": -1", 21,
       "`-1` at $.layers[0].costs[0].forward_ns", count},
      {"whole and split backward", "\"backward_input_ns\": 1001", "\"backward_ns\": 1001", 21,
       "a whole backward beside its parts at $.layers[0].costs[0].backward_ns", "one or the other"},
      {"no backward", "\"backward_input_ns\": 1001, ", "", 21,
       "a cost sample without a whole backward or both of its parts at $.layers[0].costs[0]",
       "\"backward_input_ns\" and \"backward_weight_ns\", or \"backward_ns\""},
      {"backward edge", "{\"from\": 0, \"to\": 1", "{\"from\": 1, \"to\": 1", 43,
       "`1` at $.edges[0].to", "a layer after 1"},
      {"edge to nowhere", "{\"from\": 0, \"to\": 1", "{\"from\": 0, \"to\": 3", 43,
       "`3` at $.edges[0].to", "an integer from 0 to 2"},
      {"doubled edge", "{\"from\": 1, \"to\": 2", "{\"from\": 0, \"to\": 1", 45,
       "the edge from 0 to 1 again at $.edges[2]", "each edge once of its kind"},
      {"unknown edge kind", "detached", "attached", 44, "`\"attached\"` at $.edges[1].kind",
       "`\"gradient\"` or `\"detached\"`"},
      {"edge without tensors", "[512]", "[]", 45, "no tensor at $.edges[2].tensor_bytes_per_sample",
       "at least one"},
      {"tie of one layer", "[0, 2]", "[0]", 48, "fewer than two layers at $.tied[0].layers",
       "two or more"},
      {"tie out of order", "[0, 2]", "[2, 0]", 48, "`0` after 2 at $.tied[0].layers[1]",
       "layers in ascending order, each once"},
      {"tie to nowhere", "[0, 2]", "[0, 9]", 48, "`9` at $.tied[0].layers[1]",
       "an integer from 0 to 2"},
  };
  expect_refusals(damaged(to_json(small_model()), damages),
                  [](const std::string& text) { parse_model_profile(text, "bad.json"); });
}

TEST(BadInput, AModelWithoutLayersOrCosts) {
  const std::string head = R"({"format": "frazil.model", "version": 1, "model": "m",)";
  const std::vector<BadText> cases = {
      {"no layer", head + "\n\"blocks\": [], \"layers\": [], \"edges\": []}", 2,
       "no layer at $.layers", "at least one"},
      {"no block",
       head + "\n\"blocks\": [],\n\"layers\": [{\"name\": \"l\", \"block\": 0}], \"edges\": []}", 3,
       "`0` at $.layers[0].block", "an index into a list, which is empty"},
      {"no costs",
       head + "\n\"blocks\": [\"b\"],\n\"layers\": [{\"name\": \"l\", \"block\": 0, "
              "\"parameter_bytes\": 1,\n\"costs\": []}], \"edges\": []}",
       4, "no cost sample at $.layers[0].costs", "at least one"},
      {"an array", "[]", 1, "an array at $", "an object"},
  };
  expect_refusals(cases, [](const std::string& text) { parse_model_profile(text, "bad.json"); });
}

TEST(BadInput, ClustersThatAreNone) {
  const std::string whole =
      "{\"format\": \"frazil.cluster\", \"version\": 1,\n"
      "\"hosts\": [{\"name\": \"node0\", \"memory_bytes\": 9},\n"
      "{\"name\": \"node1\", \"memory_bytes\": 9}],\n"
      "\"devices\": [\n"
      "{\"name\": \"core0\", \"host\": \"node0\", \"memory_limit_bytes\": 5, \"time_ppm\": 3},\n"
      "{\"name\": \"core1\", \"host\": \"node1\", \"memory_limit_bytes\": 5}],\n"
      "\"default_link\": {\"latency_ns\": 1},\n"
      "\"links\": [{\"from\": 0, \"to\": 1},\n"
      "{\"from\": 1, \"to\": 0, \"latency_ns\": 7, \"bandwidth_bytes_per_second\": 8}]}\n";
  ASSERT_NO_THROW(parse_cluster(whole, "good.json"));
  const std::string any = "an integer from 0 to 9223372036854775807";
  const std::vector<Damage> damages = {
      {"another format", "frazil.cluster", "cluster", 1, "`\"cluster\"` at $.format",
       "`\"frazil.cluster\"`"},
      {"doubled host", "node1", "node0", 3, "`\"node0\"` again at $.hosts[1].name",
       "names that differ"},
      {"unnamed host", "\"node0\"", "\"\"", 2, "`\"\"` at $.hosts[0].name", "a name"},
      {"negative memory", "\"memory_bytes\": 9", "\"memory_bytes\": -9", 2,
       "`-9` at $.hosts[0].memory_bytes", any},
      {"unknown host", "\"host\": \"node1\"", "\"host\": \"node2\"", 6,
       "`\"node2\"` at $.devices[1].host", "the name of a host"},
      {"host by index", "\"host\": \"node1\"", "\"host\": 1", 6, "`1` at $.devices[1].host",
       "a string"},
      {"doubled device", "core1", "core0", 6, "`\"core0\"` again at $.devices[1].name",
       "names that differ"},
      {"unnamed device", "\"core1\"", "\"\"", 6, "`\"\"` at $.devices[1].name", "a name"},
      {"device without time", "\"time_ppm\": 3", "\"time_ppm\": 0", 5,
       "`0` at $.devices[0].time_ppm", "an integer from 1 to 1000000000000"},
      {"old key", "\"time_ppm\": 3", "\"speed\": 3", 5, "the unknown key \"speed\" at $.devices[0]",
       "no keys but \"name\", \"host\", \"memory_limit_bytes\", \"time_ppm\", "
       "\"action_overhead_ns\", \"step_overhead_ns\", \"process\""},
      {"negative process", "\"time_ppm\": 3", "\"process\": -1", 5, "`-1` at $.devices[0].process",
       "an integer from 0 to 2147483647"},
      {"unknown class of links", "\"default_link\": {\"latency_ns\"", "\"link_classes\": {\"rack\"",
       7, "the unknown key \"rack\" at $.link_classes",
       "no keys but \"process\", \"host\", \"network\""},
      {"unknown key in a class", "\"default_link\": {\"latency_ns\": 1}",
       "\"link_classes\": {\"host\": {\"latency\": 1}}", 7,
       "the unknown key \"latency\" at $.link_classes.host",
       "no keys but \"latency_ns\", \"bandwidth_bytes_per_second\"; did you mean "
       "\"latency_ns\"?"},
      {"negative commit round", "\"default_link\": {\"latency_ns\": 1}", "\"commit_round_ns\": -1",
       7, "`-1` at $.commit_round_ns", "an integer from 0 to 9007199254740992"},
      {"negative latency", "\"latency_ns\": 1", "\"latency_ns\": -1", 7,
       "`-1` at $.default_link.latency_ns", "an integer from 0 to 9007199254740992"},
      {"unknown key in a link", "\"latency_ns\": 1", "\"latency\": 1", 7,
       "the unknown key \"latency\" at $.default_link",
       "no keys but \"latency_ns\", \"bandwidth_bytes_per_second\"; did you mean "
       "\"latency_ns\"?"},
      {"negative bandwidth", "\"bandwidth_bytes_per_second\": 8",
       "\"bandwidth_bytes_per_second\": -8", 9, "`-8` at $.links[1].bandwidth_bytes_per_second",
       any},
      {"link to itself", "\"from\": 1, \"to\": 0", "\"from\": 1, \"to\": 1", 9,
       "`1` at $.links[1].to", "another device than the link's first"},
      {"link to nowhere", "\"from\": 1, \"to\": 0", "\"from\": 1, \"to\": 2", 9,
       "`2` at $.links[1].to", "an integer from 0 to 1"},
      {"doubled link", "\"from\": 1, \"to\": 0", "\"from\": 0, \"to\": 1", 9,
       "the link from 0 to 1 again at $.links[1]", "each link once"},
      {"real bandwidth", "\"bandwidth_bytes_per_second\": 8", "\"bandwidth_bytes_per_second\": 1e9",
       9, "`1e9` at $.links[1].bandwidth_bytes_per_second", any},
  };
  expect_refusals(damaged(whole, damages),
                  [](const std::string& text) { parse_cluster(text, "bad.json"); });
  const std::vector<BadText> cases = {
      {"no device",
       "{\"format\": \"frazil.cluster\", \"version\": 1, \"hosts\": [],\n\"devices\": []}", 2,
       "no device at $.devices", "at least one"},
  };
  expect_refusals(cases, [](const std::string& text) { parse_cluster(text, "bad.json"); });
}

}  // namespace
}  // namespace frazil
