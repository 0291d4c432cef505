# cmake -DOBJDUMP=objdump -DPROCESSOR=x86_64 -DFILES="a.a;b.o" [-DISAS="portable;avx2"] -P isa_instructions.cmake
#
# A CPU of the baseline must get through everything outside isa_<name>.o without an illegal instruction: no instruction
# above the baseline in any other object, none above its own instruction set in an isa_<name>.o. And each isa_<name>.o
# must hold what the others may not, or the pattern is blind. ISAS: those that were compiled, where not all were.
cmake_minimum_required(VERSION 3.22)

# For each family: what its objects must show, as a regular expression on a line "\tmnemonic operands".
if(PROCESSOR MATCHES "x86_64|AMD64")
  # VEX and EVEX mnemonics begin with v; of SSE3 to SSE4.2 and BMI, those that a compiler makes of plain code (but tzcnt,
  # which it writes for any CPU: an old one takes it for bsf).
  set(sse41 "\t(p(abs|sign|maddubs|mulld|movsx|movzx|shufb|hadd|hsub|blend|test|packusdw|alignr|mulhrsw|insr[bdq]|extr[bdq]|(max|min)(sb|sd|uw|ud)|cmpeqq)|blendv?p|round[ps]|insertps|extractps|dpp[sd]|h(add|sub)p|mov(sl|sh|d)dup|lddqu)")
  set(avx2 "\t(v[a-z]|(mulx|rorx|s(hl|hr|ar)x|andn|bextr|bls[a-z]+|pdep|pext|pcmpgtq|popcnt|crc32|lzcnt)[lq]? )")
  set(avx512 "%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])")
  set(avx512vnni "\tvpdpbusd ")
  set(order sse41 avx2 avx512 avx512vnni)  # each may use what stands before it
  set(never "\tvpdpbusds|\tvpdpwss|\tvfm[a-z]*4|\tvgf2p8")  # saturates, or in no table
elseif(PROCESSOR MATCHES "aarch64|arm64")
  set(neondot "\t(sdot|udot)\t")
  set(neoni8mm "\t(smmla|ummla|usmmla|usdot)\t")
  set(order neondot neoni8mm)
  set(never "\t(fmmla|bfdot|bfmmla)\t|\tz[0-9]+\\.")  # BF16, SVE
elseif(PROCESSOR MATCHES "^arm")
  set(neon32 "[ \t{]q[0-9]+[, }]|\tv(fma|fms|ld1|st1|mull|mlal)\\.")  # the baseline is VFPv3-D16
  set(order neon32)
  set(never "\tv[su]dot")
else()
  message(STATUS "no patterns for ${PROCESSOR}")
  return()
endif()

set(bad)
set(seen)
# check(NAME TEXT): one object's disassembly against what it may and must hold.
function(check name text)
  set(own "")
  if(name MATCHES "^isa_([a-z0-9_]+)\\.")
    set(own ${CMAKE_MATCH_1})
  endif()
  list(FIND order "${own}" rank)
  set(at 0)
  foreach(set IN LISTS order)
    if(at GREATER rank AND text MATCHES "(${${set}})[^\n]*")
      list(APPEND bad "${name} holds ${set}: ${CMAKE_MATCH_0}")
    elseif(at EQUAL rank AND NOT text MATCHES "${${set}}")
      list(APPEND bad "${name} holds no ${set}: is the pattern right?")
    endif()
    math(EXPR at "${at} + 1")
  endforeach()
  if(text MATCHES "(${never})[^\n]*")
    list(APPEND bad "${name} holds what no table may: ${CMAKE_MATCH_0}")
  endif()
  set(bad "${bad}" PARENT_SCOPE)
  list(APPEND seen ${name})
  set(seen "${seen}" PARENT_SCOPE)
endfunction()

foreach(file IN LISTS FILES)
  execute_process(COMMAND ${OBJDUMP} -d --no-show-raw-insn ${file} OUTPUT_VARIABLE listing RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${OBJDUMP} failed on ${file}")
  endif()
  # "isa_avx2.cpp.o:     file format elf64-x86-64" begins an object of an archive.
  string(REGEX REPLACE "[][;]" "_" listing "${listing}")  # characters that CMake's lists take for themselves
  string(REGEX REPLACE "\n([^\n ]+): +file format " ";\\1\n" listing "${listing}")
  foreach(object IN LISTS listing)
    if(object MATCHES "^([^\n]+)\n(.*)")
      get_filename_component(name ${CMAKE_MATCH_1} NAME)
      check(${name} "${CMAKE_MATCH_2}")
    endif()
  endforeach()
endforeach()

foreach(set IN LISTS order)
  if(NOT seen MATCHES "isa_${set}\\." AND (NOT ISAS OR set IN_LIST ISAS))
    list(APPEND bad "no isa_${set}.o among the files")
  endif()
endforeach()
if(bad)
  list(JOIN bad "\n  " bad)
  message(FATAL_ERROR "instructions above an object's instruction set:\n  ${bad}")
endif()
list(LENGTH seen count)
message(STATUS "clean: ${count} objects")
