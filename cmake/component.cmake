# diapason_component(folder [OPTIMIZE] [ONE_THREAD] SOURCES file... [ALONE file...] [TESTS file...])
#
# Declares src/<folder> as the static library diapason_<folder>, with '/' as '_'. cmake/components.cmake says
# which components it uses; the test `layers` compares that list with the #include lines.
# TESTS are unit tests beside their sources: one program <folder>_test, whose tests are named <folder>.Suite.Test.
# OPTIMIZE: in a release it is compiled for speed. The others are compiled with -O1, which builds faster.
# ALONE: sources too, but with a local name that one of SOURCES in the same folder has as well.
# ONE_THREAD: its tests are not built for the thread sanitizer, which sees the component below those that use it.
include(${CMAKE_CURRENT_LIST_DIR}/components.cmake)

# Neighbours need the same headers and templates, so that several at once cost half the time. A local name that two of
# them have is an error that the compiler reports: one is renamed, or its source is listed as ALONE.
set(DIAPASON_UNITY_BATCH 0 CACHE STRING "How many sources of a folder are compiled at once; 0 or 1: each alone")

# diapason_precompile(target [OPTIMIZE]): with the standard headers, which are compiled once for each set of options.
function(diapason_precompile target)
  set(headers precompiled)
  if(NOT "OPTIMIZE" IN_LIST ARGN)
    set(headers precompiled_o1)
  endif()
  if(NOT TARGET ${headers})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${headers}.cc CONTENT "// Only the precompiled header.\n")
    add_library(${headers} OBJECT ${PROJECT_BINARY_DIR}/${headers}.cc)
    diapason_library(${headers})
    diapason_optimize(${headers} ${ARGN})
    target_precompile_headers(${headers} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

# diapason_optimize(target [OPTIMIZE]): without OPTIMIZE, -O1 in a release, and -O0 with sanitizers.
function(diapason_optimize target)
  if("OPTIMIZE" IN_LIST ARGN)
    return()
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(DIAPASON_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# diapason_unity(target file...): compiles these sources of it in batches, each of files of one folder. The others of
# the target are compiled alone.
function(diapason_unity target)
  if(NOT DIAPASON_UNITY_BATCH GREATER 1)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A local type of a source counts as one of a header, for it is not in the file that is compiled.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file NORMALIZE)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src OUTPUT_VARIABLE folder)
    cmake_path(GET folder PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER ${folder} folder)
    math(EXPR batch "0${count_${folder}} / ${DIAPASON_UNITY_BATCH}")
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
endfunction()

# diapason_library(target): what every library of ours has in common.
function(diapason_library target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                              ${PROJECT_BINARY_DIR}/generated)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# GoogleTest's header, compiled once for all unit tests, which are compiled with the same options.
function(diapason_gtest_header)
  if(TARGET gtest_header)
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gtest_header.cc CONTENT "// Only the precompiled header.\n")
  add_library(gtest_header OBJECT ${PROJECT_BINARY_DIR}/gtest_header.cc)
  target_link_libraries(gtest_header PRIVATE GTest::gtest Threads::Threads)
  diapason_test_options(gtest_header)
  target_precompile_headers(gtest_header PRIVATE <gtest/gtest.h>)
endfunction()

function(diapason_test_options target)
  # Tests are compiled more often than they run.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(DIAPASON_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  target_compile_definitions(${target} PRIVATE DIAPASON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# diapason_unit_tests(name prefix library file...): the program <name>_test; ctest knows its tests as <prefix>.Suite.Test.
function(diapason_unit_tests name prefix library)
  if(NOT BUILD_TESTING)
    return()
  endif()
  add_executable(${name}_test ${ARGN})
  target_link_libraries(${name}_test PRIVATE ${library} GTest::gtest_main)
  diapason_test_options(${name}_test)
  diapason_gtest_header()
  target_precompile_headers(${name}_test REUSE_FROM gtest_header)
  gtest_discover_tests(${name}_test TEST_PREFIX "${prefix}." DISCOVERY_TIMEOUT 600)
endfunction()

function(diapason_component folder)
  cmake_parse_arguments(ARG "OPTIMIZE;ONE_THREAD" "" "SOURCES;ALONE;TESTS" ${ARGN})
  set(optimize "")
  if(ARG_OPTIMIZE)
    set(optimize OPTIMIZE)
  endif()
  string(REPLACE "/" "_" name ${folder})
  if(NOT DEFINED DIAPASON_USES_${name})
    message(FATAL_ERROR "component '${folder}' is not in cmake/components.cmake")
  endif()
  set(library diapason_${name})
  add_library(${library} STATIC ${ARG_SOURCES} ${ARG_ALONE})
  diapason_library(${library})
  diapason_optimize(${library} ${optimize})
  diapason_precompile(${library} ${optimize})
  diapason_unity(${library} ${ARG_SOURCES})
  foreach(other IN LISTS DIAPASON_USES_${name})
    string(REPLACE "/" "_" other ${other})
    target_link_libraries(${library} PUBLIC diapason_${other})
  endforeach()
  if(ARG_TESTS AND NOT (ARG_ONE_THREAD AND DIAPASON_SANITIZE MATCHES thread))
    diapason_unit_tests(${name} ${name} ${library} ${ARG_TESTS})
  endif()
endfunction()
