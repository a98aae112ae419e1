/* SPDX-License-Identifier: Apache-2.0 */
/* rt-run: the launcher of the runtime without MPI. */
#include <string.h>

#include "run-agent.h"
#include "run-front.h"
#include "run-keeper.h"
#include "run-options.h"

int main(int argc, char **argv)
{
    struct run_options options;
    int status = 0;
    if (argc == 2 && strcmp(argv[1], "--agent") == 0)
        return run_keeper(run_agent);
    if (run_options_read(&options, argc, argv, &status) == 0)
        status = run_front(&options);
    run_options_release(&options);
    return status;
}
