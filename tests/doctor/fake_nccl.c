/* Stands for NCCL with one rank, where every collective is a copy. Built for several versions
 * (FAKE_VERSION 22809, FAKE_TEXT "2.28.9"), so that a test sees which file a command has opened. */
#include <stddef.h>
#include <string.h>

const char fake_text[] = "NCCL version " FAKE_TEXT "+cuda13.0";
static int communicator;
struct unique_id {
  char bytes[128];
};

static size_t bytes_of(size_t count, int type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return count * sizes[type];
}

int ncclGetVersion(int* version) { return *version = FAKE_VERSION, 0; }
int ncclGetUniqueId(struct unique_id* id) { return memset(id, 1, sizeof *id), 0; }
int ncclCommInitRankConfig(void** made, int ranks, struct unique_id id, int rank, void* config) {
  (void)id, (void)rank, (void)config;
  *made = &communicator;
  return ranks == 1 ? 0 : 5;
}
int ncclCommFinalize(void* comm) { return (void)comm, 0; }
int ncclCommDestroy(void* comm) { return (void)comm, 0; }
int ncclCommAbort(void* comm) { return (void)comm, 0; }
int ncclCommGetAsyncError(void* comm, int* error) { return (void)comm, *error = 0, 0; }
const char* ncclGetErrorString(int error) { return error == 5 ? "invalid usage" : "no error"; }
const char* ncclGetLastError(void* comm) { return (void)comm, fake_text; }
int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, void* c, void* s) {
  (void)op, (void)c, (void)s;
  return memmove(out, in, bytes_of(count, type)), 0;
}
int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, void* c, void* s) {
  return ncclAllReduce(in, out, count, type, root, c, s);
}
int ncclReduce(const void* in, void* out, size_t count, int type, int op, int root, void* c,
               void* s) {
  return (void)root, ncclAllReduce(in, out, count, type, op, c, s);
}
int ncclAllGather(const void* in, void* out, size_t count, int type, void* c, void* s) {
  return ncclAllReduce(in, out, count, type, 0, c, s);
}
int ncclReduceScatter(const void* in, void* out, size_t count, int type, int op, void* c, void* s) {
  return ncclAllReduce(in, out, count, type, op, c, s);
}
int ncclSend(const void* in, size_t count, int type, int peer, void* c, void* s) {
  return (void)in, (void)count, (void)type, (void)peer, (void)c, (void)s, 5;
}
int ncclRecv(void* out, size_t count, int type, int peer, void* c, void* s) {
  return (void)out, (void)count, (void)type, (void)peer, (void)c, (void)s, 5;
}
int ncclGroupStart(void) { return 0; }
int ncclGroupEnd(void) { return 0; }
