#pragma once
// The streams of the fake NCCL: which operations may go on, and what they do.

namespace frazil::fake {

// Does all that can be done now, in whatever streams. Called with the state locked.
void advance_streams();

}  // namespace frazil::fake
