#include "profiles/import/sailor_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <system_error>

namespace frazil {

int parse_sailor_key(const std::string& key, const JsonCursor& value, int minimum,
                     const std::string& noun) {
  int number = 0;
  const char* const end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data(), end, number);
  const bool is_whole = error == std::errc{} && stop == end && std::to_string(number) == key;
  if (!is_whole || number < minimum || number > kLargestSailorNumber) {
    value.fail("a key that is no number",
               fmt::format("{} from {} to {}", noun, minimum, kLargestSailorNumber));
  }
  return number;
}

void visit_numbered(const JsonCursor& object, int minimum, const std::string& noun,
                    const std::function<void(int, const JsonCursor&)>& visit) {
  JsonFields fields(object);
  const std::vector<std::string> keys = fields.keys();
  if (keys.empty()) object.fail("an empty object", "at least " + noun);
  for (const std::string& key : keys) {
    const JsonCursor value = fields.required(key);
    visit(parse_sailor_key(key, value, minimum, noun), value);
  }
}

std::vector<JsonCursor> take_layers(const JsonCursor& object) {
  std::map<int, JsonCursor> by_layer;
  visit_numbered(object, 0, "a layer",
                 [&](int layer, const JsonCursor& value) { by_layer.emplace(layer, value); });
  std::vector<JsonCursor> layers;
  for (const auto& [layer, value] : by_layer) {
    const auto next = static_cast<int>(layers.size());
    if (layer != next) {
      object.fail(fmt::format("layer {} but no layer {}", layer, next), "layers without a gap");
    }
    layers.push_back(value);
  }
  return layers;
}

Duration take_seconds(const JsonCursor& value) {
  return Duration{std::llround(value.real(0, kLongestSailorTime) * 1e9)};
}

}  // namespace frazil
