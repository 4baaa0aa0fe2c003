// Preloaded into the ranks of a job: remembers which algorithm Open MPI's coll_tuned took for the
// last collective, by standing in front of the functions that it calls. An algorithm may be made of
// others (a reduction and a broadcast, say): the outermost counts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static char last[160];
static int depth;

// The algorithm that ran since this was last asked, with its segment size and fan-out where it has
// them; "" where none did.
const char* diapason_watched(void) {
  static char taken[sizeof(last)];
  snprintf(taken, sizeof(taken), "%s", last);
  last[0] = '\0';
  return taken;
}

static void Enter(const char* name, long segment, long fan) {
  if (depth++ == 0) snprintf(last, sizeof(last), "%s %ld %ld", name, segment, fan);
}

static void* Real(const char* name) {
  void* real = dlsym(RTLD_NEXT, name);
  if (real == NULL) {
    fprintf(stderr, "watch: this Open MPI has no %s\n", name);
    abort();
  }
  return real;
}

// WATCH(name, (types and names of the parameters), (their names), segment size, fan-out)
#define WATCH(name, parameters, arguments, segment, fan)              \
  int ompi_coll_base_##name parameters;                               \
  int ompi_coll_base_##name parameters {                              \
    static int(*real) parameters;                                     \
    if (real == NULL) *(void**)&real = Real("ompi_coll_base_" #name); \
    Enter(#name, segment, fan);                                       \
    const int result = real arguments;                                \
    --depth;                                                          \
    return result;                                                    \
  }

#define ALLREDUCE \
  const void *in, void *out, int count, void *type, void *op, void *communicator, void *module
#define ALLREDUCE_NAMES in, out, count, type, op, communicator, module
WATCH(allreduce_intra_basic_linear, (ALLREDUCE), (ALLREDUCE_NAMES), -1, -1)
WATCH(allreduce_intra_nonoverlapping, (ALLREDUCE), (ALLREDUCE_NAMES), -1, -1)
WATCH(allreduce_intra_recursivedoubling, (ALLREDUCE), (ALLREDUCE_NAMES), -1, -1)
WATCH(allreduce_intra_ring, (ALLREDUCE), (ALLREDUCE_NAMES), -1, -1)
WATCH(allreduce_intra_ring_segmented, (ALLREDUCE, uint32_t segment), (ALLREDUCE_NAMES, segment),
      segment, -1)
WATCH(allreduce_intra_redscat_allgather, (ALLREDUCE), (ALLREDUCE_NAMES), -1, -1)

#define BCAST void *data, int count, void *type, int root, void *communicator, void *module
#define BCAST_NAMES data, count, type, root, communicator, module
WATCH(bcast_intra_basic_linear, (BCAST), (BCAST_NAMES), -1, -1)
WATCH(bcast_intra_chain, (BCAST, uint32_t segment, int32_t fan), (BCAST_NAMES, segment, fan),
      segment, fan)
WATCH(bcast_intra_pipeline, (BCAST, uint32_t segment), (BCAST_NAMES, segment), segment, -1)
WATCH(bcast_intra_split_bintree, (BCAST, uint32_t segment), (BCAST_NAMES, segment), segment, -1)
WATCH(bcast_intra_bintree, (BCAST, uint32_t segment), (BCAST_NAMES, segment), segment, -1)
WATCH(bcast_intra_binomial, (BCAST, uint32_t segment), (BCAST_NAMES, segment), segment, -1)
WATCH(bcast_intra_knomial, (BCAST, uint32_t segment, int radix), (BCAST_NAMES, segment, radix),
      segment, radix)
WATCH(bcast_intra_scatter_allgather, (BCAST, uint32_t segment), (BCAST_NAMES, segment), segment, -1)
WATCH(bcast_intra_scatter_allgather_ring, (BCAST, uint32_t segment), (BCAST_NAMES, segment),
      segment, -1)

#define REDUCE                                                                              \
  const void *in, void *out, int count, void *type, void *op, int root, void *communicator, \
      void *module
#define REDUCE_NAMES in, out, count, type, op, root, communicator, module
WATCH(reduce_intra_basic_linear, (REDUCE), (REDUCE_NAMES), -1, -1)
WATCH(reduce_intra_chain, (REDUCE, uint32_t segment, int fan, int requests),
      (REDUCE_NAMES, segment, fan, requests), segment, fan)
WATCH(reduce_intra_pipeline, (REDUCE, uint32_t segment, int requests),
      (REDUCE_NAMES, segment, requests), segment, -1)
WATCH(reduce_intra_binary, (REDUCE, uint32_t segment, int requests),
      (REDUCE_NAMES, segment, requests), segment, -1)
WATCH(reduce_intra_binomial, (REDUCE, uint32_t segment, int requests),
      (REDUCE_NAMES, segment, requests), segment, -1)
WATCH(reduce_intra_in_order_binary, (REDUCE, uint32_t segment, int requests),
      (REDUCE_NAMES, segment, requests), segment, -1)
WATCH(reduce_intra_redscat_gather, (REDUCE), (REDUCE_NAMES), -1, -1)

// Allgather and alltoall take the same.
#define GATHER                                                                           \
  const void *in, int in_count, void *in_type, void *out, int out_count, void *out_type, \
      void *communicator, void *module
#define GATHER_NAMES in, in_count, in_type, out, out_count, out_type, communicator, module
WATCH(allgather_intra_basic_linear, (GATHER), (GATHER_NAMES), -1, -1)
WATCH(allgather_intra_bruck, (GATHER), (GATHER_NAMES), -1, -1)
WATCH(allgather_intra_recursivedoubling, (GATHER), (GATHER_NAMES), -1, -1)
WATCH(allgather_intra_ring, (GATHER), (GATHER_NAMES), -1, -1)
WATCH(allgather_intra_neighborexchange, (GATHER), (GATHER_NAMES), -1, -1)
WATCH(allgather_intra_two_procs, (GATHER), (GATHER_NAMES), -1, -1)
WATCH(alltoall_intra_basic_linear, (GATHER), (GATHER_NAMES), -1, -1)
WATCH(alltoall_intra_pairwise, (GATHER), (GATHER_NAMES), -1, -1)
WATCH(alltoall_intra_bruck, (GATHER), (GATHER_NAMES), -1, -1)
WATCH(alltoall_intra_linear_sync, (GATHER, int requests), (GATHER_NAMES, requests), -1, -1)
WATCH(alltoall_intra_two_procs, (GATHER), (GATHER_NAMES), -1, -1)

#define SCATTER                                                                           \
  const void *in, void *out, const int *counts, void *type, void *op, void *communicator, \
      void *module
#define SCATTER_NAMES in, out, counts, type, op, communicator, module
WATCH(reduce_scatter_intra_nonoverlapping, (SCATTER), (SCATTER_NAMES), -1, -1)
WATCH(reduce_scatter_intra_basic_recursivehalving, (SCATTER), (SCATTER_NAMES), -1, -1)
WATCH(reduce_scatter_intra_ring, (SCATTER), (SCATTER_NAMES), -1, -1)
WATCH(reduce_scatter_intra_butterfly, (SCATTER), (SCATTER_NAMES), -1, -1)
