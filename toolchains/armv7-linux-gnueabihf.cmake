# 32-bit ARM, hard float (Raspberry Pi 2 and later with a 32-bit system): apt-get install g++-arm-linux-gnueabihf
# Baseline ARMv7-A with VFPv3-D16, as Debian's armhf: no NEON outside kernels/isa_neon32.cpp.
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(dragoman_triple arm-linux-gnueabihf)
set(CMAKE_C_FLAGS_INIT "-march=armv7-a -mfpu=vfpv3-d16 -mfloat-abi=hard")
set(CMAKE_CXX_FLAGS_INIT "-march=armv7-a -mfpu=vfpv3-d16 -mfloat-abi=hard")
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
