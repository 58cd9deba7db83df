#include "exec/devices/kernel_facts.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace frazil {
namespace {

// Sets a variable of the environment as long as the object lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* const before = std::getenv(name);
    if (before != nullptr) before_ = before;
    ::setenv(name, value, 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  std::string value() const { return std::getenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(KernelFacts, OfThisProcessAreTaken) {
  const KernelFacts facts = present_kernels();
  EXPECT_NE(facts.processor, "");
  EXPECT_NE(facts.vendor, "unknown");
  EXPECT_NE(facts.aten, "");
  EXPECT_EQ(facts, present_kernels());
  EXPECT_TRUE(gives_same_bits(facts, facts));
}

TEST(KernelFacts, AreThoseOfBranchesVendorAndVersion) {
  const KernelFacts facts = present_kernels();
  for (std::string KernelFacts::*fact :
       {&KernelFacts::vendor, &KernelFacts::aten, &KernelFacts::mkl, &KernelFacts::torch}) {
    KernelFacts other = facts;
    other.*fact = "other";
    EXPECT_FALSE(gives_same_bits(facts, other));
    EXPECT_NE(describe(facts), describe(other));
  }
  for (std::string KernelFacts::*fact : {&KernelFacts::processor, &KernelFacts::features}) {
    KernelFacts other = facts;
    other.*fact = "other";
    EXPECT_TRUE(gives_same_bits(facts, other));
  }
}

TEST(KernelFacts, TellTheInstructionsForBfloat16) {
  KernelFacts facts;
  facts.features = "avx avx2 avx512f avx512_bf16 amx_tile amx_bf16 fma";
  EXPECT_EQ(narrow_instructions(facts), "avx512_bf16 amx_bf16");
  facts.features = "avx avx2 fma";
  EXPECT_EQ(narrow_instructions(facts), "none");
}

TEST(KernelFacts, ThatAreRecordedTakeThePlaceOfTheEnvironments) {
  const Variable aten("ATEN_CPU_CAPABILITY", "avx2");
  const Variable mkl("MKL_CBWR", "AVX2");
  KernelFacts recorded = present_kernels();
  recorded.aten = "DEFAULT";
  recorded.mkl = "COMPATIBLE";
  EXPECT_EQ(select_kernels(recorded),
            "ATEN_CPU_CAPABILITY=default in place of avx2, MKL_CBWR=COMPATIBLE in place of AVX2");
  EXPECT_EQ(aten.value(), "default");
  EXPECT_EQ(mkl.value(), "COMPATIBLE");
  EXPECT_EQ(select_kernels(recorded), std::nullopt) << "nothing gives way";
}

}  // namespace
}  // namespace frazil
