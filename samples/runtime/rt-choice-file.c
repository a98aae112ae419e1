/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt-choice.h"
#include "rt-file.h"

#define FIRST_LINE "ringscope-allreduce-table 1"
#define PATH_MAX_  4096

void rt_choice_path(char *ret, size_t bytes, bool *ret_must)
{
    const char *given = getenv("RT_TABLE"), *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    *ret_must = given && *given && strcmp(given, "none") != 0;
    if (given && *given)
        snprintf(ret, bytes, "%s", *ret_must ? given : "");
    else if (config && *config)
        snprintf(ret, bytes, "%s/ringscope/allreduce.table", config);
    else
        snprintf(ret, bytes, "%s/.config/ringscope/allreduce.table", home ? home : "");
}

/* ---- reading ---- */

struct section {
    char topology[RT_TOPOLOGY_TEXT_MAX];
    struct rt_costs costs;
    bool has_costs, ended;
    struct rt_choice choice;
};

struct reader {
    const char *path;
    unsigned line;
    char *message;
    size_t message_bytes;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reader *r, const char *format,
                                                        ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(r->message, r->message_bytes,
             "%s:%u: %s; remove the file, or let rt_tune write it anew", r->path, r->line, what);
    return -EINVAL;
}

static int read_costs(const struct reader *r, const char *text, struct section *s)
{
    double v[5];
    char more;
    int n = sscanf(text, "%lf %lf %lf %lf %lf %c", &v[0], &v[1], &v[2], &v[3], &v[4], &more);
    for (int i = 0; i < 5; i++)
        if (n != 5 || !(v[i] >= 0 && v[i] < 1e3))
            return refuse(r, "costs are '%.100s', expected five numbers of seconds", text);
    s->costs.inside = (struct rt_cost){v[0], v[1], v[4], 256 << 10};
    s->costs.across = (struct rt_cost){v[2], v[3], v[4], 16 << 20};
    s->has_costs = true;
    return 0;
}

/* `up_to` is text, or NULL: no end. */
static int read_step(const struct reader *r, const char *up_to, const char *name, struct section *s)
{
    uint64_t bytes = UINT64_MAX;
    struct rt_plan plan;
    char *end = NULL;
    errno = 0;
    if (up_to)
        bytes = strtoull(up_to, &end, 10);
    if (up_to && (*up_to < '0' || *up_to > '9' || *end || errno))
        return refuse(r, "'%.100s' is no number of bytes", up_to);
    if (s->ended || (s->choice.n > 0 && bytes <= s->choice.steps[s->choice.n - 1].up_to))
        return refuse(r, "sizes must ascend, and nothing follow 'beyond'");
    if (rt_plan_parse(name, &plan))
        return refuse(r, "'%.100s' is no algorithm, expected " RT_PLAN_NAMES, name);
    s->ended = !up_to;
    return rt_choice_add(&s->choice, bytes, plan)
               ? refuse(r, "more than %d sizes", RT_CHOICE_STEPS_MAX)
               : 0;
}

static int read_measured(const struct reader *r, const char *text, struct section *s)
{
    unsigned long long from, to;
    char more;
    if (strchr(text, '-') || sscanf(text, "%llu %llu %c", &from, &to, &more) != 2 || from == 0 ||
        from > to)
        return refuse(r, "measured is '%.100s', expected the least and the largest size in bytes",
                      text);
    s->choice.measured_from = from;
    s->choice.measured_to = to;
    return 0;
}

static int read_line(const struct reader *r, char *line, struct section *s, bool in_section)
{
    char bytes[64], name[RT_PLAN_TEXT_MAX], more;
    if (!in_section)
        return refuse(r, "'%.100s' stands before the first topology", line);
    if (strncmp(line, "costs ", 6) == 0)
        return read_costs(r, line + 6, s);
    if (strncmp(line, "measured ", 9) == 0)
        return read_measured(r, line + 9, s);
    if (sscanf(line, "up-to %63s %63s %c", bytes, name, &more) == 2)
        return read_step(r, bytes, name, s);
    if (sscanf(line, "beyond %63s %c", name, &more) == 1)
        return read_step(r, NULL, name, s);
    return refuse(
        r, "'%.100s', expected topology, costs, measured, up-to BYTES NAME or beyond NAME", line);
}

