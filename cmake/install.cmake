# What `cmake --install` puts where. The prefix is free until then, so one build folder serves
# /usr/local, a module tree and the Debian package.
#
#   LIBDIR/diapason/     everything that looks for its neighbours: the tool, the plugin, the library and the
#                        modules for Gloo, Open MPI and XGBoost. The folder can be copied or mounted alone.
#   bin, LIBDIR          links into it, under the names that shells and loaders look for
#
# Components: runtime, dev, python.
if(NOT DIAPASON_TOOL OR DIAPASON_SANITIZE OR DIAPASON_FUZZ)
  return()
endif()

# GNUInstallDirs takes Debian's folder for /usr only; its loader looks there under /usr/local as well.
if(EXISTS /etc/debian_version AND CMAKE_LIBRARY_ARCHITECTURE AND NOT CMAKE_CROSSCOMPILING)
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE} CACHE PATH "Object code libraries")
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(private ${CMAKE_INSTALL_LIBDIR}/diapason)
set(data ${CMAKE_INSTALL_DATADIR}/diapason)
set(made ${PROJECT_BINARY_DIR}/install)

# Before 1.0 every minor version may change the interface of comm.h.
set(soversion ${PROJECT_VERSION_MAJOR})
if(soversion EQUAL 0)
  set(soversion 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(comm PROPERTIES SOVERSION ${soversion})
# The public headers, wherever the library is used from.
set_target_properties(comm PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/include)

get_property(modules GLOBAL PROPERTY DIAPASON_MODULES)
# Addresses are bound when a file is loaded, and read-only from then on. (The plugin says so itself.)
foreach(target diapason comm ${modules})
  target_link_options(${target} PRIVATE -Wl,-z,relro -Wl,-z,now)
endforeach()
# An Open MPI or XGBoost of one's own, below /opt say, is not where the loader looks.
foreach(target IN LISTS modules)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  set(linked ${libraries})
  foreach(library IN LISTS libraries)
    if(TARGET ${library})
      get_target_property(more ${library} INTERFACE_LINK_LIBRARIES)
      list(APPEND linked ${more})
    endif()
  endforeach()
  if(NOT "${linked}" MATCHES "/")
    continue()
  endif()
  list(FILTER linked INCLUDE REGEX "^/")
  list(FILTER linked EXCLUDE REGEX "^(/usr)?/lib(64)?/")
  if(linked)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
endforeach()

# diapason_link(folder name target component): folder/name is a link to target.
function(diapason_link folder name target component)
  install(CODE "
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}\")
    file(MAKE_DIRECTORY \"\${folder}\")
    file(CREATE_LINK ${target} \"\${folder}/${name}\" SYMBOLIC)
    message(STATUS \"Installing: \${folder}/${name} -> ${target}\")
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/${folder}/${name}\")"
    COMPONENT ${component})
endfunction()

install(TARGETS diapason RUNTIME DESTINATION ${private} COMPONENT runtime)
install(TARGETS tuner ${modules} LIBRARY DESTINATION ${private} COMPONENT runtime)
install(TARGETS comm LIBRARY DESTINATION ${private} COMPONENT runtime NAMELINK_SKIP)
file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${private}/diapason)
diapason_link(${CMAKE_INSTALL_BINDIR} diapason ${up} runtime)
set(plugin libnccl-tuner-diapason.so)
diapason_link(${CMAKE_INSTALL_LIBDIR} ${plugin} diapason/${plugin} runtime)
foreach(name librccl-tuner libnccl-profiler librccl-profiler libnccl-env librccl-env)
  diapason_link(${private} ${name}-diapason.so ${plugin} runtime)
  diapason_link(${CMAKE_INSTALL_LIBDIR} ${name}-diapason.so diapason/${plugin} runtime)
endforeach()
set(library libdiapason-comm.so)
diapason_link(${CMAKE_INSTALL_LIBDIR} ${library}.${soversion} diapason/${library}.${soversion} runtime)
diapason_link(${CMAKE_INSTALL_LIBDIR} ${library} ${library}.${soversion} dev)

# For C++ programs: headers, find_package(diapason), pkg-config diapason.
install(DIRECTORY include/diapason DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
        FILES_MATCHING PATTERN *.h)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/diapason)
configure_package_config_file(cmake/diapasonConfig.cmake.in ${made}/diapasonConfig.cmake
  INSTALL_DESTINATION ${package} NO_CHECK_REQUIRED_COMPONENTS_MACRO
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(${made}/diapasonConfigVersion.cmake COMPATIBILITY ${compatibility})
install(FILES ${made}/diapasonConfig.cmake ${made}/diapasonConfigVersion.cmake DESTINATION ${package}
        COMPONENT dev)
# pkg-config wants the prefix itself, which is known now only.
configure_file(cmake/diapason.pc.in ${made}/diapason.pc.in @ONLY)
install(CODE "
  file(READ \"${made}/diapason.pc.in\" text)
  string(REPLACE PREFIX \"\${CMAKE_INSTALL_PREFIX}\" text \"\${text}\")
  file(WRITE \"${made}/diapason.pc\" \"\${text}\")" COMPONENT dev)
install(FILES ${made}/diapason.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# The tool writes its own manual and completions.
install(CODE "
  set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
  set(man \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1\")
  set(tool \"$<TARGET_FILE:diapason>\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_written.cmake\")" COMPONENT runtime)

install(DIRECTORY targets clusters DESTINATION ${data} COMPONENT runtime)
install(FILES README.md LICENSE THIRD-PARTY-NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime FILES_MATCHING PATTERN *.md)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime
        PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE)
install(DIRECTORY packaging/container packaging/apptainer packaging/slurm packaging/lmod
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT runtime)
install(FILES examples/installed/CMakeLists.txt DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples/installed
        COMPONENT runtime)
# No program looks here by itself: PYTHONPATH can name it, and the Debian package moves it.
install(DIRECTORY python/diapason DESTINATION ${data}/python COMPONENT python
        FILES_MATCHING PATTERN *.py PATTERN py.typed)
# With it importlib.metadata knows the version.
find_program(DIAPASON_PYTHON3 python3)
if(DIAPASON_PYTHON3)
  install(CODE "
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${data}/python\")
    execute_process(COMMAND ${DIAPASON_PYTHON3} -B ${PROJECT_SOURCE_DIR}/python/wheel_backend.py --dist-info \${folder}
                    OUTPUT_VARIABLE about OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR \"wheel_backend.py --dist-info failed: \${status}\")
    endif()
    message(STATUS \"Installing: \${about}\")
    string(LENGTH \"\$ENV{DESTDIR}\" length)
    string(SUBSTRING \${about} \${length} -1 about)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \${about}/METADATA \${about}/INSTALLER)"
    COMPONENT python)
endif()
