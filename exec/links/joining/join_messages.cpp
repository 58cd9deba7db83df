#include "exec/links/joining/join_messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::string_view kMagic = "FRZJ";
constexpr std::size_t kMostVersion = 64;
constexpr std::size_t kMostHost = 255;
constexpr std::size_t kMostSentence = 1024;
constexpr std::size_t kMostAddresses = 1U << 14;

class Writer {
 public:
  template <class Integer>
  void number(Integer value) {
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
      bytes_ += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
    }
  }
  void count(int value) { number(static_cast<std::uint32_t>(value)); }
  void flag(bool value) { bytes_ += static_cast<char>(value ? 1 : 0); }
  void secret(const Secret& value) { bytes_.append(value.begin(), value.end()); }
  void text(std::string_view value, std::size_t most) {
    value = value.substr(0, most);
    number(static_cast<std::uint16_t>(value.size()));
    bytes_ += value;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Once something does not fit, all that follows is empty and done() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class Integer>
  Integer number() {
    std::uint64_t value = 0;
    const std::string_view part = take(sizeof(Integer));
    for (std::size_t i = 0; i < part.size(); ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(part[i])) << (8 * i);
    }
    return static_cast<Integer>(value);
  }
  int count() {
    const auto value = number<std::uint32_t>();
    if (value > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) fits_ = false;
    return fits_ ? static_cast<int>(value) : 0;
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    if (value > 1) fits_ = false;
    return value == 1;
  }
  Secret secret() {
    Secret value{};
    const std::string_view part = take(value.size());
    std::copy(part.begin(), part.end(), value.begin());
    return value;
  }
  std::string text(std::size_t most) {
    const auto size = number<std::uint16_t>();
    if (size > most) fits_ = false;
    return std::string(take(size));
  }
  void refuse() { fits_ = false; }
  bool fits() const { return fits_; }
  bool done() const { return fits_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (!fits_ || size > rest_.size()) {
      fits_ = false;
      return {};
    }
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }

  std::string_view rest_;
  bool fits_ = true;
};

void write(Writer& to, const ProcessFacts& facts) {
  to.text(facts.version, kMostVersion);
  to.number(facts.build);
  to.number(facts.run);
  to.number(facts.kernels);
  to.count(facts.attempt);
  to.text(facts.host, kMostHost);
  to.count(facts.pid);
  to.count(facts.devices);
}

ProcessFacts read_facts(Reader& from) {
  ProcessFacts facts;
  facts.version = from.text(kMostVersion);
  facts.build = from.number<std::uint64_t>();
  facts.run = from.number<std::uint64_t>();
  facts.kernels = from.number<std::uint64_t>();
  facts.attempt = from.count();
  facts.host = from.text(kMostHost);
  facts.pid = from.count();
  facts.devices = from.count();
  return facts;
}

void write(Writer& to, const Challenge& challenge) {
  to.secret(challenge.nonce);
  to.flag(challenge.wants_token);
}

void write(Writer& to, const Hello& hello) {
  write(to, hello.facts);
  to.flag(hello.asked.has_value());
  to.count(hello.asked.value_or(0));
  to.number(hello.port);
  to.flag(hello.has_token);
  to.secret(hello.challenge);
  to.secret(hello.nonce);
  to.secret(hello.proof);
}

void write(Writer& to, const Welcome& welcome) {
  to.count(welcome.process);
  to.number(welcome.epoch);
  to.secret(welcome.session);
  to.count(static_cast<int>(welcome.addresses.size()));
  for (const SocketAddress& address : welcome.addresses) {
    to.text(address.host, kMostHost);
    to.number(address.port);
  }
  to.secret(welcome.proof);
}

void write(Writer& to, const Refusal& refusal) { to.text(refusal.sentence, kMostSentence); }

