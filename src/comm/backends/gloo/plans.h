#pragma once

#include <gloo/algorithm.h>
#include <gloo/context.h>

#include <cstddef>
#include <list>
#include <memory>
#include <tuple>

#include "base/status.h"
#include "diapason/comm.h"

namespace diapason::comm {

// Gloo's older algorithms are objects bound to one buffer, and creating one changes the state of
// every rank. A plan is such an object with a buffer of its own, kept for the next call of the same
// kind. Which plans exist depends on the calls alone, never on the callers' buffers, so that all
// ranks create and drop the same plans at the same time.
class GlooPlans {
 public:
  // `algorithm` is one of the domain's ring, ring_chunked, halving_doubling and bcube, or, for
  // reduce_scatter, halving_doubling. `count` is the total number of elements; for reduce_scatter
  // every rank gets count / size of them.
  struct Kind {
    Operation operation;
    int algorithm;
    DataType type;
    ReduceOp reduce;
    size_t count;
    friend bool operator==(const Kind&, const Kind&) = default;
  };

  // Copies `in` into the plan's buffer, runs, copies `out_count` elements of the result to `out`.
  Status Run(const std::shared_ptr<gloo::Context>& context, const Kind& kind, const void* in,
             void* out, size_t out_count);

 private:
  struct Plan {
    Kind kind;
    std::unique_ptr<std::byte[]> buffer;
    std::unique_ptr<gloo::Algorithm> algorithm;  // destroyed before the buffer it uses
    size_t bytes = 0;
  };
  Result<Plan*> Find(const std::shared_ptr<gloo::Context>& context, const Kind& kind);

  std::list<Plan> plans_;  // the last used first
  size_t bytes_ = 0;
};

}  // namespace diapason::comm
