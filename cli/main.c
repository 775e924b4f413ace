/* SPDX-License-Identifier: MIT
 *
 * The program `jobqueue`: the library's console, and a worker that runs a program per job (--exec).
 */
#include <jobqueue/console.h>

#include "exec.h"

int main(int argc, char **argv)
{
    const jobq_console console = {
        .size = sizeof(console),
        .program = "jobqueue",
        .source_option = "exec",
        .source_meaning = "PROGRAM: the program to run for each job, with arguments; its standard "
                          "input is the payload as JSON",
        .work = exec_work,
    };
    int code = program_child(argc, argv);

    return code >= 0 ? code : jobq_console_main(&console, argc, argv);
}
