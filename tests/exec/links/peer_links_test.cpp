// What is sent over links comes as it was sent, whatever a peer does. Both ends live in this
// process.

#include "exec/links/peer_links.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "exec/links/passed_sockets.h"
#include "exec/links/socket.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Received {
  FrameHead head;
  Tensors tensors;
};

// A process's links and what has come over them.
struct Place {
  Place(int process, std::vector<PeerSockets> sockets, const LinkOptions& options = {})
      : own(process), links(std::move(sockets), options) {}

  void open(std::uint32_t epoch) {
    links.open(epoch, {.take =
                           [this](int, FrameHead&& head, Tensors&& tensors) {
                             const std::lock_guard<std::mutex> lock(mutex);
                             received.push_back({std::move(head), std::move(tensors)});
                             changed.notify_all();
                           },
                       .lose =
                           [this](int process, const std::string& why) {
                             if (process == own) return;
                             const std::lock_guard<std::mutex> lock(mutex);
                             lost.push_back(std::to_string(process) + " " + why);
                           }});
  }
  bool wait_for(const std::function<bool()>& is_over) {
    return links.wait(mutex, changed, is_over, seconds(300));
  }
  bool receive(std::size_t count) {
    return wait_for([&] { return received.size() >= count; });
  }

  int own;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Received> received;
  std::vector<std::string> lost;
  PeerLinks links;  // ends first
};

FrameHead numbered(std::int32_t index, std::uint32_t epoch = 1) {
  return {.kind = FrameKind::kMessage, .epoch = epoch, .tag = {.index = index}};
}

struct Pair {
  explicit Pair(const LinkOptions& options = {}, const LinkOptions& other = {}) {
    auto sockets = make_socket_pairs(2);
    a = std::make_unique<Place>(0, std::move(sockets[0]), options);
    b = std::make_unique<Place>(1, std::move(sockets[1]), other);
  }
  void open() {
    a->open(1);
    b->open(1);
  }
  // Until each knows whether it can lend: reads the greeting, then the answer.
  void get_acquainted() {
    for (int round = 0; round < 2; ++round) {
      a->links.look();
      b->links.look();
    }
  }
  std::unique_ptr<Place> a;
  std::unique_ptr<Place> b;
};

