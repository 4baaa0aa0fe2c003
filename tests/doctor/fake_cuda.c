/* Stands for CUDA's driver on a machine without one: one GPU whose memory is ordinary memory, and
 * whose streams run at once. Enough for one rank of NCCL, which fake_nccl.c stands for. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMost = 256 };
static struct {
  char* start;
  size_t bytes;
} blocks[kMost];
static int context;

int cuInit(unsigned flags) { return (void)flags, 0; }
int cuGetErrorName(int error, const char** name) { return (void)error, *name = "FAKE_ERROR", 0; }
int cuGetErrorString(int error, const char** text) { return (void)error, *text = "an error", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int size, int device) {
  (void)device;
  strncpy(name, "Fake GPU", (size_t)size);
  return 0;
}
int cuDeviceGetUuid(unsigned char* uuid, int device) {
  return (void)device, memset(uuid, 7, 16), 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return (void)attribute, (void)device, *value = 4, 0;
}
int cuDevicePrimaryCtxRetain(void** made, int device) { return (void)device, *made = &context, 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return (void)device, *flags = 0, *active = 1, 0;
}
int cuCtxGetCurrent(void** current) { return *current = &context, 0; }
int cuCtxSetCurrent(void* current) { return (void)current, 0; }
int cuPointerGetAttribute(void* value, int attribute, unsigned long long address) {
  const char* pointer = (const char*)address;
  for (int i = 0; i < kMost; ++i) {
    if (blocks[i].start == NULL || pointer < blocks[i].start) continue;
    if (pointer >= blocks[i].start + blocks[i].bytes) continue;
    *(unsigned*)value = attribute == 2 ? 2 : 0;
    return 0;
  }
  return 1;
}
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  for (int i = 0; i < kMost; ++i) {
    if (blocks[i].start != NULL) continue;
    blocks[i].start = aligned_alloc(512, (bytes + 511) / 512 * 512);
    blocks[i].bytes = bytes;
    *address = (unsigned long long)blocks[i].start;
    return blocks[i].start == NULL ? 2 : 0;
  }
  return 2;
}
int cuMemFree_v2(unsigned long long address) {
  for (int i = 0; i < kMost; ++i) {
    if ((unsigned long long)blocks[i].start == address) blocks[i].start = NULL;
  }
  free((void*)address);
  return 0;
}
int cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  (void)flags;
  *pointer = malloc(bytes);
  return *pointer == NULL ? 2 : 0;
}
int cuMemFreeHost(void* pointer) { return free(pointer), 0; }
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t bytes, void* stream) {
  (void)stream;
  memmove((void*)to, (const void*)from, bytes);
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) { return (void)flags, *stream = malloc(1), 0; }
int cuStreamDestroy_v2(void* stream) { return free(stream), 0; }
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return (void)stream, (void)event, (void)flags, 0;
}
int cuStreamIsCapturing(void* stream, int* status) { return (void)stream, *status = 0, 0; }
int cuThreadExchangeStreamCaptureMode(int* mode) { return (void)mode, 0; }
int cuEventCreate(void** event, unsigned flags) {
  return (void)flags, *event = calloc(1, sizeof(struct timespec)), 0;
}
int cuEventDestroy_v2(void* event) { return free(event), 0; }
int cuEventRecord(void* event, void* stream) {
  return (void)stream, clock_gettime(CLOCK_MONOTONIC, event), 0;
}
int cuEventQuery(void* event) { return (void)event, 0; }
int cuEventElapsedTime(float* ms, void* from, void* to) {
  const struct timespec* a = from;
  const struct timespec* b = to;
  *ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) / 1e6);
  return 0;
}
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  return (void)stream, function(argument), 0;
}
int cuModuleLoadData(void** module, const void* image) {
  return (void)image, *module = &context, 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return (void)module, (void)name, *function = &context, 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** arguments, void** extra) {
  (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
  return (void)stream, (void)arguments, (void)extra, 0;
}
