# `cpack -G DEB` in a build folder: four packages. The preset `deb` builds what goes into them and nothing else.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME dragoman)
set(CPACK_PACKAGE_VENDOR "The dragoman project")
set(DRAGOMAN_MAINTAINER "The dragoman project <maintainers@dragoman.invalid>" CACHE STRING "Whom the packages name")
set(CPACK_PACKAGE_CONTACT "${DRAGOMAN_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # or it would be the first line of every package; each has its own
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/debian_files.cmake)
set(CPACK_DRAGOMAN_SOURCE ${PROJECT_SOURCE_DIR})  # for that script

# The processor it was built for, which need not be this machine's.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE armhf)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION text)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)  # so that packages linked to libdragoman.so.<ABI> depend on this one
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# dragoman_package(COMPONENT NAME SUMMARY TEXT): a Debian package of that name.
function(dragoman_package component name summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
endfunction()

set(CPACK_COMPONENTS_ALL runtime development)
dragoman_package(runtime dragoman "offline neural translation: the command and the library"
"dragoman translates text on the CPU, without a network, inside an amount of
memory that is known before it starts. This package holds the command and the
shared library; a model comes separately.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "dragoman-model-en-de, dragoman-converter")

dragoman_package(development libdragoman-dev "offline neural translation: to build programs with it"
"The headers of dragoman's C and C++ interface, the static library, and what
pkg-config and CMake need to find them.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "dragoman (= ${PROJECT_VERSION}), libc6-dev")

if(DRAGOMAN_CONVERTER)
  list(APPEND CPACK_COMPONENTS_ALL converter)
  dragoman_package(converter dragoman-converter "offline neural translation: to make models for it"
"dragoman-convert reads a MarianMT / OPUS-MT checkpoint and writes the one file
that dragoman runs, with 8-bit weights if wanted.")
  set(CPACK_DEBIAN_CONVERTER_PACKAGE_RECOMMENDS dragoman)
endif()

list(APPEND CPACK_COMPONENTS_ALL model)
dragoman_package(model dragoman-model-en-de "offline neural translation: a small English-German model"
"For everyday sentences of up to about 25 words. Trained on sentences from
Tatoeba (https://tatoeba.org), (c) its contributors, CC-BY 2.0 FR.")
set(CPACK_DEBIAN_MODEL_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_MODEL_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_MODEL_PACKAGE_RECOMMENDS dragoman)

include(CPack)
