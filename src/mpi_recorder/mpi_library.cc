#include "mpi_recorder/mpi_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "base/text.h"

namespace diapason::mpi_recorder {
namespace {

constexpr size_t kLongestVersion = 8192;  // MPICH's needs the most

// A program may open its MPI library itself, out of sight of the others: Python modules do.
int SeeMpiLibrary(dl_phdr_info* object, size_t, void* data) {
  const char* slash = std::strrchr(object->dlpi_name, '/');
  const std::string_view name = slash != nullptr ? slash + 1 : object->dlpi_name;
  if (!name.starts_with("libmpi.so") && !name.starts_with("libmpich.so")) return 0;
  *static_cast<std::string*>(data) = object->dlpi_name;
  return 1;
}

void* FindInLoaded(const char* name) {
  std::string path;
  dl_iterate_phdr(SeeMpiLibrary, &path);
  if (path.empty()) return nullptr;
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = dlsym(library, name);
  dlclose(library);  // it stays loaded: only the count was raised
  return found;
}

template <typename Function>
bool Find(const char* name, Function* function) {
  *function = reinterpret_cast<Function>(FindSymbol(name));
  return *function != nullptr;
}

// Of an object, not a function: a program that is linked with it may have the copy that counts.
Word AddressOf(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  return reinterpret_cast<Word>(found != nullptr ? found : FindSymbol(name));
}

bool FindFunctions(MpiFunctions* functions) {
  return Find("PMPI_Comm_size", &functions->comm_size) &&
         Find("PMPI_Comm_remote_size", &functions->comm_remote_size) &&
         Find("PMPI_Comm_rank", &functions->comm_rank) &&
         Find("PMPI_Comm_test_inter", &functions->comm_test_inter) &&
         Find("PMPI_Comm_get_name", &functions->comm_get_name) &&
         Find("PMPI_Comm_group", &functions->comm_group) &&
         Find("PMPI_Group_translate_ranks", &functions->group_translate_ranks) &&
         Find("PMPI_Group_free", &functions->group_free) &&
         Find("PMPI_Comm_create_keyval", &functions->comm_create_keyval) &&
         Find("PMPI_Comm_set_attr", &functions->comm_set_attr) &&
         Find("PMPI_Topo_test", &functions->topo_test) &&
         Find("PMPI_Cartdim_get", &functions->cartdim_get) &&
         Find("PMPI_Graph_neighbors_count", &functions->graph_neighbors_count) &&
         Find("PMPI_Dist_graph_neighbors_count", &functions->dist_graph_neighbors_count) &&
         Find("PMPI_Type_size", &functions->type_size) &&
         Find("PMPI_Op_commutative", &functions->op_commutative) &&
         Find("PMPI_Initialized", &functions->initialized) &&
         Find("PMPI_Finalized", &functions->finalized);
}

// Handles are the addresses of the library's own objects.
bool OpenMpiAbi(MpiLibrary* library) {
  MpiAbi& abi = library->abi;
  abi.comm_world = AddressOf("ompi_mpi_comm_world");
  abi.comm_null = AddressOf("ompi_mpi_comm_null");
  abi.type_null = AddressOf("ompi_mpi_datatype_null");
  abi.op_null = AddressOf("ompi_mpi_op_null");
  abi.root = -4;
  abi.cartesian = 1;
  abi.graph = 2;
  abi.dist_graph = 3;
  return abi.comm_world != 0 && abi.comm_null != 0 && abi.type_null != 0 && abi.op_null != 0 &&
         Find("PMPI_Comm_f2c", &library->functions.comm_f2c) &&
         Find("PMPI_Type_f2c", &library->functions.type_f2c) &&
         Find("PMPI_Op_f2c", &library->functions.op_f2c);
}

// Handles are ints with fixed values, which the members of MPICH's ABI initiative share.
void MpichAbi(MpiAbi* abi) {
  abi->int_handles = true;
  abi->comm_world = 0x44000000;
  abi->comm_null = 0x04000000;
  abi->type_null = 0x0c000000;
  abi->op_null = 0x18000000;
  abi->root = -3;
  abi->graph = 1;
  abi->cartesian = 2;
  abi->dist_graph = 3;
}

}  // namespace

void* FindSymbol(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  return found != nullptr ? found : FindInLoaded(name);
}

MpiFamily FamilyOf(std::string_view version) {
  if (version.starts_with("Open MPI")) return MpiFamily::kOpenMpi;
  for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH", "MPI VERSION"}) {
    if (version.starts_with(name)) return MpiFamily::kMpich;
  }
  return MpiFamily::kUnknown;
}

std::optional<MpiLibrary> FindMpiLibrary(std::string* why) {
  int (*get_version)(char*, int*) = nullptr;
  if (!Find("PMPI_Get_library_version", &get_version)) {
    *why = "its MPI library is older than MPI-3";
    return std::nullopt;
  }
  std::string text(kLongestVersion, '\0');
  int length = 0;
  if (get_version(text.data(), &length) != 0 || length <= 0 ||
      static_cast<size_t>(length) > text.size()) {
    *why = "its MPI library does not say what it is";
    return std::nullopt;
  }
  text.resize(static_cast<size_t>(length));
  MpiLibrary library;
  library.version = std::string(Trim(text.substr(0, text.find_first_of("\n\0"))));
  const MpiFamily family = FamilyOf(library.version);
  if (family == MpiFamily::kUnknown) {
    *why = "the handles of its MPI library ('" + library.version + "') are not known";
    return std::nullopt;
  }
  if (family == MpiFamily::kMpich) MpichAbi(&library.abi);
  if (!FindFunctions(&library.functions) ||
      (family == MpiFamily::kOpenMpi && !OpenMpiAbi(&library))) {
    *why = "its MPI library ('" + library.version + "') lacks a function of MPI-3";
    return std::nullopt;
  }
  return library;
}

}  // namespace diapason::mpi_recorder
