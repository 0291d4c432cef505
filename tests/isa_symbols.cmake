# cmake -DNM=nm -DARCHIVE=libdragoman.a -P isa_symbols.cmake
#
# An object built for one instruction set (isa_<name>.o) may share with the linker only what carries its tag: a weak
# std:: or xsimd:: function compiled with -mavx2 could be the copy the linker keeps for everyone. So each of its global
# or weak symbols must be its table, or have the tag (avx2: dragoman::Avx2) in its name. Nor may it call libm, which
# differs from board to board: what it leaves undefined is memcpy and the like.
cmake_minimum_required(VERSION 3.22)

execute_process(COMMAND ${NM} -A -C ${ARCHIVE} OUTPUT_VARIABLE listing RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${NM} failed on ${ARCHIVE}")
endif()

string(REGEX REPLACE "[][;]" "_" listing "${listing}")  # characters that CMake's lists take for themselves
string(REGEX MATCHALL "[^\n]+" lines "${listing}")
set(objects)
set(bad)
foreach(line IN LISTS lines)
  # archive:isa_avx2.cpp.o:0000000000000000 W void dragoman::relu<dragoman::Avx2>(float*, unsigned long)
  if(NOT line MATCHES "isa_([a-z0-9_]+)(\\.cpp)?\\.o(bj)?: *[0-9a-f]* ([A-Za-z]) (.*)$")
    continue()
  endif()
  set(type ${CMAKE_MATCH_4})
  set(symbol "${CMAKE_MATCH_5}")
  string(REPLACE "_" "" tag "${CMAKE_MATCH_1}")
  list(APPEND objects ${tag})
  string(TOLOWER "${symbol}" lower)
  if(symbol MATCHES "^(__[a-z]+san_|__odr_asan|__stack_chk|__gcov|__aeabi_|_GLOBAL_OFFSET_TABLE_)")
    continue()  # the compiler's own
  elseif(type STREQUAL "U")
    if(NOT symbol MATCHES "^mem(cpy|set|move|cmp)$" AND NOT lower MATCHES "dragoman::${tag}[^a-z0-9_]")
      list(APPEND bad "isa_${tag} calls ${symbol}")
    endif()
  elseif(type MATCHES "^[A-Zuvw]$")
    if(NOT lower STREQUAL "dragoman::k${tag}" AND NOT lower MATCHES "dragoman::${tag}[^a-z0-9_]")
      list(APPEND bad "isa_${tag} exports (${type}) ${symbol}")
    endif()
  endif()
endforeach()

list(REMOVE_DUPLICATES objects)
if(NOT objects)
  message(FATAL_ERROR "no isa_*.o in ${ARCHIVE}")
endif()
if(bad)
  list(JOIN bad "\n  " bad)
  message(FATAL_ERROR "symbols that must not leave an object built for one instruction set:\n  ${bad}")
endif()
message(STATUS "clean: ${objects}")