void write(Writer& to, const Dial& dial) {
  to.number(dial.epoch);
  to.count(dial.from);
  to.count(dial.to);
  to.number(static_cast<std::uint8_t>(dial.link));
  to.secret(dial.challenge);
  to.secret(dial.nonce);
  to.secret(dial.proof);
}

void write(Writer& to, const Answer& answer) { to.secret(answer.proof); }

Challenge read_challenge(Reader& from) {
  Challenge challenge;
  challenge.nonce = from.secret();
  challenge.wants_token = from.flag();
  return challenge;
}

Hello read_hello(Reader& from) {
  Hello hello;
  hello.facts = read_facts(from);
  const bool asks = from.flag();
  const int asked = from.count();
  if (asks) {
    hello.asked = asked;
  } else if (asked != 0) {
    from.refuse();
  }
  hello.port = from.number<std::uint16_t>();
  hello.has_token = from.flag();
  hello.challenge = from.secret();
  hello.nonce = from.secret();
  hello.proof = from.secret();
  return hello;
}

Welcome read_welcome(Reader& from) {
  Welcome welcome;
  welcome.process = from.count();
  welcome.epoch = from.number<std::uint64_t>();
  welcome.session = from.secret();
  const auto size = static_cast<std::size_t>(from.count());
  if (size > kMostAddresses) from.refuse();
  for (std::size_t i = 0; i < size && from.fits(); ++i) {
    SocketAddress address;
    address.host = from.text(kMostHost);
    address.port = from.number<std::uint16_t>();
    welcome.addresses.push_back(std::move(address));
  }
  welcome.proof = from.secret();
  return welcome;
}

Dial read_dial(Reader& from) {
  Dial dial;
  dial.epoch = from.number<std::uint64_t>();
  dial.from = from.count();
  dial.to = from.count();
  const auto link = from.number<std::uint8_t>();
  if (link > static_cast<std::uint8_t>(LinkSocket::kBulk)) from.refuse();
  dial.link = static_cast<LinkSocket>(link);
  dial.challenge = from.secret();
  dial.nonce = from.secret();
  dial.proof = from.secret();
  return dial;
}

std::optional<JoinMessage> read_message(std::uint8_t kind, Reader& from) {
  switch (kind) {
    case 0:
      return read_challenge(from);
    case 1:
      return read_hello(from);
    case 2:
      return read_welcome(from);
    case 3:
      return Refusal{from.text(kMostSentence)};
    case 4:
      return read_dial(from);
    case 5:
      return Answer{from.secret()};
    default:  // of another process, so any number may come
      return std::nullopt;
  }
}

}  // namespace

std::optional<JoinHead> parse_head(std::string_view bytes) {
  ENSURE(bytes.size() == kJoinHeadBytes, "a head has its size");
  if (bytes.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  Reader from(bytes.substr(kMagic.size()));
  JoinHead head;
  head.protocol = from.number<std::uint16_t>();
  head.kind = from.number<std::uint8_t>();
  if (from.number<std::uint8_t>() != 0) return std::nullopt;
  head.bytes = from.number<std::uint32_t>();
  return head;
}

std::optional<JoinMessage> parse_body(std::uint8_t kind, std::string_view body) {
  Reader from(body);
  std::optional<JoinMessage> message = read_message(kind, from);
  if (!from.done()) return std::nullopt;
  return message;
}

std::string to_bytes(const JoinMessage& message) {
  Writer body;
  std::visit([&](const auto& told) { write(body, told); }, message);
  const std::string bytes = body.take();
  Writer head;
  head.number(kJoinProtocol);
  head.number(static_cast<std::uint8_t>(message.index()));
  head.number(std::uint8_t{0});
  head.number(static_cast<std::uint32_t>(bytes.size()));
  return std::string(kMagic) + head.take() + bytes;
}

std::string_view vouched_part(std::string_view body) {
  return body.substr(0, body.size() - std::min(body.size(), kSecretBytes));
}

}  // namespace frazil
