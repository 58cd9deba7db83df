#include "exec/disk/tensor_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>

#include "profiles/error.h"
#include "tests/exec/models/imported/model_writer.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

// Returns the refusal of a file with this header before so many bytes of data.
std::string refusal(const std::string& header, std::size_t data_bytes) {
  const fs::path path = fresh_path();
  write_raw_file(path, header, data_bytes);
  std::string what;
  try {
    TensorFile file(path);
  } catch (const InputError& error) {
    what = error.what();
    EXPECT_EQ(error.file(), path.string());
  }
  fs::remove(path);
  return what;
}

void expect_refused(const std::string& header, std::size_t data_bytes, const std::string& with) {
  const std::string what = refusal(header, data_bytes);
  EXPECT_NE(what.find(with), std::string::npos) << what;
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
}

std::string entry(const std::string& name, int begin, int end, int size) {
  return "\"" + name + R"(":{"dtype":"F32","shape":[)" + std::to_string(size) +
         R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST(TensorFile, GivesWhatWasWrittenAsViewsAndAsCopies) {
  const fs::path path = fresh_path();
  const at::Tensor odd = at::tensor({std::int64_t{3}, std::int64_t{-1}}, at::kLong);
  const at::Tensor even = at::arange(6, at::kFloat).view({2, 3});
  write_tensor_file(path, {{"even", even}, {"flag", at::ones({1}, at::kBool)}, {"odd", odd}},
                    {{"author", "a test"}});
  const TensorFile file(path);
  EXPECT_EQ(file.header().metadata.at("author"), "a test");
  ASSERT_EQ(file.header().tensors.size(), 3U);
  EXPECT_EQ(name_of(file.header().tensors[1].type), "bool");
  for (const bool copies : {false, true}) {
    const auto read = [&](const char* name) { return copies ? file.copy(name) : file.view(name); };
    EXPECT_TRUE(at::equal(read("even"), even));
    EXPECT_TRUE(at::equal(read("odd"), odd));  // its elements are not aligned
    EXPECT_TRUE(read("flag").item<bool>());
  }
  EXPECT_THROW(file.view("none"), InputError);
  fs::remove(path);
}

TEST(TensorFile, AViewOutlivesTheFileAndItsName) {
  const fs::path path = fresh_path();
  write_tensor_file(path, {{"x", at::full({1000}, 2.5F)}});
  at::Tensor view;
  std::uint64_t hash = 0;
  {
    const TensorFile file(path);
    view = file.view("x");
    hash = file.hash();
    EXPECT_EQ(TensorFile(path).hash(), hash);
  }
  fs::remove(path);
  EXPECT_EQ(view.sum().item<float>(), 2500);
}

TEST(TensorFile, IsReadThroughALink) {
  const fs::path path = fresh_path();
  const fs::path link = fresh_path();
  write_tensor_file(path, {{"x", at::ones({2})}});
  fs::create_symlink(path, link);
  EXPECT_EQ(TensorFile(link).copy("x").sum().item<float>(), 2);
  fs::remove(link);
  fs::remove(path);
}

TEST(TensorFile, RefusesTensorsThatDoNotLieOneBehindTheOther) {
  expect_refused("{" + entry("a", 0, 8, 2) + "," + entry("b", 4, 12, 2) + "}", 12,
                 "tensor \"b\" that overlaps tensor \"a\"");
  expect_refused("{" + entry("a", 0, 8, 2) + "," + entry("b", 12, 16, 1) + "}", 16,
                 "4 bytes of no tensor before tensor \"b\"");
  expect_refused("{" + entry("a", 0, 8, 2) + "}", 12, "4 bytes behind the last tensor");
  expect_refused("{" + entry("a", 0, 16, 4) + "}", 12, "tensor \"a\" from byte 0 to 16");
  expect_refused("{" + entry("a", 8, 4, 2) + "}", 12, "tensor \"a\" from byte 8 to 4");
  expect_refused("{" + entry("a", 0, 8, 3) + "}", 8, "12 bytes for its type and shape");
  expect_refused("{" + entry("a", 0, 4, 1) + "," + entry("a", 4, 8, 1) + "}", 8, "\"a\"");
}

TEST(TensorFile, RefusesOtherTypesAndBrokenHeaders) {
  expect_refused(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1, "tensor \"a\"");
  expect_refused(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
                 "tensor \"a\"");
  expect_refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "-1");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "\"x\"");
  expect_refused("no JSON", 0, "no");
  const fs::path path = fresh_path();
  for (const std::string& bytes : {std::string(), std::string("abc"), std::string(8, '\x7f')}) {
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_THROW(TensorFile{path}, InputError) << bytes;
  }
  fs::remove(path);
  EXPECT_THROW(TensorFile{path}, InputError);
  EXPECT_THROW(TensorFile{path.parent_path()}, InputError);
}

}  // namespace
}  // namespace frazil
