/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "command-line.h"

#define AT(member) offsetof(struct train_options, member)
static const struct rt_option options[] = {
    {"steps", "N", "optimizer steps", RT_OPTION_INT, AT(steps), 1, 1e9, TRAIN_OPTIONS_BASE},
    {"size", "X", "parameters, times 2 MiB", RT_OPTION_DOUBLE, AT(size), 0.01, 64,
     TRAIN_OPTIONS_SIZE},
    {"seed", "N", "of data and first parameters", RT_OPTION_UINT64, AT(seed), 0, 1e15,
     TRAIN_OPTIONS_BASE},
    {"batch", "N", "rows a rank takes in a pass", RT_OPTION_INT, AT(batch), 1, 65536,
     TRAIN_OPTIONS_BASE},
    {"rate", "X", "of learning", RT_OPTION_FLOAT, AT(rate), 0, 1000, TRAIN_OPTIONS_BASE},
    {"data", "FOLDER", "MNIST's files, *-idx3-ubyte and *-idx1-ubyte[.gz]", RT_OPTION_TEXT,
     AT(data), 0, 0, TRAIN_OPTIONS_DATA},
    {"text", "FILE", "to learn from; without it a text is made up", RT_OPTION_TEXT, AT(text), 0, 0,
     TRAIN_OPTIONS_LM},
    {"items", "N", "rows of data in an epoch, the first; generated without a file",
     RT_OPTION_UINT64, AT(items), 1, 1e15, TRAIN_OPTIONS_LOOP},
    {"global-batch", "N", "rows all ranks take in a step, of --items or a file", RT_OPTION_UINT64,
     AT(global_batch), 1, 1e9, TRAIN_OPTIONS_LOOP},
    {"passes", "N", "backward passes whose gradients make a step", RT_OPTION_INT, AT(passes), 1,
     4096, TRAIN_OPTIONS_LOOP},
    {"scale-rate", NULL, "the rate times ranks and passes", RT_OPTION_FLAG, AT(scale_rate), 0, 0,
     TRAIN_OPTIONS_LOOP},
    {"warm-up", "N", "steps until the scaled rate is reached", RT_OPTION_INT, AT(warm_up), 0, 1e9,
     TRAIN_OPTIONS_LOOP},
    {"checkpoint", "FILE", "is written at the end", RT_OPTION_TEXT, AT(checkpoint), 0, 0,
     TRAIN_OPTIONS_LOOP},
    {"every", "N", "... and each N steps", RT_OPTION_INT, AT(every), 1, 1e9, TRAIN_OPTIONS_LOOP},
    {"resume", NULL, "goes on from --checkpoint", RT_OPTION_FLAG, AT(resume), 0, 0,
     TRAIN_OPTIONS_LOOP},
    {"context", "N", "bytes of text that a row has", RT_OPTION_INT, AT(context), 1, 4096,
     TRAIN_OPTIONS_LM},
    {"width", "N", "of a position's vector", RT_OPTION_INT, AT(width), 1, 8192, TRAIN_OPTIONS_LM},
    {"layers", "N", "of attention and perceptron", RT_OPTION_INT, AT(layers), 1, 64,
     TRAIN_OPTIONS_LM},
    {"heads", "N", "of attention, which divide the width", RT_OPTION_INT, AT(heads), 1, 256,
     TRAIN_OPTIONS_LM},
    {0},
};

static void check(const struct train_options *o, char **argv)
{
    const char *wrong = NULL;
    if ((o->resume || o->every) && !o->checkpoint)
        wrong = "--resume and --every need --checkpoint FILE";
    else if (o->width % o->heads)
        wrong = "--heads must divide --width";
    else if (o->warm_up && !o->scale_rate)
        wrong = "--warm-up needs --scale-rate";
    if (wrong)
        rt_command_line_refuse(argv, wrong);
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
    const struct rt_command_line line = {options, groups, "--steps 50"};
    rt_command_line_read(&line, &o, argc, argv);
    check(&o, argv);
    return o;
}

struct train_options train_options_read(int argc, char **argv)
{
    return train_options_read_for(argc, argv, TRAIN_OPTIONS_BASE | TRAIN_OPTIONS_SIZE, 0.05);
}
