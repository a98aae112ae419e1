/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of the samples' programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command-line.h"

struct values {
    int steps;
    uint64_t bytes;
    double size;
    float rate;
    bool resume, other;
    const char *file;
};

#define AT(member) offsetof(struct values, member)
static const struct rt_option known[] = {
    {"steps", "N", "steps", RT_OPTION_INT, AT(steps), 1, 100, 0},
    {"bytes", "N", "bytes", RT_OPTION_UINT64, AT(bytes), 0, 1e15, 0},
    {"size", "X", "size", RT_OPTION_DOUBLE, AT(size), 0.5, 2, 0},
    {"rate", "X", "rate", RT_OPTION_FLOAT, AT(rate), 0, 1, 0},
    {"resume", NULL, "resumes", RT_OPTION_FLAG, AT(resume), 0, 0, 1},
    {"file", "FILE", "file", RT_OPTION_TEXT, AT(file), 0, 0, 1},
    {"other", NULL, "another program's", RT_OPTION_FLAG, AT(other), 0, 0, 2},
    {0},
};

/* Cuts `text` at its spaces. */
static struct values read_line(char *text)
{
    const struct rt_command_line line = {known, 1, "--steps 3"};
    struct values v = {.steps = 7, .bytes = 9, .size = 1, .rate = 0.5f, .file = "usual"};
    char program[] = "program", *argv[20] = {program}, *at = NULL;
    int argc = 1;
    for (char *word = strtok_r(text, " ", &at); word; word = strtok_r(NULL, " ", &at))
        argv[argc++] = word;
    rt_command_line_read(&line, &v, argc, argv);
    return v;
}

static void read_rightLine_givesValuesAndKeepsDefaults(void **state)
{
    char none[] = "", some[] = "--bytes 1000000000000000 --size=0.5 --resume --file -x",
         all[] = "--steps 100 --bytes=0 --size 2 --rate 0.25 --file=";
    struct values v = read_line(none);
    assert_true(v.steps == 7 && v.bytes == 9 && v.size == 1 && v.rate == 0.5f && !v.resume);
    v = read_line(some);
    assert_true(v.steps == 7 && v.bytes == 1000000000000000u && v.size == 0.5 && v.resume);
    assert_string_equal(v.file, "-x");
    v = read_line(all);
    assert_true(v.steps == 100 && v.bytes == 0 && v.size == 2 && v.rate == 0.25f && !v.other);
    assert_string_equal(v.file, "");
}

/* What the program says, and its status. */
static int say(const char *words, char *ret, size_t bytes)
{
    int ends[2], status;
    char text[200];
    size_t n = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        snprintf(text, sizeof text, "%s", words);
        read_line(text);
        _exit(100);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], ret + n, bytes - 1 - n)) > 0;)
        n += (size_t)got;
    ret[n] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void read_wrongLine_saysWhatIsExpected(void **state)
{
    static const char *const cases[][2] = {
        {"--steps 0", "program: --steps '0': expected a whole number from 1 to 100\n"},
        {"--steps 1.5", "program: --steps '1.5': expected a whole number from 1 to 100\n"},
        {"--steps 5x", "program: --steps '5x': expected a whole number"},
        {"--steps nan", "program: --steps 'nan': expected a whole number"},
        {"--steps inf", "program: --steps 'inf': expected a whole number"},
        {"--steps --resume", "program: --steps '--resume': expected a whole number"},
        {"--bytes -1", "program: --bytes '-1': expected a whole number from 0 to 1e+15\n"},
        {"--size 3", "program: --size '3': expected a number from 0.5 to 2\n"},
        {"--size=", "program: --size '': expected a number"},
        {"--file", "program: --file needs a value\n"},
        {"--resume=1", "program: --resume takes no value\n"},
        {"--other", "program: unexpected '--other'; --help lists the options\n"},
        {"--step 3", "program: unexpected '--step'"},
        {"-steps 3", "program: unexpected '-steps'"},
        {"--", "program: unexpected '--'"},
        {"word", "program: unexpected 'word'"},
    };
    char said[2000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(say(cases[i][0], said, sizeof said), 2);
        if (strncmp(said, cases[i][1], strlen(cases[i][1])) != 0)
            fail_msg("'%s' gives '%s'", cases[i][0], said);
    }
}

static void read_help_listsTheProgramsOptionsWithDefaults(void **state)
{
    char said[2000];
    assert_int_equal(say("--steps 50 --help", said, sizeof said), 0);
    assert_string_equal(said, "usage: program [OPTION]...\n"
                              "  --steps N           steps (7)\n"
                              "  --bytes N           bytes (9)\n"
                              "  --size X            size (1)\n"
                              "  --rate X            rate (0.5)\n"
                              "  --resume            resumes\n"
                              "  --file FILE         file (usual)\n"
                              "example: mpirun -np 4 program --steps 3\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_rightLine_givesValuesAndKeepsDefaults),
        cmocka_unit_test(read_wrongLine_saysWhatIsExpected),
        cmocka_unit_test(read_help_listsTheProgramsOptionsWithDefaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
