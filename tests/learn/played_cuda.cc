// Stands for CUDA's driver where there is none: events alone, of kernels that end when a test says
// so. Its file has the driver's name.
#include <atomic>

namespace {
std::atomic<bool> ended{true};
std::atomic<float> milliseconds{1};
int context;
int event;
}  // namespace

extern "C" {
void played_cuda_set(bool kernels_end, float kernel_milliseconds) {
  ended = kernels_end;
  milliseconds = kernel_milliseconds;
}
int cuCtxGetCurrent(void** current) { return *current = &context, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuThreadExchangeStreamCaptureMode(int*) { return 0; }
int cuEventCreate(void** made, unsigned) { return *made = &event, 0; }
int cuEventDestroy_v2(void*) { return 0; }
int cuEventRecord(void*, void*) { return 0; }
int cuEventQuery(void*) { return ended ? 0 : 600; }
int cuEventElapsedTime(float* elapsed, void*, void*) { return *elapsed = milliseconds, 0; }
int cuMemGetInfo_v2(unsigned long* free, unsigned long* total) {
  return *free = *total = 1ul << 40, 0;
}
}