// The process 1 of links is this test, which writes what it likes.
struct Impostor {
  Impostor() {
    SocketPair first = make_socket_pair();
    SocketPair second = make_socket_pair();
    std::vector<PeerSockets> sockets(2);
    sockets[1] = {std::move(first[0]), std::move(second[0])};
    steps = std::move(first[1]);
    bulk = std::move(second[1]);
    place = std::make_unique<Place>(0, std::move(sockets), LinkOptions{.linger = milliseconds(1)});
    place->open(1);
  }
  void write(const std::string& bytes) const {
    ASSERT_EQ(::send(steps.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  Descriptor steps;
  Descriptor bulk;
  std::unique_ptr<Place> place;
};

TEST(PeerLinks, CarryTensorsOfEveryLayoutAndType) {
  for (const bool checks : {false, true}) {
    Pair pair({.checks_transfers = checks});
    pair.open();
    const at::Tensor image = at::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
    const Tensors sent = {image,
                          at::rand({3, 4}).t(),
                          at::scalar_tensor(7),
                          at::empty({0, 3}),
                          at::ones({5}, at::kBool),
                          at::rand({6}).to(at::kBFloat16),
                          at::arange(5),
                          at::rand({8, 8}).slice(1, 2, 5)};
    pair.a->links.send(1, LinkSocket::kSteps, numbered(1), sent);
    ASSERT_TRUE(pair.b->receive(1));
    const Tensors& got = pair.b->received[0].tensors;
    ASSERT_EQ(got.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(got[i].scalar_type(), sent[i].scalar_type());
      EXPECT_TRUE(at::equal(got[i], sent[i])) << i;
      if (i + 1 == sent.size()) continue;  // a part of a tensor, which has gaps
      EXPECT_EQ(got[i].strides(), sent[i].strides()) << i;
    }
  }
}

TEST(PeerLinks, KeepAnUndefinedTensorInItsPlace) {
  Pair pair;
  pair.open();
  pair.a->links.send(1, LinkSocket::kBulk, numbered(1), {at::ones({2}), {}, at::ones({3})});
  ASSERT_TRUE(pair.b->receive(1));
  const Tensors& got = pair.b->received[0].tensors;
  ASSERT_EQ(got.size(), 3U);
  EXPECT_FALSE(got[1].defined());
  EXPECT_EQ(got[2].numel(), 3);
}

TEST(PeerLinks, SendMoreThanASocketTakesWithoutWaitingAndInOrder) {
  Pair pair({.lends = false});
  pair.open();
  constexpr int kFrames = 40;
  for (int i = 0; i < kFrames; ++i) {
    pair.a->links.send(1, LinkSocket::kSteps, numbered(i),
                       {at::full({50'000}, i), at::full({3}, -i)});
  }
  EXPECT_GT(pair.a->links.counts().queued_frames, 0U);
  ASSERT_TRUE(pair.b->receive(kFrames));
  for (int i = 0; i < kFrames; ++i) {
    const Received& got = pair.b->received[static_cast<std::size_t>(i)];
    EXPECT_EQ(got.head.tag.index, i);
    EXPECT_TRUE(at::equal(got.tensors[0], at::full({50'000}, i)));
    EXPECT_TRUE(at::equal(got.tensors[1], at::full({3}, -i)));
  }
}

using WeakTensor = c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>;

TEST(PeerLinks, LendALargeTensorUntilItIsRead) {
  Pair pair;
  pair.open();
  pair.get_acquainted();
  if (!pair.a->links.lends_to(1))
    GTEST_SKIP() << "the system lets no process read another's memory";
  at::Tensor large = at::rand({1 << 18});
  const at::Tensor copy = large.clone();
  const WeakTensor weak(large.getIntrusivePtr());
  pair.a->links.send(1, LinkSocket::kBulk, numbered(1), {std::move(large), at::ones({2})});
  EXPECT_FALSE(weak.expired());
  EXPECT_EQ(pair.a->links.counts().lent_bytes, std::uint64_t{1} << 20);
  ASSERT_TRUE(pair.b->receive(1));
  EXPECT_TRUE(at::equal(pair.b->received[0].tensors[0], copy));
  EXPECT_TRUE(at::equal(pair.b->received[0].tensors[1], at::ones({2})));
  pair.a->links.look();
  EXPECT_TRUE(weak.expired());
}

// Steps are not to wait for a long row of loans.
TEST(PeerLinks, TakeASmallFrameBetweenLoansOverTheOtherSocket) {
  Pair pair;
  pair.open();
  pair.get_acquainted();
  if (!pair.a->links.lends_to(1))
    GTEST_SKIP() << "the system lets no process read another's memory";
  for (int i = 0; i < 10; ++i) {
    pair.a->links.send(1, LinkSocket::kBulk, numbered(i), {at::full({1 << 16}, i)});
  }
  pair.a->links.send(1, LinkSocket::kSteps, numbered(10), {at::ones({2})});
  ASSERT_TRUE(pair.b->receive(11));
  std::vector<std::int32_t> order;
  for (const Received& received : pair.b->received) order.push_back(received.head.tag.index);
  EXPECT_LT(std::find(order.begin(), order.end(), 10) - order.begin(), 3);
  order.erase(std::find(order.begin(), order.end(), 10));
  EXPECT_EQ(order, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(at::equal(pair.b->received.back().tensors[0], at::full({1 << 16}, 9)));
}

TEST(PeerLinks, LendNothingWhereEitherEndDoesNot) {
  for (const bool first : {false, true}) {
    Pair pair({.lends = first}, {.lends = !first});
    pair.open();
    pair.get_acquainted();
    EXPECT_FALSE(pair.a->links.lends_to(1));
    EXPECT_FALSE(pair.b->links.lends_to(0));
    pair.a->links.send(1, LinkSocket::kBulk, numbered(1), {at::ones({1 << 18})});
    ASSERT_TRUE(pair.b->receive(1));
    EXPECT_TRUE(at::equal(pair.b->received[0].tensors[0], at::ones({1 << 18})));
  }
}

std::vector<PeerSockets> one_peer(SocketPair steps, SocketPair bulk) {
  std::vector<PeerSockets> peers(2);
  peers[1] = {std::move(steps[0]), std::move(bulk[0])};
  return peers;
}

SocketPair make_tcp_pair() {
  const Descriptor listener = listen_at({});
  Descriptor here = connect_to(address_of(listener), {}, seconds(20));
  return {std::move(here), accept_from(listener, seconds(20))};
}

TEST(PeerLinks, LetThisProcessBeReadOnlyByThoseThatShareSocketsOfThisMachine) {
  PeerLinks over_tcp(one_peer(make_tcp_pair(), make_tcp_pair()));
  EXPECT_FALSE(over_tcp.is_readable());
  PeerLinks local(one_peer(make_socket_pair(), make_socket_pair()));
  EXPECT_TRUE(local.is_readable());
  PeerLinks lends_nothing(one_peer(make_socket_pair(), make_socket_pair()), {.lends = false});
  EXPECT_FALSE(lends_nothing.is_readable());
  PeerLinks alone(std::vector<PeerSockets>(2));
  EXPECT_FALSE(alone.is_readable());
  alone.connect(1, std::move(one_peer(make_socket_pair(), make_socket_pair())[1]));
  EXPECT_TRUE(alone.is_readable());
}

TEST(PeerLinks, UseTheMemoryOfLargeTensorsAgain) {
  Pair pair;
  pair.open();
  const void* first = nullptr;
  for (int round = 0; round < 3; ++round) {
    pair.a->links.send(1, LinkSocket::kBulk, numbered(round), {at::ones({1 << 18})});
    ASSERT_TRUE(pair.b->receive(1));
    const void* const memory = pair.b->received[0].tensors[0].const_data_ptr();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0U);
    EXPECT_TRUE(round == 0 || memory == first);
    first = memory;
    pair.b->received.clear();
  }
}

TEST(PeerLinks, DropAndCountWhatIsOfAnOldEpochAndKeepWhatIsEarly) {
  Pair pair;
  pair.a->open(1);
  pair.b->open(2);
  pair.a->links.send(1, LinkSocket::kSteps, numbered(1, 1), {at::ones({2})});
  pair.a->links.send(1, LinkSocket::kSteps, numbered(2, 3), {at::ones({2})});
  for (int i = 0; i < 100 && pair.b->links.counts().stale_frames == 0; ++i) pair.b->links.look();
  EXPECT_EQ(pair.b->links.counts().stale_frames, 1U);
  EXPECT_TRUE(pair.b->received.empty());
  pair.b->open(3);
  ASSERT_EQ(pair.b->received.size(), 1U);
  EXPECT_EQ(pair.b->received[0].head.tag.index, 2);
}

TEST(PeerLinks, TellALossToTheWorldAndToTheNextOne) {
  Pair pair;
  pair.open();
  pair.a.reset();
  ASSERT_TRUE(pair.b->wait_for([&] { return !pair.b->lost.empty(); }));
  pair.b->links.send(0, LinkSocket::kSteps, numbered(1), {at::ones({2})});
  pair.b->lost.clear();
  pair.b->open(2);
  EXPECT_EQ(pair.b->lost, std::vector<std::string>{"0 has ended"});
}

TEST(PeerLinks, LoseAProcessThatIsSaidToBeLost) {
  Pair pair;
  pair.open();
  pair.b->links.lose(0);
  EXPECT_EQ(pair.b->lost, std::vector<std::string>{"0 does not answer"});
  ASSERT_TRUE(pair.a->wait_for([&] { return !pair.a->lost.empty(); }));
  EXPECT_EQ(pair.a->lost, std::vector<std::string>{"1 has ended"});
}

// Whether the end of the one before has been read or not.
TEST(PeerLinks, ConnectWithAProcessThatComesInPlaceOfAnother) {
  for (const bool is_read : {true, false}) {
    Pair pair;
    pair.open();
    pair.get_acquainted();
    pair.b.reset();
    if (is_read) {
      ASSERT_TRUE(pair.a->wait_for([&] { return !pair.a->lost.empty(); }));
    }
    pair.a->open(2);  // a world without it
    pair.a->lost.clear();
    auto sockets = make_socket_pairs(2);
    pair.b = std::make_unique<Place>(1, std::move(sockets[1]));
    pair.a->links.connect(1, std::move(sockets[0][1]));
    pair.get_acquainted();
    pair.a->open(3);
    pair.b->open(3);
    EXPECT_TRUE(pair.a->lost.empty());
    EXPECT_EQ(pair.a->links.lends_to(1), pair.b->links.lends_to(0));
    const at::Tensor sent = at::arange(200'000);
    pair.a->links.send(1, LinkSocket::kBulk, numbered(1, 3), {sent});
    ASSERT_TRUE(pair.b->receive(1));
    EXPECT_TRUE(at::equal(pair.b->received[0].tensors.at(0), sent));
    pair.b->links.send(0, LinkSocket::kSteps, numbered(2, 3));
    ASSERT_TRUE(pair.a->receive(1));
  }
}

TEST(PassedSockets, ComeAsTheyWereHandedOver) {
  SocketPair passage = make_socket_pair();
  EXPECT_FALSE(take_passed(passage[1], milliseconds(1)));
  SocketPair steps = make_socket_pair();
  SocketPair bulk = make_socket_pair();
  pass_sockets(passage[0], {7, 2, {std::move(steps[0]), std::move(bulk[0])}});
  pass_sockets(passage[0], {8, 3, {std::move(steps[1]), std::move(bulk[1])}});
  const std::optional<PassedSockets> first = take_passed(passage[1], seconds(20));
  const std::optional<PassedSockets> second = take_passed(passage[1], seconds(20));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->epoch, 7U);
  EXPECT_EQ(first->process, 2);
  EXPECT_EQ(second->epoch, 8U);
  EXPECT_EQ(second->process, 3);
  char byte = 0;
  ASSERT_EQ(::send(first->sockets.bulk.number(), "b", 1, 0), 1);
  ASSERT_EQ(::recv(second->sockets.bulk.number(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'b');
}

TEST(PassedSockets, AreMissedWhereWhoHandsThemOverGoes) {
  SocketPair passage = make_socket_pair();
  ASSERT_EQ(::send(passage[0].number(), "12345678", 8, 0), 8);  // words without sockets
  EXPECT_THROW((void)take_passed(passage[1], seconds(20)), SocketError);
  passage[0].close();
  EXPECT_THROW((void)take_passed(passage[1], seconds(20)), SocketError);
  SocketPair other = make_socket_pair();
  EXPECT_THROW(pass_sockets(passage[1], {1, 1, {std::move(other[0]), std::move(other[1])}}),
               SocketError);
}

TEST(PeerLinks, GiveCreditUntilAPeerTakesNothingMore) {
  Pair pair({.credit_bytes = 1 << 20, .lends = false, .linger = milliseconds(1)});
  pair.open();
  int sent = 0;
  for (; sent < 100 && pair.a->links.has_credit(1, 400'000); ++sent) {
    pair.a->links.send(1, LinkSocket::kSteps, numbered(sent), {at::ones({100'000})});
  }
  EXPECT_GE(sent, 2);
  EXPECT_LT(sent, 20);
  EXPECT_FALSE(pair.a->links.wait_for_credit(
      1, 400'000, [] { return false; }, milliseconds(300)));
  std::thread reading([&] { pair.b->receive(static_cast<std::size_t>(sent)); });
  EXPECT_TRUE(pair.a->links.wait_for_credit(
      1, 400'000, [] { return false; }, seconds(300)));
  reading.join();
}

TEST(PeerLinks, TakeAFrameThatComesByteByByte) {
  Impostor impostor;
  FrameHead head = numbered(7);
  head.tensors.push_back(
      {.type = 6, .place = TensorPlace::kBehind, .bytes = 8, .shape = {2}, .strides = {1}});
  const std::string bytes = encode_frame(head) + std::string(8, '\0') + encode_frame(numbered(8));
  for (const char byte : bytes) {
    impostor.write(std::string(1, byte));
    impostor.place->links.look();
  }
  ASSERT_EQ(impostor.place->received.size(), 2U);
  EXPECT_TRUE(at::equal(impostor.place->received[0].tensors[0], at::zeros({2})));
  EXPECT_EQ(impostor.place->received[1].head.tag.index, 8);
}

TEST(PeerLinks, LoseAProcessThatSendsWhatIsNoFrame) {
  Impostor impostor;
  impostor.write("GET / HTTP/1.1\r\n\r\n");
  impostor.place->links.look();
  EXPECT_EQ(impostor.place->lost,
            std::vector<std::string>{"1 has sent what is no frame (found the first bytes "
                                     "542393671, expected those of a frame)"});
}

TEST(PeerLinks, LoseAProcessWhoseBytesHaveChangedOnTheWay) {
  Impostor impostor;
  FrameHead head = numbered(7);
  head.checked = true;
  head.tensors.push_back({.type = 6,
                          .place = TensorPlace::kBehind,
                          .checksum = 1,
                          .bytes = 8,
                          .shape = {2},
                          .strides = {1}});
  impostor.write(encode_frame(head) + std::string(8, 'x'));
  impostor.place->links.look();
  EXPECT_EQ(impostor.place->lost,
            std::vector<std::string>{"1 has sent what is no frame (found other bytes of probe 7 "
                                     "(step 0) than were sent)"});
}

TEST(PeerLinks, TakeNoLoanFromAProcessThatCannotBeRead) {
  Impostor impostor;
  FrameHead head = numbered(7);
  head.tensors.push_back({.type = 6,
                          .place = TensorPlace::kLent,
                          .bytes = 8,
                          .address = 4096,
                          .shape = {2},
                          .strides = {1}});
  impostor.write(encode_frame(head));
  impostor.place->links.look();
  ASSERT_EQ(impostor.place->lost.size(), 1U);
  EXPECT_TRUE(impostor.place->received.empty());
}

TEST(PeerLinks, ReadForSeveralThreadsThatWait) {
  Pair pair;
  pair.open();
  std::vector<std::thread> waiting;
  std::atomic<int> done{0};
  for (std::size_t count = 1; count <= 4; ++count) {
    waiting.emplace_back([&, count] { done += pair.b->receive(25 * count) ? 1 : 0; });
  }
  for (int i = 0; i < 100; ++i) pair.a->links.send(1, LinkSocket::kSteps, numbered(i));
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(done, 4);
}

}  // namespace
}  // namespace frazil
