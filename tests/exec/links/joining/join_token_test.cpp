// Token files as people leave them, and a proof made by another program.

#include "exec/links/joining/join_token.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "profiles/error.h"

namespace frazil {
namespace {

class TokenFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/tmp/frazil-token-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& text, mode_t mode = 0600) const {
    const std::filesystem::path place = folder_ / "token";
    std::ofstream(place, std::ios::binary) << text;
    EXPECT_EQ(chmod(place.c_str(), mode), 0);
    return place;
  }

  static std::string refusal(const std::filesystem::path& place) {
    try {
      (void)read_token(place);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

  std::filesystem::path folder_;
};

TEST_F(TokenFile, ThatWasMadeIsReadAgainAndBelongsToItsUserAlone) {
  const std::filesystem::path place = folder_ / "token";
  const Secret token = make_token(place);
  EXPECT_EQ(read_token(place), token);
  struct stat facts {};
  ASSERT_EQ(stat(place.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  EXPECT_EQ(facts.st_size, 65);
  EXPECT_NE(make_token(folder_ / "other"), token);
}

TEST_F(TokenFile, IsNeverReplacedAndLeavesNothingBeside) {
  const std::filesystem::path place = folder_ / "token";
  const Secret token = make_token(place);
  EXPECT_THROW((void)make_token(place), InputError);
  EXPECT_THROW((void)make_token(folder_ / "missing" / "token"), InputError);
  EXPECT_EQ(read_token(place), token);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(TokenFile, HoldsBytesOrDigits) {
  const std::string bytes(32, '\x07');
  const std::string digits = "0707070707070707070707070707070707070707070707070707070707070707";
  const Secret expected = [] {
    Secret secret{};
    secret.fill(7);
    return secret;
  }();
  EXPECT_EQ(read_token(write(bytes)), expected);
  EXPECT_EQ(read_token(write(digits)), expected);
  EXPECT_EQ(read_token(write(digits + "\n")), expected);
}

TEST_F(TokenFile, WithAnythingElseIsRefused) {
  const std::string digits(64, 'a');
  for (const std::string& text :
       {std::string(), std::string(31, 'a'), std::string(33, 'a'), digits + "a", digits + "\n\n",
        std::string(63, 'a') + "g", std::string(1000, 'a')}) {
    EXPECT_EQ(refusal(write(text)), (folder_ / "token").string() +
                                        ": found something else, expected a token: 32 bytes, or "
                                        "64 hex digits");
  }
}

TEST_F(TokenFile, ThatOthersMayReadOrThatIsNoFileIsRefused) {
  for (const auto& [mode, text] : std::initializer_list<std::pair<mode_t, const char*>>{
           {0644, "0644"}, {0640, "0640"}, {0400, "0400"}, {0700, "0700"}, {04600, "4600"}}) {
    EXPECT_EQ(refusal(write(std::string(64, 'a'), mode)),
              (folder_ / "token").string() + ": found mode " + text +
                  ", expected mode 0600, so that nobody else reads the token; chmod 600 it");
  }
  EXPECT_NE(refusal(folder_).find("found no regular file"), std::string::npos);
  EXPECT_NE(refusal(folder_ / "missing").find("No such file"), std::string::npos);
  const std::filesystem::path link = folder_ / "link";
  std::filesystem::create_symlink(write(std::string(64, 'a')), link);
  EXPECT_NE(refusal(link), "accepted");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal(folder_ / "pipe").find("found no regular file"), std::string::npos);
}

TEST(Proof, DependsOnEverythingItIsMadeOf) {
  const Secret key = draw_secret();
  const Secret listener = draw_secret();
  const Secret caller = draw_secret();
  const Secret proof = make_proof(key, ProofPurpose::kMember, listener, caller, "hello");
  EXPECT_TRUE(
      is_same_secret(proof, make_proof(key, ProofPurpose::kMember, listener, caller, "hello")));
  for (const Secret& other : {make_proof(caller, ProofPurpose::kMember, listener, caller, "hello"),
                              make_proof(key, ProofPurpose::kLeader, listener, caller, "hello"),
                              make_proof(key, ProofPurpose::kMember, key, caller, "hello"),
                              make_proof(key, ProofPurpose::kMember, listener, key, "hello"),
                              make_proof(key, ProofPurpose::kMember, listener, caller, "hellp")}) {
    EXPECT_FALSE(is_same_secret(proof, other));
  }
}

// Made by Python's hmac.new(bytes(range(32)), message, "sha256").
TEST(Proof, IsHmacSha256) {
  Secret key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  Secret listener{};
  listener.fill(1);
  Secret caller{};
  caller.fill(2);
  const Secret proof = make_proof(key, ProofPurpose::kLeader, listener, caller, "hello");
  const Secret expected = {0x4f, 0x94, 0xc8, 0x58, 0xa9, 0x48, 0x60, 0x33, 0x63, 0x86, 0x00,
                           0xc6, 0x4d, 0x71, 0xb1, 0x13, 0xe5, 0x11, 0xf0, 0x6d, 0xbd, 0x30,
                           0xef, 0xbb, 0x11, 0x7d, 0x32, 0x17, 0xf4, 0x97, 0x21, 0x14};
  EXPECT_EQ(proof, expected);
}

}  // namespace
}  // namespace frazil
