# Text tests: a .moe, .mlir or .c file with RUN and CHECK lines. CTest calls lit once per file.
import os
import lit.formats

config.name = "hecate"
config.test_format = lit.formats.ShTest(execute_external=True)  # bash: pipefail, $?, heredocs
config.suffixes = [".moe", ".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.environ["HECATE_TEST_TMP"]
config.environment["PATH"] = os.pathsep.join(
    [os.environ["HECATE_BIN"], os.environ["LLVM_BIN"], os.environ["PATH"]])
config.environment["CCACHE_DISABLE"] = "1"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "HECATE_SHARED"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
