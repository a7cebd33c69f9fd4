# The tiles that no one wrote by hand, generated when the build is configured: the grid of
# generator/tiles.py, and what these two ask for beside it.

option(UK_GENERATE "Generate the tiles that are not written by hand; needs Python with Jinja2" ON)
set(UK_EXTRA_TILES "" CACHE STRING
  "More tiles, as a list of requests: \"mmt4d f32f32f32 9x48x3 avx2_fma;pack x32 9x3 t avx2_fma\"")
set(UK_TILE_MANIFEST "" CACHE STRING "More tiles, as a list of files with a request a line")
set(UK_PYTHON_CANDIDATES python3 /usr/bin/python3 CACHE STRING
  "Where to look for a Python with Jinja2: the first on the PATH may be one that lacks it")
mark_as_advanced(UK_PYTHON_CANDIDATES)
set(UK_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)

if(NOT UK_PYTHON)
  foreach(python IN LISTS Python3_EXECUTABLE UK_PYTHON_CANDIDATES)
    execute_process(
      COMMAND ${python} -c "import jinja2, sys; assert sys.version_info >= (3, 11); print(sys.executable)"
      RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(result EQUAL 0)
      set(UK_PYTHON ${output} CACHE FILEPATH "A Python, 3.11 or newer, with Jinja2")
      break()
    endif()
  endforeach()
endif()

if(NOT UK_GENERATE)
  if(UK_EXTRA_TILES OR UK_TILE_MANIFEST)
    message(FATAL_ERROR "UK_EXTRA_TILES and UK_TILE_MANIFEST need UK_GENERATE")
  endif()
  return()
endif()
if(NOT UK_PYTHON)
  message(FATAL_ERROR "UK_GENERATE needs Python 3.11 or newer with Jinja2 (Debian: python3-jinja2); "
    "UK_GENERATE=OFF builds the hand-written tiles alone")
endif()

# Relative names of manifests are those of the project that sets them.
set(manifests)
foreach(manifest IN LISTS UK_TILE_MANIFEST)
  get_filename_component(manifest ${manifest} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
  list(APPEND manifests --manifest ${manifest})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest})
endforeach()
set(extra)
list(REMOVE_ITEM UK_EXTRA_TILES "")  # of a list that others have appended to
foreach(request IN LISTS UK_EXTRA_TILES)
  list(APPEND extra --tile=${request})
endforeach()
file(GLOB_RECURSE generator_sources CONFIGURE_DEPENDS
  ${UK_GLOBBED_DIR}/generator/*.py ${UK_GLOBBED_DIR}/generator/*.j2
  ${UK_GLOBBED_DIR}/arch/*.inc ${UK_GLOBBED_DIR}/ukernel/isa.inc)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${generator_sources})
execute_process(
  COMMAND ${UK_PYTHON} -m generator library
    --arch ${UK_ARCH} --out ${UK_GENERATED_DIR}/${UK_ARCH} ${manifests} ${extra}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} RESULT_VARIABLE result ERROR_VARIABLE error)
if(NOT result MATCHES "^[0-9]+$")  # no exit status, but why there is none
  message(FATAL_ERROR "UK_PYTHON, ${UK_PYTHON}, cannot be run: ${result}")
elseif(NOT result EQUAL 0)
  if(NOT error)
    set(error "UK_PYTHON, ${UK_PYTHON}, ended with ${result} and said nothing.")
  endif()
  message(FATAL_ERROR "The tiles of UK_GENERATE could not be generated. ${error}")
elseif(error)  # tiles of another level than UK_EXTRA_TILES asks for
  message(STATUS "${error}")
endif()
# Which they are: in a directory that others use too, the rest is not this build's.
file(STRINGS ${UK_GENERATED_DIR}/${UK_ARCH}/stamp UK_GENERATED_SOURCES REGEX "^[a-z0-9_]+/.*[.]cc$")
list(TRANSFORM UK_GENERATED_SOURCES PREPEND ${UK_GENERATED_DIR}/${UK_ARCH}/)
