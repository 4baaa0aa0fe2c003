# diapason_component(NAME room [ONE_THREAD] USES room... SOURCES file... [TESTS file...] [APART regex])
#
# Declares the room src/<room> as the static library diapason_<room>. Configuring fails when USES
# names a room that cmake/rooms.cmake does not allow, or when one of the room's files includes a
# header of a room that USES does not name. TESTS are unit tests that sit beside their sources.
# The thread sanitizer has nothing to say about the tests of a room that is ONE_THREAD: it sees the room
# under those that use it.
# Headers that match APART need a library the room itself does not: whoever builds them checks them.
include(${CMAKE_CURRENT_LIST_DIR}/rooms.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/corner.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/together.cmake)

function(diapason_check_includes room uses files)
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]+\"[a-z_]+/")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^[ \t]*#[ \t]*include[ \t]+\"([a-z_]+)/.*" "\\1" other "${line}")
      if(other STREQUAL room OR other STREQUAL "diapason")
        continue()
      endif()
      if(NOT other IN_LIST uses)
        message(FATAL_ERROR "forbidden edge: ${file} includes a header of '${other}', "
                            "but the room '${room}' declares only: ${uses}")
      endif()
    endforeach()
  endforeach()
endfunction()

# GoogleTest's header, compiled once for all unit tests: they are compiled with the same options.
function(diapason_gtest_header)
  if(TARGET gtest_header)
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gtest_header.cc CONTENT "// Nothing but the header.\n")
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
  # (With the compiled header g++ 12 sees strings overrun that are not: GCC bug 105329.)
  target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  target_compile_definitions(${target} PRIVATE DIAPASON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

# Unit tests as one program, NAME_test; each test is one of ctest's, NAME.Suite.Test.
function(diapason_unit_tests name library files)
  add_executable(${name}_test ${files})
  target_link_libraries(${name}_test PRIVATE ${library} GTest::gtest_main)
  diapason_test_options(${name}_test)
  diapason_gtest_header()
  target_precompile_headers(${name}_test REUSE_FROM gtest_header)
  diapason_compile_together(${name}_test)
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 600)
endfunction()

function(diapason_component)
  cmake_parse_arguments(ARG "ONE_THREAD" "NAME;APART" "USES;SOURCES;TESTS" ${ARGN})
  if(NOT DEFINED DIAPASON_MAY_USE_${ARG_NAME})
    message(FATAL_ERROR "room '${ARG_NAME}' is not in cmake/rooms.cmake")
  endif()
  foreach(other IN LISTS ARG_USES)
    if(NOT other IN_LIST DIAPASON_MAY_USE_${ARG_NAME})
      message(FATAL_ERROR "forbidden edge: room '${ARG_NAME}' may not use '${other}' "
                          "(allowed: ${DIAPASON_MAY_USE_${ARG_NAME}}; see cmake/rooms.cmake)")
    endif()
  endforeach()

  file(GLOB_RECURSE all_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h
                                                ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  diapason_check_includes(${ARG_NAME} "${ARG_USES}" "${all_files}")

  add_library(diapason_${ARG_NAME} STATIC ${ARG_SOURCES})
  target_include_directories(diapason_${ARG_NAME} PUBLIC ${PROJECT_SOURCE_DIR}/src
                                                         ${PROJECT_BINARY_DIR}/generated
                                                         ${PROJECT_SOURCE_DIR}/include)
  set_target_properties(diapason_${ARG_NAME} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  foreach(other IN LISTS ARG_USES)
    target_link_libraries(diapason_${ARG_NAME} PUBLIC diapason_${other})
  endforeach()
  diapason_compile_together(diapason_${ARG_NAME})

  if(DIAPASON_CHECK_HEADERS)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
    if(ARG_APART)
      list(FILTER headers EXCLUDE REGEX "${ARG_APART}")
    endif()
    diapason_check_headers(${ARG_NAME} "${headers}")
  endif()

  if(ARG_ONE_THREAD AND DIAPASON_SANITIZE MATCHES thread)
    set(ARG_TESTS "")
  endif()
  if(ARG_TESTS AND BUILD_TESTING)
    diapason_unit_tests(${ARG_NAME} diapason_${ARG_NAME} "${ARG_TESTS}")
  endif()
endfunction()

# Every header must compile alone: one translation unit per header that includes nothing else, for
# those that no source includes first.
function(diapason_check_headers room headers)
  set(units "")
  foreach(header IN LISTS headers)
    # One that its own source includes first has been compiled alone already.
    string(REGEX REPLACE "\\.h$" ".cc" source ${header})
    if(EXISTS ${source})
      file(STRINGS ${source} includes REGEX "^#include" LIMIT_COUNT 1)
      file(RELATIVE_PATH own ${PROJECT_SOURCE_DIR}/src ${header})
      if(includes STREQUAL "#include \"${own}\"")
        continue()
      endif()
    endif()
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${header})
    string(MAKE_C_IDENTIFIER ${name} id)
    set(unit ${PROJECT_BINARY_DIR}/headers/${id}.cc)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"@header@\"\n#include \"@header@\"\n" @ONLY)
    list(APPEND units ${unit})
  endforeach()
  if(units)
    add_library(${room}_headers OBJECT ${units})
    if(NOT TARGET headers)
      add_custom_target(headers)
    endif()
    add_dependencies(headers ${room}_headers)
    target_include_directories(${room}_headers PRIVATE ${PROJECT_SOURCE_DIR}/src
                               ${PROJECT_BINARY_DIR}/generated ${PROJECT_SOURCE_DIR}/include)
  endif()
endfunction()
