#pragma once
// Tells whether the thread sanitizer watches, under which a test that repeats itself for several
// values takes fewer of them.

namespace frazil {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadsAreWatched = true;
#else
inline constexpr bool kThreadsAreWatched = false;
#endif

}  // namespace frazil
