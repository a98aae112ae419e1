/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-launcher.h"

enum kind { INT, UINT64, DOUBLE, FLOAT, FLAG, TEXT };

struct option {
    enum train_option_group group;
    const char *name, *value, *help;
    enum kind kind;
    size_t at;
    double min, max;
};

#define AT(member) offsetof(struct train_options, member)
static const struct option options[] = {
    {TRAIN_OPTIONS_BASE, "steps", "N", "optimizer steps", INT, AT(steps), 1, 1e9},
    {TRAIN_OPTIONS_SIZE, "size", "X", "parameters, times 2 MiB", DOUBLE, AT(size), 0.01, 64},
    {TRAIN_OPTIONS_BASE, "seed", "N", "of data and first parameters", UINT64, AT(seed), 0, 1e15},
    {TRAIN_OPTIONS_BASE, "batch", "N", "rows a rank takes in a pass", INT, AT(batch), 1, 65536},
    {TRAIN_OPTIONS_BASE, "rate", "X", "of learning", FLOAT, AT(rate), 0, 1000},
    {TRAIN_OPTIONS_DATA, "data", "FOLDER", "MNIST's files, *-idx3-ubyte and *-idx1-ubyte[.gz]",
     TEXT, AT(data), 0, 0},
    {TRAIN_OPTIONS_LM, "text", "FILE", "to learn from; without it a text is made up", TEXT,
     AT(text), 0, 0},
    {TRAIN_OPTIONS_LOOP, "items", "N",
     "rows of data in an epoch, the first; generated without a file", UINT64, AT(items), 1, 1e15},
    {TRAIN_OPTIONS_LOOP, "global-batch", "N", "rows all ranks take in a step, of --items or a file",
     UINT64, AT(global_batch), 1, 1e9},
    {TRAIN_OPTIONS_LOOP, "passes", "N", "backward passes whose gradients make a step", INT,
     AT(passes), 1, 4096},
    {TRAIN_OPTIONS_LOOP, "scale-rate", NULL, "the rate times ranks and passes", FLAG,
     AT(scale_rate), 0, 0},
    {TRAIN_OPTIONS_LOOP, "warm-up", "N", "steps until the scaled rate is reached", INT, AT(warm_up),
     0, 1e9},
    {TRAIN_OPTIONS_LOOP, "checkpoint", "FILE", "is written at the end", TEXT, AT(checkpoint), 0, 0},
    {TRAIN_OPTIONS_LOOP, "every", "N", "... and each N steps", INT, AT(every), 1, 1e9},
    {TRAIN_OPTIONS_LOOP, "resume", NULL, "goes on from --checkpoint", FLAG, AT(resume), 0, 0},
    {TRAIN_OPTIONS_LM, "context", "N", "bytes of text that a row has", INT, AT(context), 1, 4096},
    {TRAIN_OPTIONS_LM, "width", "N", "of a position's vector", INT, AT(width), 1, 8192},
    {TRAIN_OPTIONS_LM, "layers", "N", "of attention and perceptron", INT, AT(layers), 1, 64},
    {TRAIN_OPTIONS_LM, "heads", "N", "of attention, which divide the width", INT, AT(heads), 1,
     256},
};
enum { OPTIONS = sizeof options / sizeof *options };

static double number(const struct option *o, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    bool whole = o->kind == DOUBLE || o->kind == FLOAT || value == (double)(int64_t)value;
    if (end == text || *end || !(value >= o->min && value <= o->max) || !whole) {
        fprintf(stderr, "%s: --%s %s: expected a %snumber from %.10g to %.10g\n",
                program_invocation_name, o->name, text,
                o->kind == DOUBLE || o->kind == FLOAT ? "" : "whole ", o->min, o->max);
        exit(2);
    }
    return value;
}

static void set(struct train_options *to, const struct option *o, const char *text)
{
    void *at = (char *)to + o->at;
    switch (o->kind) {
    case INT:
        *(int *)at = (int)number(o, text);
        break;
    case UINT64:
        *(uint64_t *)at = (uint64_t)number(o, text);
        break;
    case DOUBLE:
        *(double *)at = number(o, text);
        break;
    case FLOAT:
        *(float *)at = (float)number(o, text);
        break;
    case FLAG:
        *(bool *)at = true;
        break;
    case TEXT:
        *(const char **)at = text;
    }
}

