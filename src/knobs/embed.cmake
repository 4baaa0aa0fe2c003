# cmake -DOUT=file.cc "-DTABLES=a.toml|b.toml" -P embed.cmake: writes the tables as texts into one
# source file, so that they are compiled in.
string(REPLACE "|" ";" tables "${TABLES}")
set(body "")
foreach(table IN LISTS tables)
  get_filename_component(name "${table}" NAME)
  file(READ "${table}" text)
  string(APPEND body "    {\"${name}\", R\"knobs(${text})knobs\"},\n")
endforeach()
file(WRITE "${OUT}" "// Made from the tables by embed.cmake.
#include \"knobs/tables.h\"

namespace diapason::knobs {

const std::vector<std::pair<std::string, std::string>>& BuiltInTables() {
  static const std::vector<std::pair<std::string, std::string>> tables = {
${body}  };
  return tables;
}

}  // namespace diapason::knobs
")
