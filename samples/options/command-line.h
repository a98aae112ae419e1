/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command-line.h - command lines that are tables: --NAME VALUE, --NAME=VALUE, --NAME.
 *
 * A program has one table, of which it may take some groups. Values go into a struct of the
 * caller's, which holds the defaults before.
 */
#ifndef RT_COMMAND_LINE_H
#define RT_COMMAND_LINE_H

#include <stddef.h>

enum rt_option_kind {
    RT_OPTION_INT,
    RT_OPTION_UINT64, /* up to 2^53 */
    RT_OPTION_DOUBLE,
    RT_OPTION_FLOAT,
    RT_OPTION_FLAG, /* bool, without a value */
    RT_OPTION_TEXT  /* const char *, of argv */
};

struct rt_option {
    const char *name, *value, *help; /* `value`: what the help calls it; NULL with a flag */
    enum rt_option_kind kind;
    size_t at; /* of the struct */
    double min, max;
    unsigned group; /* a bit; 0: every program's */
};

struct rt_command_line {
    const struct rt_option *known; /* ends with a NULL name */
    unsigned groups;
    const char *example; /* the arguments of one */
};

/* Where the line isn't right, says why on stderr and ends the program (2); where it asks for help,
 * prints that, with the defaults, to stdout (0). An option that is given twice has its last value.
 */
void rt_command_line_read(const struct rt_command_line *self, void *to, int argc, char **argv);
/* Ends the program (2), with what is wrong. */
void rt_command_line_refuse(char **argv, const char *what) __attribute__((noreturn));

#endif
