/* SPDX-License-Identifier: Apache-2.0 */
#include "bench-options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-launcher.h"

const struct bench_word bench_types[] = {
    {"int8", RT_INT8},
    {"uint8", RT_UINT8},
    {"int32", RT_INT32},
    {"uint32", RT_UINT32},
    {"int64", RT_INT64},
    {"uint64", RT_UINT64},
    {"half", RT_FLOAT16},
    {"float", RT_FLOAT32},
    {"double", RT_FLOAT64},
    {"bfloat16", RT_BFLOAT16},
    {"fp8_e4m3", RT_FLOAT8_E4M3},
    {"fp8_e5m2", RT_FLOAT8_E5M2},
    {NULL, 0},
};
const struct bench_word bench_ops[] = {
    {"sum", RT_SUM}, {"prod", RT_PROD}, {"min", RT_MIN},
    {"max", RT_MAX}, {"avg", RT_AVG},   {NULL, 0},
};

static void usage(FILE *to, const char *program, const char *const *collectives)
{
    fprintf(to, "usage: %s COLLECTIVE [OPTION]...\nCOLLECTIVE:", program);
    for (; *collectives; collectives++)
        fprintf(to, " %s", *collectives);
    fprintf(to,
            "\n"
            "  -b, --minbytes SIZE    the first size, in bytes; K, M or G may follow (32M)\n"
            "  -e, --maxbytes SIZE    the last (32M)\n"
            "  -i, --stepbytes SIZE   from one to the next (1M)\n"
            "  -f, --stepfactor X     ... or so many times as large\n"
            "  -n, --iters N          timed operations of a size, one after the other (20)\n"
            "  -w, --warmup_iters N   before them (5)\n"
            "  -c, --check 0|1        are results right? (1)\n"
            "  -o, --op NAME          sum, prod, min, max, avg or all (sum)\n"
            "  -d, --datatype NAME    int8, uint8, int32, uint32, int64, uint64, half, float,\n"
            "                         double, bfloat16, fp8_e4m3, fp8_e5m2 or all (float)\n"
            "  -r, --root N           of a broadcast (0)\n"
            "example: %s %s allreduce -b 8 -e 64M -f 2\n",
            rt_launcher(program), program);
}

static void __attribute__((noreturn)) wrong(char letter, const char *text, const char *expected)
{
    fprintf(stderr, "%s: -%c %s: expected %s\n", program_invocation_name, letter, text, expected);
    exit(2);
}

static uint64_t size(char letter, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    switch (*end) {
    case 'k':
    case 'K':
        value *= 1 << 10;
        end++;
        break;
    case 'm':
    case 'M':
        value *= 1 << 20;
        end++;
        break;
    case 'g':
    case 'G':
        value *= 1 << 30;
        end++;
        break;
    default:
        break;
    }
    if (end == text || *end || !(value >= 0 && value <= 0x1p40))
        wrong(letter, text, "bytes from 0 to 1024G, as 8, 64K, 32M or 1G");
    return (uint64_t)value;
}

static int number(char letter, const char *text, int min, int max)
{
    char *end, expected[64];
    long value = strtol(text, &end, 10);
    snprintf(expected, sizeof expected, "a number from %d to %d", min, max);
    if (end == text || *end || value < min || value > max)
        wrong(letter, text, expected);
    return (int)value;
}

/* Places of what is meant; returns how many. */
static int choose(char letter, const char *text, const struct bench_word *words, int *ret)
{
    int n = 0;
    for (int i = 0; words[i].name; i++)
        if (strcmp(text, "all") == 0 || strcmp(text, words[i].name) == 0)
            ret[n++] = i;
    if (n == 0)
        wrong(letter, text, "one of those that --help lists, or all");
    return n;
}

static void take(struct bench_options *o, char letter, const char *text)
{
    char *end;
    switch (letter) {
    case 'b':
        o->smallest = size('b', text);
        break;
    case 'e':
        o->largest = size('e', text);
        break;
    case 'i':
        o->step = size('i', text);
        if (o->step == 0)
            wrong('i', text, "one byte or more");
        break;
    case 'f':
        o->factor = strtod(text, &end);
        if (*end || !(o->factor > 1))
            wrong('f', text, "a number above 1");
        break;
    case 'n':
        o->iterations = number('n', text, 1, 1000000);
        break;
    case 'w':
        o->warm_up = number('w', text, 0, 1000000);
        break;
    case 'c':
        o->check = number('c', text, 0, 1);
        break;
    case 'r':
        o->root = number('r', text, 0, 1 << 20);
        break;
    case 'o':
        o->ops = choose('o', text, bench_ops, o->op);
        break;
    default:
        o->types = choose('d', text, bench_types, o->type);
    }
}

struct bench_options bench_options_read(int argc, char **argv, const char *const *collectives)
{
    static const struct option options[] = {
        {"minbytes", required_argument, 0, 'b'},
        {"maxbytes", required_argument, 0, 'e'},
        {"stepbytes", required_argument, 0, 'i'},
        {"stepfactor", required_argument, 0, 'f'},
        {"iters", required_argument, 0, 'n'},
        {"warmup_iters", required_argument, 0, 'w'},
        {"check", required_argument, 0, 'c'},
        {"op", required_argument, 0, 'o'},
        {"datatype", required_argument, 0, 'd'},
        {"root", required_argument, 0, 'r'},
        {"help", no_argument, 0, 'h'},
        {0, 0, 0, 0},
    };
    struct bench_options o = {
        .smallest = 32 << 20, .largest = 32 << 20, .iterations = 20, .warm_up = 5, .check = 1};
    o.ops = choose('o', "sum", bench_ops, o.op);
    o.types = choose('d', "float", bench_types, o.type);
    for (int c; (c = getopt_long(argc, argv, "b:e:i:f:n:w:c:o:d:r:h", options, NULL)) != -1;) {
        if (c == 'h' || c == '?') {
            usage(c == 'h' ? stdout : stderr, argv[0], collectives);
            exit(c == 'h' ? 0 : 2);
        }
        take(&o, (char)c, optarg);
    }
    for (int i = 0; collectives[i] && optind == argc - 1; i++)
        if (strcmp(argv[optind], collectives[i]) == 0)
            o.collective = collectives[i];
    if (!o.collective || o.largest < o.smallest) {
        fprintf(stderr, "%s: %s\n", argv[0],
                o.collective     ? "the last size (-e) is below the first (-b)"
                : optind == argc ? "which collective?"
                                 : "one collective is expected, of these:");
        usage(stderr, argv[0], collectives);
        exit(2);
    }
    if (o.step == 0 && o.factor == 0)
        o.step = 1 << 20;
    return o;
}