static void strip(char *line)
{
    line[strcspn(line, "#\n")] = 0;
    for (size_t n = strlen(line); n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'); n--)
        line[n - 1] = 0;
}

typedef int section_fn(void *data, const struct section *s);

static int end_section(const struct reader *r, const struct section *s, section_fn *fn, void *data)
{
    if (!s->ended || !s->has_costs)
        return refuse(r, "the section of '%.100s' ends before its '%s'", s->topology,
                      s->ended ? "costs" : "beyond");
    return fn(data, s);
}

static int read_sections(struct reader *r, FILE *file, section_fn *fn, void *data)
{
    char line[RT_TOPOLOGY_TEXT_MAX + 64];
    struct section s = {0};
    bool in_section = false;
    int error = 0;
    for (r->line = 1; !error && fgets(line, sizeof line, file); r->line++) {
        if (!strchr(line, '\n') && !feof(file))
            return refuse(r, "the line is too long");
        strip(line);
        if (r->line == 1 && strcmp(line, FIRST_LINE) != 0)
            return refuse(r, "no table of this version: the first line is not '" FIRST_LINE "'");
        if (r->line == 1 || !*line)
            continue;
        if (strncmp(line, "topology ", 9) != 0) {
            error = read_line(r, line, &s, in_section);
            continue;
        }
        error = in_section ? end_section(r, &s, fn, data) : 0;
        memset(&s, 0, sizeof s);
        snprintf(s.topology, sizeof s.topology, "%.*s", RT_TOPOLOGY_TEXT_MAX - 1, line + 9);
        in_section = true;
    }
    if (error)
        return error;
    if (ferror(file))
        return refuse(r, "can't read it");
    return in_section ? end_section(r, &s, fn, data) : refuse(r, "it has no topology");
}

static int read_file(const char *path, section_fn *fn, void *data, char *message,
                     size_t message_bytes)
{
    struct reader r = {path, 0, message, message_bytes};
    int error;
    FILE *file = rt_file_read(path, &error);
    if (!file) {
        snprintf(message, message_bytes, "can't open the table %s: %s", path, rt_file_why(error));
        return error;
    }
    error = read_sections(&r, file, fn, data);
    fclose(file);
    return error;
}

struct lookup {
    const char *topology;
    struct section best;
    bool found, same_transport;
};

static bool same_word(const char *a, const char *b)
{
    size_t n = strcspn(a, " ");
    return strncmp(a, b, n + 1) == 0;
}

static int look(void *data, const struct section *s)
{
    struct lookup *l = data;
    bool found = strcmp(s->topology, l->topology) == 0;
    if (found || (!l->found && !l->same_transport && same_word(s->topology, l->topology)))
        l->best = *s;
    l->found = l->found || found;
    l->same_transport = l->same_transport || same_word(s->topology, l->topology);
    return 0;
}

int rt_choice_read(const char *path, const char *topology, const struct rt_layout *layout,
                   struct rt_choice *ret, bool *ret_found, char *message, size_t message_bytes)
{
    struct lookup l = {.topology = topology};
    int error = read_file(path, look, &l, message, message_bytes);
    if (error)
        return error;
    *ret_found = l.found;
    *ret = l.found            ? l.best.choice
           : l.same_transport ? rt_choice_predict(layout, &l.best.costs)
                              : rt_choice_default(layout);
    return 0;
}

/* ---- writing ---- */

static void put_section(FILE *out, const struct section *s)
{
    const struct rt_costs *c = &s->costs;
    char name[RT_PLAN_TEXT_MAX];
    fprintf(out, "topology %s\ncosts %.4g %.4g %.4g %.4g %.4g\n", s->topology, c->inside.a,
            c->inside.b, c->across.a, c->across.b, c->across.g);
    if (s->choice.measured_to > 0)
        fprintf(out, "measured %llu %llu\n", (unsigned long long)s->choice.measured_from,
                (unsigned long long)s->choice.measured_to);
    for (uint32_t i = 0; i < s->choice.n; i++) {
        rt_plan_text(s->choice.steps[i].plan, name);
        if (i + 1 < s->choice.n)
            fprintf(out, "up-to %llu %s\n", (unsigned long long)s->choice.steps[i].up_to, name);
        else
            fprintf(out, "beyond %s\n", name);
    }
}

struct rewrite {
    FILE *out;
    const struct section *section;
    bool done;
};

static int copy_section(void *data, const struct section *s)
{
    struct rewrite *w = data;
    const bool same = strcmp(s->topology, w->section->topology) == 0;
    if (!same)
        put_section(w->out, s);
    else if (!w->done)
        put_section(w->out, w->section);
    w->done = w->done || same;
    return 0;
}

static void make_folders(const char *path)
{
    char folder[PATH_MAX_];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(folder, 0777); /* where it can't be, the file can't be opened either */
        *slash = '/';
    }
}

static int replace(const char *path, const char *temporary, struct rewrite *w, char *message,
                   size_t message_bytes)
{
    fputs(FIRST_LINE "\n# written by rt_tune; form and use: samples/runtime/rt-choice.h\n", w->out);
    int error = read_file(path, copy_section, w, message, message_bytes);
    if (error == -ENOENT)
        error = 0;
    if (!error && !w->done)
        put_section(w->out, w->section);
    /* what failed before leaves nothing for fflush to fail by */
    bool bad = ferror(w->out) || fflush(w->out) != 0 || fsync(fileno(w->out)) != 0;
    bad = fclose(w->out) != 0 || bad;
    if (!error && (bad || rename(temporary, path) != 0)) {
        error = errno ? -errno : -EIO;
        snprintf(message, message_bytes, "can't write the table %s: %s", path, strerror(-error));
    }
    return error;
}

int rt_choice_write(const char *path, const char *topology, const struct rt_costs *costs,
                    const struct rt_choice *c, char *message, size_t message_bytes)
{
    char temporary[PATH_MAX_];
    struct rt_file_limit limit;
    struct section s = {.costs = *costs, .choice = *c};
    snprintf(s.topology, sizeof s.topology, "%s", topology);
    const int length = snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    int error = length < (int)sizeof temporary ? 0 : -ENAMETOOLONG;
    if (!error) {
        make_folders(path);
        error = rt_file_replaceable(path);
    }
    int fd = error ? error : rt_file_open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    struct rewrite w = {fd < 0 ? NULL : fdopen(fd, "w"), &s, false};
    if (!w.out) {
        if (fd >= 0) {
            close(fd);
            unlink(temporary);
            fd = -ENOMEM;
        }
        snprintf(message, message_bytes, "can't write the table %s: %s", path, rt_file_why(fd));
        return fd;
    }
    rt_file_limit_begin(&limit);
    error = replace(path, temporary, &w, message, message_bytes);
    rt_file_limit_end(&limit);
    if (error)
        unlink(temporary);
    return error;
}
