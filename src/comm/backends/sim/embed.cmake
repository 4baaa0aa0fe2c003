# Writes OUTPUT, a source file that holds the texts of CLUSTERS, which are paths with | between them.
string(REPLACE "|" ";" files "${CLUSTERS}")
set(texts "")
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(FIND "${text}" ")toml\"" hit)
  if(NOT hit EQUAL -1)
    message(FATAL_ERROR "${file} holds )toml\", which ends a text in the generated source")
  endif()
  string(APPEND rows "    {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
file(WRITE ${OUTPUT}
"// Generated from clusters/*.toml.
#include \"comm/backends/sim/shipped.h\"

namespace diapason::comm::sim {
namespace {
constexpr Shipped kShipped[] = {
${rows}};
}  // namespace
std::span<const Shipped> ShippedClusters() { return kShipped; }
}  // namespace diapason::comm::sim
")
