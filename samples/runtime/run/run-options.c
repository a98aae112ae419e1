/* SPDX-License-Identifier: Apache-2.0 */
#include "run-options.h"

#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS_MAX (1 << 16)

static const char help[] =
    "usage: rt-run [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
    "\n"
    "Starts the ranks of a program of the runtime without MPI, here and on other hosts.\n"
    "\n"
    "  -n, -np N             ranks (default: the slots of -H; without -H, this host's processors)\n"
    "  -H HOST[:SLOTS],...   hosts, and how many ranks each takes (1); they are reached by ssh, "
    "and\n"
    "                        have rt-run and PROGRAM where this one has them; an address of IPv6\n"
    "                        stands in brackets\n"
    "  --addr ADDRESS        of rank 0's host, for the other ranks (default: by --interface; on "
    "one\n"
    "                        host 127.0.0.1; else the name it has in -H)\n"
    "  --port PORT           where rank 0 waits for the others (default: a free one)\n"
    "  --interface NAME,...  by whose address ranks take part: the first that a host has\n"
    "  -x NAME[=VALUE]       a variable that ranks get; on this host they have all, on others "
    "these\n"
    "                        and RT_*, RINGSCOPE_* and LD_PRELOAD\n"
    "  --start-timeout S     how long hosts and ranks are waited for (30)\n"
    "  --grace S             how long the others may go on when a rank has ended badly (3)\n"
    "  --tag-output          each line begins with [RANK]<stdout>: or [RANK]<stderr>:\n"
    "  --ssh COMMAND         gets HOST and a command line for its shell (default: RT_SSH, or\n"
    "                        ssh -x -o BatchMode=yes)\n"
    "  --help, --version\n"
    "\n"
    "Input goes to rank 0. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 go to all ranks;\n"
    "a second SIGINT or SIGTERM ends them at once. SIGTSTP (Ctrl-Z) stops them with rt-run, until\n"
    "SIGCONT (fg, bg). Where a rank ends with a status that isn't 0, or by a signal, the others "
    "are\n"
    "ended, and rt-run has its status, or 128 + the signal; 127 where there is no such program, 2 "
    "for\n"
    "wrong usage. When rt-run ends, nothing is left of what its ranks have started.\n"
    "\n"
    "  rt-run -n 4 ./mlp-tcp --steps 20\n"
    "  rt-run -H node1:4,node2:4 --interface eth0 -x OMP_NUM_THREADS=1 ./lm-tcp\n"
    "  rt-run -n 4 ./on-hosts 2 -- ./mlp-tcp\n";

__attribute__((format(printf, 2, 3))) static int refuse(int *ret_status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("rt-run: ", stderr);
    vfprintf(stderr, format, args);
    fputs(" (rt-run --help)\n", stderr);
    va_end(args);
    *ret_status = 2;
    return 1;
}

static int read_number(const char *option, const char *text, long least, long most, long *ret,
                       int *ret_status)
{
    char *end;
    const long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value < least || value > most)
        return refuse(ret_status, "%s %s: expected a number from %ld to %ld", option, text, least,
                      most);
    *ret = value;
    return 0;
}

/* ---- hosts ---- */

static bool is_local(const char *name)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    char own[256] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    gethostname(own, sizeof own - 1);
    if (strcmp(name, own) == 0)
        return true;
    own[strcspn(own, ".")] = 0;
    return strcmp(name, own) == 0;
}

/* "name", "name:2", "[::1]:2"; cuts it in place. */
static int read_host(struct run_options *o, char *text, int *ret_status)
{
    char *name = text, *slots = strchr(text, ':');
    long count = 1;
    if (*text == '[' && strchr(text, ']')) {
        name = text + 1;
        slots = strchr(text, ']');
        *slots++ = 0;
        if (*slots && *slots != ':')
            return refuse(ret_status, "-H [%s]%s: expected [ADDRESS]:SLOTS", name, slots);
        slots = *slots ? slots : NULL;
    }
    if (slots) {
        *slots++ = 0;
        if (read_number("-H: slots", slots, 1, RANKS_MAX, &count, ret_status))
            return 1;
    }
    if (!*name || *name == '-')
        return refuse(ret_status, "-H: '%s' is no host", name);
    int h = 0;
    while (h < o->host_count && strcmp(o->hosts[h].name, name) != 0)
        h++;
    if (h == o->host_count) {
        o->hosts[h] = (struct run_host){.name = name, .is_local = is_local(name)};
        o->host_count++;
    }
    o->hosts[h].slots += (int)count;
    for (int i = 0; i < count; i++) {
        if (o->size == RANKS_MAX)
            return refuse(ret_status, "-H: more than %d ranks", RANKS_MAX);
        o->host_of[o->size++] = h;
    }
    return 0;
}

static int read_hosts(struct run_options *o, char *list, int *ret_status)
{
    int count = 1;
    for (const char *c = list; *c; c++)
        count += *c == ',';
    o->hosts = calloc((size_t)count, sizeof *o->hosts);
    for (char *at = list; o->hosts && at;) {
        char *name = at, *comma = strchr(at, ',');
        at = comma ? comma + 1 : NULL;
        if (comma)
            *comma = 0;
        if (read_host(o, name, ret_status))
            return 1;
    }
    return o->hosts ? 0 : refuse(ret_status, "no memory");
}

