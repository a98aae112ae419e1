/* SPDX-License-Identifier: Apache-2.0 */
#include "covering.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define P COVERING_PARAMETERS_MAX
#define L COVERING_LEVELS_MAX

/* What is still to meet: value a of parameter p and value b of parameter q, p < q. */
struct search {
    const struct covering *c;
    uint64_t random;
    unsigned left;
    bool open[P][P][L][L];
};

/* xorshift64* */
static unsigned below(struct search *s, unsigned n)
{
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return (unsigned)((s->random * 0x2545f4914f6cdd1du) >> 33) % n;
}

static bool *pair_of(struct search *s, unsigned p, unsigned a, unsigned q, unsigned b)
{
    return p < q ? &s->open[p][q][a][b] : &s->open[q][p][b][a];
}

static void open_all(struct search *s)
{
    const struct covering *c = s->c;
    for (unsigned p = 0; p < c->parameters; p++)
        for (unsigned q = p + 1; q < c->parameters; q++)
            for (unsigned i = 0; i < c->levels[p] * c->levels[q]; i++, s->left++)
                s->open[p][q][i % c->levels[p]][i / c->levels[p]] = true;
}

/* How many open pairs value `a` of `p` would close with those parameters that are set. */
static unsigned gain(struct search *s, const int *row, unsigned p, unsigned a)
{
    unsigned closed = 0;
    for (unsigned q = 0; q < s->c->parameters; q++)
        closed += q != p && row[q] >= 0 && *pair_of(s, p, a, q, (unsigned)row[q]);
    return closed;
}

/* Begins the row with an open pair. */
static void begin_row(struct search *s, int *row)
{
    const struct covering *c = s->c;
    unsigned skip = below(s, s->left);
    for (unsigned p = 0; p < c->parameters; p++)
        for (unsigned q = p + 1; q < c->parameters; q++)
            for (unsigned i = 0; i < c->levels[p] * c->levels[q]; i++)
                if (s->open[p][q][i % c->levels[p]][i / c->levels[p]] && skip-- == 0) {
                    row[p] = (int)(i % c->levels[p]);
                    row[q] = (int)(i / c->levels[p]);
                    return;
                }
}

static void set_best(struct search *s, int *row, unsigned p)
{
    unsigned levels = s->c->levels[p], offset = below(s, levels), best = 0;
    for (unsigned i = 0; i < levels; i++) {
        unsigned a = (i + offset) % levels, closed = gain(s, row, p, a);
        if (row[p] < 0 || closed > best) {
            row[p] = (int)a;
            best = closed;
        }
    }
}

static void finish_row(struct search *s, int *row)
{
    const unsigned n = s->c->parameters, offset = below(s, n);
    for (unsigned i = 0; i < n; i++) {
        unsigned p = (i + offset) % n;
        if (row[p] < 0)
            set_best(s, row, p);
    }
    for (unsigned p = 0; p < n; p++)
        for (unsigned q = p + 1; q < n; q++) {
            bool *open = pair_of(s, p, (unsigned)row[p], q, (unsigned)row[q]);
            s->left -= *open;
            *open = false;
        }
}

static int add_row(struct covering *c, const int *row)
{
    void *grown = realloc(c->rows, (c->count + 1) * sizeof *c->rows);
    if (!grown)
        return -ENOMEM;
    c->rows = grown;
    for (unsigned p = 0; p < P; p++)
        c->rows[c->count][p] = (uint8_t)(p < c->parameters ? row[p] : 0);
    c->count++;
    return 0;
}

int covering_make(struct covering *ret, const unsigned *levels, unsigned parameters, uint64_t seed)
{
    struct covering c = {.parameters = parameters};
    struct search *s = calloc(1, sizeof *s);
    int error = parameters < 2 || parameters > P ? -EINVAL : s ? 0 : -ENOMEM;
    for (unsigned p = 0; p < parameters && !error; p++) {
        c.levels[p] = levels[p];
        error = levels[p] < 1 || levels[p] > L ? -EINVAL : 0;
    }
    if (!error) {
        s->c = &c;
        s->random = seed * 2 + 1;
        open_all(s);
    }
    while (!error && s->left > 0) {
        int row[P];
        memset(row, -1, sizeof row);
        begin_row(s, row);
        finish_row(s, row);
        error = add_row(&c, row);
    }
    free(s);
    if (error)
        covering_free(&c);
    else
        *ret = c;
    return error;
}

void covering_free(struct covering *c)
{
    free(c->rows);
    *c = (struct covering){0};
}

uint64_t covering_seed(const char *variable)
{
    const char *given = getenv(variable);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given && *given ? strtoull(given, NULL, 10)
                                    : (uint64_t)now.tv_nsec / 1000 + (uint64_t)now.tv_sec % 1000;
    printf("seed: %s=%llu\n", variable, (unsigned long long)seed);
    fflush(stdout);
    return seed;
}
