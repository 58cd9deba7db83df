#include "exec/communication/nccl_header.h"

#include <ATen/ATen.h>

#include <cstring>
#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kMark = 0x4652415a4c4e4343;  // another tensor is hardly taken for a header
constexpr std::int64_t kMostDimensions = 64;
constexpr std::size_t kIdWords = sizeof(NcclId) / sizeof(std::int64_t);

[[noreturn]] void refuse() {
  throw PeerLost("a message announced to come over NCCL has no header that can be read");
}

// Reads numbers one by one, of which none need be there.
class Reader {
 public:
  explicit Reader(const at::Tensor& packed) {
    if (!packed.defined() || !packed.is_cpu() || packed.scalar_type() != at::kLong ||
        packed.dim() != 1 || !packed.is_contiguous()) {
      refuse();
    }
    next_ = packed.const_data_ptr<std::int64_t>();
    end_ = next_ + packed.numel();
  }

  std::int64_t read(std::int64_t least, std::int64_t most) {
    if (next_ == end_ || *next_ < least || *next_ > most) refuse();
    return *next_++;
  }

  std::int64_t left() const { return end_ - next_; }

 private:
  const std::int64_t* next_ = nullptr;
  const std::int64_t* end_ = nullptr;
};

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TensorForm read_form(Reader& reader) {
  TensorForm form;
  form.by_nccl = reader.read(0, 1) == 1;
  if (!form.by_nccl) return form;
  form.type = static_cast<at::ScalarType>(
      reader.read(0, static_cast<std::int64_t>(at::ScalarType::Undefined) - 1));
  std::int64_t elements = 1;
  for (std::int64_t left = reader.read(0, kMostDimensions); left > 0; --left) {
    form.sizes.push_back(reader.read(0, kMost / 16 / std::max<std::int64_t>(elements, 1)));
    elements *= form.sizes.back();
  }
  return form;
}

}  // namespace

at::Tensor pack(const NcclHeader& header) {
  std::vector<std::int64_t> numbers = {kMark, header.order, header.id ? 1 : 0};
  if (header.id) {
    numbers.resize(numbers.size() + kIdWords);
    std::memcpy(&*(numbers.end() - kIdWords), header.id->bytes.data(), sizeof(NcclId));
  }
  numbers.push_back(static_cast<std::int64_t>(header.tensors.size()));
  for (const TensorForm& form : header.tensors) {
    numbers.push_back(form.by_nccl ? 1 : 0);
    if (!form.by_nccl) continue;
    numbers.push_back(static_cast<std::int64_t>(form.type));
    numbers.push_back(static_cast<std::int64_t>(form.sizes.size()));
    numbers.insert(numbers.end(), form.sizes.begin(), form.sizes.end());
  }
  at::Tensor packed = at::empty({static_cast<std::int64_t>(numbers.size())}, at::kLong);
  std::memcpy(packed.mutable_data_ptr(), numbers.data(), numbers.size() * sizeof(std::int64_t));
  return packed;
}

NcclHeader unpack_header(const at::Tensor& packed) {
  Reader reader(packed);
  (void)reader.read(kMark, kMark);
  NcclHeader header;
  header.order = reader.read(0, kMost);
  if (reader.read(0, 1) == 1) {
    std::array<std::int64_t, kIdWords> words{};
    for (std::int64_t& word : words) word = reader.read(kLeast, kMost);
    header.id.emplace();
    std::memcpy(header.id->bytes.data(), words.data(), sizeof(NcclId));
  }
  const std::int64_t tensors = reader.read(0, reader.left());
  for (std::int64_t t = 0; t < tensors; ++t) header.tensors.push_back(read_form(reader));
  if (reader.left() != 0) refuse();
  return header;
}

}  // namespace frazil
