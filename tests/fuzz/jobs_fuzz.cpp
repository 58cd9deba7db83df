// Any bytes are refused in a sentence, or are a job or an answer that is written as the same bytes
// again. Each kind of answer is tried, since a mutation does not know which job it belongs to. What
// is read takes no more memory than its bytes allow.

#include "exec/run/jobs/job_codec.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "exec/train/processes/member_setup.h"
#include "tests/fuzz/property.h"

namespace frazil {
namespace {

template <class T>
std::optional<T> read_or_refuse(std::string_view bytes) {
  try {
    return decode<T>(bytes);
  } catch (const WireError& error) {
    require(std::string_view(error.what()).starts_with("found "), "a refusal says what it found");
    return std::nullopt;
  }
}

// What has been read once is the same when it is written and read again.
template <class T>
void check(std::string_view bytes) {
  const std::optional<T> read = read_or_refuse<T>(bytes);
  if (!read) return;
  const std::string written = encode(*read);
  require(encode(decode<T>(written)) == written, "what was read is written as the same bytes");
}

void check_all(std::string_view bytes) {
  check<Job>(bytes);
  check<MemberSetup>(bytes);
  check<Done>(bytes);
  check<std::uint64_t>(bytes);
  check<StepAnswer>(bytes);
  check<EvaluationAnswer>(bytes);
  check<MoveReport>(bytes);
  check<std::optional<LayerId>>(bytes);
  check<std::vector<LayerDigest>>(bytes);
  check<std::vector<BlockNumbers>>(bytes);
  check<std::vector<LayerSample>>(bytes);
  check<std::vector<LossSample>>(bytes);
  check<PairTimes>(bytes);
  check<std::vector<Duration>>(bytes);
}

}  // namespace
}  // namespace frazil

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  frazil::check_all({reinterpret_cast<const char*>(data), size});
  return 0;
}
