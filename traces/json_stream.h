#pragma once
// JSON text as it streams by: a file of any size, plain or gzip, read through one small window. The
// caller walks the grammar forward, value by value, and skips what it does not want:
//   stream.enter_object();
//   while (stream.next_member()) {
//     if (stream.key() == "name") name = stream.string(); else stream.skip();
//   }
// Views (key, string, number) hold until the next call. Errors are InputError with file and line.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s;  // of zlib

namespace frazil {

class JsonStream {
 public:
  // A string or number longer than the largest window (16 MiB) is refused.
  static constexpr std::size_t kFirstWindow = std::size_t{1} << 18;

  // Throws InputError when the file cannot be opened. A small `window` is for tests.
  explicit JsonStream(const std::filesystem::path& path, std::size_t window = kFirstWindow);
  // A text in memory; `file` is its name in messages. Keeps a copy.
  JsonStream(std::string_view text, std::string file);

  void enter_object();
  bool next_member();  // reads a key and its colon; false: the object is left
  std::string_view key() const { return key_; }
  void enter_array();
  bool next_item();  // false: the array is left

  // First character of the next value: one of { [ " - 0..9 t f n for good text, '\0' at its end.
  char peek() {
    if (*at_ == ' ') ++at_;  // most often one alone
    if (static_cast<unsigned char>(*at_) <= ' ') skip_space();
    return *at_;
  }
  // What stands between the quotes, escapes as written.
  std::string_view string();
  // A string with its escapes resolved; those that JSON does not know are refused.
  std::string text() { return unescaped(string()); }
  std::string unescaped(std::string_view raw);
  // The digits as written, of the grammar of JSON numbers.
  std::string_view number();
  std::int64_t integer();  // a number without point or exponent that fits 64 bits
  void skip();             // any one value

  // Nothing but white space may follow, and a gzip file must be whole.
  void finish();

  int line();  // where the reading stands
  const std::string& file() const { return file_; }
  // Throws InputError with the present line; the second form says what stands here.
  [[noreturn]] void fail(const std::string& found, const std::string& expected);
  [[noreturn]] void fail(std::string_view expected);

 private:
  struct CloseFile {
    void operator()(gzFile_s* file) const;
  };

  bool refill(const char*& kept);
  void read_more();
  void skip_space();
  bool has(std::size_t count);
  void expect_symbol(char symbol, const char* expected);
  void open(char symbol, const char* expected);
  bool next_in(char end, const char* expected);
  void skip_to_colon();
  std::string_view quoted(const char* expected);
  std::string_view quoted_on(const char* begin, const char* stop);
  std::string_view number_on(const char* begin);
  void skip_word(std::string_view word);

  std::string file_;
  std::unique_ptr<gzFile_s, CloseFile> source_;  // none for a text in memory
  std::vector<char> window_;                     // ends in a zero byte, at end_
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  const char* counted_ = nullptr;  // line_ is the line of this character
  bool is_at_end_ = false;         // nothing more to read
  bool is_truncated_ = false;
  int line_ = 1;
  std::string_view key_;
  std::size_t depth_ = 0;  // of open arrays and objects
  bool is_first_ = false;  // nothing read yet in the innermost; those around it have begun
};

}  // namespace frazil
