# diapason_corner(ROOM room NAME corner [FAST] [USES corner...] SOURCES file... [TESTS file...])
#
# A large room may have corners: folders below it that are libraries of their own, so that each can
# be read, built and tested alone. A corner knows the room's own files and the corners it names; the
# rooms it may use are the room's (diapason_component checks that). What is not FAST is compiled quickly
# rather than for speed.
function(diapason_corner)
  cmake_parse_arguments(ARG "FAST" "ROOM;NAME" "USES;SOURCES;TESTS" ${ARGN})
  set(library diapason_${ARG_ROOM}_${ARG_NAME})
  add_library(${library} STATIC ${ARG_SOURCES})
  set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(NOT ARG_FAST)
    target_compile_options(${library} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  diapason_compile_together(${library})
  target_link_libraries(${library} PUBLIC diapason_${ARG_ROOM})
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(file IN LISTS files)
    file(STRINGS ${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]+\"${ARG_ROOM}/[a-z_]+/")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE ".*\"${ARG_ROOM}/([a-z_]+)/.*" "\\1" other "${line}")
      if(NOT other STREQUAL ARG_NAME AND NOT other IN_LIST ARG_USES)
        message(FATAL_ERROR "forbidden edge: ${file} includes a header of '${ARG_ROOM}/${other}', "
                            "but the corner '${ARG_NAME}' declares only: ${ARG_USES}")
      endif()
    endforeach()
  endforeach()
  foreach(other IN LISTS ARG_USES)
    target_link_libraries(${library} PUBLIC diapason_${ARG_ROOM}_${other})
  endforeach()
  if(ARG_TESTS AND BUILD_TESTING)
    diapason_unit_tests(${ARG_ROOM}_${ARG_NAME} ${library} "${ARG_TESTS}")
  endif()
endfunction()
