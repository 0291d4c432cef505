# 64-bit ARM (Raspberry Pi 3 and later with a 64-bit system, RK3588, Graviton): apt-get install g++-aarch64-linux-gnu
# Baseline ARMv8.0; what needs more is in an object of its own (kernels/CMakeLists.txt).
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(dragoman_triple aarch64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
