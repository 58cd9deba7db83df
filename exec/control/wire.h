#pragma once
// Turns structs of numbers, texts and lists into bytes and back. One function template per struct,
//   template <class Archive> void archive(Archive& a, Thing& t) { a(t.first, t.second); }
// serves both ways, so that writer and reader cannot disagree. Numbers are little endian, lists and
// texts begin with their count. A reader trusts nothing: what is cut short, too long or out of
// range is a WireError of one sentence, and no list takes more memory than its bytes allow.

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "profiles/units.h"

namespace frazil {

// Says that bytes are not what they should be.
class WireError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

static_assert(std::endian::native == std::endian::little);

class WireWriter {
 public:
  static constexpr bool kReads = false;

  WireWriter() { bytes_.reserve(128); }  // most messages need no more

  template <class... Things>
  void operator()(Things&... things) {
    (put(things), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void raw(const void* bytes, std::size_t size) {
    bytes_.append(static_cast<const char*>(bytes), size);
  }
  template <class T>
  void put(T& thing);

  std::string bytes_;
};

class WireReader {
 public:
  static constexpr bool kReads = true;

  explicit WireReader(std::string_view bytes) : left_(bytes) {}

  template <class... Things>
  void operator()(Things&... things) {
    (get(things), ...);
  }
  // Throws if something is left.
  void end() const {
    if (!left_.empty())
      throw WireError("found " + std::to_string(left_.size()) + " bytes too many");
  }

 private:
  void raw(void* bytes, std::size_t size) {
    if (size > left_.size()) throw WireError("found an end where more was to come");
    std::memcpy(bytes, left_.data(), size);
    left_.remove_prefix(size);
  }
  // A count of things that take at least a byte each.
  std::size_t count() {
    std::uint64_t value = 0;
    raw(&value, sizeof value);
    if (value > left_.size()) throw WireError("found a list that is longer than what holds it");
    return static_cast<std::size_t>(value);
  }
  template <class T>
  void get(T& thing);

  std::string_view left_;
};

// The last value of an enumeration that goes over the wire, which has all values from 0 up to it.
//   template <> struct WireEnum<Thing> { static constexpr Thing last = Thing::kLast; };
template <class T>
struct WireEnum;

namespace wire {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsArray : std::false_type {};
template <class T, std::size_t n>
struct IsArray<std::array<T, n>> : std::true_type {};
template <class T>
struct IsVariant : std::false_type {};
template <class... T>
struct IsVariant<std::variant<T...>> : std::true_type {};

// Makes alternative `index` of a variant.
template <class Variant, std::size_t i = 0>
void emplace(Variant& variant, std::size_t index) {
  if constexpr (i < std::variant_size_v<Variant>) {
    if (index == i) {
      variant.template emplace<i>();
    } else {
      emplace<Variant, i + 1>(variant, index);
    }
  } else {
    throw WireError("found kind " + std::to_string(index) + ", which there is not");
  }
}

}  // namespace wire

template <class Archive, class Tag>
void archive(Archive& a, Id<Tag>& id) {
  a(id.value);
}
template <class Archive>
void archive(Archive& a, Bytes& bytes) {
  a(bytes.count);
}
template <class Archive>
void archive(Archive& a, Duration& duration) {
  auto count = duration.count();
  a(count);
  duration = Duration{count};
}

template <class T>
void WireWriter::put(T& thing) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::uint8_t value = thing ? 1 : 0;
    raw(&value, 1);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    raw(&thing, sizeof thing);
  } else if constexpr (std::is_same_v<T, std::string>) {
    const auto size = static_cast<std::uint64_t>(thing.size());
    raw(&size, sizeof size);
    raw(thing.data(), thing.size());
  } else if constexpr (wire::IsVector<T>::value) {
    const auto size = static_cast<std::uint64_t>(thing.size());
    raw(&size, sizeof size);
    for (typename T::value_type one : thing) put(one);
  } else if constexpr (wire::IsArray<T>::value) {
    for (auto& one : thing) put(one);
  } else if constexpr (wire::IsOptional<T>::value) {
    bool is_there = thing.has_value();
    put(is_there);
    if (is_there) put(*thing);
  } else if constexpr (wire::IsVariant<T>::value) {
    auto index = static_cast<std::uint32_t>(thing.index());
    put(index);
    std::visit([this](auto& one) { this->put(one); }, thing);
  } else {
    archive(*this, thing);
  }
}

template <class T>
void WireReader::get(T& thing) {
  if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t value = 0;
    raw(&value, 1);
    if (value > 1) throw WireError("found " + std::to_string(value) + ", expected 0 or 1");
    thing = value == 1;
  } else if constexpr (std::is_enum_v<T>) {
    using Number = std::make_unsigned_t<std::underlying_type_t<T>>;
    Number value = 0;
    raw(&value, sizeof value);
    if (value > static_cast<Number>(WireEnum<T>::last)) {
      throw WireError("found value " + std::to_string(value) + ", which there is not");
    }
    thing = static_cast<T>(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    raw(&thing, sizeof thing);
  } else if constexpr (std::is_same_v<T, std::string>) {
    thing.resize(count());
    raw(thing.data(), thing.size());
  } else if constexpr (wire::IsVector<T>::value) {
    const std::size_t size = count();
    thing.clear();
    for (std::size_t i = 0; i < size; ++i) {
      typename T::value_type one{};
      get(one);
      thing.push_back(std::move(one));
    }
  } else if constexpr (wire::IsArray<T>::value) {
    for (auto& one : thing) get(one);
  } else if constexpr (wire::IsOptional<T>::value) {
    bool is_there = false;
    get(is_there);
    thing.reset();
    if (is_there) get(thing.emplace());
  } else if constexpr (wire::IsVariant<T>::value) {
    std::uint32_t index = 0;
    get(index);
    wire::emplace(thing, index);
    std::visit([this](auto& one) { this->get(one); }, thing);
  } else {
    archive(*this, thing);
  }
}

template <class T>
std::string encode(T thing) {
  WireWriter writer;
  writer(thing);
  return writer.take();
}

// Throws WireError.
template <class T>
T decode(std::string_view bytes) {
  WireReader reader(bytes);
  T thing{};
  reader(thing);
  reader.end();
  return thing;
}

}  // namespace frazil
