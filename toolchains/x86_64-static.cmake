# x86-64 Linux, one static file that needs no library of the machine it runs on (glibc; nothing here looks up hosts or
# users, the two things a static glibc cannot do alone).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER x86_64-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
