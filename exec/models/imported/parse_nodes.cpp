#include "exec/models/imported/parse_nodes.h"

#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

using Kind = ImportedArgument::Kind;

constexpr std::int64_t kMostWhole = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostDraws = 1'000'000;
constexpr const char* kPolynomial =
    "a polynomial in n: a number, \"n\", [\"+\", ...], [\"*\", ...] or [\"//\", size, number]";

// Reads a node's arguments; errors say which node it is.
class ArgumentReader {
 public:
  ArgumentReader(const ImportedNode& node, const std::set<std::string>& defined)
      : node_(node), defined_(defined) {}

  ImportedArgument read(const JsonCursor& at) const {
    if (at.is_null()) return {};
    if (at.is_object()) return read_object(at);
    ImportedArgument argument;
    if (at.is_array()) {
      argument.kind = Kind::kList;
      for (const JsonCursor& item : at.items()) argument.items.push_back(read(item));
    } else if (at.is_string()) {
      argument.kind = Kind::kText;
      argument.text = at.text();
    } else if (at.is_integer()) {
      argument.kind = Kind::kInteger;
      argument.integer = at.integer(std::numeric_limits<std::int64_t>::min(), kMostWhole);
    } else if (at.describe() == "`true`" || at.describe() == "`false`") {
      argument.kind = Kind::kBool;
      argument.truth = at.boolean();
    } else {
      argument.kind = Kind::kReal;
      argument.real =
          at.real(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max());
    }
    return argument;
  }

 private:
  ImportedArgument read_object(const JsonCursor& at) const {
    JsonFields fields(at);
    const std::vector<std::string> keys = fields.keys();
    if (keys.size() != 1) fail(at, "an object with " + std::to_string(keys.size()) + " keys");
    const std::string& key = keys.front();
    const JsonCursor value = fields.required(key);
    ImportedArgument argument;
    if (key == "v") {
      argument.kind = Kind::kValue;
      argument.text = value.text();
      if (!defined_.contains(argument.text)) {
        value.fail("the value " + json_string(argument.text) + " in " + place_of(node_),
                   "a value that was made before");
      }
    } else if (key == "size") {
      argument.kind = Kind::kSize;
      argument.size = read_size(value);
    } else if (key == "dtype") {
      argument.kind = Kind::kType;
      argument.type = read_type(value);
    } else if (key == "float") {
      argument.kind = Kind::kReal;
      argument.real = read_special(value);
    } else if (key == "device") {
      argument.kind = Kind::kDevice;
      if (!value.boolean()) value.fail("`false`", "`true`: where the layer runs");
    } else if (key == "layout" || key == "memory_format") {
      argument.kind = key == "layout" ? Kind::kLayout : Kind::kMemoryFormat;
      argument.text = value.text();
    } else if (key == "generator") {
      argument.kind = Kind::kGenerator;
      if (!value.is_null()) value.fail(value.describe(), "`null`");
    } else {
      fail(at, "the key " + json_string(key));
    }
    return argument;
  }

  Polynomial read_size(const JsonCursor& value) const {
    try {
      return parse_size(value);
    } catch (const InputError& error) {
      throw InputError(error.file(), error.line(), error.found() + " in " + place_of(node_),
                       error.expected());
    }
  }

  TensorType read_type(const JsonCursor& value) const {
    const auto type = parse_tensor_type(value.text());
    if (!type) value.fail(value.describe() + " in " + place_of(node_), "a type of real tensors");
    return *type;
  }

  double read_special(const JsonCursor& value) const {
    const std::string text = value.text();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    value.fail(value.describe() + " in " + place_of(node_), "inf, -inf or nan");
  }

  [[noreturn]] void fail(const JsonCursor& at, const std::string& found) const {
    at.fail(found + " in " + place_of(node_),
            "one of v, size, dtype, float, device, layout, memory_format, generator");
  }

  const ImportedNode& node_;
  const std::set<std::string>& defined_;
};

ImportedResult parse_result(const JsonCursor& at, const ImportedNode& node,
                            std::set<std::string>& defined) {
  ImportedResult result;
  const auto take = [&](const JsonCursor& name) {
    result.names.push_back(name.is_null() ? "" : name.text());
    if (name.is_null()) return;
    const std::string& made = result.names.back();
    if (!made.starts_with('v') || !defined.insert(made).second) {
      name.fail(name.describe() + " made by " + place_of(node), "a new name that begins with v");
    }
  };
  if (!at.is_object()) {
    take(at);
    return result;
  }
  result.is_list = true;
  JsonFields fields(at);
  for (const JsonCursor& name : fields.required("list").items()) take(name);
  fields.finish();
  return result;
}

ImportedNode parse_node(const JsonCursor& at, std::set<std::string>& defined) {
  ImportedNode node;
  JsonFields fields(at);
  node.op = fields.required("op").text();
  if (const auto path = fields.optional("path")) node.path = path->text();
  if (const auto source = fields.optional("source")) node.source = source->text();
  if (const auto draw = fields.optional("random"); draw && !draw->is_null()) {
    node.draw = draw->integer(0, kMostDraws);
  }
  if (const auto flag = fields.optional("no_grad")) node.has_no_gradient = flag->boolean();
  const ArgumentReader reader(node, defined);
  for (const JsonCursor& argument : fields.required("args").items()) {
    node.arguments.push_back(reader.read(argument));
  }
  if (const auto named = fields.optional("kwargs")) {
    JsonFields members(*named);
    for (const std::string& key : members.keys()) {
      node.named_arguments.emplace_back(key, reader.read(members.required(key)));
    }
  }
  for (const JsonCursor& result : fields.required("out").items()) {
    node.results.push_back(parse_result(result, node, defined));
  }
  fields.finish();
  return node;
}

}  // namespace

Polynomial parse_size(const JsonCursor& at) {
  Polynomial size;
  if (at.is_integer()) {
    size.number = at.integer(-kMostWhole, kMostWhole);
    return size;
  }
  if (at.is_string() && at.text() == "n") {
    size.kind = Polynomial::Kind::kSamples;
    return size;
  }
  if (!at.is_array() || at.items().empty()) at.fail(at.describe(), kPolynomial);
  const std::vector<JsonCursor> items = at.items();
  const std::string sign = items[0].is_string() ? items[0].text() : "";
  if (sign == "//") {
    if (items.size() != 3) at.fail(at.describe(), kPolynomial);
    size.kind = Polynomial::Kind::kQuotient;
    size.terms.push_back(parse_size(items[1]));
    size.number = items[2].integer(1, kMostWhole);
    return size;
  }
  if (sign != "+" && sign != "*") items[0].fail(items[0].describe(), kPolynomial);
  size.kind = sign == "+" ? Polynomial::Kind::kSum : Polynomial::Kind::kProduct;
  for (std::size_t i = 1; i < items.size(); ++i) size.terms.push_back(parse_size(items[i]));
  return size;
}

ImportedType parse_type(JsonFields& fields) {
  ImportedType parsed;
  const JsonCursor name = fields.required("dtype");
  const auto type = parse_tensor_type(name.text());
  if (!type) name.fail(name.describe(), "a type of real tensors, as float32");
  parsed.type = *type;
  for (const JsonCursor& size : fields.required("shape").items()) {
    parsed.shape.push_back(parse_size(size));
  }
  return parsed;
}

std::vector<ImportedNode> parse_nodes(const JsonCursor& list, std::set<std::string>& defined) {
  std::vector<ImportedNode> nodes;
  for (const JsonCursor& node : list.items()) nodes.push_back(parse_node(node, defined));
  return nodes;
}

}  // namespace frazil
