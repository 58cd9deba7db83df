#include "traces/json_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "profiles/error.h"
#include "traces/json_scan.h"
#include "traces/json_text.h"

namespace frazil {
namespace {

constexpr std::size_t kLargestWindow = std::size_t{16} << 20;
constexpr std::size_t kDeepestNesting = 64;
constexpr std::size_t kLongestQuote = 40;

std::string in_backticks(std::string_view text) { return fmt::format("`{}`", text); }

}  // namespace

void JsonStream::CloseFile::operator()(gzFile_s* file) const { gzclose(file); }

JsonStream::JsonStream(const std::filesystem::path& path, std::size_t window)
    : file_(path.string()), window_(window + kScanMargin) {
  errno = 0;
  source_.reset(gzopen(path.c_str(), "rb"));
  if (source_ == nullptr) {
    if (errno == ENOENT) throw InputError(file_, 0, "no such file", "a readable file");
    fail_system(file_, errno, "", "a readable file");
  }
  gzbuffer(source_.get(), kFirstWindow / 8);
  at_ = end_ = counted_ = window_.data();
}

JsonStream::JsonStream(std::string_view text, std::string file)
    : file_(std::move(file)), window_(text.begin(), text.end()), is_at_end_(true) {
  window_.resize(text.size() + kScanMargin);
  at_ = counted_ = window_.data();
  end_ = at_ + text.size();
}

int JsonStream::line() {
  line_ += count_lines(counted_, at_);
  counted_ = at_;
  return line_;
}

void JsonStream::fail(const std::string& found, const std::string& expected) {
  throw InputError(file_, line(), found, expected);
}

void JsonStream::fail(std::string_view expected) {
  if (!has(1))
    fail(is_truncated_ ? "the end of a truncated gzip file" : "the end of the text",
         std::string(expected));
  has(kLongestQuote);
  const char* last = std::find_if(at_, end_, [](char c) { return is_json_space(c) || c == ','; });
  last = std::clamp(last, at_ + 1, at_ + std::min<std::ptrdiff_t>(end_ - at_, kLongestQuote));
  fail(in_backticks({at_, last}), std::string(expected));
}

// Fills the window behind end_.
void JsonStream::read_more() {
  const std::size_t held = static_cast<std::size_t>(end_ - window_.data());
  const std::size_t room = window_.size() - kScanMargin - held;
  const int count = gzread(source_.get(), window_.data() + held, static_cast<unsigned>(room));
  int error = Z_OK;
  const char* message = gzerror(source_.get(), &error);
  if (error == Z_ERRNO) {
    const int number = errno;
    if (number == EISDIR) throw InputError(file_, 0, "a folder", "a readable file");
    fail_system(file_, number, "", "a readable file");
  }
  // zlib reports packed data that end too early as a buffer error; the data before it are good.
  is_truncated_ = error == Z_BUF_ERROR;
  if (count < 0 && !is_truncated_) {
    fail(fmt::format("packed data that cannot be unpacked ({})", message), "a whole gzip file");
  }
  end_ += std::max(count, 0);
  window_[static_cast<std::size_t>(end_ - window_.data())] = '\0';
  is_at_end_ = count <= 0;
}

// Moves [kept, end_) to the front of the window and reads on; returns false at the end of the file.
// `at_` and `kept` keep pointing at their characters.
bool JsonStream::refill(const char*& kept) {
  if (is_at_end_) return false;
  line();
  const auto held = static_cast<std::size_t>(end_ - kept);
  const auto offset = at_ - kept;
  if (held + kScanMargin == window_.size()) {
    if (held >= kLargestWindow) fail("a string or number of more than 16 MiB", "a shorter one");
    std::vector<char> larger(2 * held + kScanMargin);
    std::copy(kept, end_, larger.begin());
    window_.swap(larger);
  } else {
    std::memmove(window_.data(), kept, held);
  }
  kept = window_.data();
  at_ = counted_ = kept + offset;
  end_ = kept + held;
  read_more();
  return end_ != kept + held;
}

bool JsonStream::has(std::size_t count) {
  while (static_cast<std::size_t>(end_ - at_) < count) {
    const char* kept = at_;
    if (!refill(kept)) return false;
  }
  return true;
}

void JsonStream::skip_space() {
  do {
    at_ = find_non_space(at_);
  } while (at_ == end_ && has(1));
}

void JsonStream::expect_symbol(char symbol, const char* expected) {
  if (peek() != symbol) fail(expected);
  ++at_;
}

void JsonStream::open(char symbol, const char* expected) {
  expect_symbol(symbol, expected);
  if (depth_ == kDeepestNesting) {
    fail(fmt::format("nesting deeper than {}", kDeepestNesting),
         fmt::format("at most {} arrays and objects in each other", kDeepestNesting));
  }
  ++depth_;
  is_first_ = true;
}

void JsonStream::enter_object() { open('{', "an object"); }
void JsonStream::enter_array() { open('[', "an array"); }

// Steps over the comma before a member or item; false when the list ends here.
inline bool JsonStream::next_in(char end, const char* expected) {
  const char symbol = peek();
  if (symbol == end) {
    ++at_;
    --depth_;
    is_first_ = false;
    return false;
  }
  if (!is_first_) {
    if (symbol != ',') fail(expected);
    ++at_;
  }
  is_first_ = false;
  return true;
}

inline std::string_view JsonStream::quoted(const char* expected) {
  if (peek() != '"') fail(expected);
  const char* const begin = at_ + 1;
  const char* const end = find_string_stop(begin);
  at_ = end + 1;
  if (*end != '"') return quoted_on(begin, end);
  return {begin, static_cast<std::size_t>(end - begin)};
}

// Reads on the string that begins at `begin` from `stop`, its first stop that is no quote.
std::string_view JsonStream::quoted_on(const char* begin, const char* stop) {
  at_ = stop;
  while (*at_ != '"') {
    if (*at_ == '\\' && end_ - at_ >= 2) {
      at_ += 2;
    } else if (*at_ == '\\' || at_ == end_) {
      if (!refill(begin)) {
        at_ = end_;
        fail("the closing quote of a string");
      }
    } else {
      fail("a control character in a string", "its escape, such as `\\n`");
    }
    at_ = find_string_stop(at_);
  }
  const std::string_view text(begin, static_cast<std::size_t>(at_ - begin));
  ++at_;
  return text;
}

bool JsonStream::next_member() {
  if (!next_in('}', "`,` or `}`")) return false;
  key_ = quoted("a key in double quotes");
  if (*at_ != ':') skip_to_colon();
  ++at_;
  return true;
}

// Skips the space before the colon; keeps the key in the window meanwhile.
void JsonStream::skip_to_colon() {
  const auto size = key_.size();
  const char* kept = key_.data();
  while (is_json_space(*at_) || at_ == end_) {
    if (at_ == end_ && !refill(kept)) break;
    if (is_json_space(*at_)) ++at_;
  }
  key_ = {kept, size};
  if (*at_ != ':') fail("`:` after the key");
}

bool JsonStream::next_item() { return next_in(']', "`,` or `]`"); }

std::string_view JsonStream::string() { return quoted("a string"); }

std::string_view JsonStream::number() {
  const char first = peek();
  if (first != '-' && !is_digit(first)) fail("a number");
  const char* const begin = at_;
  at_ = skip_plain_number(begin);
  if (at_ == end_ || may_stand_in_number(*at_)) return number_on(begin);
  return {begin, static_cast<std::size_t>(at_ - begin)};
}

// Reads on the number that begins at `begin`, from at_; refuses text that is no JSON number.
std::string_view JsonStream::number_on(const char* begin) {
  while (true) {
    while (may_stand_in_number(*at_)) ++at_;
    if (at_ != end_ || !refill(begin)) break;
  }
  const std::string_view text(begin, static_cast<std::size_t>(at_ - begin));
  if (!is_json_number(text)) fail(in_backticks(text.substr(0, kLongestQuote)), "a JSON number");
  return text;
}

std::int64_t JsonStream::integer() {
  const std::string_view text = number();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(in_backticks(text.substr(0, kLongestQuote)), "an integer that fits 64 bits");
  }
  return value;
}

void JsonStream::skip_word(std::string_view word) {
  if (!has(word.size()) || std::string_view(at_, word.size()) != word) fail("a JSON value");
  at_ += word.size();
}

// NOLINTNEXTLINE(misc-no-recursion): no deeper than kDeepestNesting
void JsonStream::skip() {
  switch (peek()) {
    case '{':
      enter_object();
      while (next_member()) skip();
      return;
    case '[':
      enter_array();
      while (next_item()) skip();
      return;
    case '"':
      string();
      return;
    case 't':
      return skip_word("true");
    case 'f':
      return skip_word("false");
    case 'n':
      return skip_word("null");
    default:
      if (*at_ != '-' && !is_digit(*at_)) fail("a JSON value");
      number();
  }
}

void JsonStream::finish() {
  skip_space();
  if (has(1)) fail("nothing after the JSON value");
  if (is_truncated_) fail("a whole gzip file");
}

std::string JsonStream::unescaped(std::string_view raw) {
  std::optional<std::string> text = unescape_json(raw);
  if (!text) fail("a string with an escape that JSON does not know", "escapes such as `\\n`");
  return std::move(*text);
}

}  // namespace frazil
