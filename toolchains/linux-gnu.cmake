# Debian's cross compilers: the including file has set CMAKE_SYSTEM_PROCESSOR and dragoman_triple. Headers and libraries
# come from the compiler's own folder, never from the host's /usr/include.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${dragoman_triple}-gcc)
set(CMAKE_CXX_COMPILER ${dragoman_triple}-g++)
set(CMAKE_FIND_ROOT_PATH /usr/${dragoman_triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
