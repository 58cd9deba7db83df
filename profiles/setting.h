#pragma once
// A Setting is what a plan is made, timed and priced for: a model and a cluster. The two travel
// together through simulator and planner.

#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// A Setting refers to a profile and a cluster and owns neither. The caller of a function keeps both
// alive until the function returns. A class that holds a Setting says that both must outlive its
// objects. A Setting is as small as two pointers and is passed by value.
class Setting {
 public:
  Setting(const ModelProfile& profile, const Cluster& cluster)
      : profile_(&profile), cluster_(&cluster) {}
  // Temporaries would die before what was given the Setting.
  Setting(const ModelProfile&&, const Cluster&) = delete;
  Setting(const ModelProfile&, const Cluster&&) = delete;
  Setting(const ModelProfile&&, const Cluster&&) = delete;

  const ModelProfile& profile() const { return *profile_; }
  const Cluster& cluster() const { return *cluster_; }

 private:
  const ModelProfile* profile_;  // never null
  const Cluster* cluster_;       // never null
};

}  // namespace frazil
