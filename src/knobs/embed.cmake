# cmake -DOUT=file.cc "-DTABLES=a.toml|b.toml" [-DCOMPONENT=knobs] -P embed.cmake: writes the tables as texts into one
# source file of that component, so that they are compiled in.
if(NOT COMPONENT)
  set(COMPONENT knobs)
endif()
string(REPLACE "|" ";" tables "${TABLES}")
set(body "")
foreach(table IN LISTS tables)
  get_filename_component(name "${table}" NAME)
  file(READ "${table}" text)
  string(APPEND body "    {\"${name}\", R\"table(${text})table\"},\n")
endforeach()
file(WRITE "${OUT}" "// Made from the tables by embed.cmake.
#include \"${COMPONENT}/tables.h\"

namespace diapason::${COMPONENT} {

const std::vector<std::pair<std::string, std::string>>& BuiltInTables() {
  static const std::vector<std::pair<std::string, std::string>> tables = {
${body}  };
  return tables;
}

}  // namespace diapason::${COMPONENT}
")
