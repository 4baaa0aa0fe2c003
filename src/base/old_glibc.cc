// Lets the plugin and the tool load with a C library older than the one they were built with.
//
// The exception unwinder that is linked into them calls _dl_find_object, which exists from glibc
// 2.35 on. This replacement uses dl_iterate_phdr, which always existed, and has hidden visibility.
// It is slower, but exceptions are rare here: one per communicator that runs out of memory at init.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>

#ifdef DLFO_STRUCT_HAS_EH_DBASE

namespace {

struct Search {
  uintptr_t address;
  dl_find_object* result;
};

int Visit(dl_phdr_info* object, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  uintptr_t start = 0;
  uintptr_t end = 0;
  uintptr_t eh_frame = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uintptr_t from = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && search->address >= from &&
        search->address < from + segment.p_memsz) {
      start = from;
      end = from + segment.p_memsz;
    }
    if (segment.p_type == PT_GNU_EH_FRAME) eh_frame = from;
  }
  if (start == 0 || eh_frame == 0) return 0;
  search->result->dlfo_flags = 0;
  search->result->dlfo_map_start = reinterpret_cast<void*>(start);
  search->result->dlfo_map_end = reinterpret_cast<void*>(end);
  search->result->dlfo_link_map = nullptr;
  search->result->dlfo_eh_frame = reinterpret_cast<void*>(eh_frame);
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(  // NOLINT: glibc's name
    void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(Visit, &search) == 1 ? 0 : -1;
}

#endif
