#pragma once

#include <array>
#include <cstdint>

namespace diapason::host {

// The functions of NVIDIA's management library that are used, opened at run time. A function that
// this driver lacks is null; every use checks.
struct Nvml {
  static constexpr int kSuccess = 0;
  static constexpr unsigned kMostLinks = 18;
  static constexpr int kSmClock = 1;
  static constexpr int kUncorrected = 1;
  static constexpr int kSinceBoot = 0;
  static constexpr int kPeerRead = 0;
  static constexpr int kRemoteIsSwitch = 2;

  struct Memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
  };
  struct Pci {
    char legacy_id[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    char id[32];
  };
  struct Fabric {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
  };

  int (*Init)();
  int (*Shutdown)();
  int (*DriverVersion)(char*, unsigned);
  int (*CudaVersion)(int*);
  int (*Count)(unsigned*);
  int (*ByIndex)(unsigned, void**);
  int (*Name)(void*, char*, unsigned);
  int (*Uuid)(void*, char*, unsigned);
  int (*PciInfo)(void*, Pci*);
  int (*Capability)(void*, int*, int*);
  int (*MemoryInfo)(void*, Memory*);
  int (*LinkState)(void*, unsigned, int*);
  int (*LinkErrors)(void*, unsigned, int, unsigned long long*);
  int (*LinkRemote)(void*, unsigned, Pci*);
  int (*LinkRemoteKind)(void*, unsigned, int*);
  int (*Temperature)(void*, int, unsigned*);
  int (*Power)(void*, unsigned*);
  int (*PowerLimit)(void*, unsigned*);
  int (*Clock)(void*, int, unsigned*);
  int (*MostClock)(void*, int, unsigned*);
  int (*Throttling)(void*, unsigned long long*);
  int (*EccErrors)(void*, int, int, unsigned long long*);
  int (*Persistence)(void*, int*);
  int (*ComputeMode)(void*, int*);
  int (*MigMode)(void*, unsigned*, unsigned*);
  int (*PeerStatus)(void*, void*, int, int*);
  int (*CommonAncestor)(void*, void*, int*);
  int (*FabricInfo)(void*, Fabric*);

  // False if not even the GPUs can be counted.
  bool Load(void* library);
};

}  // namespace diapason::host
