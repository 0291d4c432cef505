# 64-bit Android, with the NDK that ANDROID_NDK_ROOT names (r25 or later: it must know C++20).
# NOT TESTED: the NDK is not part of our checks. Written from its documentation.
set(ANDROID_ABI arm64-v8a)
set(ANDROID_PLATFORM android-24)
set(ANDROID_STL c++_static)
if(NOT DEFINED ENV{ANDROID_NDK_ROOT})
  message(FATAL_ERROR "set ANDROID_NDK_ROOT to the folder of the Android NDK")
endif()
include($ENV{ANDROID_NDK_ROOT}/build/cmake/android.toolchain.cmake)
