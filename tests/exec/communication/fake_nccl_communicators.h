#pragma once
// The functions of the fake NCCL's table that make, ask and end communicators
// (exec/communication/nccl_table.h says what they do).

#include "exec/communication/nccl_table.h"

namespace frazil::fake {

NcclId make_id();
NcclEnd init(const NcclId& id, const NcclPlace& place);
NcclAnswer poll(NcclEnd handle);
NcclEnd split(NcclEnd handle, int color, int key);
NcclEnd shrink(NcclEnd handle, const std::vector<int>& excluded, bool aborts);
void revoke(NcclEnd handle);
void finalize(NcclEnd handle);
void destroy(NcclEnd handle);
void abort(NcclEnd handle);

}  // namespace frazil::fake
