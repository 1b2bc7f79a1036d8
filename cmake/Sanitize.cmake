# ONWARD_SANITIZERS: how the rooms of the library and the program are compiled where ONWARD_SANITIZE is on. Tests, and what
# others wrote, are compiled as ever, so that the compiler cache has them.
set(ONWARD_SANITIZERS "")
if(ONWARD_SANITIZE)
  # Without checks that double the code and find what the address sanitizer finds; its own are called, not inlined. The plain build is
  # the judge of warnings.
  set(ONWARD_SANITIZERS -O0 -Wno-error -fsanitize=address,undefined -fno-sanitize=null,object-size,vptr,alignment
    --param=asan-instrumentation-with-call-threshold=0 -fno-omit-frame-pointer)
  # absl's containers mark their unused slots where this is defined, in code that knows of the sanitizer alone; tests share
  # containers with the library and do not.
  list(APPEND ONWARD_SANITIZERS -U__SANITIZE_ADDRESS__)
  add_link_options(-fsanitize=address,undefined)
endif()
