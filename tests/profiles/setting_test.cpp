#include "profiles/setting.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace frazil {
namespace {

template <class Profile, class Machines>
constexpr bool kMakesASetting = std::is_constructible_v<Setting, Profile, Machines>;

static_assert(kMakesASetting<const ModelProfile&, const Cluster&>);
static_assert(kMakesASetting<ModelProfile&, Cluster&>);
static_assert(!kMakesASetting<ModelProfile, const Cluster&>);
static_assert(!kMakesASetting<const ModelProfile&, Cluster>);
static_assert(!kMakesASetting<ModelProfile, Cluster>);
static_assert(!kMakesASetting<const ModelProfile, const Cluster>);
static_assert(std::is_trivially_copyable_v<Setting>);

TEST(Setting, GivesBackTheProfileAndTheClusterThemselves) {
  const ModelProfile profile;
  const ModelProfile other_profile;
  const Cluster cluster;
  const Cluster other_cluster;
  Setting setting{profile, cluster};
  EXPECT_EQ(&setting.profile(), &profile);
  EXPECT_EQ(&setting.cluster(), &cluster);
  setting = {other_profile, other_cluster};
  EXPECT_EQ(&setting.profile(), &other_profile);
  EXPECT_EQ(&setting.cluster(), &other_cluster);
}

}  // namespace
}  // namespace frazil
