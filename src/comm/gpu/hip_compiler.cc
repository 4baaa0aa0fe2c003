#include "comm/gpu/hip_compiler.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/text.h"
#include "comm/gpu/symbols.h"

namespace diapason::comm::gpu {
namespace {

constexpr int kSuccess = 0;
// Larger sizes are treated as errors.
constexpr size_t kMostCode = size_t{64} << 20;
constexpr size_t kMostLog = size_t{1} << 20;
constexpr size_t kShownLog = 2000;

struct HipRtc {
  const char* (*GetErrorString)(int);
  int (*CreateProgram)(void**, const char*, const char*, int, const char**, const char**);
  int (*CompileProgram)(void*, int, const char**);
  int (*GetProgramLogSize)(void*, size_t*);
  int (*GetProgramLog)(void*, char*);
  int (*GetCodeSize)(void*, size_t*);
  int (*GetCode)(void*, char*);
  int (*DestroyProgram)(void**);

  std::string Load(void* library) {
    Symbols symbols(library);
    symbols.Find("hiprtcGetErrorString", &GetErrorString);
    symbols.Find("hiprtcCreateProgram", &CreateProgram);
    symbols.Find("hiprtcCompileProgram", &CompileProgram);
    symbols.Find("hiprtcGetProgramLogSize", &GetProgramLogSize);
    symbols.Find("hiprtcGetProgramLog", &GetProgramLog);
    symbols.Find("hiprtcGetCodeSize", &GetCodeSize);
    symbols.Find("hiprtcGetCode", &GetCode);
    symbols.Find("hiprtcDestroyProgram", &DestroyProgram);
    return symbols.missing();
  }
};

Result<HipRtc> Open() {
  // Before ROCm 7 the runtime itself had the compiler's functions as well.
  for (const char* name : {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so",
                           "libamdhip64.so.6", "libamdhip64.so.5"}) {
    // Stays loaded: code from it may be in use.
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    HipRtc rtc{};
    if (rtc.Load(library).empty()) return rtc;
  }
  return Unavailable("ROCm's compiler for run time, libhiprtc.so, cannot be opened");
}

// The compiler's messages, or "".
std::string LogOf(const HipRtc& rtc, void* program) {
  size_t size = 0;
  if (rtc.GetProgramLogSize(program, &size) != kSuccess || size == 0 || size > kMostLog) return "";
  std::string log(size, '\0');
  if (rtc.GetProgramLog(program, log.data()) != kSuccess) return "";
  log.resize(std::min(log.find('\0'), std::min(log.size(), kShownLog)));
  return std::string(Trim(log));
}

Result<std::string> Compile(const HipRtc& rtc, void* program) {
  const auto check = [&](int result, const char* call) {
    if (result == kSuccess) return Status();
    const char* text = rtc.GetErrorString(result);
    return Internal(Format("{}: {}", call, text != nullptr ? text : "unknown error"));
  };
  Status status = check(rtc.CompileProgram(program, 0, nullptr), "hiprtcCompileProgram");
  if (!status.ok()) {
    const std::string log = LogOf(rtc, program);
    return log.empty() ? status : Internal(status.message() + ": " + log);
  }
  size_t size = 0;
  status = check(rtc.GetCodeSize(program, &size), "hiprtcGetCodeSize");
  if (!status.ok()) return status;
  if (size == 0 || size > kMostCode) {
    return Internal(Format("hiprtcGetCodeSize: {} bytes of code cannot be", size));
  }
  std::string code(size, '\0');
  status = check(rtc.GetCode(program, code.data()), "hiprtcGetCode");
  if (!status.ok()) return status;
  return code;
}

}  // namespace

Result<std::string> CompileHip(const char* source, const char* name) {
  static const Result<HipRtc> rtc = Open();
  if (!rtc.ok()) return rtc.status();
  void* program = nullptr;
  const int created = rtc.value().CreateProgram(&program, source, name, 0, nullptr, nullptr);
  if (created != kSuccess || program == nullptr) {
    return Internal(Format("hiprtcCreateProgram: error {}", created));
  }
  Result<std::string> code = Compile(rtc.value(), program);
  rtc.value().DestroyProgram(&program);
  return code;
}

}  // namespace diapason::comm::gpu
