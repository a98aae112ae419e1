/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "paced.h"
#include "rt-launcher.h"

/* Numbers, each with its place, bounds and meaning; the rest is in the switch below. */
enum { STEPS, LAYERS, BYTES, COMPUTE, BATCH, MESSAGE, MICROBATCHES, CHECKPOINT, NUMBERS };
static const struct {
    const char *name, *meaning;
    double min, max, usual;
    bool fraction; /* else whole */
} numbers[NUMBERS] = {
    [STEPS] = {"steps", "optimizer steps", 1, 1e9, 20, false},
    [LAYERS] = {"layers", "of the network", 1, 1000, 8, false},
    [BYTES] = {"bytes", "of all parameters", 8, 1e10, 1 << 20, false},
    [COMPUTE] = {"compute", "ms of a step: a third forward, the rest backward", 0, 1e6, 9, true},
    [BATCH] = {"batch", "bytes that a rank reads in a step", 1, 1e9, 1 << 16, false},
    [MESSAGE] = {"message", "bytes to each neighbour, with --plain", 1, 1e9, 1 << 14, false},
    [MICROBATCHES] = {"microbatches", "of a step, in a pipeline", 1, 1e6, 4, false},
    [CHECKPOINT] = {"checkpoint", "every so many steps; 0: none", 0, 1e9, 0, false},
};

static void usage(FILE *to, const char *program)
{
    fprintf(to, "usage: %s [options]\n", program);
    for (int i = 0; i < NUMBERS; i++)
        fprintf(to, "  --%s N  %s (%.10g)\n", numbers[i].name, numbers[i].meaning,
                numbers[i].usual);
    fprintf(to,
            "  --work     computes in processor time, in place of sleep\n"
            "  --plain    by MPI alone, without the runtime\n"
            "  --dir DIR  for batches and checkpoints, of which nothing stays (/tmp)\n"
            "  --log DIR  writes DIR/rank-R: phase, start and duration in ns (not at all)\n"
            "example: %s %s --steps 50 --compute 20\n",
            rt_launcher(program), program);
}

static double number(int which, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    const bool fraction = numbers[which].fraction;
    if (end == text || *end || !(value >= numbers[which].min && value <= numbers[which].max) ||
        (!fraction && value != (double)(int64_t)value)) {
        fprintf(stderr, "%s: --%s %s: expected a %snumber from %.10g to %.10g\n",
                program_invocation_name, numbers[which].name, text, fraction ? "" : "whole ",
                numbers[which].min, numbers[which].max);
        exit(2);
    }
    return value;
}

static struct paced_options from_numbers(const double *value)
{
    return (struct paced_options){
        .steps = (int)value[STEPS],
        .layers = (int)value[LAYERS],
        .microbatches = (int)value[MICROBATCHES],
        .checkpoint_every = (int)value[CHECKPOINT],
        .bytes = (uint64_t)value[BYTES],
        .batch_bytes = (uint64_t)value[BATCH],
        .message_bytes = (uint64_t)value[MESSAGE],
        .compute_ms = value[COMPUTE],
    };
}

static void fill_long_options(struct option *options, int *ret_works, int *ret_plain)
{
    for (int i = 0; i < NUMBERS; i++)
        *options++ = (struct option){numbers[i].name, required_argument, 0, i};
    *options++ = (struct option){"work", no_argument, ret_works, 1};
    *options++ = (struct option){"plain", no_argument, ret_plain, 1};
    *options++ = (struct option){"dir", required_argument, 0, 'd'};
    *options++ = (struct option){"log", required_argument, 0, 'l'};
    *options++ = (struct option){"help", no_argument, 0, 'h'};
    *options = (struct option){0, 0, 0, 0};
}

struct paced_options paced_options_read(int argc, char **argv)
{
    struct option options[NUMBERS + 6];
    const char *dir = "/tmp", *log = NULL;
    double value[NUMBERS];
    int works = 0, plain = 0;
    fill_long_options(options, &works, &plain);
    for (int i = 0; i < NUMBERS; i++)
        value[i] = numbers[i].usual;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'd')
            dir = optarg;
        else if (c == 'l')
            log = optarg;
        else if (c < NUMBERS && optarg)
            value[c] = number(c, optarg);
        else if (c != 0) {
            usage(c == 'h' ? stdout : stderr, argv[0]);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: unexpected '%s'\n", argv[0], argv[optind]);
        usage(stderr, argv[0]);
        exit(2);
    }
    struct paced_options o = from_numbers(value);
    o.works = works;
    o.plain = plain;
    o.dir = dir;
    o.log = log;
    return o;
}