/* "" where it is 0 or none. */
static const char *standard(const struct train_options *from, const struct option *o, char text[24])
{
    const void *at = (const char *)from + o->at;
    double value = o->kind == INT      ? *(const int *)at
                   : o->kind == UINT64 ? (double)*(const uint64_t *)at
                   : o->kind == DOUBLE ? *(const double *)at
                   : o->kind == FLOAT  ? (double)*(const float *)at
                                       : 0;
    text[0] = 0;
    if (value != 0)
        snprintf(text, 24, " (%g)", value);
    return text;
}

static void usage(FILE *to, const char *program, unsigned groups, const struct train_options *o)
{
    char text[24], left[32];
    fprintf(to, "usage: %s [OPTION]...\n", program);
    for (int i = 0; i < OPTIONS; i++) {
        const struct option *option = &options[i];
        if (!(option->group & groups))
            continue;
        snprintf(left, sizeof left, "--%s%s%s", option->name, option->value ? " " : "",
                 option->value ? option->value : "");
        fprintf(to, "  %-16s  %s%s\n", left, option->help, standard(o, option, text));
    }
    fprintf(to, "example: %s %s --steps 50\n", rt_launcher(program), program);
}

static const struct option *find(const char *name, size_t length, unsigned groups)
{
    for (int i = 0; i < OPTIONS; i++)
        if (options[i].group & groups && strncmp(options[i].name, name, length) == 0 &&
            options[i].name[length] == 0)
            return &options[i];
    return NULL;
}

/* Takes --NAME VALUE or --NAME=VALUE from argv[i]; returns how many words that were. */
static int take(struct train_options *to, int argc, char **argv, int i, unsigned groups)
{
    const char *word = argv[i], *equals = strchr(word, '=');
    const struct option *o = NULL;
    if (strncmp(word, "--", 2) == 0)
        o = find(word + 2, equals ? (size_t)(equals - word) - 2 : strlen(word + 2), groups);
    const char *value = equals ? equals + 1 : i + 1 < argc ? argv[i + 1] : NULL;
    if (!o)
        fprintf(stderr, "%s: unexpected '%s'; --help lists the options\n", argv[0], word);
    else if (!o->value && equals)
        fprintf(stderr, "%s: --%s takes no value\n", argv[0], o->name);
    else if (o->value && !value)
        fprintf(stderr, "%s: --%s needs a value\n", argv[0], o->name);
    else {
        set(to, o, value);
        return o->value && !equals ? 2 : 1;
    }
    exit(2);
}

static void check(const struct train_options *o, const char *program)
{
    const char *wrong = NULL;
    if ((o->resume || o->every) && !o->checkpoint)
        wrong = "--resume and --every need --checkpoint FILE";
    else if (o->width % o->heads)
        wrong = "--heads must divide --width";
    else if (o->warm_up && !o->scale_rate)
        wrong = "--warm-up needs --scale-rate";
    if (!wrong)
        return;
    fprintf(stderr, "%s: %s\n", program, wrong);
    exit(2);
}

struct train_options train_options_read_for(int argc, char **argv, unsigned groups, double rate)
{
    struct train_options o = {
        .steps = 20,
        .size = 1,
        .seed = 1,
        .batch = 16,
        .rate = (float)rate,
        .passes = 1,
        .context = 64,
        .width = 64,
        .layers = 2,
        .heads = 4,
    };
    const struct train_options standards = o;
    for (int i = 1; i < argc;) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage(stdout, argv[0], groups, &standards);
            exit(0);
        }
        i += take(&o, argc, argv, i, groups);
    }
    check(&o, argv[0]);
    return o;
}

struct train_options train_options_read(int argc, char **argv)
{
    return train_options_read_for(argc, argv, TRAIN_OPTIONS_BASE | TRAIN_OPTIONS_SIZE, 0.05);
}
