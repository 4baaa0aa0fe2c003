// A libnvidia-ml.so.1 that says what a text file tells it to: DIAPASON_FAKE_NVML names it. Lines
// are "name = value" for every GPU, and "gpu2.name = value" for one. Functions it does not have are
// as with an old driver.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace {

constexpr int kSuccess = 0;
constexpr int kNoDriver = 9;
constexpr int kNotSupported = 3;
constexpr int kInvalid = 2;

std::map<std::string, std::string> values;
struct Device {
  unsigned index;
} devices[64];

std::string Text(const std::string& name, const std::string& other = "") {
  const auto found = values.find(name);
  return found == values.end() ? other : found->second;
}

unsigned IndexOf(const void* device) { return static_cast<const Device*>(device)->index; }

std::string OfGpu(const void* device, const std::string& name, const std::string& other = "") {
  return Text("gpu" + std::to_string(IndexOf(device)) + "." + name, Text(name, other));
}

long Number(const void* device, const std::string& name, long other) {
  const std::string text = OfGpu(device, name);
  return text.empty() ? other : std::strtol(text.c_str(), nullptr, 0);
}

int Put(const std::string& text, char* buffer, unsigned size) {
  std::snprintf(buffer, size, "%s", text.c_str());
  return kSuccess;
}

struct Pci {
  char legacy_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char id[32];
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* path = std::getenv("DIAPASON_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  if (!file) return kNoDriver;
  std::string line;
  while (std::getline(file, line)) {
    const size_t mark = line.find(" = ");
    if (mark != std::string::npos) values[line.substr(0, mark)] = line.substr(mark + 3);
  }
  for (unsigned i = 0; i < 64; ++i) devices[i].index = i;
  return values.count("error") > 0 ? std::atoi(values["error"].c_str()) : kSuccess;
}
int nvmlShutdown() { return kSuccess; }

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return Put(Text("driver", "580.95.05"), text, size);
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = std::atoi(Text("cuda", "13000").c_str());
  return kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(std::atoi(Text("gpus", "0").c_str()));
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= 64) return kInvalid;
  *device = &devices[index];
  return kSuccess;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  return Put(OfGpu(device, "name", "NVIDIA H200"), text, size);
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  return Put("GPU-" + std::to_string(IndexOf(device)), text, size);
}
int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  std::memset(pci, 0, sizeof *pci);
  pci->bus = 0xe0 + IndexOf(device);
  return kSuccess;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  memory[0] = 141ull << 30;
  memory[2] = static_cast<unsigned long long>(Number(device, "memory_used", 0));
  memory[1] = memory[0] - memory[2];
  return kSuccess;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* up) {
  const long links = Number(device, "links", 18);
  if (static_cast<long>(link) >= links) return kNotSupported;
  *up = static_cast<long>(link) < links - Number(device, "links_down", 0) ? 1 : 0;
  return kSuccess;
}
int nvmlDeviceGetNvLinkErrorCounter(void* device, unsigned link, int counter,
                                    unsigned long long* errors) {
  *errors = link == 0 && counter == 0
                ? static_cast<unsigned long long>(Number(device, "link_errors", 0))
                : 0;
  return kSuccess;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int* kind) {
  *kind = 2;  // a switch
  return kSuccess;
}
int nvmlDeviceGetTemperature(void* device, int, unsigned* value) {
  *value = static_cast<unsigned>(Number(device, "temperature", 40));
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* value) {
  *value = static_cast<unsigned>(Number(device, "power_mw", 100000));
  return kSuccess;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* value) {
  *value = 700000;
  return kSuccess;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = static_cast<unsigned long long>(Number(device, "throttle", 1));
  return kSuccess;
}
int nvmlDeviceGetTotalEccErrors(void* device, int, int, unsigned long long* errors) {
  *errors = static_cast<unsigned long long>(Number(device, "ecc", 0));
  return kSuccess;
}
int nvmlDeviceGetPersistenceMode(void* device, int* on) {
  *on = static_cast<int>(Number(device, "persistence", 1));
  return kSuccess;
}
int nvmlDeviceGetComputeMode(void* device, int* mode) {
  *mode = static_cast<int>(Number(device, "mode", 0));
  return kSuccess;
}
int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* later) {
  *now = *later = static_cast<unsigned>(Number(device, "mig", 0));
  return kSuccess;
}
int nvmlDeviceGetP2PStatus(void* one, void* other, int, int* status) {
  const std::string name =
      "p2p." + std::to_string(IndexOf(one)) + "." + std::to_string(IndexOf(other));
  *status = std::atoi(Text(name, "0").c_str());
  return kSuccess;
}
int nvmlDeviceGetTopologyCommonAncestor(void*, void*, int* level) {
  *level = 50;
  return kSuccess;
}
struct Fabric {
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};
int nvmlDeviceGetGpuFabricInfo(void* device, Fabric* fabric) {
  fabric->status = 0;
  fabric->state = static_cast<unsigned char>(Number(device, "fabric", 3));
  return kSuccess;
}

}  // extern "C"
