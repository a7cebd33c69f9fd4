/* Conformance of tile functions to the ABI of ukernel/ukernel.h: this library's own, or yours.
 *
 * Fill one uk_tile_row_t per function (op, flags, shape, numerics, function; symbol for the report;
 * isa and features if the function needs any) and call uk_conformance_main from main(), or
 * uk_conformance_check from a test of your own. example_rows.c, which is installed beside this
 * file, shows it. With CMake, in a project with CXX among its languages:
 *
 *   find_package(ukernel REQUIRED COMPONENTS conformance)
 *   target_link_libraries(your_program PRIVATE ukernel::conformance)
 *
 * and without, linked by the C++ compiler:
 *
 *   cc -c example_rows.c -I$DIR/include
 *   c++ example_rows.o -L$DIR/lib -lukernel_conformance -lukernel_cpu -lukernel -lcpuinfo
 *
 * Licensed under the Apache License v2.0 with LLVM Exceptions; see LICENSE.
 */
#ifndef UKERNEL_UKERNEL_CONFORMANCE_H_
#define UKERNEL_UKERNEL_CONFORMANCE_H_

#include "ukernel/ukernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum uk_conformance_result_t {
  UK_CONFORMANCE_PASS = 0,
  UK_CONFORMANCE_FAIL = 1,
  UK_CONFORMANCE_SKIP = 2 /* cpu_data lacks a feature of the row; the function was not called */
} uk_conformance_result_t;

/* Runs every check on one row. `report` receives text for FAIL (the first differing element or the
 * faulting access, and the case) and SKIP (what the CPU lacks), cut to report_size with its
 * terminating zero; it may be NULL. cpu_data as uk_cpu_detect fills it. A row without a function is
 * this library's scalar path and runs through the ops.
 * While it runs, SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT are caught, so one check at a time per
 * process. A function that calls exit ends the process, with a line that says so and with code 1.
 */
uk_conformance_result_t uk_conformance_check(const uk_tile_row_t* row, const uint64_t* cpu_data,
                                             char* report, size_t report_size);

/* A command line around it: `--help` lists the options. Returns the exit code: 0 if nothing failed,
 * 1 if a row did, 2 for a wrong command line. */
int uk_conformance_main(const uk_tile_row_t* rows, size_t count, int argc, char** argv);

#ifdef __cplusplus
}
#endif

#endif /* UKERNEL_UKERNEL_CONFORMANCE_H_ */
