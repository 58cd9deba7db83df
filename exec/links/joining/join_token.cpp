#include "exec/links/joining/join_token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "exec/links/descriptor.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr const char* kExpected = "a token: 32 bytes, or 64 hex digits";

std::optional<Secret> parse_token(std::string_view text) {
  Secret token{};
  if (text.size() == kSecretBytes) {
    std::memcpy(token.data(), text.data(), kSecretBytes);
    return token;
  }
  if (text.size() == 2 * kSecretBytes + 1 && text.back() == '\n') text.remove_suffix(1);
  return parse_digits(text);
}

// A token that others may read or replace is none.
void check_owner(int file, const std::string& name) {
  struct stat facts {};
  if (::fstat(file, &facts) != 0) fail_system(name, errno, "fstat", kExpected);
  if (!S_ISREG(facts.st_mode)) throw InputError(name, 0, "no regular file", kExpected);
  if (facts.st_uid != ::geteuid()) {
    throw InputError(name, 0, "a file of user " + std::to_string(facts.st_uid),
                     "one of user " + std::to_string(::geteuid()));
  }
  const unsigned mode = facts.st_mode & 07777U;
  if (mode == 0600U) return;
  std::array<char, 16> octal{};
  std::snprintf(octal.data(), octal.size(), "%04o", mode);
  throw InputError(name, 0, std::string("mode ") + octal.data(),
                   "mode 0600, so that nobody else reads the token; chmod 600 it");
}

void write_whole(int file, std::string_view text, const std::string& name) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_system(name, errno, "write", "a place for a token");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file) != 0) fail_system(name, errno, "fsync", "a place for a token");
}

}  // namespace

Secret read_token(const std::filesystem::path& place) {
  const std::string name = place.string();
  // Not blocking: a pipe of that name would wait for a writer.
  const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) fail_system(name, errno, "open", kExpected);
  check_owner(file.number(), name);
  std::array<char, 2 * kSecretBytes + 2> bytes{};
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(name, errno, "read", kExpected);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  const std::optional<Secret> token = parse_token({bytes.data(), size});
  OPENSSL_cleanse(bytes.data(), bytes.size());
  if (!token) throw InputError(name, 0, "something else", kExpected);
  return *token;
}

Secret make_token(const std::filesystem::path& place) {
  const std::string name = place.string();
  std::string aside = name + ".XXXXXX";
  const Descriptor file(::mkostemp(aside.data(), O_CLOEXEC));  // mode 0600
  if (!file.is_open()) fail_system(name, errno, "open", "a place for a token");
  const Secret token = draw_secret();
  int linked = 0;
  try {
    write_whole(file.number(), to_digits(token) + "\n", name);
    linked = ::link(aside.c_str(), name.c_str()) == 0 ? 0 : errno;
  } catch (const InputError&) {
    ::unlink(aside.c_str());
    throw;
  }
  ::unlink(aside.c_str());
  if (linked != 0) fail_system(name, linked, "link", "a place where no file is yet");
  return token;
}

Secret make_proof(const Secret& key, ProofPurpose purpose, const Secret& listener_nonce,
                  const Secret& caller_nonce, std::string_view message) {
  std::string bytes = "frazil join 1";
  bytes += static_cast<char>(purpose);
  bytes.append(listener_nonce.begin(), listener_nonce.end());
  bytes.append(caller_nonce.begin(), caller_nonce.end());
  bytes += message;
  Secret proof{};
  unsigned size = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), proof.data(), &size);
  ENSURE(made != nullptr && size == proof.size(), "libcrypto has HMAC-SHA256");
  return proof;
}

}  // namespace frazil
