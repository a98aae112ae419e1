/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static double number(const char *name, const char *text, double min, double max)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= min && value <= max)) {
        fprintf(stderr, "--%s %s: expected a number from %g to %g\n", name, text, min, max);
        exit(2);
    }
    return value;
}

static void usage(FILE *to, const char *program)
{
    fprintf(to,
            "usage: %s [--steps N] [--size X] [--seed N] [--batch N] [--rate X]\n"
            "  --steps N  optimizer steps (20)\n"
            "  --size X   parameters, times 2 MiB (1)\n"
            "  --seed N   of data and first parameters (1)\n"
            "  --batch N  rows a rank takes in a step (16)\n"
            "  --rate X   of learning (0.05)\n"
            "example: mpirun -np 4 %s --steps 50\n",
            program, program);
}

struct train_options train_options_read(int argc, char **argv)
{
    static const struct option options[] = {
        {"steps", required_argument, 0, 't'},
        {"size", required_argument, 0, 'z'},
        {"seed", required_argument, 0, 's'},
        {"batch", required_argument, 0, 'b'},
        {"rate", required_argument, 0, 'r'},
        {"help", no_argument, 0, 'h'},
        {0, 0, 0, 0},
    };
    struct train_options o = {.steps = 20, .size = 1, .seed = 1, .batch = 16, .rate = 0.05f};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 't':
            o.steps = (int)number("steps", optarg, 1, 1e9);
            break;
        case 'z':
            o.size = number("size", optarg, 0.01, 64);
            break;
        case 's':
            o.seed = (uint64_t)number("seed", optarg, 0, 1e15);
            break;
        case 'b':
            o.batch = (int)number("batch", optarg, 1, 65536);
            break;
        case 'r':
            o.rate = (float)number("rate", optarg, 0, 1000);
            break;
        case 'h':
            usage(stdout, argv[0]);
            exit(0);
        default:
            usage(stderr, argv[0]);
            exit(2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: unexpected '%s'\n", argv[0], argv[optind]);
        usage(stderr, argv[0]);
        exit(2);
    }
    return o;
}
