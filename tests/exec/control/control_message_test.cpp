// Leader and members understand each other's bytes, and take nothing else for a message.

#include "exec/control/control_message.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "exec/run/jobs/job_codec.h"

namespace frazil {
namespace {

template <class T>
T there_and_back(const ControlMessage& message) {
  const std::string bytes = to_bytes(message);
  std::string_view left = bytes;
  const std::optional<ControlMessage> read = take_message(left);
  EXPECT_TRUE(read && left.empty());
  return std::get<T>(*read);
}

TEST(ControlMessage, ComesOutAsItWentIn) {
  const auto order = there_and_back<OrderMessage>(OrderMessage{7, "a job"});
  EXPECT_EQ(order.number, 7U);
  EXPECT_EQ(order.job, "a job");
  const auto failure = there_and_back<FailureMessage>(
      FailureMessage{3, FaultKind::kOutOfMemory, "rank 1, step 4: out of memory"});
  EXPECT_EQ(failure.kind, FaultKind::kOutOfMemory);
  EXPECT_EQ(failure.sentence, "rank 1, step 4: out of memory");
  const auto ready = there_and_back<ReadyMessage>(ReadyMessage{12, {"", "losses"}});
  EXPECT_EQ(ready.step, 12);
  EXPECT_EQ(ready.notes, (std::vector<std::string>{"", "losses"}));
}

TEST(ControlMessage, IsNotThereBeforeItsLastByte) {
  const std::string bytes = to_bytes(CommitMessage{5}) + to_bytes(AbortMessage{"rank 1 is lost"});
  const std::size_t first = to_bytes(CommitMessage{5}).size();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::string_view left(bytes.data(), size);
    int messages = 0;
    while (take_message(left)) ++messages;
    EXPECT_EQ(messages, size >= first ? 1 : 0) << size << " bytes";
  }
}

TEST(ControlMessage, RefusesWhatNoMessageBeginsWith) {
  const auto refused = [](std::string bytes) {
    std::string_view left = bytes;
    try {
      (void)take_message(left);
    } catch (const WireError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  const std::string good = to_bytes(CommitMessage{5});
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n"), "found bytes that begin no control message");
  std::string later = good;
  later[4] = 9;
  EXPECT_EQ(refused(later), "found a control message of version 9, expected version 1");
  std::string large = good;
  large[11] = 0x7f;
  EXPECT_NE(refused(large).find("expected at most 16777216"), std::string::npos);
  std::string kind = good;
  kind[12] = 99;
  EXPECT_EQ(refused(kind), "found kind 99, which there is not");
  std::string count = to_bytes(AbortMessage{"lost"});
  count[16] = 120;
  EXPECT_EQ(refused(count), "found a list that is longer than what holds it");
}

TEST(ControlMessage, SurvivesAnyByteThatChanges) {
  constexpr std::uint64_t kSeed = 24;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  const std::string good =
      to_bytes(OrderMessage{1, encode(Job(StepJob{{.step = 4, .rate_factors = {1, 0.5}}, {}}))}) +
      to_bytes(ReadyMessage{4, {"note"}});
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int flips = 0; flips < 1 + i % 3; ++flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    std::string_view left = bytes;
    try {
      while (const auto message = take_message(left)) {
        if (const auto* const order = std::get_if<OrderMessage>(&*message)) {
          (void)decode<Job>(order->job);
        }
      }
    } catch (const WireError&) {
      continue;  // told in a sentence, which is all that is asked
    }
  }
}

TEST(Wire, CarriesEveryJobAndItsAnswer) {
  StepAnswer answer;
  answer.losses = {{MicroBatchId{2}, LayerId{7}, 0.25}};
  answer.non_finite_gradient = LayerId{3};
  answer.spans = {{DeviceId{1}, Lane::kSend, parse_action("1:2SEND_F0>5"), TimePoint{Duration{5}},
                   TimePoint{Duration{9}}}};
  answer.spans[0].action.step = 11;
  MeasuredMemory memory;
  memory.device = DeviceId{1};
  memory.total_peak = Bytes{77};
  memory.curve = {{TimePoint{Duration{1}}, Bytes{5}}};
  answer.memory = {memory};
  answer.note = "a batch of 5 samples runs as 1f1b";
  answer.cache = CacheTally{.process = 3, .counts = {.found = 5, .missed = 2}, .warnings = {"one"}};
  const auto read = decode<StepAnswer>(encode(answer));
  EXPECT_EQ(read.losses, answer.losses);
  EXPECT_EQ(read.non_finite_gradient, answer.non_finite_gradient);
  EXPECT_EQ(read.spans, answer.spans);
  EXPECT_EQ(read.memory.at(0).curve, memory.curve);
  EXPECT_EQ(read.note, answer.note);
  EXPECT_EQ(read.cache.value().process, 3);
  EXPECT_EQ(read.cache.value().counts, answer.cache->counts);
  EXPECT_EQ(read.cache.value().warnings, answer.cache->warnings);
  const FeatureRoom room{.in_memory = 7, .on_disk = FeatureRoom::kAny};
  const auto use = decode<Job>(encode(Job(UseCacheJob{{1, 2}, room})));
  EXPECT_EQ(std::get<UseCacheJob>(use).room, room);
  const auto take = decode<Job>(encode(Job(TakeStoreJob{{{"host", 2, 77, 5, -1, 9, 4}}})));
  EXPECT_EQ(std::get<TakeStoreJob>(take).offers.at(0).pid, 77);
  const auto job = decode<Job>(encode(Job(JoinJob{3, {0, 1, -1}})));
  EXPECT_EQ(std::get<JoinJob>(job).process_of, (std::vector<int>{0, 1, -1}));
  EXPECT_THROW((void)decode<StepAnswer>(encode(answer) + "x"), WireError);
}

// Reads bytes that differ a little from those of `thing`.
template <class T>
void survive_changes(const T& thing, std::mt19937_64& random) {
  const std::string good = encode(thing);
  EXPECT_EQ(encode(decode<T>(good)), good);
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes = good;
    for (int flips = 0; flips < 1 + i % 3 && !bytes.empty(); ++flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (i % 7 == 0) bytes.resize(random() % (bytes.size() + 1));
    try {
      const T read = decode<T>(bytes);
      EXPECT_EQ(encode(decode<T>(encode(read))), encode(read));
    } catch (const WireError& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 6), "found ");
    }
  }
}

