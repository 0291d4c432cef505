# What `cmake --install BUILD [--component NAME]` puts where. Components: runtime (the command and libdragoman.so.<ABI>),
# development (headers, libdragoman.a, what find_package and pkg-config read), converter, bench, model. cpack makes a
# Debian package of each but bench (debian.cmake).
include(CMakePackageConfigHelpers)

set(doc ${CMAKE_INSTALL_DATADIR}/doc/dragoman)

# dragoman_install_program(TARGET COMPONENT): a program that was built, and its manual.
function(dragoman_install_program target component)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
    install(FILES docs/man/${target}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
  endif()
endfunction()

dragoman_install_program(dragoman runtime)
if(DRAGOMAN_CONVERTER)  # the tests build it too
  dragoman_install_program(dragoman-convert converter)
endif()
dragoman_install_program(dragoman-bench bench)
install(FILES LICENSE CHANGELOG.md DESTINATION ${doc} COMPONENT runtime)

# The model has a licence of its own, which wants its attribution beside it. `dragoman` looks in <prefix>/share/dragoman.
install(FILES models/en-de.dgm DESTINATION ${CMAKE_INSTALL_DATADIR}/dragoman COMPONENT model)
install(FILES models/README.md DESTINATION ${doc} RENAME models.md COMPONENT model)

# The library.
install(TARGETS dragoman_runtime EXPORT dragoman-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT development)
if(DRAGOMAN_SHARED)
  install(TARGETS dragoman_shared EXPORT dragoman-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT runtime NAMELINK_COMPONENT development)
endif()
install(FILES runtime/dragoman.h runtime/dragoman.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES docs/embedding.md docs/example.c docs/example.cpp docs/example.py DESTINATION ${doc}
        COMPONENT development)

# find_package(dragoman 0.1). Before 1.0 a minor version may change anything.
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/dragoman)
configure_package_config_file(packaging/dragoman-config.cmake.in ${PROJECT_BINARY_DIR}/dragoman-config.cmake
                              INSTALL_DESTINATION ${config})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dragoman-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT dragoman-targets NAMESPACE dragoman:: DESTINATION ${config} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/dragoman-config.cmake ${PROJECT_BINARY_DIR}/dragoman-config-version.cmake
        DESTINATION ${config} COMPONENT development)

# pkg-config. Relative to the file itself, so that an unpacked tree works wherever it lies; unless a folder is absolute.
set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
  set(pc_includedir ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  set(pc_libdir ${CMAKE_INSTALL_FULL_LIBDIR})
else()
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
configure_file(packaging/dragoman.pc.in ${PROJECT_BINARY_DIR}/dragoman.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dragoman.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

if(PROJECT_IS_TOP_LEVEL)  # a project around this one packs itself
  include(packaging/debian.cmake)
endif()
