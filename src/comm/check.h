#pragma once

#include "base/status.h"
#include "diapason/comm.h"
#include "domain/collectives.h"

namespace diapason::comm {

// How many elements of `in` and of `out` a call touches on rank `rank` of `ranks`.
size_t InCount(const Call& call, int rank, int ranks);
size_t OutCount(const Call& call, int rank, int ranks);

// Whether a call is valid for rank `rank` of `ranks`, whatever the backend: the root exists,
// buffers are given and do not overlap where they must not, counts fit into memory.
Status CheckCall(const Call& call, int rank, int ranks);

}  // namespace diapason::comm
