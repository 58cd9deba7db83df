#pragma once
// Reads JSON text as a stream: a file of any size, plain or gzip, through one small window. The
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

struct gzFile_s;  // declared by zlib

namespace frazil {

class JsonStream {
 public:
  // The first size of the window. It grows with the longest string or number; one of more than 16
  // MiB is refused.
  static constexpr std::size_t kFirstWindow = std::size_t{1} << 18;

  // Throws InputError when the file cannot be opened. A small `window` is for tests.
  explicit JsonStream(const std::filesystem::path& path, std::size_t window = kFirstWindow);
  // Reads a copy of a text in memory; `file` is its name in messages.
  JsonStream(std::string_view text, std::string file);

  void enter_object();
  bool next_member();  // reads a key and its colon; false: the object is left
  std::string_view key() const { return key_; }
  void enter_array();
  bool next_item();  // false: the array is left

  // Returns the first character of the next value: one of { [ " - 0..9 t f n for good text, '\0' at
  // its end.
  char peek() {
    if (*at_ == ' ') ++at_;  // mostly a single space
    if (static_cast<unsigned char>(*at_) <= ' ') skip_space();
    return *at_;
  }
  // Reads a string and returns the text between its quotes, escapes as written.
  std::string_view string();
  // Reads a string and resolves its escapes; those that JSON does not know are refused.
  std::string text() { return unescaped(string()); }
  std::string unescaped(std::string_view raw);
  // Reads a JSON number and returns its digits as written.
  std::string_view number();
  std::int64_t integer();  // a number without point or exponent that fits 64 bits
  void skip();             // skips one value of any kind

  // Throws unless nothing but white space follows and a gzip file is whole.
  void finish();

  int line();  // line of the next character to read
  const std::string& file() const { return file_; }
  // Throw InputError with the present line. The second form quotes what the text holds here.
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
  std::unique_ptr<gzFile_s, CloseFile> source_;  // null for a text in memory
  std::vector<char> window_;                     // ends in a zero byte, at end_
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  const char* counted_ = nullptr;  // line_ is the line of this character
  bool is_at_end_ = false;         // nothing more to read
  bool is_truncated_ = false;
  int line_ = 1;
  std::string_view key_;
  std::size_t depth_ = 0;  // number of open arrays and objects
  bool is_first_ = false;  // nothing is read yet in the innermost array or object
};

}  // namespace frazil
