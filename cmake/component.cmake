# diapason_component(folder [OPTIMIZE] [ONE_THREAD] SOURCES file... [TESTS file...])
#
# Declares src/<folder> as the static library diapason_<folder>, with '/' as '_'. cmake/components.cmake says
# which components it uses; the test `layers` compares that list with the #include lines.
# TESTS are unit tests beside their sources: one program <folder>_test, whose tests are named <folder>.Suite.Test.
# OPTIMIZE: in a release it is compiled for speed. The others are compiled with -O1, which builds faster.
# ONE_THREAD: its tests are not built for the thread sanitizer, which sees the component below those that use it.
include(${CMAKE_CURRENT_LIST_DIR}/components.cmake)

# Unity batches: how many sources CMake compiles as one. 0: each alone, as `./dev lint` and the preset dev do.
set(DIAPASON_UNITY_BATCH 0 CACHE STRING "Sources per translation unit; 0: one")

function(diapason_precompile target)
  target_precompile_headers(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/precompiled.h>)
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
  cmake_parse_arguments(ARG "OPTIMIZE;ONE_THREAD" "" "SOURCES;TESTS" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  if(NOT DEFINED DIAPASON_USES_${name})
    message(FATAL_ERROR "component '${folder}' is not in cmake/components.cmake")
  endif()
  set(library diapason_${name})
  add_library(${library} STATIC ${ARG_SOURCES})
  diapason_library(${library})
  if(NOT ARG_OPTIMIZE)
    target_compile_options(${library} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  foreach(other IN LISTS DIAPASON_USES_${name})
    string(REPLACE "/" "_" other ${other})
    target_link_libraries(${library} PUBLIC diapason_${other})
  endforeach()
  diapason_precompile(${library})
  if(ARG_TESTS AND NOT (ARG_ONE_THREAD AND DIAPASON_SANITIZE MATCHES thread))
    diapason_unit_tests(${name} ${name} ${library} ${ARG_TESTS})
  endif()
endfunction()