TEST(Wire, SurvivesAnyByteOfAJobOrAnAnswerThatChanges) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  survive_changes(Job(StepJob{{.step = 4, .rate_factors = {1, 0.5}, .records = true}, {}}), random);
  survive_changes(Job(JoinJob{2, {0, 0, 1, -1}, Holdings{{DeviceId{0}, DeviceId{2}}, {}}}), random);
  survive_changes(Job(ConnectJob{2, 7, {0, 1}, {"", "127.0.0.1:4000"}}), random);
  survive_changes(Job(PrepareJob{"a plan"}), random);
  survive_changes(Job(EvaluateJob{SamplePart::kProbe, 8}), random);
  StepAnswer answer;
  answer.spans = {{DeviceId{1}, Lane::kSend, parse_action("1:2SEND_F0>5"), TimePoint{Duration{5}},
                   TimePoint{Duration{9}}}};
  answer.memory.resize(1);
  answer.weight_reads.resize(1);
  answer.compute = {{DeviceId{1}, Duration{7}}};
  survive_changes(answer, random);
  survive_changes(EvaluationAnswer{{{1, LayerId{3}, 0.5}}, 9}, random);
  survive_changes(std::vector<BlockNumbers>{{BlockId{1}, LayerId{0}, {0.5}}}, random);
  survive_changes(std::vector<LayerSample>{{LayerId{1}, LayerPhase::kUpdate, 8, Duration{9}}},
                  random);
}

TEST(Wire, RefusesValuesThatAnEnumerationDoesNotHave) {
  std::string sample = encode(LayerSample{LayerId{1}, LayerPhase::kUpdate, 8, Duration{9}});
  sample[sizeof(LayerId)] = 8;
  EXPECT_THROW((void)decode<LayerSample>(sample), WireError);
  std::string failure = to_bytes(FailureMessage{1, FaultKind::kUndone, "so"});
  failure[kControlHead + 4 + 8] = 8;
  std::string_view left = failure;
  EXPECT_THROW((void)take_message(left), WireError);
}

TEST(DeviceRuns, TellInWhichProcessEachDeviceIs) {
  constexpr std::uint64_t kSeed = 1024;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<int> process_of;
    int process = 0;
    for (std::uint64_t left = random() % 20; left > 0; --left) {
      const int told = random() % 5 == 0 ? -1 : process;
      process_of.insert(process_of.end(), 1 + random() % 3, told);
      process += random() % 7 == 0 ? 2 : 1;
    }
    EXPECT_EQ(from_device_runs(to_device_runs(process_of)), process_of);
  }
  EXPECT_EQ(to_device_runs({0, 0, 1, 1, 2, 2}).size(), 1U);
  EXPECT_THROW((void)from_device_runs({{0, 1 << 20, 2}}), WireError);
  EXPECT_THROW((void)from_device_runs({{-1, 2, 1}}), WireError);
  EXPECT_THROW((void)from_device_runs({{3, 1, 0}}), WireError);
}

TEST(ControlMessage, IsSmallInStepsAndLossesOfAThousandMembers) {
  std::vector<int> process_of(1025);
  std::iota(process_of.begin(), process_of.end(), 0);
  process_of[700] = -1;
  const std::vector<LossSample> losses(8);
  StepAnswer answer;
  answer.losses = losses;
  const std::string cause = "rank 700 is lost: its process has not been heard of for 2000 ms";
  const std::vector<ControlMessage> messages{OrderMessage{1, encode(Job(StepJob{{.step = 4}, {}}))},
                                             ReadyMessage{4, {encode(losses)}},
                                             CommitMessage{4},
                                             AnswerMessage{1, encode(answer)},
                                             AbortMessage{cause},
                                             FailureMessage{1, FaultKind::kUndone, cause},
                                             OrderMessage{2, encode(Job(JoinJob{2, process_of}))},
                                             BeatMessage{}};
  for (const ControlMessage& message : messages) {
    EXPECT_LE(to_bytes(message).size(), 300U) << "message " << message.index();
  }
}

}  // namespace
}  // namespace frazil
