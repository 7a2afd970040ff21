# One program per target of this folder, without Python: see fuzz/README.md.
#   TOKENMILL_FUZZ=libfuzzer   clang, libFuzzer, address and undefined-behavior sanitizers
#   TOKENMILL_FUZZ=standalone  any compiler; inputs are random
list(FILTER core_sources EXCLUDE REGEX "/bindings/")
add_library(fuzz_core OBJECT ${core_sources} tokenmill/inputs/native/json_lines.cpp)
target_include_directories(fuzz_core PRIVATE native bpe/native tokenmill/inputs/native)
set_target_properties(fuzz_core PROPERTIES UNITY_BUILD OFF)
foreach(target charsmap encoder json_lines model_json normalizers pretokenizers rank_file special_tokens utf8)
  add_executable(fuzz_${target} fuzz/native/${target}.cpp $<TARGET_OBJECTS:fuzz_core> $<TARGET_OBJECTS:text_core>)
  target_include_directories(fuzz_${target} PRIVATE native bpe/native tokenmill/inputs/native)
  target_link_libraries(fuzz_${target} PRIVATE Threads::Threads)
  set_target_properties(fuzz_${target} PROPERTIES UNITY_BUILD OFF)
  if(TOKENMILL_FUZZ STREQUAL "libfuzzer")
    target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer,address,undefined)
  else()
    target_sources(fuzz_${target} PRIVATE fuzz/native/standalone.cpp)
  endif()
endforeach()