/* Slots are filled in the order of -H. */
static int place_ranks(struct run_options *o, long wanted, int *ret_status)
{
    cpu_set_t cpus;
    if (o->hosts && wanted > o->size)
        return refuse(ret_status, "-n %ld, but -H has %d slots: write HOST:SLOTS", wanted, o->size);
    if (!o->hosts) {
        o->hosts = calloc(1, sizeof *o->hosts);
        if (!o->hosts)
            return refuse(ret_status, "no memory");
        o->hosts[0] = (struct run_host){.name = "localhost", .is_local = true};
        o->host_count = 1;
        o->size = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    }
    if (wanted > 0)
        o->size = (int)wanted;
    for (int r = 0; r < o->size; r++)
        o->hosts[o->host_of[r]].ranks++;
    return 0;
}

/* ---- the command line ---- */

enum { ADDR = 256, PORT, INTERFACE, START, GRACE, TAG, SSH, HELP, VERSION };

static const struct option words[] = {
    {"n", required_argument, NULL, 'n'},
    {"np", required_argument, NULL, 'n'},
    {"H", required_argument, NULL, 'H'},
    {"hosts", required_argument, NULL, 'H'},
    {"x", required_argument, NULL, 'x'},
    {"addr", required_argument, NULL, ADDR},
    {"port", required_argument, NULL, PORT},
    {"interface", required_argument, NULL, INTERFACE},
    {"grace", required_argument, NULL, GRACE},
    {"start-timeout", required_argument, NULL, START},
    {"ssh", required_argument, NULL, SSH},
    {"tag-output", no_argument, NULL, TAG},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {NULL, 0, NULL, 0},
};

static int read_name(const char *option, const char *text, const char **ret, int *ret_status)
{
    *ret = text;
    return *text ? 0 : refuse(ret_status, "%s: expected a word", option);
}

static int read_variable(struct run_options *o, const char *text, int *ret_status)
{
    o->variables[o->variable_count++] = text;
    if (!*text || *text == '=')
        return refuse(ret_status, "-x: expected NAME or NAME=VALUE");
    if (!strchr(text, '=') && !getenv(text))
        return refuse(ret_status, "-x %s: not set here; expected NAME=VALUE", text);
    return 0;
}

static int read_option(struct run_options *o, int option, long *ret_wanted, int *ret_status)
{
    switch (option) {
    case 'n':
        return read_number("-n", optarg, 1, RANKS_MAX, ret_wanted, ret_status);
    case 'H':
        return o->hosts ? refuse(ret_status, "-H is given twice: join hosts by commas")
                        : read_hosts(o, optarg, ret_status);
    case 'x':
        return read_variable(o, optarg, ret_status);
    case ADDR:
        return read_name("--addr", optarg, &o->address, ret_status);
    case INTERFACE:
        return read_name("--interface", optarg, &o->interface, ret_status);
    case PORT:
        return read_number("--port", optarg, 1, 65535, &o->port, ret_status);
    case START:
        o->sets_start = true;
        return read_number("--start-timeout", optarg, 1, 1000000, &o->start_s, ret_status);
    case GRACE:
        return read_number("--grace", optarg, 0, 1000000, &o->grace_s, ret_status);
    case SSH:
        return read_name("--ssh", optarg, &o->ssh, ret_status);
    case TAG:
        o->tags_output = true;
        return 0;
    case HELP:
        fputs(help, stdout);
        *ret_status = 0;
        return 1;
    case VERSION:
        puts("rt-run (Ringscope) " RT_VERSION);
        *ret_status = 0;
        return 1;
    default:
        fputs("rt-run: see rt-run --help\n", stderr);
        *ret_status = 2;
        return 1;
    }
}

int run_options_read(struct run_options *o, int argc, char **argv, int *ret_status)
{
    const char *ssh = getenv("RT_SSH"), *start = getenv("RT_START_TIMEOUT");
    long wanted = 0;
    int option;
    *o = (struct run_options){.start_s = 30, .grace_s = 3};
    if (start && atol(start) > 0 && atol(start) <= 1000000)
        o->start_s = atol(start); /* wrong, ranks say so */
    o->ssh = ssh && *ssh ? ssh : "ssh -x -o BatchMode=yes";
    o->host_of = calloc(RANKS_MAX, sizeof *o->host_of);
    o->variables = calloc((size_t)argc, sizeof *o->variables);
    if (!o->host_of || !o->variables)
        return refuse(ret_status, "no memory");
    /* one dash does for long names, as with mpirun; the program's own are left alone */
    while ((option = getopt_long_only(argc, argv, "+n:H:x:", words, NULL)) >= 0)
        if (read_option(o, option, &wanted, ret_status))
            return 1;
    o->program = argv + optind;
    if (!*o->program)
        return refuse(ret_status, "no program to run");
    return place_ranks(o, wanted, ret_status);
}

void run_options_release(struct run_options *o)
{
    free(o->hosts);
    free(o->host_of);
    free(o->variables);
}
