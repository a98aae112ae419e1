/* SPDX-License-Identifier: Apache-2.0 */
#include "command-line.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-launcher.h"

static bool is_whole(const struct rt_option *o)
{
    return o->kind == RT_OPTION_INT || o->kind == RT_OPTION_UINT64;
}

static double number(const char *program, const struct rt_option *o, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= o->min && value <= o->max) ||
        (is_whole(o) && value != (double)(int64_t)value)) {
        fprintf(stderr, "%s: --%s '%s': expected a %snumber from %.12g to %.12g\n", program,
                o->name, text, is_whole(o) ? "whole " : "", o->min, o->max);
        exit(2);
    }
    return value;
}

static void set(void *to, const char *program, const struct rt_option *o, const char *text)
{
    void *at = (char *)to + o->at;
    switch (o->kind) {
    case RT_OPTION_INT:
        *(int *)at = (int)number(program, o, text);
        break;
    case RT_OPTION_UINT64:
        *(uint64_t *)at = (uint64_t)number(program, o, text);
        break;
    case RT_OPTION_DOUBLE:
        *(double *)at = number(program, o, text);
        break;
    case RT_OPTION_FLOAT:
        *(float *)at = (float)number(program, o, text);
        break;
    case RT_OPTION_FLAG:
        *(bool *)at = true;
        break;
    case RT_OPTION_TEXT:
        *(const char **)at = text;
    }
}

/* Nothing where it is 0, none or a flag. */
static void print_default(const void *from, const struct rt_option *o)
{
    const void *at = (const char *)from + o->at;
    const char *text = o->kind == RT_OPTION_TEXT ? *(const char *const *)at : NULL;
    const double value = o->kind == RT_OPTION_INT      ? *(const int *)at
                         : o->kind == RT_OPTION_UINT64 ? (double)*(const uint64_t *)at
                         : o->kind == RT_OPTION_DOUBLE ? *(const double *)at
                         : o->kind == RT_OPTION_FLOAT  ? (double)*(const float *)at
                                                       : 0;
    if (text && *text)
        printf(" (%s)", text);
    else if (value != 0)
        printf(o->kind == RT_OPTION_FLOAT ? " (%g)" : " (%.12g)", value);
}

static bool is_known(const struct rt_command_line *self, const struct rt_option *o)
{
    return !o->group || o->group & self->groups;
}

static void usage(const struct rt_command_line *self, const void *defaults, const char *program)
{
    char left[40];
    printf("usage: %s [OPTION]...\n", program);
    for (const struct rt_option *o = self->known; o->name; o++) {
        if (!is_known(self, o))
            continue;
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        printf("  %-18s  %s", left, o->help);
        print_default(defaults, o);
        printf("\n");
    }
    printf("example: %s %s %s\n", rt_launcher(program), program, self->example);
}

static const struct rt_option *find(const struct rt_command_line *self, const char *name,
                                    size_t bytes)
{
    for (const struct rt_option *o = self->known; o->name; o++)
        if (is_known(self, o) && strncmp(o->name, name, bytes) == 0 && o->name[bytes] == 0)
            return o;
    return NULL;
}

/* Returns how many words that were. */
static int take(const struct rt_command_line *self, void *to, int argc, char **argv, int i)
{
    const char *word = argv[i], *equals = strchr(word, '=');
    const struct rt_option *o = NULL;
    if (strncmp(word, "--", 2) == 0)
        o = find(self, word + 2, strcspn(word + 2, "="));
    const char *value = equals ? equals + 1 : i + 1 < argc ? argv[i + 1] : NULL;
    if (!o)
        fprintf(stderr, "%s: unexpected '%s'; --help lists the options\n", argv[0], word);
    else if (!o->value && equals)
        fprintf(stderr, "%s: --%s takes no value\n", argv[0], o->name);
    else if (o->value && !value)
        fprintf(stderr, "%s: --%s needs a value\n", argv[0], o->name);
    else {
        set(to, argv[0], o, value);
        return o->value && !equals ? 2 : 1;
    }
    exit(2);
}

void rt_command_line_read(const struct rt_command_line *self, void *to, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage(self, to, argv[0]);
            exit(0);
        }
    for (int i = 1; i < argc;)
        i += take(self, to, argc, argv, i);
}

void rt_command_line_refuse(char **argv, const char *what)
{
    fprintf(stderr, "%s: %s\n", argv[0], what);
    exit(2);
}
