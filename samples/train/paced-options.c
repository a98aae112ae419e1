/* SPDX-License-Identifier: Apache-2.0 */
#include "command-line.h"
#include "paced.h"

#define AT(member) offsetof(struct paced_options, member)
static const struct rt_option options[] = {
    {"steps", "N", "optimizer steps", RT_OPTION_INT, AT(steps), 1, 1e9, 0},
    {"layers", "N", "of the network", RT_OPTION_INT, AT(layers), 1, 1000, 0},
    {"bytes", "N", "of all parameters", RT_OPTION_UINT64, AT(bytes), 8, 1e10, 0},
    {"compute", "X", "ms of a step: a third forward, the rest backward", RT_OPTION_DOUBLE,
     AT(compute_ms), 0, 1e6, 0},
    {"batch", "N", "bytes that a rank reads in a step", RT_OPTION_UINT64, AT(batch_bytes), 1, 1e9,
     0},
    {"message", "N", "bytes to each neighbour, with --plain", RT_OPTION_UINT64, AT(message_bytes),
     1, 1e9, 0},
    {"microbatches", "N", "of a step, in a pipeline", RT_OPTION_INT, AT(microbatches), 1, 1e6, 0},
    {"checkpoint", "N", "every so many steps; 0, the default: none", RT_OPTION_INT,
     AT(checkpoint_every), 0, 1e9, 0},
    {"work", NULL, "computes in processor time, in place of sleep", RT_OPTION_FLAG, AT(works), 0, 0,
     0},
    {"plain", NULL, "by MPI alone, without the runtime", RT_OPTION_FLAG, AT(plain), 0, 0, 0},
    {"dir", "DIR", "for batches and checkpoints, of which nothing stays", RT_OPTION_TEXT, AT(dir),
     0, 0, 0},
    {"log", "DIR", "writes DIR/rank-R: phase, start and duration in ns (not at all)",
     RT_OPTION_TEXT, AT(log), 0, 0, 0},
    {0},
};

struct paced_options paced_options_read(int argc, char **argv)
{
    const struct rt_command_line line = {options, 0, "--steps 50 --compute 20"};
    struct paced_options o = {
        .steps = 20,
        .layers = 8,
        .bytes = 1 << 20,
        .compute_ms = 9,
        .batch_bytes = 1 << 16,
        .message_bytes = 1 << 14,
        .microbatches = 4,
        .dir = "/tmp",
    };
    rt_command_line_read(&line, &o, argc, argv);
    return o;
}
