# SPDX-License-Identifier: MIT OR Apache-2.0
# The configuration of these tests for LLVM's lit. The script `run` says where the pass is: plugin=FILE, and which LLVM: llvm=NUMBER.
# WEFT_OPT is LLVM's optimizer, where it is not opt-NUMBER in PATH.
import os
import shlex

import lit.formats

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, "..", "..", "..", "include")
PLUGIN, LLVM = (shlex.quote(lit_config.params[name]) for name in ("plugin", "llvm"))
CLANG = f"clang-{LLVM} -isystem {shlex.quote(INCLUDE)} -Wall -S -emit-llvm -fno-discard-value-names '%s'"
# The output of clang's front end: not optimized, but ready for it.
FRESH = f"{CLANG} -O1 -Xclang -disable-llvm-passes -o '%t.ll'"
OPT = f"{shlex.quote(os.environ.get('WEFT_OPT', f'opt-{LLVM}'))} -load-pass-plugin={PLUGIN} -verify-each -S '%t.ll' -o '%t'"
FILECHECK = f"FileCheck-{LLVM} '%s'"

config.name = "activities"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".c", ".cpp"]
config.test_source_root = HERE
config.test_exec_root = lit_config.params["work"]
config.environment["FILECHECK_OPTS"] = "--dump-input=never"
config.substitutions += [
    # The part of the pass in twins.cpp and outline.cpp.
    ("%twins", f"{FRESH} && {OPT} -passes=weft-twins"),
    # That part, and the end of the pass: names.cpp, lower.cpp.
    ("%lower", f"{FRESH} && {OPT} -passes=weft-twins,weft-choose,weft-lower"),
    # The whole pass, in the compiler, with the optimizer around it.
    ("%optimized", f"{CLANG} -O2 -Xclang -llvm-verify-each -fpass-plugin={PLUGIN} -o '%t'"),
    # After %fresh OPTION: as if the file were a whole program, linked with -flto.
    ("%whole", f"{OPT} -passes=weft-twins,weft-lower,internalize,weft-join,weft-prune,globaldce -internalize-public-api-list=main"),
    # After %fresh OPTION: the passes of %lower.
    ("%end", f"{OPT} -passes=weft-twins,weft-choose,weft-lower"),
    # Compare the output with the lines of a prefix: %see=PREFIX.
    ("%see=", f"{FILECHECK} --input-file='%t' --check-prefix="),
    # Compare the pass's errors, after %fresh OPTION: %refused=PREFIX.
    ("%fresh", FRESH),
    ("%refused=", f"not {OPT} -passes=weft-twins 2>&1 | {FILECHECK} --check-prefix="),
]
