// An error inside a step names its place and stays what it is.

#include "exec/devices/step_fault.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "exec/communication/communication_error.h"
#include "profiles/error.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

// Returns what reaches the end of a step whose action 1B3 of step 17 on rank 1 does this.
template <class Error>
std::string sentence_of(const std::function<void()>& body) {
  const Action action = parse_action("1B3");
  const StepPlace place{.rank = 1, .step = 17, .action = &action};
  try {
    try {
      body();
    } catch (...) {
      rethrow_at(place);
    }
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another type: ") + error.what();
  }
  return "nothing was thrown";
}

TEST(StepFault, NamesRankStepAndAction) {
  EXPECT_EQ(sentence_of<std::runtime_error>([] { throw std::runtime_error("no kernel for it"); }),
            "rank 1, step 17, action 1B3: no kernel for it");
  EXPECT_EQ(sentence_of<std::runtime_error>([] { throw 5; }),
            "rank 1, step 17, action 1B3: an unknown exception");
}

TEST(StepFault, NamesNoActionBeforeTheFirst) {
  try {
    try {
      throw InfeasibleError("nothing fits");
    } catch (...) {
      rethrow_at({.rank = 0, .step = 2});
    }
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(), "rank 0, step 2: nothing fits");
  }
}

TEST(StepFault, KeepsTheKindsApartThatProgramsEndWith) {
  EXPECT_EQ(sentence_of<InfeasibleError>([] { throw InfeasibleError("it does not fit"); }),
            "rank 1, step 17, action 1B3: it does not fit");
  EXPECT_EQ(sentence_of<OutOfMemory>([] { throw std::bad_alloc(); }),
            "rank 1, step 17, action 1B3: out of memory");
  EXPECT_EQ(sentence_of<std::logic_error>([] {
              ENSURE(false, "never");
            }).rfind("rank 1, step 17, action 1B3: ", 0),
            0U);
  EXPECT_EQ(sentence_of<InputError>([] { throw InputError("a.json", 3, "x", "y"); }),
            InputError("a.json", 3, "x", "y").what());
}

TEST(StepFault, LeavesTheCauseOfALostPeerAsItIs) {
  EXPECT_EQ(sentence_of<PeerLost>([] { throw PeerLost("rank 0, step 17, action 0F1: no"); }),
            "rank 0, step 17, action 0F1: no");
  EXPECT_EQ(sentence_of<CommunicationError>(
                [] { throw CommunicationError({.step = {}, .awaited = {}, .sentence = "late"}); }),
            "late");
}

TEST(StepFault, KnowsTorchsFailedAllocation) {
  if (!kSanitizer.empty()) GTEST_SKIP() << "a sanitizer ends the process where an allocation fails";
  const std::string sentence =
      sentence_of<OutOfMemory>([] { (void)at::empty({std::int64_t{1} << 55}, at::kByte); });
  EXPECT_EQ(sentence,
            "rank 1, step 17, action 1B3: out of memory: a tensor of 36028797018963968 bytes "
            "(32768.00 TiB) cannot be allocated");
}

TEST(StepFault, KnowsATensorWhoseBytesCannotBeCounted) {
  const std::string sentence = sentence_of<OutOfMemory>([] {
    (void)at::empty({std::int64_t{1} << 62, 8}, at::kFloat);
  });
  EXPECT_EQ(sentence,
            "rank 1, step 17, action 1B3: out of memory: a tensor of the sizes "
            "[4611686018427387904, 8] has more bytes than can be counted");
}

TEST(StepFault, KeepsTorchsExplanationToOneLine) {
  const std::string sentence =
      sentence_of<std::runtime_error>([] { (void)at::add(at::ones({2}), at::ones({3})); });
  EXPECT_EQ(sentence.rfind("rank 1, step 17, action 1B3: The size of tensor a (2)", 0), 0U)
      << sentence;
  EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
}

}  // namespace
}  // namespace frazil
